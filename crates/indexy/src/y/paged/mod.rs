//! Index Y as a paged B+ tree on disk, with its own buffer pool.
//!
//! Source: IndeXY III-A (B+-tree as Index Y); the design is argued in `docs/decisions/0005-paged-bptree-as-index-y.md`.
//! One file of pages. A page never changes once it can be seen: a run writes new pages for the leaves it falls into and for the path
//! above them to free places of the file (`run.rs`), and publishes a new root; a superblock makes a version
//! durable (`commit.rs`), and pages are reused when no version that matters has them (`space.rs`).
//!
//! What a reader sees of a run: a `get`, and all of a `multi_get`, is of one version, so all of a run or nothing. A
//! range takes the newest version for each leaf: it may see the part of a run that lies ahead of it.
//!
//! Keeps: I4 (a failed run leaves what was there), I5 (`before_publish` precedes publication), I6 ([`IndexY::make_durable`] is the only
//! thing that syncs, with [`IndexY::release_files`] or the drop), I7 (`pool.rs` bounds the frames, [`IndexY::memory_bytes`] counts the rest).
//!
//! Threads: none of its own. Locks, in this order: `maintaining`
//! (`maintain`), `writing` (one run; the beginning of a copy), `committed` (one commit), `space`; then those of the pool. Only the first three are
//! held across I/O, and reads take none of these.
//! Not here: when to write and when to make durable (the framework).

#![forbid(unsafe_code)]

mod copy;
mod file;
#[cfg(any(test, feature = "testing"))]
pub(super) mod fuzzing;
mod index;
mod open;
mod page;
mod pool;
mod read;
mod tree;
mod verify;
mod version;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use open::{PAGE_SIZES, device};
pub(crate) use pool::PagedShared;
pub(crate) use tree::PagedY;

/// What a run and a commit of one database hold while they work: output buffers, the open path.
pub(crate) const WORK_BYTES: usize = 1 << 20;
