//! An open table: point reads and pieces of ranges, through the pool.
//!
//! What a point read costs: a look at the segments' bounds in memory, the page of the filter, the
//! inner pages, the leaf; a far value one more read. In frames each page is found by its hint,
//! without a lock. The filter and the inner pages are marked as read, so that they stay while there
//! is room for them; leaves are marked by point reads and not by scans, as in the paged tree.

use super::{
    PAGE_BYTES,
    file::{TableFile, file_name, read_pages},
    filter::{self, FilterUse},
    meta::TableMeta,
    stream::TableStream,
};
use crate::{
    error::{Error, Result},
    key::Value,
    storage::{Storage, StorageFile},
    y::{
        page::{PageNo, PageSource},
        pool::{
            INNER_ROUNDS, Pool,
            chunk::{Chunk, Span},
            search::{At, CachedPages, Found, Root, ToKey},
        },
    },
};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

/// What an open file takes, with its path, about.
const FILE_BYTES: usize = 256;

/// See the module header. Shared by whoever holds a version that has it.
pub(crate) struct Table {
    meta: TableMeta,
    root: Root,
    pub(super) pages: CachedPages<TableFile>,
    /// Where the frames of each segment's pages may be.
    hints: Vec<Box<[AtomicU32]>>,
}

/// A page of the filter.
#[derive(Clone, Copy)]
struct FilterPage {
    number: PageNo,
    line: usize,
    segment: usize,
    /// Place of the page in its segment.
    at: usize,
}

/// A key on its way through a table, of whose pages some are in no frame.
#[derive(Clone, Copy)]
pub(crate) struct Descent {
    hash: u64,
    filter: FilterUse,
    /// Still to be asked.
    filter_page: Option<FilterPage>,
    at: Option<At>,
}

/// What a table says about a key.
pub(crate) enum Answer {
    /// The filter says that it is not here: no leaf was looked at.
    Denied,
    Nothing,
    Deleted,
    Value(Value),
}

/// How far a key came.
pub(crate) enum Step {
    /// This page is in no frame.
    Missing(PageNo),
    /// The filter says that the key is not here.
    Denied,
    /// What the table says; a far value is still to be read
    /// ([`fetch_values`](crate::y::pool::values::fetch_values)).
    Said(Found),
}

impl Table {
    /// Opens the file of `meta` in `dir`. Cost: no read. Errors: `Io`; `Corrupt` if the file has
    /// another length.
    pub(crate) fn open(
        storage: &dyn Storage,
        dir: &Path,
        meta: TableMeta,
        pool: &Arc<Pool>,
    ) -> Result<Self> {
        let file = storage.open(&dir.join(file_name(meta.number)), false)?;
        Self::of_file(file, meta, pool)
    }

    /// The table in `file`, which is open.
    pub(crate) fn of_file(
        file: Arc<dyn StorageFile>,
        meta: TableMeta,
        pool: &Arc<Pool>,
    ) -> Result<Self> {
        let len = file.len()?;
        if len != meta.file_bytes() {
            let what = format!("the file has {len} bytes, its table {}", meta.file_bytes());
            return Err(Error::corrupt(
                file.path(),
                len.min(meta.file_bytes()),
                what,
            ));
        }
        let file = TableFile {
            storage: file,
            id: meta.id,
            pages: meta.pages,
        };
        let hints = meta.segments.iter().map(|segment| {
            let pages = 0..segment.pages;
            pages.map(|_| AtomicU32::new(0)).collect()
        });
        Ok(Self {
            hints: hints.collect(),
            root: Root::new(meta.root, meta.height),
            pages: CachedPages::new(file, Arc::clone(pool))?,
            meta,
        })
    }

    pub(crate) fn meta(&self) -> &TableMeta {
        &self.meta
    }

    pub(super) fn root(&self) -> &Root {
        &self.root
    }

