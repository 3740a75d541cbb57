//! `Tree::merge`: a write of a key whose value need not be known.
//!
//! Threads: as every write (`writes.rs`). What it leaves where the value is not known, and who
//! finds out, is in `framework/merge/`.

#![forbid(unsafe_code)]

use super::{reads::Tree, writes::New};
use crate::{
    db::handle::TreeCore,
    error::{Error, Result},
    framework::{
        merge::writes::{Merged, NewOperand},
        misses::Purpose,
        operators::Outcome,
        tree::Joined,
    },
    key::Value,
    wal::Lsn,
};

/// `operand` of a merge in `tree` as it waits for its value. Errors: `MergeRefused`,
/// `MergeOperatorMissing`.
pub(in crate::db) fn waiting(tree: &TreeCore, key: &[u8], operand: &[u8]) -> Result<Vec<u8>> {
    let operator = tree.joined.operator().map_err(|error| match error {
        Error::MergeOperatorMissing { .. } => missing(tree),
        error => error,
    })?;
    operator.waiting(key, operand)
}

fn missing(tree: &TreeCore) -> Error {
    Error::MergeOperatorMissing {
        tree: format!("{:?}", &*tree.name()),
    }
}

/// What a merge makes of `base`: the new value; `None`: it stays. Errors: `MergeRefused`.
pub(in crate::db) fn made(outcome: Outcome) -> Result<Option<Vec<u8>>> {
    match outcome {
        Outcome::Value(value) => Ok(Some(value)),
        Outcome::Same => Ok(None),
        Outcome::Refused(reason) => Err(Error::MergeRefused { reason }),
    }
}

impl Tree {
    /// Merges `operand` into the value of `key`, by the tree's
    /// [merge operator](crate::TreeOptions::merge_operator): a counter is added to, a list appended
    /// to. Atomic, and seen by every read from now on.
    ///
    /// Cost: that of [`Tree::insert`]. A key that is not in memory is not read: the operand waits
    /// in memory until the key is read, or its part of memory is written to disk; operands of one
    /// key wait together. Such operands take at most about half of the memory budget. Beyond that,
    /// and for operands of the key that together have more than 4 KiB, the call reads from disk.
    /// While a [`Snapshot`](crate::Snapshot) is open, a merge of a key with an operand from before
    /// it reads the key.
    ///
    /// Errors: those of [`Tree::insert`]; `MergeOperatorMissing`; `MergeRefused` if the operand is
    /// not one of the operator, or the value is in memory and does not suit: nothing was written.
    /// A value that is on disk and turns out not to suit stays as it is.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{MergeOperator, TreeOptions};
    /// let counters = TreeOptions::new().merge_operator(MergeOperator::AddU64);
    /// let visits = db.tree_with("visits", counters)?;
    /// visits.merge("/home", 1u64.to_be_bytes())?;
    /// visits.merge("/home", 2u64.to_be_bytes())?;
    /// assert_eq!(visits.get("/home")?.unwrap(), 3u64.to_be_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    // I1, I8, I10.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        self.check_write(key, operand.len())?;
        let waiting = waiting(&self.at.tree, key, operand)?;
        self.write(key, operand.len(), |joined| {
            let end = self.merge_waiting(joined, key, operand, &waiting)?;
            Ok(((), end))
        })
    }

    /// The same with the stripe of `key` held.
    fn merge_waiting(
        &self,
        joined: &Joined,
        key: &[u8],
        operand: &[u8],
        waiting: &[u8],
    ) -> Result<Option<Lsn>> {
        joined.make_room_for_operands()?;
        loop {
            let outcome = match joined.merged(key, waiting)? {
                Merged::Known(outcome) => outcome,
                Merged::TooLong => {
                    let base = joined.get_for(Purpose::Update, key, Value::new)?;
                    joined.merge_into(key, base.as_deref(), waiting)?
                }
                Merged::Waits {
                    over,
                    waiting: together,
                } => {
                    let new = New::Operand(NewOperand {
                        operand,
                        waiting: &together,
                        over: over.as_deref(),
                    });
                    match self.put_new(key, new)? {
                        Some(end) => return Ok(end),
                        // It was loaded, or resolved.
                        None => continue,
                    }
                }
            };
            return match made(outcome)? {
                Some(value) => self.put(key, Some(&value)),
                // I8: what is there may not be durable yet.
                None => Ok(joined.shared.log.get().map(|log| log.end())),
            };
        }
    }
}
