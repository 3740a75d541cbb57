//! crossbeam-skiplist: a concurrent ordered map in memory, keys and values as 64-bit numbers.
//!
//! `SkipMap::insert` takes the old entry out before the new one is there, and a reader in between
//! finds neither. So values are atomic, and those of keys that exist are overwritten in place.

use crossbeam_skiplist::SkipMap;
use indexy_bench::contender::{
    About, Contender, Durability, KeyShape, Outcome, PageCache, Session, Setup, Storage,
};
use indexy_bench::registry::Registry;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub fn register(registry: &mut Registry) {
    registry.add::<Skiplist>(About {
        name: "skiplist",
        summary: "crossbeam-skiplist: concurrent skip list in memory, 8-byte keys and values",
        storage: Storage::Memory,
        page_cache: PageCache::Unused,
        keys: KeyShape::EightBytes,
        max_threads: usize::MAX,
        scans: true,
        reopens: false,
        pages: false,
        durabilities: &[Durability::None],
        variant: "",
    });
}

pub struct Skiplist {
    map: SkipMap<u64, AtomicU64>,
}

pub struct SkiplistSession<'a> {
    map: &'a SkipMap<u64, AtomicU64>,
}

impl Contender for Skiplist {
    type Session<'a> = SkiplistSession<'a>;

    fn open(_: &Setup) -> Outcome<Self> {
        Ok(Self {
            map: SkipMap::new(),
        })
    }

    fn session(&self) -> Outcome<SkiplistSession<'_>> {
        Ok(SkiplistSession { map: &self.map })
    }

    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

#[inline]
fn number(bytes: &[u8]) -> Outcome<u64> {
    Ok(u64::from_be_bytes(bytes.try_into()?))
}

impl Session for SkiplistSession<'_> {
    #[inline]
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let value = u64::from_ne_bytes(value.try_into()?);
        let entry = self.map.get_or_insert(number(key)?, value.into());
        // Another thread's value, or an older one.
        if entry.value().load(Relaxed) != value {
            entry.value().store(value, Relaxed);
        }
        Ok(())
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        Ok(self
            .map
            .get(&number(key)?)
            .map(|entry| see(&entry.value().load(Relaxed).to_ne_bytes())))
    }

    fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        self.map.remove(&number(key)?);
        Ok(())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<usize> {
        let mut seen = 0;
        for entry in self.map.range(number(from)?..).take(count) {
            see(
                &entry.key().to_be_bytes(),
                &entry.value().load(Relaxed).to_ne_bytes(),
            );
            seen += 1;
        }
        Ok(seen)
    }
}
