//! A tree of an open database, as its handles hold it.
//!
//! The order in which the two parts drop does not matter: whatever may write holds the directory's
//! lock itself (`directory/owned.rs`).

#![forbid(unsafe_code)]

use crate::{
    db::handle::{Core, Handle, Pinned, TreeCore},
    error::{Error, Result},
    framework::{
        scan::{MergeLimits, Merged},
        tree::Joined,
    },
    key::{Key, Value},
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
    versions::time::Millis,
    x::Order,
};
use std::sync::Arc;

/// What a read sees.
#[derive(Clone)]
pub(in crate::db) enum View {
    Newest,
    At(Arc<Pinned>),
}

/// The entry that expires first of those that were read: its moment, and its key.
pub(in crate::db) type Soonest = Option<(Millis, Key)>;

/// See the module header. Cost of a clone: two counters.
#[derive(Clone)]
pub(super) struct TreeRef {
    pub(super) handle: Arc<Handle>,
    pub(super) tree: Arc<TreeCore>,
}

impl TreeRef {
    #[inline]
    pub(super) fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }

    #[inline]
    pub(super) fn joined(&self) -> &Arc<Joined> {
        &self.tree.joined
    }

    /// `TreeDropped` or `Closed`. Cost: one load.
    #[inline]
    pub(super) fn live(&self) -> Result<()> {
        self.tree.live()
    }

    /// The result of a read of Y. When the tree was dropped or closed meanwhile, its failure says
    /// that.
    #[inline]
    pub(super) fn alive<R>(&self, read: Result<R>) -> Result<R> {
        read.or_else(|error| self.live().and(Err(error)))
    }

    /// What is stored under `key`, as `pinned` sees it.
    #[inline]
    pub(super) fn get_at(&self, pinned: &Pinned, key: &[u8]) -> Result<Option<Value>> {
        self.live()?;
        self.check_key(key)?;
        let read = self.joined().get_at(key, pinned.epoch());
        match &read {
            Ok(_) if pinned.check().is_ok() => read,
            _ => pinned.checked(self.alive(read)),
        }
    }

    /// A chunk of a scan: what `view` sees of it. `soonest` becomes what expires first.
    pub(super) fn chunk(
        &self,
        view: &View,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        limits: MergeLimits,
        soonest: &mut Soonest,
    ) -> Result<Merged> {
        let joined = self.joined();
        let at = self.moment(view);
        let mut chunk = match view {
            View::Newest => self.alive(joined.scan_chunk(from, to, order, limits))?,
            View::At(pinned) => {
                let chunk = joined.scan_chunk_at(from, to, order, limits, pinned.epoch());
                pinned.checked(self.alive(chunk))?
            }
        };
        self.open_all(&mut chunk, at, soonest)?;
        Ok(chunk)
    }

    /// `KeyTooLong` beyond what the API or this tree's Index Y takes.
    #[inline]
    pub(super) fn check_key(&self, key: &[u8]) -> Result<()> {
        let limit = MAX_KEY_BYTES.min(self.joined().limits.max_key_bytes);
        if key.len() > limit {
            return Err(Error::KeyTooLong {
                len: key.len(),
                limit,
            });
        }
        Ok(())
    }

    /// `ValueTooLong` beyond what the API or this tree's Index Y takes.
    #[inline]
    pub(super) fn check_value(&self, len: usize) -> Result<()> {
        let limit = MAX_VALUE_BYTES.min(self.joined().limits.max_value_bytes);
        if len > limit {
            return Err(Error::ValueTooLong { len, limit });
        }
        Ok(())
    }
}
