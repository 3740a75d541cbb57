//! Reads one table of the engine: point reads and blocks in order, through our block cache.
//!
//! The layout is the engine's (data blocks; an index and a filter, each in two levels; every block
//! with a checksum over header and payload); its own decoders take the blocks apart. What is ours
//! is loading: one `pread` a block, checksum compared, into a cache of exact size. Decoders may
//! panic on a block of wrong content, so callers are inside `contain`.
//!
//! A `TableReader` keeps the engine's table, and with it the file. Threads: any.

#![forbid(unsafe_code)]

pub(crate) mod cursor;
mod file;

use crate::{
    error::{Error, Result},
    y::lsm::{
        cache::{
            block_cache::{BlockKey, Worth},
            shared::LsmShared,
        },
        table::file::{Access, DirectRead},
    },
};
use lsm_tree::{
    InternalValue, SeqNo, Slice, Table, UserKey,
    table::{
        Block, BlockHandle, BlockOffset, DataBlock, IndexBlock, KeyedBlockHandle,
        block::{BlockType, Header, decoder::ParsedItem},
        filter::block::FilterBlock,
    },
};
use std::{
    fs::File,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// Reads see everything.
const NEWEST: SeqNo = SeqNo::MAX;
/// What the engine and we hold for an open table beside its top-level indexes, at most.
const FIXED_BYTES: usize = 2 << 10;
/// Blocks over this size are not read together with others.
const TOGETHER_BYTES: u32 = 16 << 10;
/// Table of contents and trailer of a file.
const CONTENTS_AND_TRAILER_BYTES: u64 = 320;

/// See the module header.
pub(crate) struct TableReader {
    table: Table,
    shared: Arc<LsmShared>,
    /// Names the table in the shared caches.
    number: u64,
    /// How point reads and short walks get at the file.
    access: Access,
    min: Box<[u8]>,
    max: Box<[u8]>,
    index: IndexBlock,
    /// Whether `index` lists index blocks (as all our tables) or data blocks.
    two_levels: bool,
    filters: Option<IndexBlock>,
}

/// How a point read treats a table's filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterUse {
    /// Load it if need be: a table that mostly does not have the key.
    Always,
    /// Only if it is in the cache: loading it would cost as much as looking for the key.
    IfCached,
}

/// Where a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub offset: u64,
    pub size: u32,
}

impl Place {
    fn handle(self) -> BlockHandle {
        BlockHandle::new(BlockOffset(self.offset), self.size)
    }
}

