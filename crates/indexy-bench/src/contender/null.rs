//! A contender that does nothing: what remains is the cost of the harness itself.

use super::{
    about::{About, KeyShape, PageCache, Storage},
    contract::{Contender, Durability, Outcome, Session, Setup},
};
use crate::workload::{ABSENT_FROM, Values, seed_of, unmix};

/// Takes every write and answers every read with the value that belongs to the key.
#[derive(Debug)]
pub struct Null {
    value_bytes: usize,
}

impl Null {
    /// What it is.
    pub fn about() -> About {
        About {
            name: "null",
            summary: "stores nothing and makes values up: the cost of the harness itself (keys in \
                random order)",
            storage: Storage::Memory,
            page_cache: PageCache::Unused,
            keys: KeyShape::EightBytes,
            max_threads: usize::MAX,
            scans: false,
            reopens: false,
            pages: false,
            durabilities: &[Durability::None],
            variant: "",
        }
    }
}

/// Makes values up.
#[derive(Debug)]
pub struct NullSession {
    value: Vec<u8>,
}

impl Contender for Null {
    type Session<'a> = NullSession;

    fn open(setup: &Setup) -> Outcome<Self> {
        Ok(Self {
            value_bytes: setup.value_bytes,
        })
    }

    fn session(&self) -> Outcome<NullSession> {
        Ok(NullSession {
            value: vec![0; self.value_bytes],
        })
    }

    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

impl Session for NullSession {
    #[inline]
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        std::hint::black_box((key, value));
        Ok(())
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        // Keys of absent numbers are recognized, so that the checks of the harness hold.
        if unmix(u64::from_be_bytes(key.try_into()?)) >= ABSENT_FROM {
            return Ok(None);
        }
        Values::fill(seed_of(key), 0, &mut self.value);
        Ok(Some(see(std::hint::black_box(&self.value))))
    }

    fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        std::hint::black_box(key);
        Ok(())
    }

    fn scan(&mut self, _: &[u8], _: usize, _: impl FnMut(&[u8], &[u8])) -> Outcome<usize> {
        Ok(0)
    }
}
