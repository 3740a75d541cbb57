//! The disk index as a paged B+ tree with its own buffer pool.
//!
//! Source: IndeXY III-A (B+-tree as Index Y). Design and figures:
//! `docs/decisions/0005-paged-bptree-as-index-y.md`; bytes: `docs/formats/pages.md`.
//!
//! One file of pages. A page never changes after a reader can see it. A run writes new pages for
//! the leaves that it changes, and for the path above them, to free places of the file, and
//! publishes a new root (`write/run.rs`). A superblock makes a version durable (`write/commit.rs`).
//! A page is reused when no version that matters has it (`file/space.rs`). What does not fit a node
//! lies in an extent (`file/extent.rs`).
//!
//! - `page/`: the bytes of a page. `file/`: the file, its superblocks, its map of used pages.
//! - `turns.rs`: which pages are still what they were.
//! - `tree.rs`: the state. `read/`, `write/`, `verify.rs`, `copy.rs`, `salvage.rs`: what is done
//!   with it.
//! - `index.rs`: the contract. `open.rs`: opening and creating.
//!
//! What a reader sees of a run: a `get`, and all of a `multi_get`, is of one version, so all of a
//! run or nothing. A range takes the newest version for each leaf: it may see the part of a run
//! that lies ahead.
//!
//! Keeps: I4 (a failed run leaves what was there), I5 (`before_publish` precedes publication),
//! I6 (what syncs is an open, `make_durable`, compaction, loads, copies, `release_files` and the
//! drop), I7 (`y/pool/` bounds the frames, `memory_bytes` counts the rest).
//! Locks, in this order: `maintaining` (`maintain`), `writing` (one run; the beginning of a copy),
//! `committed` (one commit), `space`; then those of the pool. The first three are held across I/O.
//! Reads take none of them.
//! Threads: none of its own. An iterator borrows the tree, so the drop of the tree comes last.
//! Not here: when to write and when to make durable (the framework).

#![forbid(unsafe_code)]

mod copy;
mod file;
#[cfg(any(test, feature = "testing"))]
pub(super) mod fuzzing;
mod index;
mod open;
mod pass;
mod read;
mod salvage;
mod tree;
mod turns;
mod verify;
mod version;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use open::{PAGE_SIZES, device, mapped};
pub(crate) use salvage::{page_bytes, salvage};
pub(crate) use tree::{PAGES, PagedY};

/// What a run and a commit of one database hold while they work: output buffers, the open path.
pub(crate) const WORK_BYTES: usize = 1 << 20;
