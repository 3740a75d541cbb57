//! Scans in a transaction: [`TransactionRange`] borrows it, [`Cursor`] does not.

#![forbid(unsafe_code)]

use super::{overlay::Overlay, state::State};
use crate::{
    db::tree::{Tree, View, bounds},
    error::{Error, Result},
    key::{Key, Value},
    x::Order,
};
use std::fmt;

/// An iterator over a range of keys in a transaction, from both ends: what the transaction's
/// snapshot has, with its own writes.
///
/// The transaction counts as having read what the iterator passed, and the whole range when it came
/// to an end. To write between two steps, use a [`Cursor`].
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
/// # let tree = db.tree("t")?;
/// let mut tx = db.begin()?;
/// tx.insert(&tree, "a", "1")?;
/// tx.insert(&tree, "b", "2")?;
/// let mut range = tx.range(&tree, "a"..);
/// assert_eq!(range.next().unwrap()?.0, b"a");
/// assert_eq!(range.next_back().unwrap()?.0, b"b");
/// assert!(range.next().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TransactionRange<'tx> {
    tx: &'tx State,
    cursor: Cursor,
}

impl<'tx> TransactionRange<'tx> {
    pub(super) fn new(tx: &'tx State, cursor: Cursor) -> Self {
        Self { tx, cursor }
    }
}

impl fmt::Debug for TransactionRange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionRange").finish_non_exhaustive()
    }
}

impl Iterator for TransactionRange<'_> {
    type Item = Result<(Key, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.cursor.step(self.tx, Order::Ascending).transpose()
    }
}

impl DoubleEndedIterator for TransactionRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.cursor.step(self.tx, Order::Descending).transpose()
    }
}

/// A place in a range of keys of a transaction, which may be written between two steps.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
/// # let tree = db.tree("t")?;
/// for key in ["a", "b", "c"] {
///     tree.insert(key, "old")?;
/// }
/// let mut tx = db.begin()?;
/// let mut cursor = tx.cursor(&tree, "b"..);
/// while let Some((key, _)) = cursor.next(&tx)? {
///     tx.insert(&tree, &key, "new")?;
/// }
/// tx.commit()?;
/// assert_eq!(tree.get("a")?.unwrap(), b"old");
/// assert_eq!(tree.get("c")?.unwrap(), b"new");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cursor {
    tree: Tree,
    overlay: Overlay,
    /// Number of the transaction.
    of: u64,
    ended: bool,
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").finish_non_exhaustive()
    }
}

impl Cursor {
    pub(super) fn new(tx: &State, tree: &Tree, range: bounds::KeyRange) -> Self {
        let base = tree.range_of(range.clone());
        let base = match tx.check(tree) {
            Ok(()) => base.seen_by(View::At(tx.pinned.clone())),
            Err(error) => base.failed(error),
        };
        Self {
            tree: tree.clone(),
            overlay: Overlay::new(base, range),
            of: tx.number,
            ended: false,
        }
    }

    pub(super) fn step(&mut self, tx: &State, order: Order) -> Result<Option<(Key, Value)>> {
        if tx.number != self.of {
            return Err(Error::Unsupported {
                what: "a cursor of another transaction".into(),
            });
        }
        if self.ended {
            return Ok(None);
        }
        let core = self.tree.core();
        let (writes, at) = (tx.writes.of(core), tx.pinned.time());
        let passed = |from: &[u8], to: Option<&[u8]>| {
            tx.reads.borrow_mut().add_interval(core, from, to);
        };
        let step = self.overlay.step(order, writes, &self.tree, at, passed);
        self.ended = step.as_ref().map_or(true, Option::is_none);
        let entry = tx.noted(step)?;
        if let Some((expires, key)) = self.overlay.soonest() {
            tx.reads.borrow_mut().add_expiry(core, key, *expires);
        }
        Ok(entry)
    }
}
