//! The jobs of the core's table.

use super::queue::{self, queue};
use crate::{
    contender::{About, Durability, Focus, Storage},
    harness::{Clock, Phase, UNBOUNDED, Work},
    suite::{Draft, Plan},
    workload::Pick,
};

/// A part of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// In memory, everything fits.
    Memory,
    /// With and without a log.
    Durability,
    /// Many times the budget.
    Larger,
    /// Opening after a crash.
    Replay,
    /// A queue: pops from both ends, short ranges.
    Queue,
}

impl Section {
    /// All sections.
    pub const ALL: [Section; 5] = [
        Section::Memory,
        Section::Durability,
        Section::Larger,
        Section::Replay,
        Section::Queue,
    ];

    /// As the command line spells it.
    pub fn name(self) -> &'static str {
        match self {
            Section::Memory => "memory",
            Section::Durability => "durability",
            Section::Larger => "larger",
            Section::Replay => "replay",
            Section::Queue => "queue",
        }
    }
}

/// Sizes of the table.
#[derive(Debug, Clone)]
pub struct CoreOptions {
    /// 1 for the sizes that the goals are stated for.
    pub scale: f64,
    /// Which sections.
    pub sections: Vec<Section>,
    /// Budget of the larger-than-memory section at scale 1, in bytes.
    pub budget: u64,
    /// Repetitions of the in-memory and durability sections.
    pub repeats: usize,
    /// Repetitions of the larger-than-memory section.
    pub larger_repeats: usize,
    /// Time cap of a read phase at scale 1, in seconds.
    pub read_seconds: f64,
    /// Seed of all draws.
    pub seed: u64,
}

const MEMORY_KEYS: u64 = 10_000_000;
const LARGER_KEYS: u64 = 30_000_000;
const WORKING_SET: u64 = 1_000_000;
const LOGGED_KEYS: u64 = 5_000_000;
const SYNC_SECONDS: f64 = 8.0;
const LOAD_SECONDS: f64 = 600.0;
const ZIPF: f64 = 0.99;
const MULTI_GET: usize = 64;
/// Enough for every contender's in-memory form.
const ROOM_PER_KEY: u64 = 256;
const LEAST_ROOM: u64 = 256 << 20;
/// Smallest budget of a shrunken run.
const LEAST_BUDGET: u64 = 8 << 20;
const LEAST_KEYS: u64 = 10_000;
/// So many that the harness's own reads of `/proc` do not show among them.
const LEAST_ABSENT: u64 = 2_000_000;

impl CoreOptions {
    fn keys(&self, at_full_scale: u64) -> u64 {
        ((at_full_scale as f64 * self.scale) as u64).max(LEAST_KEYS)
    }

    /// Budget of the larger-than-memory section, scaled.
    pub fn larger_budget(&self) -> u64 {
        ((self.budget as f64 * self.scale) as u64).max(LEAST_BUDGET)
    }

    fn queue(&self) -> queue::Size {
        queue::Size {
            records: self.keys(queue::RECORDS),
            budget: self.larger_budget(),
            patience: self.scale.max(0.05),
            seed: self.seed,
        }
    }

    fn seconds(&self, at_full_scale: f64) -> f64 {
        (at_full_scale * self.scale.max(0.05)).max(1.0)
    }
}

/// All jobs of the chosen sections, repetitions of different contenders interleaved.
pub fn core_plan(options: &CoreOptions, contenders: &[&About]) -> Plan {
    let mut plan = Plan::default();
    for section in &options.sections {
        match section {
            Section::Memory => memory(&mut plan, options, contenders),
            Section::Durability => durability(&mut plan, options, contenders),
            Section::Larger => larger(&mut plan, options, contenders),
            Section::Replay => replay(&mut plan, options, contenders),
            Section::Queue => queue(&mut plan, &options.queue(), contenders),
        }
    }
    plan
}

/// Ours and those that only ever live in memory.
fn in_memory<'a>(contenders: &[&'a About]) -> Vec<&'a About> {
    contenders
        .iter()
        .copied()
        .filter(|c| c.storage == Storage::Memory || is_ours(c))
        .collect()
}

fn on_disk<'a>(contenders: &[&'a About]) -> Vec<&'a About> {
    contenders
        .iter()
        .copied()
        .filter(|c| c.storage == Storage::Disk)
        .collect()
}

fn is_ours(about: &About) -> bool {
    about.name.starts_with("indexy")
}

fn memory(plan: &mut Plan, options: &CoreOptions, contenders: &[&About]) {
    let keys = options.keys(MEMORY_KEYS);
    let budget = (keys * ROOM_PER_KEY).max(LEAST_ROOM);
    for repeat in 0..options.repeats {
        for threads in [1, 2] {
            let draft = Draft::new(format!("memory-{threads}t"), budget, keys, options.seed);
            for about in in_memory(contenders) {
                plan.add(&draft, about, repeat, memory_phases(keys, threads));
            }
        }
    }
}

fn memory_phases(keys: u64, threads: usize) -> Vec<Phase> {
    let read = |pick, ops| Work::Read { pick, ops, unit: 1 };
    let sampled = |phase: Phase| phase.timed(Clock::Sampled);
    vec![
        sampled(Phase::new(
            "insert",
            threads,
            Focus::Writes,
            Work::Load {
                from: 0,
                count: keys,
            },
        )),
        sampled(Phase::new(
            "get",
            threads,
            Focus::Reads,
            read(Pick::Uniform { keys }, keys),
        )),
        sampled(Phase::new(
            "absent",
            threads,
            Focus::Reads,
            read(Pick::Absent, keys.max(LEAST_ABSENT)),
        )),
    ]
}