    /// Bytes of memory that the open table takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let hints: usize = self.hints.iter().map(|h| size_of_val(&**h) + 16).sum();
        size_of::<Self>() + FILE_BYTES + self.meta.heap_bytes() + hints
    }

    /// Bytes of all pages of the filter.
    pub(crate) fn filter_bytes(&self) -> usize {
        let pages = self.meta.segments.iter().map(|segment| segment.pages);
        pages.sum::<u32>() as usize * PAGE_BYTES
    }

    /// How many of the first segments of the filter fit into `room` bytes together, and what they
    /// leave.
    pub(crate) fn segments_in(&self, room: usize) -> (u32, usize) {
        let (mut count, mut left) = (0, room);
        for segment in &self.meta.segments {
            match left.checked_sub(segment.pages as usize * PAGE_BYTES) {
                Some(rest) => left = rest,
                None => break,
            }
            count += 1;
        }
        (count, left)
    }

    /// Makes the file durable, but not its name. Cost: a sync.
    pub(crate) fn sync(&self) -> Result<()> {
        self.pages.file.storage.sync()
    }

    /// As [`get`](Self::get), but tells a filter's answer from a leaf's.
    pub(crate) fn ask(&self, key: &[u8], hash: u64, filter: FilterUse) -> Result<Answer> {
        if !self.admits(key, hash, filter)? {
            return Ok(Answer::Denied);
        }
        Ok(match self.pages.look_up(&self.root, key)? {
            Found::Nothing => Answer::Nothing,
            Found::Deleted => Answer::Deleted,
            found => match self.pages.value_of(found)? {
                Some(value) => Answer::Value(value),
                None => Answer::Deleted,
            },
        })
    }

    /// What the table says about `key`: `None` nothing, `Some(None)` that it is deleted. `hash` is
    /// [`hash_of`](super::hash_of) the key. Cost: the module header.
    #[cfg(test)]
    pub(crate) fn get(
        &self,
        key: &[u8],
        hash: u64,
        filter: FilterUse,
    ) -> Result<Option<Option<Value>>> {
        if !self.admits(key, hash, filter)? {
            return Ok(None);
        }
        let found = self.pages.look_up(&self.root, key)?;
        self.value_of(found)
    }

    /// What was found, with its value. Cost: a read of the device if the value is far.
    #[cfg(test)]
    pub(crate) fn value_of(&self, found: Found) -> Result<Option<Option<Value>>> {
        match found {
            Found::Nothing => Ok(None),
            found => self.pages.value_of(found).map(Some),
        }
    }

    /// Begins the way of a key, for [`descend`](Self::descend).
    pub(crate) fn descent(&self, key: &[u8], hash: u64, filter: FilterUse) -> Descent {
        let filter_page = match filter {
            FilterUse::Never => None,
            _ => self.filter_page(key, hash),
        };
        Descent {
            hash,
            filter,
            filter_page,
            at: At::root(&self.root),
        }
    }

    /// Goes on with `key`, the one of `descent`, as far as pages are in frames. A page that is
    /// missing is brought by [`load_together`]; frames are few, so it may be gone again
    /// when it is looked for, and [`get`](Self::get) is what ends such a search. No I/O, but for a
    /// long key that agrees with one in a page.
    pub(crate) fn descend(&self, key: &[u8], descent: &mut Descent) -> Result<Step> {
        if let Some(page) = descent.filter_page {
            match self.admits_in_frame(page, descent.hash)? {
                Some(false) => return Ok(Step::Denied),
                None if descent.filter.reads(page.segment) => {
                    return Ok(Step::Missing(page.number));
                }
                _ => descent.filter_page = None,
            }
        }
        let Some(at) = &mut descent.at else {
            return Ok(Step::Said(Found::Nothing));
        };
        let mut route = ToKey {
            file: &self.pages.file,
            key,
        };
        let found = self
            .pages
            .without_reading(&self.root, at, &mut route, &|leaf| {
                self.pages.value_in(leaf, key)
            })?;
        Ok(found.map_or_else(|| Step::Missing(at.page()), Step::Said))
    }

    /// The first entries of `span`; see [`CachedPages::chunk`]. Keys and values that are far are
    /// read by [`fetch`](PageSource::fetch) of [`file`](Self::file).
    pub(crate) fn chunk(&self, span: Span<'_>) -> Result<Chunk> {
        self.pages.chunk(&self.root, span)
    }

    /// Where pages and far bytes come from.
    pub(crate) fn file(&self) -> &TableFile {
        &self.pages.file
    }

    /// The entries of `[from, to)`, read past the pool with up to `read_bytes` at a time (32 to 256
    /// KiB). Cost: the inner pages on the way to `from`, and the first leaves.
    pub(crate) fn stream(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        read_bytes: usize,
    ) -> Result<TableStream> {
        let root = (self.meta.root, self.meta.height);
        TableStream::new(self.pages.file.clone(), root, from, to, read_bytes)
    }

    fn filter_page(&self, key: &[u8], hash: u64) -> Option<FilterPage> {
        let i = filter::segment_of(&self.meta.segments, key);
        let segment = self.meta.segments.get(i)?;
        let (at, line) = filter::place(hash, segment.pages);
        Some(FilterPage {
            number: segment.first + u64::from(at),
            line,
            segment: i,
            at: at as usize,
        })
    }

    /// Whether the filter, asked as `filter` says, leaves it possible that `key` is here.
    fn admits(&self, key: &[u8], hash: u64, filter: FilterUse) -> Result<bool> {
        if filter == FilterUse::Never {
            return Ok(true);
        }
        let Some(page) = self.filter_page(key, hash) else {
            return Ok(true);
        };
        if let Some(admits) = self.admits_in_frame(page, hash)? {
            return Ok(admits);
        }
        if !filter.reads(page.segment) {
            return Ok(true);
        }
        let loaded = self.pages.pool.load(&self.pages.file, page.number)?;
        let admits = self.asked(page, loaded.bytes(), hash)?;
        self.pages.pool.keep(self.pages.tag(page.number), loaded);
        Ok(admits)
    }

    /// What the filter says, if its page is in a frame.
    fn admits_in_frame(&self, page: FilterPage, hash: u64) -> Result<Option<bool>> {
        let slot = self.hints.get(page.segment).and_then(|s| s.get(page.at));
        let hint = slot.map_or(0, |slot| slot.load(Relaxed));
        let pool = &self.pages.pool;
        let guard = pool.frames.enter();
        let Some((view, found)) =
            pool.find(&guard, self.pages.tag(page.number), hint, INNER_ROUNDS)
        else {
            return Ok(None);
        };
        if found != hint
            && let Some(slot) = slot
        {
            slot.store(found, Relaxed);
        }
        self.asked(page, view.bytes, hash).map(Some)
    }

    fn asked(&self, page: FilterPage, bytes: &[u8], hash: u64) -> Result<bool> {
        filter::admits(bytes, page.line, hash)
            .ok_or_else(|| self.pages.file.corrupt(page.number, "this is no filter"))
    }
}

/// Reads pages of tables that share a pool into frames: as many, from the first on, as there are
/// frames for. Cost: a read of the device each, overlapped.
pub(crate) fn load_together(wanted: &[(&Table, PageNo)]) -> Result<()> {
    let Some((first, _)) = wanted.first() else {
        return Ok(());
    };
    let pool = &first.pages.pool;
    debug_assert!(wanted.iter().all(|(t, _)| Arc::ptr_eq(&t.pages.pool, pool)));
    let tags: Vec<u64> = wanted.iter().map(|(t, page)| t.pages.tag(*page)).collect();
    pool.fill(&tags, |frames| {
        let pages = wanted.iter().zip(frames);
        read_pages(
            pages
                .map(|((table, page), to)| (table.file(), *page, to))
                .collect(),
        )
    })
}
