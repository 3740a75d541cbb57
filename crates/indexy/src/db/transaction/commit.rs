//! The condition of a commit: nobody has written what the transaction depends on.
//!
//! It is asked with the stripes of what is written and the gate held (`db/tree/commit.rs`). Of what
//! the transaction writes, nobody writes meanwhile, so that one look before its own images are
//! there is enough. What it has read and has expired since counts as written by others: whoever
//! begins from then on sees that it is gone, and no snapshot begins while the gate is held. What it
//! only reads is looked at after its images are there: whoever writes it
//! later, in a transaction that read what this one writes, finds them.

#![forbid(unsafe_code)]

use super::{
    reads::{Reads, TreeReads},
    writes::Writes,
};
use crate::{
    db::{
        handle::{Pinned, TreeCore},
        tree::Condition,
    },
    error::{Error, Result},
    key::Key,
    versions::{Epoch, Spared},
};

/// What a commit protects a [`Transaction`](crate::Transaction) from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// As if committed transactions had run one after the other: what a transaction that writes has
    /// read, ranges included, was not written by others until it commits.
    #[default]
    Serializable,
    /// What a transaction writes was not written by others since it began. What it only read may
    /// have been, unless by [`Transaction::get_for_update`](crate::Transaction::get_for_update):
    /// two transactions may each overwrite what the other one has read (write skew).
    Snapshot,
}

/// See the module header.
pub(super) struct Unchanged<'a> {
    pub(super) isolation: Isolation,
    pub(super) pinned: &'a Pinned,
    /// What must not have changed, if the isolation is serializable.
    pub(super) reads: &'a Reads,
    /// What must not have changed.
    pub(super) locked: &'a Reads,
    pub(super) writes: &'a Writes,
}

fn conflict(tree: &TreeCore, key: &[u8]) -> Error {
    Error::Conflict {
        tree: tree.name().to_string(),
        key: Key::new(key),
    }
}

impl Unchanged<'_> {
    /// What is looked at.
    fn tracked(&self) -> impl Iterator<Item = &Reads> {
        let reads = (self.isolation == Isolation::Serializable).then_some(self.reads);
        reads.into_iter().chain([self.locked])
    }

    fn check_all(&self, reads: &Reads) -> Result<()> {
        let time = self.pinned.handle.core.shared.versions.time();
        if let Some((tree, key)) = reads.expired(|| time.now()) {
            return Err(conflict(tree, key));
        }
        let epoch = self.pinned.epoch();
        for of in &reads.trees {
            self.check_tree(of, epoch)?;
            // Behind the look: the images of a tree that is dropped go, after its state says so.
            of.tree.live()?;
        }
        Ok(())
    }

    fn check_tree(&self, of: &TreeReads, epoch: Epoch) -> Result<()> {
        let versions = &of.tree.joined.versions;
        if versions.is_unchanged_since(epoch) {
            return Ok(());
        }
        let ours = |key: &[u8]| self.writes.get(&of.tree, key).is_some();
        for key in of.keys.iter().filter(|key| !ours(key)) {
            if versions.is_written_since(key, epoch)? {
                return Err(conflict(&of.tree, key));
            }
        }
        for (from, to) in &of.intervals {
            if let Some(key) = versions.written_in(from, to.as_deref(), epoch, ours)? {
                return Err(conflict(&of.tree, &key));
            }
        }
        Ok(())
    }
}

impl Condition for Unchanged<'_> {
    fn spare(&self) -> Result<Spared<'_>> {
        self.pinned.spare()
    }

    fn check_written(&self, tree: &TreeCore, key: &[u8]) -> Result<()> {
        let versions = &tree.joined.versions;
        if !versions.is_written_since(key, self.pinned.epoch())? {
            return Ok(());
        }
        let read = |reads: &Reads| reads.of(tree).is_some_and(|reads| reads.contains(key));
        match self.isolation == Isolation::Snapshot || self.tracked().any(read) {
            true => Err(conflict(tree, key)),
            // Whatever it was, it is overwritten.
            false => Ok(()),
        }
    }

    fn check_read(&self) -> Result<()> {
        self.tracked().try_for_each(|reads| self.check_all(reads))?;
        // Last: images may go once it is given up.
        self.pinned.check()
    }
}
