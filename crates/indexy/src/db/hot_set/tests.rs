//! The file of a hot set, and saving under faults.

use super::{
    file::{self, Reader, Writer},
    format::{Keys, Kind, LONGEST_KEY_BYTES, VERSION},
    fuzzing::sample,
    keeper::Keeper,
    save::{Place, save},
};
use crate::{
    db::{Db, Options},
    error::Error,
    framework::{
        hot::{HotKey, TIERS},
        policies::HotSet,
        signal::Stop,
    },
    poison::Poison,
    storage::{
        Storage,
        sim::{Fault, Sim},
    },
};
use std::{path::Path, sync::Arc, time::Duration};

const ID: u128 = 7;

fn dir() -> &'static Path {
    Path::new("/db")
}

fn disk() -> Sim {
    let sim = Sim::default();
    sim.create_dir_all(dir()).unwrap();
    sim.sync_dir(Path::new("/")).unwrap();
    sim
}

fn with_file(bytes: Vec<u8>) -> Sim {
    let sim = disk();
    sim.tamper(&file::path(dir()), bytes);
    sim
}

/// A tree, a tier, a key, the bytes of its value.
type Entry = (u32, usize, Vec<u8>, usize);

fn write(sim: &Sim, entries: &[Entry]) {
    let mut file = Writer::begin(sim, dir(), ID).unwrap();
    for (tree, tier, key, value_bytes) in entries {
        let entry = HotKey {
            key,
            value_bytes: *value_bytes,
            tier: *tier,
        };
        file.push(*tree, &entry).unwrap();
    }
    assert_eq!(file.finish().unwrap().keys, entries.len() as u64);
}

/// All entries, the hottest first, as warming reads them; `None`: no file.
fn read(sim: &Sim) -> Option<Vec<Entry>> {
    let (mut file, totals) = Reader::open(sim, dir(), ID, &|| false).unwrap()?;
    let mut entries = Vec::new();
    for (tier, kind) in (0..TIERS).map(|tier| (tier, Kind::Tier(tier))) {
        file.rewind();
        while let Some(block) = file.next(|block| block.kind == kind).unwrap() {
            let mut keys = Keys::new(&block, file.payload());
            while let Some((key, value_bytes)) = keys.next().unwrap() {
                entries.push((block.tree, tier, key.to_vec(), value_bytes));
            }
        }
    }
    assert_eq!(entries.len() as u64, totals.keys);
    Some(entries)
}

#[test]
fn what_was_written_is_read() {
    let long = vec![0xFF; LONGEST_KEY_BYTES];
    let mut entries: Vec<Entry> = Vec::new();
    for n in 0..30_000u32 {
        let tree = n / 9_000;
        let key = format!("{:03}/{:x}", n / 100, n.wrapping_mul(0x9E37_79B9)).into_bytes();
        entries.push((tree, n as usize % TIERS, key, n as usize % 5000));
    }
    entries.push((9, 0, Vec::new(), 0));
    entries.push((9, 0, long.clone(), 256 << 20));
    entries.push((9, 4, long, usize::from(u16::MAX)));
    let sim = disk();
    assert!(read(&sim).is_none());
    write(&sim, &entries);
    // A stable sort: the hottest come first.
    entries.sort_by_key(|(_, tier, ..)| *tier);
    assert!(read(&sim).as_ref() == Some(&entries));
    write(&sim, &[]);
    assert_eq!(read(&sim), Some(Vec::new()));
    assert_eq!(sim.contents().len(), 1);
}

fn is_refused(bytes: Vec<u8>) -> bool {
    matches!(
        Reader::open(&with_file(bytes), dir(), ID, &|| false),
        Err(Error::Corrupt { .. })
    )
}

