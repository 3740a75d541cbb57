//! The database: the API, and the only place that wires the log, X, Y and the framework together.
//!
//! - `database` and `trees` the API of [`Db`]; `tree/` of trees, batches and scans; `snapshot` what
//!   all trees were at one moment, `transaction/` reads and writes that happen as one; `options`,
//!   `tree_options` and `kinds/` what may be chosen; `reports/` what a database says about itself;
//!   `changes` what was committed, from the log; `checkpoint` copies of it; `salvage` what can be
//!   read of a damaged one.
//! - `handle/` what all handles share, how it ends, the locks of writers, the division of the
//!   budget.
//! - `hot_set/` which keys are brought back into memory by the next open.
//! - `open/` how it begins; `directory/` the files that are the database's own, and who may touch
//!   them.
//! - `device/` presets for kinds of devices, and which kind a directory lies on.
//! - `index_y` the one place that tells the Index Ys apart; `machine` what the process may use.

mod changes;
mod checkpoint;
mod database;
mod device;
mod directory;
mod handle;
mod hot_set;
mod index_y;
mod kinds;
mod machine;
mod open;
mod options;
mod reports;
mod salvage;
mod snapshot;
mod transaction;
mod tree;
mod tree_options;
mod trees;

#[cfg(any(test, feature = "testing"))]
pub(crate) use {directory::fuzzing, hot_set::fuzzing as hot_set_fuzzing};

pub use changes::{Change, ChangePosition, ChangeSet, Changes};
pub use database::Db;
pub use device::{Access, DeviceProfile};
pub use kinds::{IndexXKind, IndexYKind, IndexYName};
pub use options::{Durability, Options};
pub use reports::{Stats, TreeReport, VerifyReport};
pub use salvage::{Doubtful, Loss, SalvageReport, SalvagedTree};
pub use snapshot::Snapshot;
pub use transaction::{Cursor, Isolation, RetryPolicy, Savepoint, Transaction, TransactionRange};
pub use tree::{Batch, Compacted, Expires, Fetch, Range, Rejected, Ticket, Tree, TreeStats};
pub use tree_options::{TreeOptions, Ttl};
