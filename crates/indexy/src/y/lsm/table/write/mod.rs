//! Writing a table: entries in ascending order in, one file out.
//!
//! Memory: a buffer of 64 leaves, one of 256 KiB for far bytes if there are any, the hashes of a
//! filter's segment (8 bytes each for some 60,000 keys), and for each leaf so far its separator
//! with some 60 bytes around it, until all of these take 768 KiB: then inner pages have them. A
//! value is copied once, in pieces, to the buffer that is written; one that is packed has its form
//! in a buffer in between, of some 1 MiB at most.
//!
//! Keeps T1 (a key that does not ascend is refused), T2, T3. Threads: one at a time. After an error
//! the writer is of no use; dropped without [`finish`](TableWriter::finish) it removes its file.

mod inner;
mod output;

use super::{
    PAGE_BYTES,
    codec::Codec,
    filter::{self, Segment, hash_of},
    meta::TableMeta,
    packed::Packer,
    packed_far,
};
use crate::{
    error::{Error, Result},
    mem::aligned::AlignedBuffer,
    storage::{Storage, StorageFile},
    y::page::{
        PageNo,
        build::{Bound, Child},
        filling::common_prefix,
        leaf_builder::LeafBuilder,
        node::{Far, ValueAt, max_near},
    },
};
use inner::Levels;
use output::Output;
use std::{path::Path, sync::Arc};

/// Leaves that are gathered for a write.
const CHUNK_PAGES: usize = 64;
/// Keys of a segment of the filter, about: it ends with a leaf.
const SEGMENT_KEYS: usize = 60_000;
/// A table with fewer leaves has no filter: its page would save a read of about as many leaves.
const FEW_LEAVES: usize = 5;
/// More bits a key would deny hardly more.
const MAX_FILTER_BITS: usize = 24;

// A segment is built in the buffer of the leaves.
const _: () = assert!(filter::MAX_PAGES <= CHUNK_PAGES);

/// How a table is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableOptions {
    /// Bits of the filter for each key; 0: there is no filter.
    pub(crate) filter_bits: usize,
    /// Leaves and far values are packed by it.
    pub(crate) codec: Codec,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            filter_bits: 10,
            codec: Codec::Stored,
        }
    }
}

/// See the module header.
pub(crate) struct TableWriter {
    output: Output,
    number: u64,
    id: u64,
    filter_bits: usize,
    leaf: LeafBuilder,
    packer: Packer,
    /// A packed value on its way to the file.
    form: Vec<u8>,
    /// The separator in front of `leaf`.
    from: Bound,
    /// Finished leaves that are not yet written.
    chunk: AlignedBuffer,
    chunk_pages: usize,
    /// Finished leaves; the last `chunk_pages` have their place in the chunk for a number.
    levels: Levels,
    hashes: Vec<u64>,
    segment_from: Box<[u8]>,
    segments: Vec<Segment>,
    /// Bytes of the keys that they begin with.
    segment_keys_bytes: usize,
    min: Box<[u8]>,
    /// The key that was added last.
    last: Vec<u8>,
    entries: u64,
    deletes: u64,
    near_bytes: u64,
    far_bytes: u64,
}

impl TableWriter {
    /// Makes the file of table `number` in `dir`. Errors: `Io`, also if the file exists.
    pub(crate) fn new(
        storage: &Arc<dyn Storage>,
        dir: &Path,
        number: u64,
        options: TableOptions,
    ) -> Result<Self> {
        let id = random();
        Ok(Self {
            output: Output::create(storage, dir, number, id)?,
            number,
            id,
            filter_bits: options.filter_bits.min(MAX_FILTER_BITS),
            leaf: LeafBuilder::new(PAGE_BYTES),
            packer: Packer::new(options.codec),
            form: Vec::new(),
            from: Bound::default(),
            chunk: AlignedBuffer::new(CHUNK_PAGES * PAGE_BYTES),
            chunk_pages: 0,
            levels: Levels::default(),
            hashes: Vec::new(),
            segment_from: Box::default(),
            segments: Vec::new(),
            segment_keys_bytes: 0,
            min: Box::default(),
            last: Vec::new(),
            entries: 0,
            deletes: 0,
            near_bytes: 0,
            far_bytes: 0,
        })
    }

