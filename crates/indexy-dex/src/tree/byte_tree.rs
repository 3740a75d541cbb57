//! Keys and values of any length: short values lie in the leaf, longer ones in blocks
//! (`blocks.rs`, which has invariants V1 to V3).
//!
//! A block's number is drawn when it is written, and is in no other block while a reader may still
//! look for it: numbers start at random, far from those of another tree or an earlier one.

use super::{
    BulkLoad, Loaded, Options, Tree,
    alloc::Allocator,
    blocks::{self, ATTEMPTS, BATCH, Retired, address},
    format::format,
};
use crate::{
    address::Address,
    error::{Error, Result},
    node::{Bytes, MAX_INLINE_BYTES, Stored, TreeKey},
    remote::{Counts, RemoteMemory},
};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A tree whose keys are byte strings of 0 to `N` bytes, in bytewise order, and whose values are
/// byte strings of 0 to 32 KiB. `N` is 16, 32, 64 or 128, and the same for all compute servers of
/// a pool: every node keeps room for two such keys.
///
/// Ranges of owners are told apart by the first eight bytes of a key, as a big-endian number; a
/// shorter key counts as if zeros followed.
pub struct ByteTree<M, const N: usize = 128> {
    tree: Tree<M, Bytes<N>>,
    retired: Retired,
    /// The number of the next block.
    next: AtomicU64,
}

fn checked<const N: usize>(key: &[u8]) -> Result<Bytes<N>> {
    let what = || format!("a key of {} bytes; at most {N}", key.len());
    Bytes::new(key).ok_or_else(|| Error::Options(what()))
}

/// A value in the leaf, or in a block that is written here.
fn store(
    memory: &impl RemoteMemory,
    nodes: &Allocator,
    next: &AtomicU64,
    value: &[u8],
) -> Result<Stored> {
    if let Some(inline) = Stored::inline(value) {
        return Ok(inline);
    }
    let number = next.fetch_add(1, Relaxed);
    let at = blocks::write(memory, nodes, (number, number), value)?;
    Ok(Stored::far(at, number))
}

/// Where a value out of line is.
fn place(stored: &Stored) -> Result<(Address, u64)> {
    let what = "a value is neither here nor there";
    let far = stored.as_far();
    let (word, number) = far.ok_or_else(|| Error::corrupt(Address::new(0, 0), what))?;
    Ok((address(word)?, number))
}

impl<M: RemoteMemory, const N: usize> ByteTree<M, N> {
    /// Longest key.
    pub const MAX_KEY_BYTES: usize = N;

    /// As [`Tree::format`].
    pub fn format(memory: &M) -> Result<()> {
        format::<Bytes<N>>(memory)
    }

    /// As [`Tree::open`]. [`Error::Options`]: the pool's tree has another kind of keys.
    pub fn open(memory: M, options: Options) -> Result<Self> {
        Ok(Self {
            tree: Tree::open_keys(memory, options)?,
            retired: Retired::default(),
            next: AtomicU64::new(rand::random()),
        })
    }

    /// Writes the tree of `entries`, whose keys ascend; the first error of theirs ends it. As
    /// [`BulkLoad::load`]; what was written before an error is lost to the pool.
    ///
    /// Cost: one write a node, and one for each value out of line. Memory: `N` and 16 bytes a leaf.
    pub fn load<I>(load: &BulkLoad, memory: &M, entries: I) -> Result<Loaded>
    where
        I: IntoIterator<Item = Result<(Vec<u8>, Vec<u8>)>>,
    {
        let nodes = Allocator::new(memory.servers());
        let next = AtomicU64::new(rand::random());
        let entries = entries.into_iter().map(|entry| {
            let (key, value) = entry?;
            Ok((checked(&key)?, store(memory, &nodes, &next, &value)?))
        });
        load.load_keys::<Bytes<N>>(memory, &nodes, entries)
    }

    /// The tree of keys and places of values: for hand-overs, counts and options.
    pub fn tree(&self) -> &Tree<M, Bytes<N>> {
        &self.tree
    }

    /// Verbs and bytes so far.
    pub fn counts(&self) -> Counts {
        self.tree.counts()
    }

