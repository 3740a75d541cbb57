//! The Index Y of one tree.

use crate::{
    engine::{self, ENTRIES, Engine},
    error::{contain, contain_panics},
    slice::Slice,
};
use indexy::{
    Error, Key, Result, Value,
    index_y::{Capabilities, IndexY, Maintained, Order, RunSource, YIter},
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
};
use redb::{OwnedRange, ReadableTableMetadata};
use std::{
    ops::Bound,
    path::Path,
    sync::{Arc, PoisonError, RwLock, atomic::Ordering::SeqCst},
};

/// What redb's maps of free space take per page of the file, rounded up.
const MAP_BYTES_PER_PAGE: u64 = 2;
const PAGE_BYTES: u64 = 4096;
/// Everything else of an open file.
const FIXED_BYTES: usize = 64 << 10;

/// The Index Y of one tree: a redb file.
pub struct RedbY {
    /// `None` once the files were released.
    engine: RwLock<Option<Arc<Engine>>>,
    /// The part of the caches that the file was opened with.
    _slice: Slice,
}

impl RedbY {
    pub(crate) fn open(dir: &Path, read_only: bool, slice: Slice) -> Result<Self> {
        let engine = Engine::open(dir, read_only, slice.bytes)?;
        Ok(Self {
            engine: RwLock::new(Some(Arc::new(engine))),
            _slice: slice,
        })
    }

    /// The open file; who holds it keeps it open.
    fn engine(&self) -> Result<Arc<Engine>> {
        let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner);
        engine.clone().ok_or(Error::Closed)
    }

    fn file_bytes(&self) -> u64 {
        let path = self.engine().map(|engine| engine.path.clone());
        path.map_or(0, |path| std::fs::metadata(path).map_or(0, |m| m.len()))
    }
}

impl IndexY for RedbY {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_key_bytes: MAX_KEY_BYTES,
            max_value_bytes: MAX_VALUE_BYTES,
            // A commit rewrites the path to every leaf that it touches: long runs touch more keys
            // per leaf.
            preferred_run_bytes: 1 << 20,
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        let engine = self.engine()?;
        engine.get(&engine.entries()?, key)
    }

    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        let engine = self.engine()?;
        // One transaction for all.
        let entries = engine.entries()?;
        keys.iter().map(|key| engine.get(&entries, key)).collect()
    }

    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        if to.is_some_and(|to| to <= from) {
            return Ok(Box::new(std::iter::empty()));
        }
        let engine = self.engine()?;
        let entries = engine.entries()?;
        let bounds = (
            Bound::Included(from),
            to.map_or(Bound::Unbounded, Bound::Excluded),
        );
        let range = contain(&engine.path, "read", || {
            entries.range_owned::<&[u8]>(bounds)
        })?;
        Ok(Box::new(Entries {
            range,
            order,
            engine,
        }))
    }

    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        let engine = self.engine()?;
        let transaction = engine.begin_write()?;
        let mut entries = contain(&engine.path, "write", || transaction.open_table(ENTRIES))?;
        source.drain(&mut |(key, value)| {
            if key.len() > MAX_KEY_BYTES {
                return Err(Error::KeyTooLong {
                    len: key.len(),
                    limit: MAX_KEY_BYTES,
                });
            }
            contain(&engine.path, "write", || match value {
                Some(value) => entries.insert(key, &*Engine::seal(key, value)).map(drop),
                None => entries.remove(key).map(drop),
            })
        })?;
        drop(entries);
        // The caller waits for its log here (I5). Until now, and if it fails, nothing of the run is
        // visible or on disk.
        source.before_publish()?;
        engine.publish(transaction)
    }

    fn make_durable(&self) -> Result<()> {
        self.engine()?.save()
    }

    /// redb reuses the pages of old states as it goes.
    fn maintain(&self) -> Result<Maintained> {
        Ok(Maintained::Idle)
    }

    fn congested(&self) -> bool {
        false
    }

    fn is_empty(&self) -> Result<bool> {
        let engine = self.engine()?;
        let entries = engine.entries()?;
        contain(&engine.path, "read", || entries.is_empty())
    }

    fn approximate_len(&self) -> u64 {
        self.engine().map_or(0, |engine| engine.len.load(SeqCst))
    }

    fn memory_bytes(&self) -> usize {
        let maps = self.file_bytes() / PAGE_BYTES * MAP_BYTES_PER_PAGE;
        FIXED_BYTES + usize::try_from(maps).unwrap_or(usize::MAX / 2)
    }

    fn disk_bytes(&self) -> u64 {
        self.file_bytes()
    }

    fn run_count(&self) -> usize {
        usize::from(self.approximate_len() > 0)
    }

    fn verify(&self) -> Result<u64> {
        let engine = self.engine()?;
        let entries = engine.entries()?;
        let expected = contain(&engine.path, "read", || entries.len())?;
        let mut counted = 0;
        let mut last: Option<Key> = None;
        for entry in self.range(&[], None, Order::Ascending)? {
            let (key, _) = entry?;
            if last.is_some_and(|last| last >= key) {
                return Err(Error::corrupt(&engine.path, 0, "keys do not ascend"));
            }
            last = Some(key);
            counted += 1;
        }
        if counted < expected {
            let what = format!("{counted} entries where the table says {expected}");
            return Err(Error::corrupt(&engine.path, 0, what));
        }
        Ok(counted)
    }

    /// redb writes to the file when it closes it: that has to happen while the directory is still
    /// ours.
    fn release_files(&self) -> bool {
        let Ok(mut engine) = self.engine.try_write() else {
            return false;
        };
        match &*engine {
            Some(used) if Arc::strong_count(used) > 1 => false,
            _ => {
                *engine = None;
                true
            }
        }
    }

    fn copy_to(&self, dest: &Path) -> Result<()> {
        engine::copy(&*self.engine()?, dest)
    }
}

/// The rest of a range. The fields drop in this order: the file is the last to go.
struct Entries {
    range: OwnedRange<&'static [u8], &'static [u8]>,
    order: Order,
    engine: Arc<Engine>,
}

impl Iterator for Entries {
    type Item = Result<(Key, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        let (range, engine) = (&mut self.range, &self.engine);
        let next = contain(&engine.path, "read", || {
            let next = match self.order {
                Order::Ascending => range.next(),
                Order::Descending => range.next_back(),
            };
            next.transpose()
        });
        let (key, stored) = match next {
            Ok(entry) => entry?,
            Err(error) => return Some(Err(error)),
        };
        Some(contain_panics(&engine.path, "read", || {
            let value = engine.unseal(key.value(), stored.value())?;
            Ok((Key::new(key.value()), value))
        }))
    }
}
