//! Several tables in one key space: the number of the table is the first byte of a key.
//!
//! In a log-structured engine this is the fairer form with a small budget. With a tree per table (a
//! column family, a keyspace) each has memtables of its own, and a quarter of 64 MiB divided by
//! eleven tables is flushed in pieces too small to be good runs. With one tree all tables share one
//! memtable, and a batch is in one memtable, so that it is atomic over a flush without a log too.
//! It is how MyRocks keeps tables in RocksDB. The price is one byte of key.

use std::ops::Deref;

/// Bytes of the longest key with its table: twice what the schema of TPC-C needs, rounded.
const MOST_BYTES: usize = 80;

/// A key with its table in front, on the stack.
#[derive(Debug, Clone, Copy)]
pub struct TableKey {
    bytes: [u8; MOST_BYTES],
    len: usize,
}

impl TableKey {
    /// The key `key` of table `table`.
    ///
    /// Panics if the table's number is no byte or the key has more than 79 bytes: both are the
    /// schema's.
    #[inline]
    pub fn new(table: usize, key: &[u8]) -> Self {
        let mut bytes = [0; MOST_BYTES];
        bytes[0] = u8::try_from(table).expect("at most 256 tables");
        bytes[1..=key.len()].copy_from_slice(key);
        Self {
            bytes,
            len: 1 + key.len(),
        }
    }
}

impl Deref for TableKey {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A key as the table knows it.
#[inline]
pub fn without_table(key: &[u8]) -> &[u8] {
    key.get(1..).unwrap_or_default()
}
