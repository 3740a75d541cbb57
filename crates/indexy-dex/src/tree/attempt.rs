//! What an attempt is for, and how it ends.

use crate::{
    error::Error,
    node::{Edit, Image, TreeKey},
};

/// What an operation wants at the leaf.
pub(super) enum Job<'a, K: TreeKey> {
    Edit(Edit<K::Value>),
    /// The leaf, and when it is read from the pool up to `most` leaves from it on.
    Copy {
        leaves: &'a mut Vec<Image>,
        most: usize,
    },
    /// The keys up to `to` go, and their values to `old`. `next`: the leaf's successor starts
    /// there.
    Clear {
        to: K,
        old: &'a mut Vec<K::Value>,
        next: &'a mut Option<K>,
    },
}

/// What an operation found.
pub(super) struct Answer<V> {
    pub(super) old: Option<V>,
    /// A removal left so little that a merge should be tried.
    pub(super) is_sparse: bool,
}

impl<V> Default for Answer<V> {
    fn default() -> Self {
        Self {
            old: None,
            is_sparse: false,
        }
    }
}

/// Why an attempt ended without an answer.
pub(super) enum Stop {
    /// A conflict: start from the root.
    Restart,
    /// A shared node's copy is stale.
    Refresh,
    /// A shared node is full.
    Grow,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

pub(super) type Attempt<T> = std::result::Result<T, Stop>;
