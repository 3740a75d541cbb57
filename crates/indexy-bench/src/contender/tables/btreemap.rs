//! The standard library's map, one per table: what the transactions themselves cost, and what tests
//! break on purpose.

use super::contract::{TableBatch, TableSetup, Tables};
use crate::contender::contract::Outcome;
use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

type Map = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// One map per table, each behind a lock.
#[derive(Debug)]
pub struct BTreeTables {
    maps: Vec<RwLock<Map>>,
}

impl BTreeTables {
    fn read(&self, table: usize) -> RwLockReadGuard<'_, Map> {
        self.maps[table]
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, table: usize) -> RwLockWriteGuard<'_, Map> {
        self.maps[table]
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Table, key and new value; none removes the key.
type Write = (usize, Box<[u8]>, Option<Box<[u8]>>);

/// Writes in the order in which they came.
#[derive(Debug)]
pub struct MapBatch<'a> {
    tables: &'a BTreeTables,
    writes: Vec<Write>,
}

impl Tables for BTreeTables {
    type Batch<'a> = MapBatch<'a>;

    fn open(setup: &TableSetup<'_>) -> Outcome<Self> {
        Ok(Self {
            maps: setup.names.iter().map(|_| RwLock::default()).collect(),
        })
    }

    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        Ok(self.read(table).get(key).map(|value| see(value)))
    }

    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        mut see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        let map = self.read(table);
        let mut entries = map.range::<[u8], _>((
            std::ops::Bound::Included(from),
            std::ops::Bound::Excluded(to),
        ));
        while entries.next().is_some_and(|(key, value)| see(key, value)) {}
        Ok(())
    }

    fn last<R>(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        let map = self.read(table);
        let bounds = (
            std::ops::Bound::Included(from),
            std::ops::Bound::Excluded(to),
        );
        Ok(map
            .range::<[u8], _>(bounds)
            .next_back()
            .map(|(key, value)| see(key, value)))
    }

    fn batch(&self) -> MapBatch<'_> {
        MapBatch {
            tables: self,
            writes: Vec::new(),
        }
    }

    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

impl TableBatch for MapBatch<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) {
        self.writes.push((table, key.into(), Some(value.into())));
    }

    fn remove(&mut self, table: usize, key: &[u8]) {
        self.writes.push((table, key.into(), None));
    }

    fn commit(self) -> Outcome<()> {
        for (table, key, value) in self.writes {
            let mut map = self.tables.write(table);
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        Ok(())
    }
}
