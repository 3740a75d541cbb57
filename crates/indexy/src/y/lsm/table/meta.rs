//! What is known of a table without reading it, and the pages at the end of its file that say it.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | number of the table |
//! | 8 | 8 | id of the table, random, in every page |
//! | 16 | 8 | length of the file in pages |
//! | 24 | 8 | entries, deletes among them |
//! | 32 | 8 | deletes |
//! | 40 | 8 | bytes of keys and values that lie in leaves |
//! | 48 | 8 | bytes of keys and values that lie elsewhere |
//! | 56 | 8 | root page |
//! | 64 | 4 | height: levels of nodes |
//! | 68 | 4 | length of the least key |
//! | 72 | 4 | length of the greatest key |
//! | 76 | 4 | segments of the filter |
//! | 80 | | least key, greatest key, segments |
//!
//! A segment: its first page (8), its pages (4), the length of its `from` (4), `from`. The first
//! one's `from` is empty.
//!
//! The footer is this, cut into the payloads of the last pages of the file; the link of each says
//! which page is the first of them. Nothing is believed before it is checked: a decoded
//! [`TableMeta`] names only pages of the file, and memory is taken for bytes that are there.

use super::{
    PAGE_BYTES,
    file::TableFile,
    filter::{self, Segment},
};
use crate::{
    error::{Error, Result},
    limits::MAX_KEY_BYTES,
    mem::aligned::AlignedBuffer,
    storage::StorageFile,
    y::page::{self, HEADER_BYTES, Header, Kind, MAX_LEVEL, PageNo, PageSource, u32_at, u64_at},
    y::pool::TABLE_PAGES,
};
use std::sync::Arc;

const FIXED_BYTES: usize = 80;
const SEGMENT_BYTES: usize = 16;
/// Bytes of the footer that a page takes.
const FOOTER_PAYLOAD_BYTES: usize = PAGE_BYTES - HEADER_BYTES;
// The table above: eight words, then four half words.
const _: () = assert!(8 * 8 + 4 * 4 == FIXED_BYTES && 8 + 4 + 4 == SEGMENT_BYTES);

/// See the module header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableMeta {
    pub(crate) number: u64,
    pub(crate) id: u64,
    pub(crate) pages: u64,
    pub(crate) entries: u64,
    pub(crate) deletes: u64,
    pub(crate) near_bytes: u64,
    pub(crate) far_bytes: u64,
    pub(crate) root: PageNo,
    pub(crate) height: u8,
    pub(crate) min: Box<[u8]>,
    pub(crate) max: Box<[u8]>,
    pub(super) segments: Vec<Segment>,
}