#[test]
fn every_flipped_bit_and_every_cut_is_noticed() {
    let bytes = sample();
    assert_eq!(read(&with_file(bytes.clone())).unwrap().len(), 5);
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(is_refused(damaged), "bit {bit}");
    }
    for len in 0..bytes.len() {
        assert!(is_refused(bytes[..len].to_vec()), "length {len}");
    }
    assert!(is_refused([&bytes[..], &[0]].concat()));
    // A block twice, and without one: each sound by itself.
    let half = bytes.len() / 2;
    assert!(is_refused([&bytes[..half], &bytes[..]].concat()));
}

#[test]
fn another_version_or_database_is_refused() {
    let mut bytes = sample();
    bytes[8..12].copy_from_slice(&(VERSION + 1).to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..28]);
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    let said = |bytes: Vec<u8>, id| {
        let opened = Reader::open(&with_file(bytes), dir(), id, &|| false);
        opened.err().unwrap().to_string()
    };
    assert!(said(bytes, ID).contains("version"));
    assert!(said(sample(), ID + 1).contains("database"));
}

#[test]
fn a_writer_that_gives_up_leaves_the_file() {
    let sim = disk();
    write(&sim, &[(1, 0, b"old".to_vec(), 3)]);
    let old = sim.contents();
    drop(Writer::begin(&sim, dir(), ID).unwrap());
    assert_eq!(sim.contents(), old);
    // What a process left that was killed is in nobody's way.
    sim.tamper(Path::new("/db/HOT.next"), b"half".to_vec());
    write(&sim, &[(1, 0, b"new".to_vec(), 3)]);
    assert_eq!(read(&sim).unwrap()[0].2, b"new");
    assert_eq!(sim.contents().len(), 1);
}

/// Every I/O of a save fails once, or the power goes there: the old file or the new one is there,
/// whole, and the database knows nothing of it.
#[test]
fn a_save_that_fails_leaves_a_whole_file() {
    let real = tempfile::tempdir().unwrap();
    let db = Db::open(real.path(), Options::new(4 << 20)).unwrap();
    let tree = db.tree("t").unwrap();
    for n in 0..3000u32 {
        tree.insert(n.to_be_bytes(), b"value").unwrap();
    }
    let core = db.core();
    let save_to = |sim: &Sim, stopped| {
        let place = Place {
            storage: sim,
            dir: dir(),
            database_id: ID,
        };
        save(place, &core.shared, &**core, &|| stopped)
    };
    let old = vec![(1, 0, b"old".to_vec(), 3)];
    let whole = |sim: &Sim, fault| {
        let keys = read(sim).map(|entries| entries.len());
        assert!(matches!(keys, Some(1 | 3000)), "{fault:?}: {keys:?}");
        keys
    };
    let faults = [
        Fault::Eio,
        Fault::Full,
        Fault::ShortWrite,
        Fault::FailedSync,
        Fault::NoDescriptors,
        Fault::PowerLoss,
    ];
    for fault in faults {
        let (mut failed, mut done) = (0, 0);
        for at in 1.. {
            let sim = disk();
            write(&sim, &old);
            sim.fail_at(sim.ios() + at, fault, false);
            let saved = save_to(&sim, false);
            let struck = sim.faults() > 0;
            for seed in 0..4 {
                whole(&sim.crash(seed), fault);
            }
            sim.heal();
            let keys = whole(&sim, fault);
            match saved {
                Ok(saved) => {
                    done += 1;
                    assert_eq!((saved.unwrap().keys, keys), (3000, Some(3000)));
                }
                Err(_) => failed += 1,
            }
            save_to(&sim, false).unwrap();
            assert_eq!(whole(&sim, fault), Some(3000));
            assert_eq!(sim.contents().len(), 1, "{fault:?} at {at}");
            if !struck {
                break;
            }
        }
        assert!(failed > 0, "{fault:?}: {failed} failed, {done} did not");
    }
    assert!(core.shared.poison.check().is_ok());
    // Told to stop, it leaves what there was.
    let sim = disk();
    write(&sim, &old);
    assert!(save_to(&sim, true).unwrap().is_none());
    assert_eq!(read(&sim), Some(old));
    db.close().unwrap();
}

