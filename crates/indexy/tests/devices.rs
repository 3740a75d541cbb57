//! Databases on modelled devices: every pair is as slow as the device, and does what it always
//! does.

mod pairs;

use indexy::{Db, DeviceModel, Durability, Error, IndexYKind, ModelledDevice, Options};
use std::time::{Duration, Instant};

fn key(n: u32) -> [u8; 4] {
    n.wrapping_mul(0x9E37_79B1).to_be_bytes()
}

/// Twenty times the read latency of flash, so that it is told apart from whatever else takes time.
const SLOW: DeviceModel = DeviceModel {
    read_latency: Duration::from_micros(2200),
    channels: 16,
    ..DeviceModel::SSD
};

#[test]
fn every_pair_works_on_a_modelled_device() {
    for pair in pairs::chosen(0, 1) {
        let dir = tempfile::tempdir().unwrap();
        let device = ModelledDevice::new(DeviceModel::XPOINT, 5);
        let options = pairs::options(pair, Options::new(4 << 20).durability(Durability::Sync))
            .modelled_device(device.clone());
        if matches!(pair.1, IndexYKind::RocksDb) {
            let refused = Db::open(dir.path(), options).unwrap_err();
            assert!(refused.to_string().contains("modelled device"), "{refused}");
            continue;
        }
        let db = Db::open(dir.path(), options.clone()).unwrap();
        let tree = db.tree("t").unwrap();
        for n in 0..200u32 {
            tree.insert(key(n), n.to_le_bytes()).unwrap();
        }
        // One commit a sync.
        assert!(device.figures().syncs >= 200, "{}", pairs::name(pair));
        db.close().unwrap();
        let before = device.figures();
        let db = Db::open(dir.path(), options).unwrap();
        let tree = db.tree("t").unwrap();
        for n in 0..200u32 {
            assert_eq!(tree.get(key(n)).unwrap().unwrap(), n.to_le_bytes());
        }
        assert_eq!(tree.len().unwrap(), 200);
        assert!(
            device.figures().reads > before.reads,
            "{}",
            pairs::name(pair)
        );
        assert!(db.verify().unwrap().is_ok());
    }
}

/// Cold reads one after the other take a read of the device each; `multi_get` overlaps them.
#[test]
fn cold_reads_take_their_time_and_overlap_together() {
    // Values in leaves, and values that lie in none.
    for (keys, len) in [(20_000, 400), (3000, 3000)] {
        for y in [IndexYKind::Lsm, IndexYKind::BPlus { page_bytes: 4096 }] {
            overlap(y, keys, len);
        }
    }
}

fn overlap(y: IndexYKind, keys: u32, len: usize) {
    const ASKED: u32 = 64;
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new(2 << 20)
        .index_y(y)
        .durability(Durability::None);
    let db = Db::open(dir.path(), options.clone()).unwrap();
    let tree = db.tree("t").unwrap();
    for n in 0..keys {
        tree.insert(key(n), vec![7; len]).unwrap();
    }
    db.close().unwrap();
    let device = ModelledDevice::new(SLOW, 0);
    let db = Db::open(dir.path(), options.modelled_device(device.clone())).unwrap();
    let tree = db.tree("t").unwrap();
    // Inner pages are in memory from here on, most leaves are not.
    let warm: Vec<_> = (keys / 2..keys / 2 + 500).map(key).collect();
    tree.multi_get(&warm).unwrap();
    let timed = |go: &dyn Fn()| {
        let (began, before) = (Instant::now(), device.figures().reads);
        go();
        (began.elapsed(), device.figures().reads - before)
    };
    let (one_by_one, read) = timed(&|| {
        for n in 0..ASKED {
            assert!(tree.get(key(n)).unwrap().is_some());
        }
    });
    assert!(read >= u64::from(ASKED / 2), "{y}, {len}: {read} reads");
    // Some reads are of threads beside, and overlap with these.
    assert!(one_by_one > SLOW.read_latency * (ASKED / 2));
    let others: Vec<_> = (ASKED..2 * ASKED).map(key).collect();
    let (together, read) = timed(&|| {
        assert!(tree.multi_get(&others).unwrap().iter().all(Option::is_some));
    });
    assert!(read >= u64::from(ASKED / 2), "{y}, {len}: {read} reads");
    assert!(
        together * 3 < one_by_one,
        "{y}, {len}: {together:?} together, {one_by_one:?} one by one"
    );
    let some = keys as usize / 10;
    assert_eq!(tree.range::<&[u8]>(..).take(some).count(), some);
}

#[test]
fn a_database_on_a_device_opens_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new(4 << 20);
    let device = ModelledDevice::new(DeviceModel::NVRAM, 0);
    let db = Db::open(dir.path(), options.clone().modelled_device(device)).unwrap();
    db.tree("t").unwrap().insert("key", "value").unwrap();
    db.close().unwrap();
    let db = Db::open(dir.path(), options).unwrap();
    assert_eq!(db.tree("t").unwrap().get("key").unwrap().unwrap(), b"value");
}

/// What a program cannot have is refused before anything is written.
#[test]
fn rocksdb_has_files_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new(4 << 20)
        .index_y(IndexYKind::RocksDb)
        .modelled_device(ModelledDevice::new(DeviceModel::SSD, 0));
    let refused = Db::open(dir.path(), options);
    assert!(matches!(refused, Err(Error::Unsupported { .. })));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
