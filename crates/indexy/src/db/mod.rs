//! The database: the API, and the only place that wires the log, X, Y and the framework together.

mod batch;
mod checkpoint;
mod core;
mod custom;
mod database;
mod directory;
mod division;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzzing;
mod index_y;
mod machine;
mod open;
mod options;
mod range;
mod stats;
mod stripes;
mod tree;
mod updating;
mod verify;

pub use batch::{Batch, Rejected};
pub use custom::IndexYName;
pub use database::Db;
pub use options::{Durability, IndexXKind, IndexYKind, Options, TreeOptions};
pub use range::Range;
pub use stats::Stats;
pub use tree::Tree;
pub use verify::{TreeReport, VerifyReport};
