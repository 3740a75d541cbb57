//! What a version knows of a table, and its bytes in the version log.
//!
//! | bytes | field | rule |
//! |---|---|---|
//! | 8 | number | at least 1; the name of the file |
//! | 8 | id | random |
//! | 8 | pages | length of the file in pages of 4 KiB, 1 to 2^24 |
//! | 8 | entries | at least 1 |
//! | 8 | deletes | at most the entries |
//! | 8 | near bytes | of keys and values in the leaves |
//! | 8 | far bytes | of keys and values outside |
//! | 8 | root | below the number of pages |
//! | 1 | height | at most 25 |
//! | 4, n | lowest key | at most 65,534 bytes |
//! | 4, n | highest key | not below the lowest |
//! | 4, n | what the table itself wants to know | at most 16 MiB |

#![forbid(unsafe_code)]

use super::codec::{Reader, Wrong, put_bytes, put_u64};
use crate::{
    error::Result,
    limits::MAX_KEY_BYTES,
    y::{page::MAX_LEVEL, pool::TABLE_PAGES},
};

/// Numbers of tables are less.
pub(super) const MOST_TABLES: u64 = u64::MAX / 2;

/// Most bytes that a table may have the log keep for it.
pub(crate) const MAX_EXTRA_BYTES: usize = 16 << 20;
/// What facts take at least: eight words, the height, three lengths.
pub(super) const LEAST_BYTES: usize = 8 * 8 + 1 + 3 * 4;
/// Pages of a table are of this size.
const PAGE_BYTES: u64 = 4096;

/// What the version log keeps of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) number: u64,
    pub(crate) id: u64,
    pub(crate) pages: u64,
    pub(crate) entries: u64,
    /// Of the entries.
    pub(crate) deletes: u64,
    pub(crate) near_bytes: u64,
    pub(crate) far_bytes: u64,
    pub(crate) root: u64,
    pub(crate) height: u8,
    pub(crate) min: Box<[u8]>,
    pub(crate) max: Box<[u8]>,
    /// What the table itself wants to know, such as where its filters are.
    pub(crate) extra: Box<[u8]>,
}

/// What lies in a range, roughly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Estimate {
    pub(crate) entries: u64,
    /// Of the file.
    pub(crate) bytes: u64,
}

/// A table, as versions see it: immutable, shared.
pub(crate) trait TableFile: Send + Sync {
    fn facts(&self) -> &Facts;

    /// What the table has in `[from, to)`, roughly; at most what all of the table has. Cost: a few
    /// pages.
    fn estimate(&self, from: &[u8], to: Option<&[u8]>) -> Estimate;

    /// A key inside `(from, to)` that halves what the table has in `[from, to)`, roughly; `None` if
    /// it is not worth it. Cost: a few pages.
    fn middle(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Box<[u8]>>>;

    /// Makes the file durable, but not its name.
    fn sync(&self) -> Result<()>;

    /// Errors: `FormatVersion` if the file says that this build does not know its format. Cost: a
    /// read of a page.
    fn check_format(&self) -> Result<()> {
        Ok(())
    }
}

impl Facts {
    /// Length of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.pages * PAGE_BYTES
    }

    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        let words = [
            self.number,
            self.id,
            self.pages,
            self.entries,
            self.deletes,
            self.near_bytes,
            self.far_bytes,
            self.root,
        ];
        for word in words {
            put_u64(to, word);
        }
        to.push(self.height);
        put_bytes(to, &self.min);
        put_bytes(to, &self.max);
        put_bytes(to, &self.extra);
    }

    pub(super) fn decode(from: &mut Reader<'_>) -> std::result::Result<Self, Wrong> {
        let facts = Self {
            number: from.u64()?,
            id: from.u64()?,
            pages: from.u64()?,
            entries: from.u64()?,
            deletes: from.u64()?,
            near_bytes: from.u64()?,
            far_bytes: from.u64()?,
            root: from.u64()?,
            height: from.u8()?,
            min: from.bytes(MAX_KEY_BYTES)?,
            max: from.bytes(MAX_KEY_BYTES)?,
            extra: from.bytes(MAX_EXTRA_BYTES)?,
        };
        facts.plausible()?;
        Ok(facts)
    }

    fn plausible(&self) -> std::result::Result<(), Wrong> {
        // The next number must be one, too.
        if self.number == 0 || self.number >= MOST_TABLES {
            return Err("number of a table");
        }
        if self.pages == 0 || self.pages > TABLE_PAGES || self.root >= self.pages {
            return Err("pages of a table");
        }
        if self.entries == 0 || self.entries > 1 << 48 || self.deletes > self.entries {
            return Err("entries of a table");
        }
        if self.near_bytes > 1 << 56 || self.far_bytes > 1 << 56 {
            return Err("bytes of a table");
        }
        if self.height > MAX_LEVEL + 1 {
            return Err("height of a table");
        }
        if self.min > self.max {
            return Err("keys of a table");
        }
        Ok(())
    }
}
