//! A replica that follows a database: a copy from a snapshot first, then every change in order. It
//! keeps its place beside the data, in the same batch, so that it goes on where it was after any
//! crash. `cargo run -p indexy --example replica`

use indexy::{Change, ChangePosition, ChangeSet, Db, Options, Tree};
use std::time::Duration;

const BUDGET: usize = 16 << 20;

struct Replica {
    db: Db,
    prices: Tree,
    /// One entry: how far the replica is.
    place: Tree,
}

impl Replica {
    fn open(path: &std::path::Path) -> indexy::Result<Self> {
        let db = Db::open(path, Options::new(BUDGET))?;
        let (prices, place) = (db.tree("prices")?, db.tree("place")?);
        Ok(Self { db, prices, place })
    }

    /// Where to go on; a copy of all of `source` first if there is none yet.
    fn start(&self, source: &Db) -> indexy::Result<ChangePosition> {
        if let Some(place) = self.place.get("at")? {
            let place = place.as_ref().try_into().expect("eight bytes");
            return Ok(ChangePosition::new(u64::from_be_bytes(place)));
        }
        // The place first, then the snapshot: what is in both is applied twice, which does no harm
        // where nothing merges.
        let at = source.newest_change()?;
        let prices = source.tree("prices")?;
        for entry in source.snapshot()?.iter(&prices) {
            let (key, value) = entry?;
            self.prices.insert(key, value)?;
        }
        self.place.insert("at", at.get().to_be_bytes())?;
        Ok(at)
    }

    fn apply(&self, set: &ChangeSet) -> indexy::Result<()> {
        let mut batch = self.db.batch();
        for change in set.iter() {
            match change {
                Change::Insert { key, value, .. } => batch.insert(&self.prices, key, value),
                Change::Remove { key, .. } => batch.remove(&self.prices, key),
                // This program makes no other changes.
                change => println!("left out: {change:?}"),
            }
        }
        batch.insert(&self.place, "at", set.position().get().to_be_bytes());
        batch.commit()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    // What recovery does not need stays for a while, for replicas that were away.
    let options = Options::new(BUDGET).change_history_bytes(64 << 20);
    let shop = Db::open(dir.path().join("shop"), options)?;
    let prices = shop.tree("prices")?;
    prices.insert("chair", "40")?;

    let replica = Replica::open(&dir.path().join("replica"))?;
    let mut changes = shop.changes(replica.start(&shop)?)?;

    let writer = std::thread::spawn(move || -> indexy::Result<()> {
        prices.insert("table", "90")?;
        prices.insert("chair", "45")?;
        prices.remove("table")
    });
    writer.join().expect("the writer")?;
    let end = shop.newest_change()?;
    while changes.at() < end {
        changes.wait(Duration::from_secs(1))?;
        for set in changes.by_ref() {
            replica.apply(&set?)?;
        }
    }
    for entry in replica.prices.iter() {
        let (key, value) = entry?;
        let text = String::from_utf8_lossy;
        println!("{}: {}", text(&key), text(&value));
    }
    Ok(())
}
