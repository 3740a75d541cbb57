//! A tree of `indexy-dex` as the disk index of a database: Art over Dex, say.
//!
//! The nodes lie in a memory pool, which loses them when a memory server goes. So each tree has a
//! second disk index behind it, its *backing*, in the database's directory: every run goes there
//! first, and the pool follows. The pool is filled from the backing when the tree is opened. Reads
//! are answered by the pool; when it fails or is full, by the backing from then on, until the tree
//! is opened again.
//!
//! Three parts:
//! - [`DexFactory`] is what a program registers, with its [`Pools`];
//! - [`DexShared`] divides the caches among the trees of a database (`slice.rs`);
//! - [`DexY`] is the Index Y of one tree (`tree.rs`): a pool's tree (`pooled.rs`), what a run has
//!   while it is written (`staged.rs`), a range over both (`entries.rs`).

#![forbid(unsafe_code)]

mod entries;
mod factory;
mod pooled;
mod pools;
mod shared;
mod slice;
mod staged;
mod tree;

pub use factory::DexFactory;
pub use pools::Pools;
pub use shared::DexShared;
pub use tree::DexY;

/// The name under which databases remember it.
pub const NAME: &str = "dex";

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
