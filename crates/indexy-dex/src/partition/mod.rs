//! Logical partitions: which compute server owns which keys. Source: DEX section 4.
//!
//! A leaf has one owner. An inner node whose fences lie in one owner's range is private to it; the
//! others are shared. The table of owners lies in the pool, and each change of it is an epoch.

mod controller;
mod ownership;
mod table;

pub use controller::{Load, Move, plan};
pub use ownership::Ownership;
pub(crate) use table::TableLock;
pub use table::{MAX_SEGMENTS, Table};
