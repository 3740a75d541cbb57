//! A queue of records of 24 and 150 bytes: ranges of ten from random places, then pops from both
//! ends, in memory and at a sixth of the records.

use crate::{
    contender::{About, Focus},
    harness::{Phase, Work},
    suite::{Draft, Plan},
};

/// At scale 1.
pub(super) const RECORDS: u64 = 5_000_000;
const KEY_BYTES: usize = 24;
const VALUE_BYTES: usize = 150;
/// Enough for every contender's in-memory form.
const ROOM_PER_RECORD: u64 = 640;
const LEAST_ROOM: u64 = 256 << 20;
const RANGE: u64 = 10;
const RANGE_SECONDS: f64 = 20.0;
const POP_SECONDS: f64 = 60.0;
/// Of the records so many stay, so that what is popped is a queue to the end.
const LEFT_DIVISOR: u64 = 20;

/// Those that take records from both ends.
const QUEUES: [&str; 4] = ["rocksdb", "fjall", "redb", "lmdb"];

/// How much of it.
pub(super) struct Size {
    pub records: u64,
    /// Of the part that is larger than memory, in bytes.
    pub budget: u64,
    /// Of what the time caps are, so much.
    pub patience: f64,
    pub seed: u64,
}

pub(super) fn queue(plan: &mut Plan, size: &Size, contenders: &[&About]) {
    let records = size.records;
    let budgets = [
        ("queue-memory", (records * ROOM_PER_RECORD).max(LEAST_ROOM)),
        ("queue-larger", size.budget),
    ];
    let popping =
        |about: &&&About| about.name.starts_with("indexy") || QUEUES.contains(&about.name);
    for (scenario, budget) in budgets {
        let mut draft = Draft::new(scenario, budget, records, size.seed);
        draft.confined = scenario == "queue-larger";
        draft.scans = true;
        draft.long_keys = true;
        draft.key_bytes = KEY_BYTES;
        draft.value_bytes = VALUE_BYTES;
        for about in contenders.iter().filter(popping) {
            plan.add(&draft, about, 0, phases(size));
        }
    }
}

fn phases(size: &Size) -> Vec<Phase> {
    let records = size.records;
    let properties = |more: &[(&str, String)]| {
        let all = [
            ("recordcount", records.to_string()),
            ("fieldcount", "1".to_owned()),
            ("fieldlength", VALUE_BYTES.to_string()),
        ];
        let named = |(name, value): &(&str, String)| ((*name).to_owned(), value.clone());
        all.iter().chain(more).map(named).collect()
    };
    let ranges = [
        ("operationcount", (records * RANGE).to_string()),
        ("readproportion", "0".to_owned()),
        ("updateproportion", "0".to_owned()),
        ("scanproportion", "1".to_owned()),
        ("minscanlength", RANGE.to_string()),
        ("maxscanlength", RANGE.to_string()),
        ("requestdistribution", "uniform".to_owned()),
    ];
    let load = Work::YcsbLoad {
        properties: properties(&[]),
    };
    let range = Work::YcsbRun {
        properties: properties(&ranges),
    };
    let pop = Work::Pop {
        ops: records - records / LEFT_DIVISOR,
    };
    vec![
        Phase::new("load", 2, Focus::Writes, load),
        Phase::new("settle", 1, Focus::Writes, Work::Settle),
        Phase::new("ranges-of-10", 1, Focus::Reads, range).capped(RANGE_SECONDS * size.patience),
        Phase::new("pops", 1, Focus::Writes, pop).capped(POP_SECONDS * size.patience),
    ]
}