    /// Adds a key with its value, `None` for a delete, behind all before. Errors: `Io`,
    /// `OutOfSpace`; `Unsupported` if the key is not greater than the one before, or the table
    /// longer than one that can be opened.
    pub(crate) fn add(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if self.entries > 0 && *key <= *self.last {
            let what = "a run whose keys do not ascend".into();
            return Err(Error::Unsupported { what });
        }
        let stub = Bound::stub_of(key, PAGE_BYTES);
        let far_key = match stub.len() < key.len() {
            true => Some(self.put_far(key)?),
            false => None,
        };
        let value = match value {
            None => ValueAt::Deleted,
            Some(value) if stub.len() + value.len() <= max_near(PAGE_BYTES) => ValueAt::Near(value),
            Some(value) => ValueAt::Far(self.put_value(value)?),
        };
        if self.entries == 0 {
            self.min = key.into();
        }
        if !self.leaf.add(stub, far_key, value) {
            self.end_leaf(false)?;
            self.begin_leaf(key, far_key)?;
            let added = self.leaf.add(stub, far_key, value);
            debug_assert!(added, "an empty leaf has room for any entry");
        }
        self.entries += 1;
        match value {
            ValueAt::Near(value) => self.near_bytes += value.len() as u64,
            ValueAt::Far(_) => {}
            ValueAt::Deleted => self.deletes += 1,
        }
        self.near_bytes += stub.len() as u64;
        if self.filter_bits > 0 {
            self.hashes.push(hash_of(key));
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(())
    }

    /// Entries so far, deletes among them.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Bytes that the file would have if it ended here, but for inner pages and filters of what is
    /// not written yet.
    pub(crate) fn bytes(&self) -> u64 {
        let leaves = self.chunk_pages + usize::from(!self.leaf.is_empty());
        self.output.bytes() + (leaves * PAGE_BYTES) as u64
    }

    /// Bytes of what others keep of the table that grow with the length of its keys.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.segment_keys_bytes
    }