    /// The value of `key`; `None` also where the key is too long.
    ///
    /// Cost: that of [`Tree::get`]; for values above 128 bytes 1 read more, and one trip for those
    /// above 992 bytes.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match Bytes::new(key) {
            Some(key) => self.find(key),
            None => Ok(None),
        }
    }

    fn find(&self, key: Bytes<N>) -> Result<Option<Vec<u8>>> {
        let mut at = Address::new(0, 0);
        for _ in 0..ATTEMPTS {
            let Some(stored) = self.tree.get(key)? else {
                return Ok(None);
            };
            if let Some(value) = stored.as_inline() {
                return Ok(Some(value.to_vec()));
            }
            let number;
            (at, number) = place(&stored)?;
            // V3: otherwise somebody replaced it, and the block's memory was used again.
            if let Some(value) = blocks::read(&self.tree.memory, at, number)? {
                return Ok(Some(value));
            }
        }
        Err(Error::corrupt(at, "a value is not what its leaf says"))
    }

    /// Sets the value of `key`; whether it had one.
    ///
    /// Cost: that of [`Tree::put`]; for values above 128 bytes 1 write for each started KiB.
    /// [`Error::Options`]: the key or the value is too long.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let key = checked::<N>(key)?;
        if value.len() > MAX_INLINE_BYTES {
            // Before a block is written.
            self.tree.ownership().check(key.prefix())?;
        }
        let store = || store(&self.tree.memory, &self.tree.nodes, &self.next, value);
        let new = self.retired.with_room(&self.tree, store)?;
        let old = self
            .retired
            .with_room(&self.tree, || self.tree.put(key, new))?;
        self.retire(old)?;
        Ok(old.is_some())
    }

    /// Removes `key`; whether it had a value.
    ///
    /// Cost: that of [`Tree::remove`].
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        let Some(key) = Bytes::new(key) else {
            return Ok(false);
        };
        let old = self.tree.remove(key)?;
        self.retire(old)?;
        Ok(old.is_some())
    }

    /// Removes the keys from `from` to `to` (not included; `None`: to the end). Returns the key to
    /// go on from, as [`Tree::remove_range`] does.
    ///
    /// Cost: that of [`Tree::remove_range`].
    pub fn remove_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        let Some((from, to)) = ends(from, to) else {
            return Ok(None);
        };
        let mut old = Vec::new();
        let next = self.tree.remove_range(from, to, &mut old);
        // Also of those that went before an error.
        for old in old {
            self.retire(Some(old))?;
        }
        Ok(next?.map(|next| next.as_slice().to_vec()))
    }

    fn retire(&self, old: Option<Stored>) -> Result<()> {
        match old {
            Some(old) if old.as_inline().is_none() => self.retired.add(&self.tree, place(&old)?.0),
            _ => Ok(()),
        }
    }

    /// Writes every dirty page to the pool; memory of values that were replaced before is used
    /// again.
    ///
    /// Cost: one write a dirty page, one read a value out of line that was replaced.
    pub fn flush(&self) -> Result<()> {
        self.retired.flush(&self.tree)
    }

    /// Appends up to `most` entries from `from` to `to` (not included; `None`: to the end), in
    /// order; returns the key to go on from, as [`Tree::scan`] does.
    ///
    /// Cost: that of [`Tree::scan`], and one read a value out of line, 16 in a trip.
    pub fn scan(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        most: usize,
        found: &mut Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<Option<Vec<u8>>> {
        let Some((from, to)) = ends(from, to) else {
            return Ok(None);
        };
        let mut stored = Vec::new();
        let next = self.tree.scan(from, to, most, &mut stored)?;
        self.resolve(&stored, found)?;
        Ok(next.map(|next| next.as_slice().to_vec()))
    }

    /// Appends up to `most` entries from just below `to` (`None`: from the end) down to `from`
    /// (included), in descending order; returns the `to` to go on with, as [`Tree::scan_back`]
    /// does.
    ///
    /// Cost: that of [`Tree::scan_back`], and one read a value out of line, 16 in a trip.
    pub fn scan_back(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        most: usize,
        found: &mut Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<Option<Vec<u8>>> {
        let Some((from, to)) = ends(from, to) else {
            return Ok(None);
        };
        let mut stored = Vec::new();
        let next = self.tree.scan_back(from, to, most, &mut stored)?;
        self.resolve(&stored, found)?;
        // Every key up to `next` lies before its successor. The greatest key has none, and is
        // the first one that a scan finds.
        let end = next.map(|next| {
            next.after().map_or_else(
                || [next.as_slice(), &[0]].concat(),
                |after| after.as_slice().to_vec(),
            )
        });
        Ok(end)
    }

    /// Entries with their values. One that was removed meanwhile is left out.
    fn resolve(
        &self,
        stored: &[(Bytes<N>, Stored)],
        found: &mut Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<()> {
        for batch in stored.chunks(BATCH) {
            let far = batch.iter().filter(|entry| entry.1.as_inline().is_none());
            let far: Vec<_> = far.map(|entry| place(&entry.1)).collect::<Result<_>>()?;
            let mut values = Vec::new().into_iter();
            if !far.is_empty() {
                values = blocks::read_many(&self.tree.memory, &far)?.into_iter();
            }
            for (key, stored) in batch {
                let value = match stored.as_inline() {
                    Some(value) => Some(value.to_vec()),
                    None => match values.next().flatten() {
                        Some(value) => Some(value),
                        None => self.find(*key)?,
                    },
                };
                found.extend(value.map(|value| (key.as_slice().to_vec(), value)));
            }
        }
        Ok(())
    }
}

/// The first and the last key of `from..to`; `None`: there is none. Ends may be longer than keys.
fn ends<const N: usize>(from: &[u8], to: Option<&[u8]>) -> Option<(Bytes<N>, Bytes<N>)> {
    // The least key that is not below `bytes`.
    let least = |bytes: &[u8]| match bytes.len() > N {
        true => Bytes::cut(bytes).after(),
        false => Some(Bytes::cut(bytes)),
    };
    let first = least(from)?;
    let last = match to.map(least) {
        Some(Some(end)) => end.before()?,
        _ => Bytes::MAX,
    };
    (first <= last).then_some((first, last))
}

impl<M, const N: usize> std::fmt::Debug for ByteTree<M, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ByteTree").field(&self.tree).finish()
    }
}
