//! A table: one immutable file with sorted entries, written once from its first byte to its last.
//!
//! | part | what | file |
//! |---|---|---|
//! | head | the first page: magic number, format version, number of the table | `file.rs` |
//! | leaves | nodes of the shared page format, full, in chunks | `write/` |
//! | packed leaves | compressed ones, in tables that are written so | `packed.rs`, `codec.rs` |
//! | far bytes | long keys and values, each with a checksum, between the chunks | `far.rs`, `packed_far.rs` |
//! | filters | pages that deny most absent keys, a segment for some 60,000 keys | `filter.rs` |
//! | inner pages | a static B+ tree over the leaves | `write/inner.rs` |
//! | footer | the last pages: all of [`TableMeta`] | `meta.rs` |
//!
//! Layouts: `docs/formats/tables.md`. Every page repeats its number and the random id of its table,
//! and far bytes are sealed with the id and their offset. So bytes of another place or another
//! table are found, whatever their checksum.
//!
//! Invariants. T1: keys ascend strictly through the leaves. T2: the separator of two neighbouring
//! leaves is greater than every key before it and not greater than any behind it. T3: a filter
//! never denies a key of its segment. T4: nothing is written to a file after its table was
//! finished, so that pages in frames are never stale.
//!
//! Threads: a [`Table`] may be used by any thread; a hit in frames takes no lock. A [`TableWriter`]
//! and a [`TableStream`] belong to one thread at a time. Not here: which tables there are, when
//! their files are made durable and when they are removed.

mod codec;
mod copy;
mod estimate;
mod far;
mod far_window;
mod file;
mod filter;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzzing;
mod leaves;
mod meta;
mod packed;
mod packed_far;
mod read;
mod stream;
mod verify;
mod walk;
mod write;

#[cfg(test)]
mod tests;

/// Bytes of a page of every table.
const PAGE_BYTES: usize = 4096;

pub(crate) use codec::Codec;
pub(super) use file::{TableFile, file_name};
pub(crate) use filter::{FilterUse, deny_nothing, hash_of};
pub(crate) use meta::TableMeta;
pub(crate) use read::{Answer, Descent, Step, Table, load_together};
pub(crate) use stream::TableStream;
pub(crate) use write::{TableOptions, TableWriter};