fn durability(plan: &mut Plan, options: &CoreOptions, contenders: &[&About]) {
    let keys = options.keys(LOGGED_KEYS);
    let budget = (keys * ROOM_PER_KEY).max(LEAST_ROOM);
    for repeat in 0..options.repeats {
        for (durability, threads) in [
            (Durability::None, 1),
            (Durability::Buffered, 1),
            (Durability::None, 2),
            (Durability::Buffered, 2),
            (Durability::Sync, 1),
            (Durability::Sync, 16),
        ] {
            let scenario = format!("durability-{}-{threads}t", durability.name());
            let mut draft = Draft::new(scenario, budget, keys, options.seed);
            draft.durability = durability;
            let mut load = Phase::new(
                "insert",
                threads,
                Focus::Writes,
                Work::Load {
                    from: 0,
                    count: keys,
                },
            );
            load = if durability == Durability::Sync {
                load.capped(options.seconds(SYNC_SECONDS))
            } else {
                load.timed(Clock::Sampled)
                    .capped(options.seconds(LOAD_SECONDS))
            };
            // Buffered against None is a question to ourselves; the peers answer for Sync.
            let asked = on_disk(contenders)
                .into_iter()
                .filter(|c| durability == Durability::Sync || is_ours(c));
            for about in asked {
                plan.add(&draft, about, repeat, vec![load.clone()]);
            }
        }
    }
}

fn larger(plan: &mut Plan, options: &CoreOptions, contenders: &[&About]) {
    let keys = options.keys(LARGER_KEYS);
    let mut draft = Draft::new("larger", options.larger_budget(), keys, options.seed);
    draft.confined = true;
    for repeat in 0..options.larger_repeats {
        for about in on_disk(contenders) {
            plan.add(&draft, about, repeat, larger_phases(options, keys));
        }
    }
}

fn larger_phases(options: &CoreOptions, keys: u64) -> Vec<Phase> {
    const THREADS: usize = 2;
    let set = Pick::WorkingSet {
        keys,
        set: options.keys(WORKING_SET),
    };
    let zipf = Pick::Zipf {
        keys,
        exponent: ZIPF,
        scattered: true,
        rotate: 0,
    };
    let uniform = Pick::Uniform { keys };
    let seconds = options.seconds(options.read_seconds);
    let reads =
        |name: &str, work: Work| Phase::new(name, THREADS, Focus::Reads, work).capped(seconds);
    let single = |pick: &Pick| Work::Read {
        pick: pick.clone(),
        ops: UNBOUNDED,
        unit: 1,
    };
    let multi = |pick: &Pick| Work::MultiRead {
        pick: pick.clone(),
        ops: UNBOUNDED,
        batch: MULTI_GET,
    };
    vec![
        Phase::new(
            "load",
            THREADS,
            Focus::Writes,
            Work::Load {
                from: 0,
                count: keys,
            },
        )
        .capped(options.seconds(LOAD_SECONDS)),
        Phase::new("settle", 1, Focus::Writes, Work::Settle),
        reads("warm-set", Work::Touch { pick: set.clone() }).capped(options.seconds(LOAD_SECONDS)),
        reads("get-set", single(&set)),
        reads("warm-zipf", single(&zipf)).capped(6.0 * seconds),
        reads("get-zipf", single(&zipf)),
        reads("get-cold", single(&uniform)),
        reads("multi-get-cold", multi(&uniform)),
        reads("multi-get-zipf", multi(&zipf)),
        reads("absent", single(&Pick::Absent)),
        Phase::new(
            "mixed",
            THREADS,
            Focus::Mixed,
            Work::Mixed {
                pick: zipf.clone(),
                ops: UNBOUNDED,
                insert_share: 0.5,
            },
        )
        .capped(2.0 * seconds),
        Phase::new("settle-again", 1, Focus::Writes, Work::Settle),
        Phase::new("reopen", 1, Focus::Reads, Work::Reopen),
        reads("check", single(&uniform)).capped(0.25 * seconds),
    ]
}

/// Loads with a log, ends without closing, opens: the log is replayed.
fn replay(plan: &mut Plan, options: &CoreOptions, contenders: &[&About]) {
    let keys = options.keys(LOGGED_KEYS);
    let budget = (keys * ROOM_PER_KEY).max(LEAST_ROOM);
    let mut draft = Draft::new("replay", budget, keys, options.seed);
    draft.durability = Durability::Buffered;
    for about in on_disk(contenders) {
        if !about.reopens {
            continue;
        }
        draft.scenario = "replay-crash".to_owned();
        let crash = vec![
            Phase::new(
                "insert",
                2,
                Focus::Writes,
                Work::Load {
                    from: 0,
                    count: keys,
                },
            )
            .timed(Clock::Sampled),
            Phase::new("abandon", 1, Focus::Writes, Work::Abandon),
        ];
        plan.add(&draft, about, 0, crash);
        let Some(job) = plan.last_job_mut() else {
            continue;
        };
        job.keep_directory = true;
        draft.scenario = "replay-open".to_owned();
        let pick = Pick::Uniform { keys };
        let read = Work::Read {
            pick,
            ops: keys / 10,
            unit: 1,
        };
        plan.add(
            &draft,
            about,
            0,
            vec![Phase::new("check", 2, Focus::Reads, read).capped(options.seconds(10.0))],
        );
        if let Some(job) = plan.last_job_mut() {
            job.reuse_directory_of = Some("replay-crash".to_owned());
            job.preloaded = keys;
        }
    }
}