impl TableReader {
    /// Opens `table`: reads its top-level indexes.
    pub(crate) fn open(table: Table, shared: &Arc<LsmShared>) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = table.path.file_name().and_then(|name| name.to_str());
        if name != Some(&*table.id().to_string()) {
            let what = format!("this is table {} in the place of another", table.id());
            return Err(Error::corrupt(&*table.path, 0, what));
        }
        let (file, access) = file::open(&table.path, shared.direct_reads)?;
        let (regions, metadata) = (&table.regions, &table.metadata);
        let load = |handle| {
            let from = (&file, access);
            let bytes = file::read_block(from, &table.path, handle, BlockType::Index)?;
            Ok::<_, Error>(IndexBlock::new(as_block(bytes, BlockType::Index)))
        };
        Ok(Self {
            index: load(regions.tli)?,
            two_levels: regions.index.is_some(),
            filters: regions.filter_tli.map(load).transpose()?,
            // Copies: the engine's keys would keep a whole block in memory.
            min: Box::from(&**metadata.key_range.min()),
            max: Box::from(&**metadata.key_range.max()),
            number: NEXT.fetch_add(1, Relaxed),
            access,
            shared: Arc::clone(shared),
            table,
        })
    }

    pub(crate) fn id(&self) -> u64 {
        self.table.id()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.table.path
    }

    /// The engine's side of it.
    pub(crate) fn engine(&self) -> &Table {
        &self.table
    }

    pub(crate) fn min(&self) -> &[u8] {
        &self.min
    }

    pub(crate) fn max(&self) -> &[u8] {
        &self.max
    }

    /// Size of the file in bytes.
    pub(crate) fn file_bytes(&self) -> u64 {
        let meta = self.table.regions.metadata;
        *meta.offset() + u64::from(meta.size()) + CONTENTS_AND_TRAILER_BYTES
    }

    /// Bytes of its filters on disk.
    pub(crate) fn filter_bytes(&self) -> usize {
        let filter = self.table.regions.filter;
        filter.map_or(0, |handle| handle.size() as usize)
    }

    /// What it holds in memory, the engine's part included (which keeps the top-level indexes a
    /// second time).
    pub(crate) fn memory_bytes(&self) -> usize {
        let regions = &self.table.regions;
        let filters = regions.filter_tli.map_or(0, |handle| handle.size());
        let indexes = (regions.tli.size() + filters) as usize;
        FIXED_BYTES
            + 2 * indexes
            + regions.metadata.size() as usize
            + self.min.len()
            + self.max.len()
    }

    /// Whether the table may hold `key` as far as its filter says.
    pub(crate) fn may_hold(&self, key: &[u8], hash: u64, filter: FilterUse) -> Result<bool> {
        let Some(filters) = &self.filters else {
            return Ok(true);
        };
        let Some(handle) = first_reaching(filters, key) else {
            return Ok(true);
        };
        let handle = handle.into_inner();
        let block = match filter {
            FilterUse::Always => self.load(handle, BlockType::Filter)?,
            FilterUse::IfCached => {
                let cached = self.shared.blocks.get(self.block_key(*handle.offset()));
                let Some(bytes) = cached else {
                    return Ok(true);
                };
                as_block(bytes, BlockType::Filter)
            }
        };
        let block = FilterBlock::new(block);
        block
            .maybe_contains_hash(hash)
            .map_err(|e| self.corrupt(*handle.offset(), format!("filter: {e:?}")))
    }

    /// The first data block whose last key is not below `key`.
    pub(crate) fn place(&self, key: &[u8]) -> Result<Option<Place>> {
        let found = self.block_reaching(key, NEWEST)?;
        Ok(found.map(|(place, _)| place))
    }

    /// The first data block whose last entry is at or after (`key`, `seqno`), and its last key.
    pub(crate) fn block_reaching(
        &self,
        key: &[u8],
        seqno: SeqNo,
    ) -> Result<Option<(Place, UserKey)>> {
        let Some(top) = first_reaching_entry(&self.index, key, seqno) else {
            return Ok(None);
        };
        if !self.two_levels {
            return Ok(Some(place_of(&top)));
        }
        let block = IndexBlock::new(self.load(top.into_inner(), BlockType::Index)?);
        Ok(first_reaching_entry(&block, key, seqno).map(|entry| place_of(&entry)))
    }

    /// Top-level entries that touch `[from, to)`, in order; see [`TableReader::places_of`].
    pub(crate) fn partitions(&self, from: &[u8], to: Option<&[u8]>) -> Vec<Place> {
        touching(&self.index, from, to)
    }

    /// Data blocks of a top-level entry that touch `[from, to)`, in order.
    pub(crate) fn places_of(
        &self,
        partition: Place,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Result<Vec<Place>> {
        if !self.two_levels {
            return Ok(vec![partition]);
        }
        let block = IndexBlock::new(self.load(partition.handle(), BlockType::Index)?);
        Ok(touching(&block, from, to))
    }

    /// The newest entry of `key` in the block at `place`, which is `loaded` or is loaded now.
    pub(crate) fn find(
        &self,
        place: Place,
        loaded: Option<&Slice>,
        key: &[u8],
    ) -> Result<Option<InternalValue>> {
        let block = match loaded {
            Some(payload) => DataBlock::new(as_block(payload.clone(), BlockType::Data)),
            None => self.data_block(place)?,
        };
        Ok(block.point_read(key, NEWEST))
    }

    pub(crate) fn data_block(&self, place: Place) -> Result<DataBlock> {
        Ok(DataBlock::new(self.load(place.handle(), BlockType::Data)?))
    }

    /// The same block, for a walk that has asked for what lies ahead ([`TableReader::prefetch`]).
    pub(crate) fn data_block_ahead(&self, place: Place) -> Result<DataBlock> {
        let block = self.load_by(Access::Buffered, place.handle(), BlockType::Data)?;
        Ok(DataBlock::new(block))
    }

    fn is_cached(&self, place: Place) -> bool {
        self.shared.blocks.has(self.block_key(place.offset))
    }

    /// Asks the system to read `bytes` bytes at `offset` soon, and does not wait.
    pub(crate) fn prefetch(&self, offset: u64, bytes: u64) -> Result<()> {
        let file = self.file(Access::Buffered)?;
        let advice = rustix::fs::Advice::WillNeed;
        // A hint: where it is not taken the read is merely slower.
        let _ = rustix::fs::fadvise(&*file, offset, std::num::NonZeroU64::new(bytes), advice);
        Ok(())
    }

    fn block_key(&self, offset: u64) -> BlockKey {
        (self.number, offset)
    }

    fn corrupt(&self, offset: u64, what: impl Into<String>) -> Error {
        Error::corrupt(self.path(), offset, what)
    }

    fn load(&self, handle: BlockHandle, kind: BlockType) -> Result<Block> {
        self.load_by(self.access, handle, kind)
    }

    fn load_by(&self, access: Access, handle: BlockHandle, kind: BlockType) -> Result<Block> {
        let key = self.block_key(*handle.offset());
        if let Some(bytes) = self.shared.blocks.get(key) {
            return Ok(as_block(bytes, kind));
        }
        let file = self.file(access)?;
        let bytes = file::read_block((&file, access), self.path(), handle, kind)?;
        let worth = match kind {
            BlockType::Data => Worth::Unknown,
            _ => Worth::Shared,
        };
        self.shared.blocks.insert(key, &bytes, worth);
        Ok(as_block(bytes, kind))
    }

    fn file(&self, access: Access) -> Result<Arc<File>> {
        let name = self.file_name(access).into();
        if let Some(file) = self.shared.descriptors.access_for_table(&name) {
            return Ok(file);
        }
        let file = Arc::new(file::open_as(self.path(), access)?);
        self.shared
            .descriptors
            .insert_for_table(name, Arc::clone(&file));
        Ok(file)
    }

    /// Names the open file among those of all tables.
    fn file_name(&self, access: Access) -> (u64, u64) {
        let buffered = u64::from(access == Access::Buffered);
        (2 * self.number + buffered, self.id())
    }
}