    /// Bytes of memory that the writer takes, about.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        let separators = self.levels.memory_bytes();
        let form = self.form.capacity();
        let buffers = self.chunk.len() + self.output.memory_bytes() + form + 4 * PAGE_BYTES;
        buffers + self.hashes.capacity() * size_of::<u64>() + separators
    }

    /// Writes what is left. The file is whole, but not durable: that takes a sync of it and of its
    /// folder. `None`: there was no entry, and there is no file. Errors: as [`add`](Self::add).
    pub(crate) fn finish(mut self) -> Result<Option<(TableMeta, Arc<dyn StorageFile>)>> {
        if self.entries == 0 {
            return Ok(None);
        }
        self.end_leaf(true)?;
        let few = self.segments.is_empty() && self.levels.leaves() < FEW_LEAVES;
        if few {
            self.hashes.clear();
        }
        self.end_segment()?;
        let (root, height) = self.levels.put(&mut self.output, &mut self.chunk)?;
        self.output.end_far()?;
        let mut meta = TableMeta {
            number: self.number,
            id: self.id,
            pages: 0,
            entries: self.entries,
            deletes: self.deletes,
            near_bytes: self.near_bytes,
            far_bytes: self.far_bytes,
            root,
            height,
            min: self.min,
            max: self.last.into(),
            segments: self.segments,
        };
        let footer = self.output.end();
        meta.pages = footer + meta.footer_pages();
        self.output.put_pages(&mut meta.footer(footer))?;
        self.output.put_head(meta.number)?;
        Ok(Some((meta, self.output.keep())))
    }

    /// As if `pages` had been written: the file has a hole.
    #[cfg(test)]
    pub(crate) fn skip(&mut self, pages: u64) {
        self.output.skip(pages);
    }

    fn put_far(&mut self, bytes: &[u8]) -> Result<Far> {
        self.far_bytes += bytes.len() as u64;
        self.output.put_far(bytes)
    }

    /// The same for a value, which is packed if that pays.
    fn put_value(&mut self, value: &[u8]) -> Result<Far> {
        let codec = self.packer.codec();
        if !packed_far::pack(codec, value, &mut self.form) {
            return self.put_far(value);
        }
        self.far_bytes += value.len() as u64;
        Ok(packed_far::reference(self.output.put_far(&self.form)?))
    }

    /// The leaf that begins with `key` has its separator; a segment begins with it if the one
    /// before has enough keys.
    fn begin_leaf(&mut self, key: &[u8], far_key: Option<Far>) -> Result<()> {
        // T2: one byte more than what the last key before shares with `key`, which is greater.
        let separator = key.get(..common_prefix(&self.last, key) + 1).unwrap_or(key);
        let stub = Bound::stub_of(separator, PAGE_BYTES);
        // A separator that is too long for a page is the whole key, which is in the file already.
        let far = far_key.filter(|_| stub.len() < separator.len());
        self.from = Bound {
            stub: stub.into(),
            far,
        };
        if self.hashes.len() >= SEGMENT_KEYS {
            self.end_segment()?;
            self.segment_from = separator.into();
        }
        Ok(())
    }

    /// Ends the present leaf; `last`: no other one follows.
    fn end_leaf(&mut self, last: bool) -> Result<()> {
        // A leaf that is alone is the root, which is a page.
        let alone = last && self.levels.leaves() == 0;
        let packs = !alone && self.packer.is_next();
        if packs {
            self.write_chunk()?;
        }
        let at = self.chunk_pages * PAGE_BYTES;
        let page = self.chunk.get_mut(at..at + PAGE_BYTES);
        let page = page.unwrap_or_default();
        self.leaf.finish(page);
        let from = std::mem::take(&mut self.from);
        if packs {
            let (form, sealed) = self.packer.pack(page);
            let page = self.output.put_packed(form, sealed)?;
            self.levels.push(Child { from, page });
        } else {
            let page = self.chunk_pages as PageNo;
            self.levels.push(Child { from, page });
            self.chunk_pages += 1;
        }
        if self.chunk_pages == CHUNK_PAGES || self.levels.is_crowded() {
            self.write_chunk()?;
        }
        if self.levels.is_crowded() {
            self.levels.put_aside(&mut self.output, &mut self.chunk)?;
        }
        Ok(())
    }

    /// Writes the gathered leaves, which learn their numbers.
    fn write_chunk(&mut self) -> Result<()> {
        if self.chunk_pages == 0 {
            return Ok(());
        }
        let pages = self.chunk.get_mut(..self.chunk_pages * PAGE_BYTES);
        let first = self.output.put_pages(pages.unwrap_or_default())?;
        for leaf in self.levels.last_leaves(self.chunk_pages) {
            leaf.page += first;
        }
        self.chunk_pages = 0;
        Ok(())
    }

    /// Writes the gathered leaves and, if there are hashes, the filter of their keys.
    fn end_segment(&mut self) -> Result<()> {
        self.write_chunk()?;
        if self.hashes.is_empty() {
            return Ok(());
        }
        let count = filter::pages_for(self.hashes.len(), self.filter_bits);
        let pages = self.chunk.get_mut(..count * PAGE_BYTES).unwrap_or_default();
        pages.fill(0);
        filter::build(&self.hashes, pages);
        self.hashes.clear();
        let first = self.output.put_pages(pages)?;
        let from = std::mem::take(&mut self.segment_from);
        self.segment_keys_bytes += from.len();
        self.segments.push(Segment::new(from, first, count as u32));
        Ok(())
    }
}

/// A number that no other table has.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
