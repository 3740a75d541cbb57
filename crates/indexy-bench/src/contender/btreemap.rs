//! The standard library's `BTreeMap`, for one thread: keys and values as 64-bit numbers, its most
//! compact form.

use super::{
    about::{About, KeyShape, PageCache, Storage},
    contract::{Contender, Durability, End, Outcome, Session, Setup},
};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The map, behind a lock that its one session holds from beginning to end.
#[derive(Debug, Default)]
pub struct StdBTreeMap {
    map: Mutex<BTreeMap<u64, u64>>,
}

impl StdBTreeMap {
    /// What it is.
    pub fn about() -> About {
        About {
            name: "btreemap",
            summary: "the standard library's BTreeMap<u64, u64>, one thread, in memory",
            storage: Storage::Memory,
            page_cache: PageCache::Unused,
            keys: KeyShape::EightBytes,
            max_threads: 1,
            scans: true,
            reopens: false,
            pages: false,
            durabilities: &[Durability::None],
            variant: "",
        }
    }
}

/// The map itself: no lock is taken per operation.
#[derive(Debug)]
pub struct MapSession<'a> {
    map: MutexGuard<'a, BTreeMap<u64, u64>>,
}

impl Contender for StdBTreeMap {
    type Session<'a> = MapSession<'a>;

    fn open(_: &Setup) -> Outcome<Self> {
        Ok(Self::default())
    }

    fn session(&self) -> Outcome<MapSession<'_>> {
        Ok(MapSession {
            map: self.map.lock().unwrap_or_else(PoisonError::into_inner),
        })
    }

    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

/// Eight bytes as the number whose order is theirs.
#[inline]
fn number(bytes: &[u8]) -> Outcome<u64> {
    Ok(u64::from_be_bytes(bytes.try_into()?))
}

impl Session for MapSession<'_> {
    #[inline]
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.map
            .insert(number(key)?, u64::from_ne_bytes(value.try_into()?));
        Ok(())
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        Ok(self
            .map
            .get(&number(key)?)
            .map(|value| see(&value.to_ne_bytes())))
    }

    fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        self.map.remove(&number(key)?);
        Ok(())
    }

    fn pop(&mut self, end: End, see: impl FnOnce(&[u8])) -> Outcome<bool> {
        let popped = match end {
            End::First => self.map.pop_first(),
            End::Last => self.map.pop_last(),
        };
        Ok(popped.map(|(key, _)| see(&key.to_be_bytes())).is_some())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<usize> {
        let mut seen = 0;
        for (key, value) in self.map.range(number(from)?..).take(count) {
            see(&key.to_be_bytes(), &value.to_ne_bytes());
            seen += 1;
        }
        Ok(seen)
    }
}
