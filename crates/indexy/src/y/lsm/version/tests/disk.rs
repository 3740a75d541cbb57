//! Tables with files, on a simulated disk.

use super::*;
use crate::storage::sim::Sim;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub(super) const DIR: &str = "/db/tree";
pub(super) const OWNER: u64 = 7;
/// Facts have this many bytes more, so that the log grows long after a few commits.
const PADDING: usize = 20_000;

pub(super) type Sims = Versions<Fake>;

pub(super) fn open(sim: &Sim) -> Result<Sims> {
    open_as(sim, OWNER, false)
}

pub(super) fn open_as(sim: &Sim, owner: u64, read_only: bool) -> Result<Sims> {
    let storage: Arc<dyn Storage> = Arc::new(sim.clone());
    Versions::open(Opening {
        storage: &storage,
        dir: Path::new(DIR),
        owner,
        read_only,
        partition_bytes: 4096 * 8,
        open_table: &mut |facts| open_table(&*storage, facts),
    })
}

fn open_table(storage: &dyn Storage, facts: Facts) -> Result<Fake> {
    let path = table_path(Path::new(DIR), facts.number);
    let file = storage.open(&path, false)?;
    let mut bytes = vec![0; facts.bytes() as usize];
    let got = file.read_at(&mut bytes, 0)?;
    if got < bytes.len() || facts.extra.get(..8) != Some(&xxh3_64(&bytes).to_le_bytes()) {
        return Err(Error::corrupt(&path, 0, "table".to_string()));
    }
    let mut from = codec::Reader(&bytes);
    let mut entries = Entries::new();
    for _ in 0..facts.entries {
        let key = from.bytes(1000).unwrap().to_vec();
        let there = from.u8().unwrap() == 1;
        let value = from.bytes(1000).unwrap().to_vec();
        entries.insert(key, there.then_some(value));
    }
    Ok(Fake {
        facts,
        entries,
        file: Some(file),
    })
}

/// Writes a table and gives it to `versions`.
pub(super) fn store(sim: &Sim, versions: &Sims, entries: &Entries) -> Result<Arc<Fake>> {
    let number = versions.new_number();
    let mut bytes = Vec::new();
    for (key, value) in entries {
        codec::put_bytes(&mut bytes, key);
        bytes.push(u8::from(value.is_some()));
        codec::put_bytes(&mut bytes, value.as_deref().unwrap_or_default());
    }
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    let mut extra = xxh3_64(&bytes).to_le_bytes().to_vec();
    extra.resize(PADDING, 0);
    let path = table_path(Path::new(DIR), number);
    let file = sim.create(&path)?;
    if let Err(error) = file.write_at(&bytes, 0) {
        let _ = sim.remove(&path);
        return Err(error);
    }
    let table = Arc::new(Fake {
        facts: facts(number, bytes.len() as u64 / 4096, entries, &extra),
        entries: entries.clone(),
        file: Some(file),
    });
    versions.adopt(Arc::clone(&table));
    Ok(table)
}

/// Numbers of the files that are there.
pub(super) fn files(sim: &Sim) -> Vec<u64> {
    let names = sim.list(&Path::new(DIR).join("tables")).unwrap();
    let mut files: Vec<u64> = names
        .iter()
        .map(|n| n.to_str().unwrap().parse().unwrap())
        .collect();
    files.sort_unstable();
    files
}

pub(super) fn listed(versions: &Sims) -> Vec<u64> {
    versions.current().tables().into_keys().collect()
}

/// Step `n` of a script: runs, removals of ranges, merges. What is in there changes with each but
/// merges.
pub(super) fn step(sim: &Sim, versions: &Sims, n: usize) -> Result<()> {
    if n % 5 == 3 {
        let (from, to) = removed(n);
        versions.update(|v| Some(v.without_range(&from, Some(&to))));
        return Ok(());
    }
    if n % 5 == 4 {
        return merge_step(sim, versions, n);
    }
    let run = store(sim, versions, &run(n))?;
    assert!(versions.update(|v| Some(v.with_run(&[run]))));
    Ok(())
}

fn merge_step(sim: &Sim, versions: &Sims, n: usize) -> Result<()> {
    let version = versions.current();
    let at = n % version.partitions().len();
    let inputs = Inputs::of(&version, at..at + 1, n.is_multiple_of(2), |p| {
        0..p.layers.len()
    })
    .unwrap();
    drop(version);
    let output: Result<Vec<_>> = merge(&inputs, 30)
        .iter()
        .map(|part| store(sim, versions, part))
        .collect();
    let output = output?;
    versions.update(|v| v.with_merge(&inputs, &output));
    Ok(())
}

fn run(n: usize) -> Entries {
    let keys = (0..60).map(|i| (i * 7 + n * 31) % 300);
    let value = |i: usize| (i % 5 != n % 5).then(|| format!("{n}.{i}").into_bytes());
    keys.map(|i| (format!("{i:03}").into_bytes(), value(i)))
        .collect()
}

fn removed(n: usize) -> (Vec<u8>, Vec<u8>) {
    let at = n * 37 % 250;
    let key = |i: usize| format!("{i:03}").into_bytes();
    (key(at), key(at + 40))
}

/// What is in there before each step, and after the last.
pub(super) fn states(steps: usize) -> Vec<Model> {
    let mut model = Model::new();
    let mut states = vec![model.clone()];
    for n in 0..steps {
        match n % 5 {
            3 => {
                let (from, to) = removed(n);
                model.retain(|key, _| *key < from || to <= *key);
            }
            4 => {}
            _ => apply(&mut model, &run(n)),
        }
        states.push(model.clone());
    }
    states
}

/// Times that a test saw something.
#[derive(Default)]
pub(super) struct Seen(AtomicUsize);

impl Seen {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(Relaxed)
    }
}
