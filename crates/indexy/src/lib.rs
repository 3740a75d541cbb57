//! IndeXY: an embeddable, ordered, concurrent key-value index that is larger than its memory budget.

pub mod error;
pub mod key;
pub mod limits;
mod mem;
mod poison;
mod storage;
mod wal;
mod x;
mod y;

pub use error::{Error, Result};
pub use key::{Key, Value};
