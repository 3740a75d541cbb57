//! An open database of ours, with what every contender of ours asks of it: options of its setup,
//! the modelled device under it, its statistics, and a rest for its background work.

use super::{
    cold::device_counters,
    contract::{Durability, Outcome, Setup},
};
use indexy::{Access, Db, IndexXKind, IndexYKind, ModelledDevice, Options, Stats, TreeOptions};
use std::{collections::BTreeMap, thread, time::Duration};

const BUFFERED_INTERVAL_MS: u64 = 100;

/// A database, and the device under it.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) db: Db,
    device: Option<ModelledDevice>,
}

/// Opens or creates the database of `setup`, of which a pair of its own has its parts.
pub(super) fn open_database(setup: &Setup, (x, y): (IndexXKind, IndexYKind)) -> Outcome<Opened> {
    const SEED: u64 = 1;
    let durability = match setup.durability {
        Durability::None => indexy::Durability::None,
        Durability::Buffered => indexy::Durability::Buffered {
            interval_ms: BUFFERED_INTERVAL_MS,
        },
        Durability::Sync => indexy::Durability::Sync,
    };
    let mut options = Options::new(setup.budget as usize)
        .index_x(x)
        .durability(durability);
    let mut device = None;
    match setup.cold {
        // What is set explicitly wins over a preset.
        Some(cold) if cold.profile => options = options.device(cold.device.profile()),
        _ => options = options.index_y(y),
    }
    if let Some(cold) = setup.cold {
        let model = ModelledDevice::new(cold.device.model(), SEED);
        device = Some(model.clone());
        options = options.modelled_device(model);
        if cold.by_block {
            options = options.access(Access::Block);
        }
    }
    let db = Db::open(&setup.path, options)?;
    Ok(Opened { db, device })
}

/// What a tree of `setup` says for itself.
pub(super) fn tree_options(setup: &Setup) -> TreeOptions {
    match setup.cold.and_then(|cold| cold.admission) {
        Some(admission) => TreeOptions::new().admission(admission),
        None => TreeOptions::new(),
    }
}

impl Opened {
    /// The statistics of the database and of its device by name.
    pub(super) fn counters(&self) -> BTreeMap<String, f64> {
        let mut counters = counters(&self.db);
        if let Some(device) = &self.device {
            counters.extend(device_counters(device));
        }
        counters
    }

    pub(super) fn hurry(&self, hurry: bool) {
        if let Some(device) = &self.device {
            device.hurry(hurry);
        }
    }

    /// What is written at the end is no part of a measurement.
    pub(super) fn close(self) -> Outcome<()> {
        self.hurry(true);
        Ok(self.db.close()?)
    }

    pub(super) fn settle(&self) -> Outcome<()> {
        self.db.flush()?;
        wait_for_quiet(&self.db);
        Ok(())
    }
}

/// The statistics of `db` by name.
fn counters(db: &Db) -> BTreeMap<String, f64> {
    let stats = db.stats();
    let mut counters = flatten(&stats);
    counters.insert("level0_runs".to_owned(), stats.y_runs as f64);
    counters.insert("hit_ratio".to_owned(), stats.hit_ratio());
    counters
}

/// Waits until compaction has nothing more to do, neither now nor when writers have rested for a
/// while, and the shape of Y stays as it is.
fn wait_for_quiet(db: &Db) {
    const LOOK: Duration = Duration::from_millis(100);
    const QUIET_LOOKS: u32 = 10;
    const MOST_LOOKS: u32 = 6000;
    let shape = || {
        let stats = db.stats();
        (stats.y_unsettled, stats.y_runs, stats.y_bytes_on_disk)
    };
    let (mut last, mut quiet) = (shape(), 0);
    for _ in 0..MOST_LOOKS {
        if quiet == QUIET_LOOKS {
            return;
        }
        thread::sleep(LOOK);
        let now = shape();
        let same = now == last && now.0 == 0;
        quiet = if same { quiet + 1 } else { 0 };
        last = now;
    }
}

/// Every number of the statistics by its name, so that new ones appear by themselves.
fn flatten(stats: &Stats) -> BTreeMap<String, f64> {
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(stats) else {
        return BTreeMap::new();
    };
    fields
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_f64()?)))
        .collect()
}
