//! IndeXY: an embeddable, ordered, concurrent key-value index that is larger than its memory
//! budget.
//!
//! A [`Db`] is a directory with named [`Tree`]s under one memory budget and one log. A tree maps
//! byte strings to byte strings, in order. It is two indexes behind one interface:
//!
//! - the *memory index* ([`IndexXKind`]; Index X in the paper) answers for what is hot, and takes
//!   every write;
//! - the *disk index* ([`IndexYKind`]; Index Y in the paper) has everything else. It is asked for
//!   one key at a time when that key is not in memory, and written to in the background, in sorted
//!   runs.
//!
//! When memory runs short, the coldest ranges of the memory index are written back and released. So
//! a tree whose hot keys fit in memory costs about what an in-memory index costs, at any size.
//!
//! ```
//! use indexy::{Db, Options};
//! # fn main() -> indexy::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path();
//! let db = Db::open(path, Options::new(16 << 20))?; // 16 MiB for everything
//! let tree = db.tree("orders")?;
//! tree.insert("17", "three chairs")?;
//! assert_eq!(tree.get("17")?.unwrap(), b"three chairs");
//! for entry in tree.range("10".."20") {
//!     let (key, value) = entry?;
//!     println!("{key:?}: {value:?}");
//! }
//! db.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Where to look next: [`Options`] for durability and the choice of indexes; [`Batch`] for several
//! writes as one, [`Db::transact`] for reads and writes as one, [`Snapshot`] for a view of one
//! moment, [`Db::changes`] for what was committed since another; [`Tree::try_get`] for reads that
//! do not wait; [`error`] for who acts after an
//! error; [`cost`] for what each operation costs; [`index_y`] for a disk index of your own. The
//! design is that of IndeXY (ICDE 2023), a framework that joins an in-memory and an on-disk index.
//!
//! # Cargo features
//!
//! - `async`: a [`Ticket`] is a `Future`, for any executor.
//! - `tracing`: events about the background (recovery, stalls, poisoning, compactions, releases)
//!   for the subscribers of the crate `tracing`, with the target `indexy`.
//! - `zstd`: compression by Zstandard, for trees that ask for it; compiles it from C.
//! - `rocksdb`: RocksDB as a further disk index; compiles it from C++.
//! - `testing`: the suite that every disk index has to pass, the targets of the fuzzer, devices
//!   that are as slow as others (`Options::modelled_device`), and the policies of release and
//!   admission without an index, for programs that replay traces.

pub mod cost;
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
mod versions;
mod wal;
mod x;
mod y;

pub use db::{
    Access, Batch, Change, ChangePosition, ChangeSet, Changes, Compacted, Cursor, Db,
    DeviceProfile, Doubtful, Durability, Expires, Fetch, IndexXKind, IndexYKind, IndexYName,
    Isolation, Loss, Options, Range, Rejected, RetryPolicy, SalvageReport, SalvagedTree, Savepoint,
    Snapshot, Stats, Ticket, Transaction, TransactionRange, Tree, TreeOptions, TreeReport,
    TreeStats, Ttl, VerifyReport,
};
pub use error::{Error, Result};
#[cfg(any(test, feature = "testing"))]
pub use framework::replay;
pub use framework::{
    operators::{Merge, MergeOperator},
    policies::{Admission, Evicted, HotSet, Precleaning, Release},
};
pub use key::{Key, Value};
#[cfg(any(test, feature = "testing"))]
pub use storage::modelled::{DeviceFigures, DeviceModel, ModelledDevice};
pub use versions::time::Clock;
pub use y::Compression;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
