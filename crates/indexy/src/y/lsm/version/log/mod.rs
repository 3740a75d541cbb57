//! The version log: the file `versions`, which says what the durable version is.
//!
//! Bytes: `docs/formats/versions.md`. The file has two superblocks and then records. The first
//! record is a whole version, each other one a change of the version before. A record is written
//! twice, one copy behind the other in one write; either copy counts.
//!
//! A record is *acknowledged* when the sync behind its write has succeeded. The superblock says up
//! to which record the file was acknowledged. It is written, its two places in turn, with the next
//! record (one sync for both), and at a clean close. So a file holds
//! - acknowledged records that a superblock says so of: if neither copy is whole, the file is
//!   damaged (`Corrupt`);
//! - at most one more record. Either copy whole: it counts, and is made durable before anything is
//!   done that rests on it. Neither: its write was torn, it was never acknowledged, and it is cut
//!   off. A flipped byte or a lost page of one that was acknowledged costs one copy;
//! - nothing behind that: a whole later record proves that this one was acknowledged, so that the
//!   file is damaged.
//!
//! A damaged superblock is replaced by the other one, which says one record less: that record is
//! there with both copies, and counts. A torn superblock was written with a record that is not
//! acknowledged yet; the other one is right. An open for writing writes such a place again. It also
//! writes the present superblock again, at its place: at once where the last record is not known to
//! be durable, else with the next record. The next superblock is written over the other one.
//!
//! A write that fails may have left a whole record. The next one is written at the same place with
//! the same sequence number, and until it is acknowledged either may come back: the caller keeps
//! the files of both. What an open finds behind the last record it cuts off durably, before it
//! removes any file.
//!
//! - `superblock.rs`, `record.rs`: bytes. `change.rs`: what a record says. `replay.rs`: reading.
//! - `file.rs`: creating, appending, closing.
//!
//! Threads: one at a time (the caller's lock).

mod change;
mod file;
mod record;
mod replay;
mod superblock;

pub(super) use change::{Change, Hunk, Listing, Placed};
pub(super) use file::Log;