/// A keeper of the file on `sim`, that saves what `db` has when it is told to.
fn keeper(sim: &Sim, db: &Db) -> Keeper {
    let storage: Arc<dyn Storage> = Arc::new(sim.clone());
    let place = (storage, dir().to_path_buf());
    let every = Duration::MAX;
    let shared = db.core().shared.clone();
    Keeper::new(HotSet::Keep { every }, false, place, ID, shared).unwrap()
}

/// A keeper that is told to stop, or whose database is poisoned, ends at once, says so to whoever
/// waits for it, and does not save what a cold memory has.
#[test]
fn a_keeper_that_was_cut_short_saves_nothing() {
    let real = tempfile::tempdir().unwrap();
    let db = Db::open(real.path(), Options::new(4 << 20)).unwrap();
    let tree = db.tree("t").unwrap();
    tree.insert(b"key", b"value").unwrap();
    let core = db.core();
    for poisoned in [false, true] {
        let sim = disk();
        write(&sim, &[(1, 0, b"old".to_vec(), 3)]);
        let before = sim.contents();
        let keeper = keeper(&sim, &db);
        let poison = Arc::<Poison>::default();
        let stop = Stop::new(poison.clone());
        match poisoned {
            true => drop(poison.set(&"it")),
            false => stop.set(),
        }
        assert!(keeper.is_warming());
        keeper.run(&**core, &stop);
        assert!(!keeper.is_warming());
        keeper.save_at_end(&**core);
        assert_eq!((keeper.saved_keys(), keeper.warmed_keys()), (0, 0));
        assert_eq!(sim.contents(), before);
    }
}

/// What a save and warming need is taken once, and given back at the end.
#[test]
fn i7_a_keeper_takes_what_it_needs_beforehand() {
    let real = tempfile::tempdir().unwrap();
    let db = Db::open(real.path(), Options::new(4 << 20)).unwrap();
    db.tree("t").unwrap().insert(b"key", b"value").unwrap();
    let core = db.core();
    let before = core.budget.used();
    let sim = disk();
    let keeper = keeper(&sim, &db);
    let taken = core.budget.used();
    assert!(taken > before && taken < before + (128 << 10));
    let most = std::cell::Cell::new(0);
    let look = || {
        most.set(most.get().max(core.budget.used()));
        false
    };
    let place = Place {
        storage: &sim,
        dir: dir(),
        database_id: ID,
    };
    save(place, &core.shared, &**core, &look).unwrap();
    assert_eq!(most.get(), taken);
    drop(keeper);
    assert_eq!(core.budget.used(), before);
}

/// Wherever the process wants for descriptors while the file is read, what memory has does not
/// replace it; and whoever reads it looks whether it is to stop.
#[test]
fn a_file_that_could_not_be_read_stays() {
    let real = tempfile::tempdir().unwrap();
    let db = Db::open(real.path(), Options::new(4 << 20)).unwrap();
    let tree = db.tree("t").unwrap();
    tree.insert(b"key", b"value").unwrap();
    let core = db.core();
    let mut struck = 0;
    for at in 1.. {
        let sim = disk();
        write(&sim, &[(1, 0, b"old".to_vec(), 3)]);
        let before = sim.contents();
        assert!(matches!(
            Reader::open(&sim, dir(), ID, &|| true),
            Err(Error::Closed)
        ));
        let (keeper, stop) = (keeper(&sim, &db), Stop::new(Arc::<Poison>::default()));
        sim.fail_at(sim.ios() + at, Fault::NoDescriptors, false);
        std::thread::scope(|scope| {
            scope.spawn(|| keeper.run(&**core, &stop));
            while keeper.is_warming() {
                std::thread::yield_now();
            }
            stop.set();
            core.shared.wake_keeper.notify();
        });
        let hit = sim.faults() > 0;
        sim.heal();
        // Enough to save.
        tree.insert(b"key", b"value").unwrap();
        keeper.save_at_end(&**core);
        assert_eq!(sim.contents() == before, hit, "at {at}");
        if !hit {
            break;
        }
        struck += 1;
    }
    assert!(struck > 0);
}
