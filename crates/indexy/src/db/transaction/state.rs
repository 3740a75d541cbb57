//! What a transaction has read and written so far, and its reads.

#![forbid(unsafe_code)]

use super::{reads::Reads, writes::Writes};
use crate::{
    db::{
        handle::{Handle, Pinned},
        tree::{Batch, Tree},
    },
    error::{Error, Result},
    key::Value,
};
use std::{
    cell::{Cell, RefCell},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Memory of what was read of one tree, at least and as a part of the budget.
const LEAST_READ_BYTES: usize = 64 << 10;
const READS_DIVISOR: usize = 256;

/// See the module header.
pub(super) struct State {
    pub(super) pinned: Arc<Pinned>,
    /// Tells transactions apart.
    pub(super) number: u64,
    pub(super) reads: RefCell<Reads>,
    /// What was read for update.
    pub(super) locked: RefCell<Reads>,
    pub(super) writes: Writes,
    /// Some call returned an error after which the transaction may be begun anew.
    pub(super) met_retryable: Cell<bool>,
}

impl State {
    pub(super) fn begin(handle: &Arc<Handle>) -> Result<Self> {
        let limit = handle.core.budget.limit() / READS_DIVISOR;
        let reads = || RefCell::new(Reads::new(limit.max(LEAST_READ_BYTES)));
        Ok(Self {
            pinned: Pinned::begin(handle)?,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            reads: reads(),
            locked: reads(),
            writes: Writes::default(),
            met_retryable: Cell::new(false),
        })
    }

    pub(super) fn check(&self, tree: &Tree) -> Result<()> {
        match tree.is_of(&self.pinned.handle) {
            true => Ok(()),
            false => Err(Error::ForeignTree),
        }
    }

    pub(super) fn limit(&self) -> usize {
        Batch::new(self.pinned.handle.clone()).limit()
    }

    /// Whether `more` bytes may be written.
    pub(super) fn check_size(&self, more: usize) -> Result<()> {
        let (bytes, limit) = (self.writes.bytes_held() + more, self.limit());
        match bytes > limit {
            true => Err(Error::BatchTooLarge { bytes, limit }),
            false => Ok(()),
        }
    }

    /// The value of `key`; `track` remembers that it was read.
    pub(super) fn read(
        &self,
        tree: &Tree,
        key: &[u8],
        track: Option<&RefCell<Reads>>,
    ) -> Result<Option<Value>> {
        self.check(tree)?;
        if let Some(written) = self.writes.get(tree.core(), key) {
            return Ok(tree.value_of(written, self.pinned.time()));
        }
        let found = self.noted(tree.get_at(&self.pinned, key))?;
        if let Some(reads) = track {
            let mut reads = reads.borrow_mut();
            reads.add_key(tree.core(), key);
            if let Some((expires, _)) = found {
                reads.add_expiry(tree.core(), key, expires);
            }
        }
        Ok(found.map(|(_, value)| value))
    }

    pub(super) fn multi_get(&self, tree: &Tree, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.check(tree)?;
        let core = tree.core();
        let ours = |key: &[u8]| self.writes.get(core, key);
        let theirs = keys.iter().copied().filter(|key| ours(key).is_none());
        let theirs: Vec<&[u8]> = theirs.collect();
        let found = self.noted(tree.multi_get_at(&self.pinned, &theirs))?;
        let mut reads = self.reads.borrow_mut();
        theirs.iter().for_each(|key| reads.add_key(core, key));
        for (key, found) in theirs.iter().zip(&found) {
            if let Some((expires, _)) = found {
                reads.add_expiry(core, key, *expires);
            }
        }
        let mut found = found.into_iter();
        let value = |key: &&[u8]| match ours(key) {
            Some(written) => tree.value_of(written, self.pinned.time()),
            None => found.next().flatten().map(|(_, value)| value),
        };
        Ok(keys.iter().map(value).collect())
    }

    /// Remembers an error after which the transaction may be begun anew.
    pub(super) fn noted<R>(&self, result: Result<R>) -> Result<R> {
        if result.as_ref().is_err_and(Error::is_retryable) {
            self.met_retryable.set(true);
        }
        result
    }
}
