//! Entries of a range, and the walks over everything.

#![forbid(unsafe_code)]

use super::{engine::Engine, fault::typed};
use crate::{
    error::{Error, Result},
    key::{Key, Value},
    x::Order,
};
use rocksdb::{DB, DBRawIteratorWithThreadMode, ErrorKind, ReadOptions};
use self_cell::self_cell;
use std::sync::Arc;

/// Tombstones that [`is_empty`] passes before it gives up.
const EMPTY_SEARCH_ENTRIES: u64 = 1024;
/// Read ahead while everything is read.
const VERIFY_READ_BYTES: usize = 256 << 10;

type Raw<'a> = DBRawIteratorWithThreadMode<'a, DB>;

self_cell!(
    /// RocksDB's iterator with the instance that it reads.
    struct Cursor {
        owner: Arc<Engine>,
        #[not_covariant]
        dependent: Raw,
    }
);

/// Entries of `[from, to)` as they were when it was made. Pins the tables of that moment.
pub(super) struct Entries {
    cursor: Cursor,
    order: Order,
    /// The cursor stands on an entry that was given.
    given: bool,
    ended: bool,
}

impl Entries {
    pub(super) fn new(engine: Arc<Engine>, from: &[u8], to: Option<&[u8]>, order: Order) -> Self {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(from);
        if let Some(to) = to {
            options.set_iterate_upper_bound(to);
        }
        Self::with(engine, options, order)
    }

    fn with(engine: Arc<Engine>, options: ReadOptions, order: Order) -> Self {
        let cursor = Cursor::new(engine, |engine| {
            let mut raw = engine.db.raw_iterator_opt(options);
            match order {
                Order::Ascending => raw.seek_to_first(),
                Order::Descending => raw.seek_to_last(),
            }
            raw
        });
        Self {
            cursor,
            order,
            given: false,
            ended: false,
        }
    }

    /// The next entry, shown to `see`; `None` at the end.
    fn advance<R>(&mut self, see: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        if self.ended {
            return Ok(None);
        }
        let (order, given) = (self.order, self.given);
        let seen = self.cursor.with_dependent_mut(|engine, raw| {
            match (given, order) {
                (false, _) => {}
                (true, Order::Ascending) => raw.next(),
                (true, Order::Descending) => raw.prev(),
            }
            match raw.item() {
                Some((key, value)) => Ok(Some(see(key, value))),
                // The end, or a failure.
                None => match raw.status() {
                    Ok(()) => Ok(None),
                    Err(e) => Err(typed(&engine.dir, "read", &e)),
                },
            }
        });
        self.given = true;
        self.ended = !matches!(seen, Ok(Some(_)));
        seen
    }
}

impl Iterator for Entries {
    type Item = Result<(Key, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance(|key, value| (Key::new(key), Value::new(value)))
            .transpose()
    }
}

/// Whether there is no entry; false when it takes too long to say.
pub(super) fn is_empty(engine: &Engine) -> Result<bool> {
    let mut options = ReadOptions::default();
    options.set_max_skippable_internal_keys(EMPTY_SEARCH_ENTRIES);
    let mut raw = engine.db.raw_iterator_opt(options);
    raw.seek_to_first();
    if raw.valid() {
        return Ok(false);
    }
    match raw.status() {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::Incomplete => Ok(false),
        Err(e) => Err(typed(&engine.dir, "read", &e)),
    }
}

/// Reads every data and index block, past the cache, and checks checksums and order; returns the
/// number of entries.
pub(super) fn verify(engine: Arc<Engine>) -> Result<u64> {
    let mut options = ReadOptions::default();
    options.set_verify_checksums(true);
    options.fill_cache(false);
    options.set_readahead_size(VERIFY_READ_BYTES);
    let dir = engine.dir.clone();
    let mut entries = Entries::with(engine, options, Order::Ascending);
    let (mut count, mut last) = (0, None::<Vec<u8>>);
    loop {
        let ascends = entries.advance(|key, _| {
            let ascends = last.as_deref().is_none_or(|last| last < key);
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            ascends
        })?;
        match ascends {
            None => return Ok(count),
            Some(true) => count += 1,
            Some(false) => return Err(Error::corrupt(dir, 0, "keys do not ascend")),
        }
    }
}
