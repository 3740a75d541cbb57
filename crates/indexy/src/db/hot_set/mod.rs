//! The hot set: which keys were worth their memory, kept over a restart.
//!
//! - `format` the bytes of the file, `file` how it is written, replaced and read.
//! - `save` walks what is in memory, best first, and writes it; `warm` reads the file and brings
//!   the keys back.
//! - `keeper` does both: from its thread, and at the end of the database.
//!
//! A hot set is a hint. Whatever is wrong with it costs reads and no more: each key is looked up as
//! a miss would look it up, and nothing but an event tells of a file that is damaged.

#![forbid(unsafe_code)]

mod file;
pub(crate) mod format;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzzing;
mod keeper;
mod save;
#[cfg(test)]
mod tests;
mod warm;

pub(super) use keeper::Keeper;
