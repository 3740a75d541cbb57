//! IndeXY: an embeddable, ordered, concurrent key-value index that is larger than its memory budget.
//!
//! A [`Db`] is a directory with named [`Tree`]s under one memory budget and one log. Hot keys stay in an
//! in-memory index, everything else lives on disk; see the README for guarantees and limits.
//!
//! ```
//! use indexy::{Db, Options};
//! # fn main() -> indexy::Result<()> {
//! let dir = tempfile::tempdir().unwrap();
//! let db = Db::open(dir.path(), Options::new(16 << 20))?;
//! let tree = db.tree("orders")?;
//! tree.insert(b"key", b"value")?;
//! assert_eq!(tree.get(b"key")?.unwrap(), b"value");
//! db.close()?;
//! # Ok(())
//! # }
//! ```

mod db;
pub mod error;
mod events;
mod framework;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod index_y;
pub mod key;
pub mod limits;
mod mem;
mod poison;
mod storage;
mod sync;
mod wal;
mod x;
mod y;

pub use db::{
    Batch, Db, Durability, IndexXKind, IndexYKind, IndexYName, Options, Range, Rejected, Stats,
    Tree, TreeOptions, TreeReport, VerifyReport,
};
pub use error::{Error, Result};
pub use key::{Key, Value};

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
