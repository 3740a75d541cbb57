//! Runs of several tables, read by key, from both ends and as a stream.

#![forbid(unsafe_code)]

use super::*;
use crate::{
    storage::sim::{Fault, Sim},
    y::pool::PageCache,
};
use std::collections::BTreeMap;

fn scratch(sim: &Sim) -> Arc<Scratch> {
    let pool = PageCache::new(1 << 20).pool(4096);
    let storage: Arc<dyn Storage> = Arc::new(sim.clone());
    Arc::new(Scratch::new(storage, "/images".into(), pool).with_tables_of(64 << 10))
}

fn write(scratch: &Arc<Scratch>, entries: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<ScratchRun> {
    let mut writer = scratch.writer()?;
    for (key, value) in entries {
        writer.add(key, value)?;
    }
    writer.finish()
}

fn entries() -> BTreeMap<Vec<u8>, Vec<u8>> {
    let of = |n: u32| {
        let len = if n % 500 == 7 { 9000 } else { n as usize % 90 };
        ((n * 3).to_be_bytes().to_vec(), vec![n as u8; len])
    };
    (0..6000).map(of).collect()
}

fn range(run: &ScratchRun, from: &[u8], to: Option<&[u8]>, order: Order) -> Vec<Vec<u8>> {
    let (mut from, mut to) = (from.to_vec(), to.map(<[u8]>::to_vec));
    let mut keys = Vec::new();
    loop {
        let stretch = run.stretch(&from, to.as_deref(), order).unwrap();
        keys.extend(stretch.entries.iter().map(|(key, _)| key.to_vec()));
        match (stretch.resume, order) {
            (None, _) => return keys,
            (Some(at), Order::Ascending) => from = at,
            (Some(at), Order::Descending) => to = Some(at),
        }
    }
}

#[test]
fn a_run_of_several_tables_is_read_as_one() {
    let sim = Sim::default();
    let scratch = scratch(&sim);
    let entries = entries();
    let run = write(&scratch, &entries).unwrap();
    assert!(run.tables.len() > 3, "{} tables", run.tables.len());
    for n in 0..18_100u32 {
        let key = n.to_be_bytes();
        let found = run.get(&key).unwrap();
        assert_eq!(
            found.as_deref(),
            entries.get(&key[..]).map(|v| &v[..]),
            "{n}"
        );
    }
    for (from, to) in [
        (0u32, None),
        (700, Some(9001u32)),
        (17_990, None),
        (50, Some(51)),
    ] {
        let from = from.to_be_bytes().to_vec();
        let to = to.map(|to| to.to_be_bytes().to_vec());
        let within = |key: &&Vec<u8>| **key >= from && to.as_ref().is_none_or(|to| *key < to);
        let mut expected: Vec<_> = entries.keys().filter(within).cloned().collect();
        assert_eq!(
            range(&run, &from, to.as_deref(), Order::Ascending),
            expected
        );
        expected.reverse();
        assert_eq!(
            range(&run, &from, to.as_deref(), Order::Descending),
            expected
        );
    }
    let mut stream = run.stream(64 << 10).unwrap();
    for (key, value) in &entries {
        assert_eq!(stream.key().unwrap(), &key[..]);
        assert_eq!(stream.value().unwrap(), &value[..]);
        stream.advance().unwrap();
    }
    assert!(stream.key().is_none());
}

#[test]
fn a_run_takes_its_files_along() {
    let sim = Sim::default();
    let scratch = scratch(&sim);
    let run = write(&scratch, &entries()).unwrap();
    assert_eq!(sim.contents().len(), run.tables.len());
    assert!(run.bytes() > 0 && scratch.filter_bytes.load(Relaxed) > 0);
    drop(run);
    assert!(sim.contents().is_empty());
    assert_eq!(scratch.filter_bytes.load(Relaxed), 0);
}

#[test]
fn a_run_that_cannot_be_written_leaves_no_file() {
    let ios = {
        let sim = Sim::default();
        drop(write(&scratch(&sim), &entries()).unwrap());
        sim.ios()
    };
    assert!(ios > 10);
    for at in 0..ios {
        let sim = Sim::default();
        let scratch = scratch(&sim);
        sim.fail_at(at, Fault::Full, false);
        let written = write(&scratch, &entries());
        sim.heal();
        assert!(written.is_ok() || sim.contents().is_empty(), "at {at}");
    }
}

/// Tables refuse to read it.
#[test]
fn a_value_that_no_read_would_take_is_refused() {
    let scratch = scratch(&Sim::default());
    let long = vec![0; MAX_VALUE_BYTES + 1];
    let mut writer = scratch.writer().unwrap();
    assert!(matches!(
        writer.add(b"k", &long),
        Err(Error::ValueTooLong { .. })
    ));
}
