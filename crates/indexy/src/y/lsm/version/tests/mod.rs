//! Versions over tables that are lists of entries.

use super::{
    Estimate, Facts, Inputs, Opening, Partition, TableFile, Version, Versions, codec,
    files::table_path, log, paid::Paid, placement, translate,
};
use crate::{
    error::{Error, Result},
    storage::{Storage, StorageFile},
    y::contract::KeyRange,
};
use std::{
    collections::BTreeMap,
    ops::{Bound, Range},
    path::Path,
    sync::Arc,
};
use xxhash_rust::xxh3::xxh3_64;

mod crash;
mod damage;
mod disk;
mod gaps;
mod lives;
mod model;

pub(in crate::y::lsm) type Entries = BTreeMap<Vec<u8>, Option<Vec<u8>>>;
pub(in crate::y::lsm) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A table: its entries in memory and, if it has a file, in that.
pub(in crate::y::lsm) struct Fake {
    pub(in crate::y::lsm) facts: Facts,
    pub(in crate::y::lsm) entries: Entries,
    file: Option<Arc<dyn StorageFile>>,
}

impl TableFile for Fake {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn estimate(&self, from: &[u8], to: Option<&[u8]>) -> Estimate {
        let inside = within(&self.entries, from, to).count() as u64;
        let all = self.entries.len() as u64;
        Estimate {
            entries: inside,
            bytes: self.facts.bytes() * inside / all,
        }
    }

    fn middle(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Box<[u8]>>> {
        let inside = within(&self.entries, from, to).count();
        let mut keys = within(&self.entries, from, to).map(|(key, _)| key);
        let middle = keys.nth(inside / 2).filter(|key| ***key > *from);
        Ok(middle.map(|key| key[..].into()))
    }

    fn sync(&self) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.sync())
    }
}

pub(in crate::y::lsm) fn within<'e, V>(
    entries: &'e BTreeMap<Vec<u8>, V>,
    from: &[u8],
    to: Option<&[u8]>,
) -> Box<dyn Iterator<Item = (&'e Vec<u8>, &'e V)> + 'e> {
    if to.is_some_and(|to| to <= from) {
        return Box::new(std::iter::empty());
    }
    let end = to.map_or(Bound::Unbounded, |to| Bound::Excluded(to.to_vec()));
    Box::new(entries.range((Bound::Included(from.to_vec()), end)))
}

/// A table in memory alone; four entries a page.
pub(in crate::y::lsm) fn table(number: u64, entries: Entries) -> Arc<Fake> {
    let pages = entries.len().div_ceil(4) as u64;
    Arc::new(Fake {
        facts: facts(number, pages, &entries, &[]),
        entries,
        file: None,
    })
}

fn facts(number: u64, pages: u64, entries: &Entries, extra: &[u8]) -> Facts {
    let end = |end: Option<(&Vec<u8>, _)>| end.unwrap().0[..].into();
    Facts {
        number,
        id: number.wrapping_mul(0x9E37_79B9),
        pages,
        entries: entries.len() as u64,
        deletes: entries.values().filter(|v| v.is_none()).count() as u64,
        near_bytes: 10,
        far_bytes: 0,
        root: pages - 1,
        height: 1,
        min: end(entries.first_key_value()),
        max: end(entries.last_key_value()),
        extra: extra.into(),
    }
}

/// What the version says of `key`.
pub(in crate::y::lsm) fn get<'v>(version: &'v Version<Fake>, key: &'v [u8]) -> Option<&'v Vec<u8>> {
    let partition = version.partition(key).unwrap();
    let mut found = partition.tables_for(key).filter_map(|t| t.entries.get(key));
    found.next().and_then(Option::as_ref)
}

/// All that a partition has: the newest entries, deletes among them.
fn newest(partition: &Partition<Fake>, tables: &[Arc<Fake>]) -> Entries {
    let mut all = Entries::new();
    for table in tables.iter().rev() {
        for (key, value) in within(&table.entries, &partition.from, partition.to.as_deref()) {
            all.insert(key.clone(), value.clone());
        }
    }
    all
}

pub(in crate::y::lsm) fn content(version: &Version<Fake>) -> Model {
    let mut all = Model::new();
    for partition in version.partitions() {
        let tables: Vec<_> = partition.tables().cloned().collect();
        let live = newest(partition, &tables);
        all.extend(live.into_iter().filter_map(|(k, v)| v.map(|v| (k, v))));
    }
    all
}

/// What a merge of `inputs` writes, in tables of `most` entries.
pub(in crate::y::lsm) fn merge(inputs: &Inputs<Fake>, most: usize) -> Vec<Entries> {
    let mut all = Entries::new();
    for part in &inputs.parts {
        let mut tables = part.layers().to_vec();
        if inputs.major {
            tables.extend(part.partition.base.iter().cloned());
        }
        all.extend(newest(&part.partition, &tables));
    }
    if inputs.major {
        all.retain(|_, value| value.is_some());
    }
    let all: Vec<_> = all.into_iter().collect();
    let tables = all.chunks(most.max(1));
    tables.map(|t| t.iter().cloned().collect()).collect()
}

pub(in crate::y::lsm) fn apply(model: &mut Model, run: &Entries) {
    for (key, value) in run {
        match value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(key),
        };
    }
}

/// SplitMix64.
pub(in crate::y::lsm) struct Random(pub(in crate::y::lsm) u64);

impl Random {
    pub(in crate::y::lsm) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}
