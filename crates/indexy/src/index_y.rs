//! The seam for a disk index of your own.
//!
//! The disk index of a tree (*Index Y* in the paper, and *Y* for short here) is any ordered map on
//! disk that takes sorted runs. It has no log of its own: what it acknowledged but had not yet made
//! durable comes back from the database's log. Hot keys are in memory before it, so it is asked for
//! cold ones, and it is written to in long sorted runs, never key by key.
//!
//! To add one, implement [`IndexY`] for a tree, [`IndexYShared`] for what the trees of a database
//! share, and [`IndexYFactory`] to make that; then
//!
//! ```no_run
//! # use indexy::{Db, IndexYKind, Options, index_y::{IndexYFactory, IndexYShared}};
//! # use std::sync::Arc;
//! # struct MyFactory;
//! # impl IndexYFactory for MyFactory {
//! #     fn share(&self, _: usize) -> indexy::Result<Arc<dyn IndexYShared>> { unimplemented!() }
//! # }
//! # fn main() -> indexy::Result<()> {
//! let options = Options::new(64 << 20)
//!     .register_index_y("mine", Arc::new(MyFactory))?
//!     .index_y(IndexYKind::custom("mine")?);
//! let db = Db::open("/data/orders", options)?;
//! # Ok(())
//! # }
//! ```
//!
//! The database remembers the name. Every program that opens it registers a factory of that name
//! first; without one the open fails with [`Unsupported`](crate::Error::Unsupported) and changes
//! nothing. `docs/adding-an-index.md` in the repository walks through a whole implementation, and
//! the cargo feature `testing` brings the suite that it has to pass (module `conformance`).
//!
//! # Who calls what, when
//!
//! - Any thread may call [`IndexY::get`], [`IndexY::multi_get`], [`IndexY::range`],
//!   [`IndexY::verify`], at any time, beside one writer.
//! - One thread at a time is inside [`IndexY::write_run`] or [`IndexY::copy_to`] (one in each, if
//!   [`IndexY::copies_beside_runs`]; the tree may be dropped and its directory removed meanwhile);
//!   one is inside [`IndexY::maintain`], except that a flush of a congested tree helps it. One is
//!   inside [`IndexY::make_durable`]. All of these run beside each other.
//! - [`IndexY::interrupt`] comes from any thread while [`IndexY::maintain`] may be running, when
//!   the database is being closed.
//! - A run in flight may wait for the log in [`RunSource::before_publish`]; meanwhile reads and
//!   maintenance go on.
//! - After `write_run` returned `Ok`, every later read sees the run. While it runs, a read sees
//!   all of it, none of it, or a part of it: entries in flight are still in memory, which wins.
//! - After `write_run` returned `Err`, any part of the run may be visible, unless `before_publish`
//!   was not reached or failed: then none is. The caller writes it again.
//! - A run is as large as what is cleaned at once, at most everything in memory (a flush): stream
//!   it, do not gather it.
//! - A tree may be dropped while its Y is open, and its directory is removed under it: calls may
//!   fail from then on. They do not panic, and neither they nor the drop make the directory again.
//!   [`IndexY::release_files`] may still be asked of it, when the database is closed.
//! - The database never calls into a Y from inside another call of the same thread, other than
//!   through [`RunSource`].
//!
//! # What a crash may take
//!
//! - After [`IndexY::make_durable`] returned `Ok`, what was acknowledged before it was called
//!   survives a crash: the log is cut on the strength of it.
//! - What was acknowledged since may be lost in a crash, in whole or in part, key by key: the log
//!   has it. A state that never was (half an entry, an older value than the durable one) may not
//!   come back.
//! - A plain drop, without [`IndexY::make_durable`], keeps acknowledged runs for the next open. The
//!   database relies on it where it has no log: its last flush is then all there is.
//! - [`IndexY::release_files`] is asked before the directory is unlocked. After it said true the Y
//!   touches no file, drops of iterators included. A Y that is dropped without has ended all its
//!   work on files, threads included, when the drop returns.
//!
//! # Memory
//!
//! The budget of a database is a promise about the process, so whatever a Y holds is said
//! somewhere: caches that trees share in [`IndexYShared::memory_bytes`] (at most its share, resized
//! by [`IndexYShared::set_memory`]), what one tree holds for itself (tables of contents, filters)
//! in [`IndexY::memory_bytes`], and what a run or a step of maintenance takes while it works in
//! [`IndexYFactory::work_bytes`]. Iterators live for one chunk of a scan. Upper bounds will do;
//! what is not known exactly is rounded up.
//!
//! # Keys, values, errors
//!
//! Keys are 0..=65,534 bytes, any bytes, the empty key included, in bytewise order; an engine that
//! does not take some of them maps them, or states a lower limit in its [`Capabilities`]. Damaged
//! files are [`Corrupt`](crate::Error::Corrupt) with the file and as far as known the offset, never
//! wrong data. A full disk is [`OutOfSpace`](crate::Error::OutOfSpace); a lack of file descriptors
//! is an [`Io`](crate::Error::Io) with the system's code. After either the Y is as it was, and the
//! database asks again; any other error of a write ends writing until the database is opened anew.
//! A Y never panics: contain the engine's panics and report them.

#![forbid(unsafe_code)]

#[cfg(any(test, feature = "testing"))]
pub use crate::y::conformance;
pub use crate::{
    x::Order,
    y::{
        Capabilities, Compression, GotAt, IndexY, IndexYFactory, IndexYShared, KeyRange, Located,
        Locator, LsmFactory, Maintained, RangeRemoval, Reach, RunEntry, RunSource, SortedLoad,
        YIter,
    },
};