/// Calls `found` for each of `places` with its number and the payload of the data block there;
/// `None`: it is to be loaded as any other.
///
/// Blocks are read together, past the page cache, unless they are cached or large, and `found` is
/// called as they arrive; in files that are read through the page cache the system is asked to read
/// them all. Neighbours of one place share a read.
pub(crate) fn load_together(
    places: &[(&TableReader, Place)],
    mut found: impl FnMut(usize, Option<&Slice>) -> Result<()>,
) -> Result<()> {
    let (mut reads, mut groups, mut others) = (vec![], vec![], vec![]);
    let same =
        |a: &(&TableReader, Place), b: &(&TableReader, Place)| std::ptr::eq(a.0, b.0) && a.1 == b.1;
    let mut end = 0;
    for group in places.chunk_by(same) {
        let slots = end..end + group.len();
        end = slots.end;
        let (table, place) = group[0];
        match table.access {
            _ if table.is_cached(place) => others.push(slots),
            Access::Direct { sector_bytes } if place.size <= TOGETHER_BYTES => {
                groups.push(slots);
                reads.push(DirectRead {
                    file: table.file(table.access)?,
                    path: table.path(),
                    handle: place.handle(),
                    sector_bytes,
                });
            }
            access => {
                if access == Access::Buffered {
                    table.prefetch(place.offset, place.size.into())?;
                }
                others.push(slots);
            }
        }
    }
    let Some((first, _)) = places.first() else {
        return Ok(());
    };
    file::read_together(&reads, &first.shared.buffers, |n, payload| {
        let mut slots = groups[n].clone();
        let (table, place) = places[slots.start];
        let key = table.block_key(place.offset);
        table.shared.blocks.insert(key, &payload, Worth::Unknown);
        slots.try_for_each(|slot| found(slot, Some(&payload)))
    })?;
    others
        .into_iter()
        .flatten()
        .try_for_each(|slot| found(slot, None))
}

impl Drop for TableReader {
    fn drop(&mut self) {
        for access in [Access::Buffered, self.access] {
            let name = self.file_name(access).into();
            self.shared.descriptors.remove_for_table(&name);
        }
    }
}

fn place_of(entry: &KeyedBlockHandle) -> (Place, UserKey) {
    let place = Place {
        offset: *entry.offset(),
        size: entry.size(),
    };
    (place, entry.end_key().clone())
}

/// Entries of `index` whose blocks touch `[from, to)`.
fn touching(index: &IndexBlock, from: &[u8], to: Option<&[u8]>) -> Vec<Place> {
    let mut iter = index.iter();
    if !iter.seek(from, NEWEST) {
        return vec![];
    }
    let mut places = Vec::new();
    for entry in iter {
        let (place, last) = place_of(&entry.materialize(index.as_slice()));
        places.push(place);
        if to.is_some_and(|to| &*last >= to) {
            break;
        }
    }
    places
}

fn first_reaching(index: &IndexBlock, key: &[u8]) -> Option<KeyedBlockHandle> {
    first_reaching_entry(index, key, NEWEST)
}

fn first_reaching_entry(index: &IndexBlock, key: &[u8], seqno: SeqNo) -> Option<KeyedBlockHandle> {
    let mut iter = index.iter();
    if !iter.seek(key, seqno) {
        return None;
    }
    Some(iter.next()?.materialize(index.as_slice()))
}

/// A checked payload in the form that the engine's decoders take.
fn as_block(payload: Slice, kind: BlockType) -> Block {
    let len = payload.len() as u32;
    Block {
        header: Header {
            block_type: kind,
            checksum: lsm_tree::Checksum::from_raw(0),
            data_length: len,
            uncompressed_length: len,
        },
        data: payload,
    }
}
