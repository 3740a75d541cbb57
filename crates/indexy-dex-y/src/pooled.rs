//! The tree in the pool, until it is given up.
//!
//! # Invariants
//! - D1: as long as the pool is in use, it has what the backing has, but for a run or a removal
//!   that is being applied. Whatever fails while it is filled or changed gives it up.
//! - D2: a pool that was given up is not asked again.
//!
//! Threads: any number read, beside one that applies a run.

use crate::pools::Pools;
use indexy::{
    Error, Key, Result, Value,
    index_y::{IndexY, Order},
};
use indexy_dex::{BulkLoad, ByteTree, Options};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

/// The only compute server of a tree's pool.
pub(crate) const OWNER: u16 = 0;
/// Entries of a range that are read at a time.
pub(crate) const CHUNK: usize = 64;

type Entry = (Vec<u8>, Vec<u8>);

pub(crate) struct Pooled<P: Pools, const N: usize> {
    pools: Arc<P>,
    dir: PathBuf,
    tree: Option<ByteTree<P::Memory, N>>,
    is_given_up: AtomicBool,
}

/// A chunk of a range, and where the next one starts, or ends, if there is one.
pub(crate) type Chunk = (Vec<Entry>, Option<Vec<u8>>);

impl<P: Pools, const N: usize> Pooled<P, N> {
    /// Fills a new pool with what `backing` has. `options`: of a tree with so many nodes above its
    /// leaves. Errors are the backing's; without a pool the tree works too.
    pub(crate) fn fill(
        pools: Arc<P>,
        dir: &Path,
        options: impl FnOnce(usize) -> Options,
        backing: &dyn IndexY,
    ) -> Result<Self> {
        let mut broken = None;
        let filled = fill(&*pools, dir, options, backing, &mut broken);
        if let Some(error) = broken {
            return Err(error);
        }
        let (tree, why) = match filled {
            Ok(tree) => (Some(tree), None),
            Err(error) => (None, Some(error)),
        };
        let this = Self {
            pools,
            dir: dir.to_path_buf(),
            tree,
            is_given_up: AtomicBool::new(false),
        };
        if let Some(why) = why {
            this.give_up(&why);
        }
        Ok(this)
    }

    /// D2. Also the reason why it is not used.
    fn give_up(&self, why: &indexy_dex::Error) {
        if !self.is_given_up.swap(true, SeqCst) {
            self.pools.gave_up(&self.dir, why);
        }
    }

    /// `None`: the backing is asked.
    pub(crate) fn tree(&self) -> Option<&ByteTree<P::Memory, N>> {
        let tree = self.tree.as_ref();
        tree.filter(|_| !self.is_given_up.load(SeqCst))
    }

    /// What `ask` says of the tree; `None`: the backing is asked.
    fn ask<T>(
        &self,
        ask: impl FnOnce(&ByteTree<P::Memory, N>) -> indexy_dex::Result<T>,
    ) -> Option<T> {
        match ask(self.tree()?) {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.give_up(&error);
                None
            }
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<Value>> {
        self.ask(|tree| Ok(tree.get(key)?.map(Value::from)))
    }

    /// The next entries of `from..to`, in `order`.
    pub(crate) fn chunk(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Option<Chunk> {
        self.ask(|tree| {
            let mut found = Vec::new();
            let next = match order {
                Order::Ascending => tree.scan(from, to, CHUNK, &mut found)?,
                Order::Descending => tree.scan_back(from, to, CHUNK, &mut found)?,
            };
            Ok((found, next))
        })
    }

    /// D1: one change of a run that the backing has.
    pub(crate) fn apply(&self, key: &[u8], value: Option<&[u8]>) {
        self.ask(|tree| match value {
            Some(value) => tree.put(key, value),
            None => tree.remove(key),
        });
    }

    /// D1: the backing has removed the range.
    pub(crate) fn remove_range(&self, from: &[u8], to: Option<&[u8]>) {
        // There is no other owner who has a part of it.
        self.ask(|tree| tree.remove_range(from, to));
    }

    /// A run that the backing has cannot be applied whole.
    pub(crate) fn cannot_follow(&self, source: std::io::Error) {
        let what = "a run cannot be read again";
        self.give_up(&indexy_dex::Error::System { what, source });
    }

    /// Counts the entries and checks their order. `None`: there is no pool.
    pub(crate) fn count(&self) -> Option<Result<u64>> {
        let (mut counted, mut from, mut last) = (0, Vec::new(), None::<Vec<u8>>);
        loop {
            let (entries, next) = self.chunk(&from, None, Order::Ascending)?;
            for (key, _) in entries {
                if last.is_some_and(|last| last >= key) {
                    let what = format!("keys of the pool do not ascend at {:?}", Key::new(&key));
                    return Some(Err(Error::corrupt(&self.dir, 0, what)));
                }
                last = Some(key);
                counted += 1;
            }
            match next {
                Some(next) => from = next,
                None => return Some(Ok(counted)),
            }
        }
    }
}

/// An error of the backing is left in `broken`.
fn fill<P: Pools, const N: usize>(
    pools: &P,
    dir: &Path,
    options: impl FnOnce(usize) -> Options,
    backing: &dyn IndexY,
    broken: &mut Option<Error>,
) -> indexy_dex::Result<ByteTree<P::Memory, N>> {
    let memory = pools.empty(dir)?;
    let entries = match backing.range(&[], None, Order::Ascending) {
        Ok(entries) => entries,
        Err(error) => {
            *broken = Some(error);
            Box::new(std::iter::empty())
        }
    };
    let entries = entries.map_while(|entry| match entry {
        Ok((key, value)) => Some(Ok((key.to_vec(), value.to_vec()))),
        Err(error) => {
            *broken = Some(error);
            None
        }
    });
    let loaded = ByteTree::<_, N>::load(&BulkLoad::default(), &memory, entries)?;
    ByteTree::open(memory, options(loaded.inner_nodes))
}
