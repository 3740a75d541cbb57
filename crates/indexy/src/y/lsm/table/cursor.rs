//! Walks one table in key order, either way, between two bounds.
//!
//! Entries come in chunkes: a block's decoder borrows the block, so the walk keeps keys, not
//! iterators, and seeks again. After a few blocks in a row the system is asked to read ahead.
//! Memory: one chunk ascending, one block's entries descending, beside the cached blocks.

#![forbid(unsafe_code)]

use crate::{
    error::Result,
    x::Order,
    y::lsm::table::{Place, TableReader},
};
use lsm_tree::{
    InternalValue, SeqNo, UserKey,
    table::{DataBlock, block::decoder::ParsedItem},
};
use std::{collections::VecDeque, sync::Arc};

const NEWEST: SeqNo = SeqNo::MAX;
/// Entries decoded at a time; short scans want few, long ones many.
const CHUNK_ENTRIES: usize = 64;
/// Blocks in a row after which a walk counts as a long one.
const READAHEAD_AFTER_BLOCKS: u32 = 4;
const READAHEAD_BYTES: u64 = 128 << 10;

/// Stored keys between which to walk: from the first, inclusive, to the second, exclusive.
#[derive(Clone)]
pub(crate) struct Bounds {
    pub from: UserKey,
    pub to: Option<UserKey>,
}

impl Bounds {
    pub(crate) fn everything() -> Self {
        Self {
            from: UserKey::new(b""),
            to: None,
        }
    }

    fn ends_before(&self, key: &[u8]) -> bool {
        self.to.as_ref().is_some_and(|to| key >= &**to)
    }
}

/// See the module header.
pub(crate) struct TableCursor {
    table: Arc<TableReader>,
    bounds: Bounds,
    chunk: VecDeque<InternalValue>,
    walk: Walk,
    readahead: Readahead,
}

enum Walk {
    Up {
        /// The block being read, and the last key taken from it.
        block: Option<(DataBlock, Option<UserKey>)>,
        /// The next block is the first whose last entry is at or after this.
        next: (UserKey, SeqNo),
    },
    Down {
        /// Index blocks, then data blocks, still to visit, the next one last.
        partitions: Vec<Place>,
        places: Vec<Place>,
    },
    Done,
}

impl TableCursor {
    pub(crate) fn new(table: Arc<TableReader>, bounds: Bounds, order: Order) -> Self {
        let walk = match order {
            Order::Ascending => Walk::Up {
                block: None,
                next: (bounds.from.clone(), NEWEST),
            },
            Order::Descending => Walk::Down {
                partitions: table.partitions(&bounds.from, bounds.to.as_deref()),
                places: vec![],
            },
        };
        Self {
            table,
            bounds,
            chunk: VecDeque::new(),
            walk,
            readahead: Readahead::default(),
        }
    }

    pub(crate) fn table(&self) -> &Arc<TableReader> {
        &self.table
    }

    /// The next entry, if it comes without a look at the table.
    pub(crate) fn at_hand(&self) -> Option<&InternalValue> {
        self.chunk.front()
    }

    /// The next entry; tombstones are entries. May panic on damage that a checksum does not show.
    pub(crate) fn next(&mut self) -> Result<Option<InternalValue>> {
        loop {
            if let Some(mut entry) = self.chunk.pop_front() {
                // I2: a run's entries carry 0 on disk; the table knows the run's number.
                entry.key.seqno += self.table.engine().global_seqno();
                return Ok(Some(entry));
            }
            match self.walk {
                Walk::Up { .. } => self.fill_up()?,
                Walk::Down { .. } => self.fill_down()?,
                Walk::Done => return Ok(None),
            }
        }
    }

    fn fill_up(&mut self) -> Result<()> {
        let Walk::Up { block, next } = &mut self.walk else {
            return Ok(());
        };
        let Some((current, taken)) = block else {
            match self.table.block_reaching(&next.0, next.1)? {
                None => self.walk = Walk::Done,
                Some((place, last)) => {
                    self.readahead.ascend(&self.table, place)?;
                    *next = (last, 0);
                    *block = Some((self.readahead.block(&self.table, place)?, None));
                }
            }
            return Ok(());
        };
        let mut entries = current.iter();
        // What seeking says is whether the key is there; the position is right either way.
        match taken {
            None => entries.seek(&self.bounds.from),
            Some(key) => entries.seek_exclusive(key),
        };
        let entries = entries.take(CHUNK_ENTRIES);
        self.chunk
            .extend(entries.map(|entry| entry.materialize(current.as_slice())));
        let full = self.chunk.len() == CHUNK_ENTRIES;
        let last = self.chunk.back().map(|entry| entry.key.user_key.clone());
        if last
            .as_ref()
            .is_some_and(|key| self.bounds.ends_before(key))
        {
            let within = |entry: &InternalValue| !self.bounds.ends_before(&entry.key.user_key);
            let end = self.chunk.partition_point(within);
            self.chunk.truncate(end);
            self.walk = Walk::Done;
        } else if full {
            *taken = last;
        } else {
            *block = None;
        }
        Ok(())
    }

    fn fill_down(&mut self) -> Result<()> {
        let Walk::Down { partitions, places } = &mut self.walk else {
            return Ok(());
        };
        let Some(place) = places.pop() else {
            match partitions.pop() {
                None => self.walk = Walk::Done,
                Some(partition) => {
                    let (from, to) = (&self.bounds.from, self.bounds.to.as_deref());
                    *places = self.table.places_of(partition, from, to)?;
                }
            }
            return Ok(());
        };
        self.readahead.descend(&self.table, place)?;
        let block = self.readahead.block(&self.table, place)?;
        let mut entries = block.iter();
        entries.seek(&self.bounds.from);
        for entry in entries {
            let entry = entry.materialize(block.as_slice());
            if self.bounds.ends_before(&entry.key.user_key) {
                break;
            }
            self.chunk.push_front(entry);
        }
        Ok(())
    }
}

/// Asks for the bytes ahead of a walk once it has proved long.
#[derive(Default)]
struct Readahead {
    blocks: u32,
    /// Where what was asked for ends (begins, when descending).
    edge: u64,
}

impl Readahead {
    /// What is read ahead lies in the page cache.
    fn block(&self, table: &TableReader, place: Place) -> Result<DataBlock> {
        if self.blocks > READAHEAD_AFTER_BLOCKS {
            table.data_block_ahead(place)
        } else {
            table.data_block(place)
        }
    }

    fn ascend(&mut self, table: &TableReader, place: Place) -> Result<()> {
        self.blocks += 1;
        let end = place.offset + u64::from(place.size);
        if self.blocks <= READAHEAD_AFTER_BLOCKS || end + READAHEAD_BYTES / 2 < self.edge {
            return Ok(());
        }
        let start = self.edge.max(place.offset);
        self.edge = start + READAHEAD_BYTES;
        table.prefetch(start, READAHEAD_BYTES)
    }

    fn descend(&mut self, table: &TableReader, place: Place) -> Result<()> {
        self.blocks += 1;
        if self.blocks == 1 {
            self.edge = place.offset + u64::from(place.size);
        }
        if self.blocks <= READAHEAD_AFTER_BLOCKS || place.offset > self.edge + READAHEAD_BYTES / 2 {
            return Ok(());
        }
        let end = self.edge.min(place.offset + u64::from(place.size));
        self.edge = end.saturating_sub(READAHEAD_BYTES);
        table.prefetch(self.edge, end - self.edge)
    }
}
