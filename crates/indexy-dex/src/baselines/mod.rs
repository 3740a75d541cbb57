//! What the tree is compared with, on the same verbs.
//!
//! - [`OneSided`]: no cache and no partitions; every node is read from the pool.
//! - Partitions with inner nodes cached and leaves read each time need no code of their own: a
//!   [`Tree`](crate::Tree) with [`leaf_admission(0.0)`](crate::Options::leaf_admission).

mod one_sided;

pub use one_sided::OneSided;