impl TableMeta {
    /// Bytes of the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.pages * PAGE_BYTES as u64
    }

    /// Whether `key` is not below the least and not above the greatest key.
    pub(crate) fn spans(&self, key: &[u8]) -> bool {
        *self.min <= *key && *key <= *self.max
    }

    /// Appends the encoded form to `to`.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
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
        words.iter().for_each(|w| to.extend(w.to_le_bytes()));
        let halves = [
            usize::from(self.height),
            self.min.len(),
            self.max.len(),
            self.segments.len(),
        ];
        halves
            .iter()
            .for_each(|h| to.extend((*h as u32).to_le_bytes()));
        to.extend_from_slice(&self.min);
        to.extend_from_slice(&self.max);
        for segment in &self.segments {
            to.extend(segment.first.to_le_bytes());
            to.extend(segment.pages.to_le_bytes());
            to.extend((segment.from.len() as u32).to_le_bytes());
            to.extend_from_slice(&segment.from);
        }
    }

    /// Decodes one from the beginning of `bytes`, and says how many bytes it took. `Err`: what is
    /// wrong with it.
    pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<(Self, usize), &'static str> {
        let cut = "cut off";
        let word = |at: usize| u64_at(bytes, at).ok_or(cut);
        let half = |at: usize| u32_at(bytes, at).ok_or(cut);
        let mut rest = Rest {
            bytes,
            at: FIXED_BYTES,
        };
        let meta = Self {
            number: word(0)?,
            id: word(8)?,
            pages: word(16)?,
            entries: word(24)?,
            deletes: word(32)?,
            near_bytes: word(40)?,
            far_bytes: word(48)?,
            root: word(56)?,
            height: u8::try_from(half(64)?).map_err(|_| "height")?,
            min: rest.key(half(68)?)?,
            max: rest.key(half(72)?)?,
            segments: rest.segments(half(76)?)?,
        };
        meta.plausible()?;
        Ok((meta, rest.at))
    }

    fn plausible(&self) -> std::result::Result<(), &'static str> {
        if self.pages > TABLE_PAGES || self.root == 0 || self.root >= self.pages {
            return Err("pages beyond the end");
        }
        if self.height == 0 || self.height > MAX_LEVEL + 1 {
            return Err("height");
        }
        if self.entries == 0 || self.deletes > self.entries || self.min > self.max {
            return Err("keys and entries do not fit together");
        }
        let mut before: Option<&Segment> = None;
        for segment in &self.segments {
            let ascends = before.map_or(segment.from.is_empty(), |b| b.from < segment.from);
            let end = segment.first.checked_add(u64::from(segment.pages));
            let inside = segment.first > 0 && end.is_some_and(|end| end <= self.pages);
            let count = 1..=filter::MAX_PAGES as u32;
            if !ascends || !inside || !count.contains(&segment.pages) {
                return Err("segments of the filter");
            }
            before = Some(segment);
        }
        Ok(())
    }

    /// The pages that end the file, not sealed: `first` is the number of the first of them, and
    /// `pages` the length of the file with them.
    pub(super) fn footer(&self, first: PageNo) -> AlignedBuffer {
        let mut encoded = Vec::new();
        self.encode(&mut encoded);
        let parts = encoded.chunks(FOOTER_PAYLOAD_BYTES);
        let mut pages = AlignedBuffer::new(parts.len() * PAGE_BYTES);
        for (page, part) in pages.chunks_mut(PAGE_BYTES).zip(parts) {
            let header = Header {
                link: first,
                payload: part.len() as u32,
                ..Header::of_kind(Kind::Footer)
            };
            header.write(page);
            page::put(page, HEADER_BYTES, part);
        }
        pages
    }

    /// Pages that the footer takes.
    pub(super) fn footer_pages(&self) -> u64 {
        let segments = self.segments.iter();
        let segments: usize = segments.map(|s| SEGMENT_BYTES + s.from.len()).sum();
        let bytes = FIXED_BYTES + self.min.len() + self.max.len() + segments;
        bytes.div_ceil(FOOTER_PAYLOAD_BYTES) as u64
    }

    /// Reads what the footer of `file` says. Errors: `Corrupt`, `FormatVersion`, `Io`.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn read(file: &Arc<dyn StorageFile>) -> Result<Self> {
        let (found, file) = Self::alone(file)?;
        file.check_head(found.number)?;
        Ok(found)
    }

    /// What the footer of `file` says, and the table that it makes of it, whatever else is damaged.
    /// Errors: `Corrupt`, `Io`.
    pub(crate) fn alone(file: &Arc<dyn StorageFile>) -> Result<(Self, TableFile)> {
        let pages = file.len()? / PAGE_BYTES as u64;
        let Some(last) = pages.checked_sub(1) else {
            return Err(Error::corrupt(file.path(), 0, "the table is empty"));
        };
        let mut page = AlignedBuffer::new(PAGE_BYTES);
        file.read_at(&mut page, last * PAGE_BYTES as u64)?;
        // Who the table is, is what its last page says; all that follows must agree.
        let id = page::tree_of(&page).unwrap_or_default();
        let file = TableFile {
            storage: Arc::clone(file),
            id,
            pages,
        };
        Ok((Self::from_footer(&file)?, file))
    }

    pub(super) fn from_footer(file: &TableFile) -> Result<Self> {
        let last = file.pages.saturating_sub(1);
        let (_, header) = file.read_kind(last, Kind::Footer)?;
        let first = header.link;
        let mut encoded = Vec::new();
        for number in first..=last {
            let (page, header) = file.read_kind(number, Kind::Footer)?;
            let payload = page
                .get(HEADER_BYTES..)
                .and_then(|body| body.get(..header.payload as usize))
                .filter(|_| header.link == first)
                .ok_or_else(|| file.corrupt(number, "footer"))?;
            encoded.extend_from_slice(payload);
        }
        let wrong = |what| file.corrupt(first, what);
        let (found, taken) = Self::decode(&encoded).map_err(wrong)?;
        if taken != encoded.len() || found.id != file.id || found.pages != file.pages {
            return Err(wrong("the footer is of another table"));
        }
        Ok(found)
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.heap_bytes()
    }

    /// Bytes of memory besides the struct itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let segments = self.segments.iter();
        let from: usize = segments.map(|s| s.from.len() + size_of::<Segment>()).sum();
        self.min.len() + self.max.len() + from
    }
}

/// What follows the fixed part.
struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Rest<'_> {
    fn key(&mut self, len: u32) -> std::result::Result<Box<[u8]>, &'static str> {
        let len = len as usize;
        if len > MAX_KEY_BYTES {
            return Err("a key is too long");
        }
        let key = self.bytes.get(self.at..self.at + len).ok_or("cut off")?;
        self.at += len;
        Ok(key.into())
    }

    fn segments(&mut self, count: u32) -> std::result::Result<Vec<Segment>, &'static str> {
        let left = self.bytes.len().saturating_sub(self.at);
        if count as usize > left / SEGMENT_BYTES {
            return Err("cut off");
        }
        let mut segments = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let cut = "cut off";
            let first = u64_at(self.bytes, self.at).ok_or(cut)?;
            let pages = u32_at(self.bytes, self.at + 8).ok_or(cut)?;
            let len = u32_at(self.bytes, self.at + 12).ok_or(cut)?;
            self.at += SEGMENT_BYTES;
            let from = self.key(len)?;
            segments.push(Segment::new(from, first, pages));
        }
        Ok(segments)
    }
}
