//! What the tree is compared with, on the same verbs.
//!
//! - [`OneSided`]: no cache and no partitions; every node is read from the pool.
//! - [`Sherman`]: no partitions; inner nodes are cached, leaves are read and locked each time.
//! - [`Smart`]: verbs of a radix tree, counted and not done.
//! - [`Redis`]: a Redis or Valkey server is the pool, and its range commands are the scans.
//! - Partitions with inner nodes cached and leaves read each time need no code of their own: a
//!   [`Tree`](crate::Tree) with [`leaf_admission(0.0)`](crate::Options::leaf_admission).

mod one_sided;
mod redis;
mod resp;
mod sherman;
mod smart;

pub use one_sided::OneSided;
pub use redis::Redis;
pub use sherman::Sherman;
pub use smart::{Smart, SmartCounts};
