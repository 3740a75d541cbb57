//! IndeXY: an embeddable, ordered, concurrent key-value index that is larger than its memory budget.

mod db;
pub mod error;
mod framework;
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
    Batch, Db, Durability, IndexXKind, IndexYKind, Options, Range, Stats, Tree, TreeOptions,
    TreeReport, VerifyReport,
};
pub use error::{Error, Result};
pub use key::{Key, Value};
