//! An Index Y for IndeXY over [redb](https://docs.rs/redb), a B+ tree with copy-on-write pages.
//!
//! `docs/adding-an-index.md` walks through it. Three parts:
//! - [`RedbFactory`] is what a program registers;
//! - `RedbShared` divides the caches among the trees of one database (`shared.rs`);
//! - `RedbY` is the Index Y of one tree (`tree.rs`), over an open redb file (`engine.rs`),
//!   which is not written to when it is open read-only (`overlay.rs`).

mod engine;
mod error;
mod overlay;
mod shared;
mod slice;
mod tree;

use indexy::{
    Options, Result,
    index_y::{IndexYFactory, IndexYShared},
};
use std::sync::Arc;

pub use shared::RedbShared;
pub use tree::RedbY;

/// The name under which databases remember it.
pub const NAME: &str = "redb";

/// Makes Index Ys over redb.
#[derive(Debug, Clone, Copy, Default)]
pub struct RedbFactory;

impl IndexYFactory for RedbFactory {
    fn share(&self, cache_bytes: usize) -> Result<Arc<dyn IndexYShared>> {
        Ok(Arc::new(RedbShared::new(cache_bytes)))
    }

    /// What a write transaction remembers of the pages that it replaces.
    fn work_bytes(&self) -> usize {
        2 << 20
    }
}

/// `options` of a database whose trees may be
/// [`IndexYKind::custom`](indexy::IndexYKind::custom)`("redb")`.
pub fn register(options: Options) -> Result<Options> {
    options.register_index_y(NAME, Arc::new(RedbFactory))
}
