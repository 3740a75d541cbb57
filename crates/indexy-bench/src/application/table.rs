//! What a table of a workload is.

use std::fmt::Debug;

/// A table of a workload.
pub trait TableId: Debug + Copy {
    /// Its number for [`Tables`](crate::contender::Tables).
    fn index(self) -> usize;

    /// The name of its tree.
    fn name(self) -> &'static str;
}
