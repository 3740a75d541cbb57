//! RocksDB.
//!
//! Tuning, for a small budget: index and filters partitioned and in the block cache with high
//! priority, only their top level pinned; whole-key Bloom filters of 10 bits; no compression (keys
//! and values are random). Fifteen sixteenths of the budget are divided among memtables, block
//! cache and row cache by what the phase does (see [`Rocks::divide`]); the row cache is the paper's
//! choice for reads, and gets 5/16 for them: its entries of 16 bytes take twice what it counts, and
//! with 10/16 the process was killed at 188 MiB. Memtables of 8 MiB, a trigger of 8 runs and static
//! levels loaded 10 M random keys 1.4 times as fast as memtables of 21 MiB with the defaults. With
//! durability `none` the log is off.
//!
//! Variants: `rocksdb` has the row cache and direct I/O for reads, flushes and compactions;
//! `rocksdb-blocks` has no row cache, its part goes to the block cache; `rocksdb-cached` has the
//! row cache and leaves I/O to the page cache, which then gets what the cgroup grants above the
//! budget, as it does for every engine without direct I/O.

use indexy_bench::contender::{
    About, Contender, Durability, End, Focus, KeyShape, Outcome, PageCache, Session, Setup, Storage,
};
use indexy_bench::registry::Registry;
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DB, DBCompressionType, Direction, FlushOptions,
    IteratorMode, Options, ReadOptions, WaitForCompactOptions, WriteBufferManager, WriteOptions,
};
use std::collections::BTreeMap;

const BLOCK_BYTES: usize = 4096;
const FILTER_BITS: f64 = 10.0;
const MEMTABLES: u64 = 3;
const MIN_MEMTABLE_BYTES: u64 = 1 << 20;
/// Larger ones load more slowly: their skip lists do not stay in the processor's cache.
const MAX_MEMTABLE_BYTES: u64 = 8 << 20;
/// Runs in level 0 that are compacted together; the first level has room for as much.
const LEVEL0_RUNS: i32 = 8;
const BACKGROUND_JOBS: i32 = 2;

/// The contender whose tables have RocksDB's own transactions.
pub const TRANSACTIONS: &str = "rocksdb-transactions";

pub fn register(registry: &mut Registry) {
    let about = About {
        name: "rocksdb",
        summary: "RocksDB: row cache, direct I/O, partitioned index and filters, no compression",
        storage: Storage::Disk,
        page_cache: PageCache::Bypassed,
        keys: KeyShape::Bytes,
        max_threads: usize::MAX,
        scans: true,
        reopens: true,
        pages: true,
        durabilities: &[Durability::None, Durability::Buffered, Durability::Sync],
        variant: "rows",
    };
    registry.add::<Rocks>(about.clone());
    registry.add::<Rocks>(About {
        name: "rocksdb-blocks",
        summary: "RocksDB without row cache: the block cache gets its part",
        variant: "blocks",
        ..about.clone()
    });
    let cached = About {
        name: "rocksdb-cached",
        summary: "RocksDB with row cache, through the page cache",
        page_cache: PageCache::Used,
        variant: "cached",
        ..about
    };
    registry.add::<Rocks>(cached.clone());
    // The variant that does the most transactions.
    registry.add::<Rocks>(About {
        name: TRANSACTIONS,
        summary: "the same; its tables with optimistic transactions",
        ..cached
    });
}

pub struct Rocks {
    db: DB,
    tuned: Tuned,
}

/// What a database is opened with, and how the budget is divided in it.
pub struct Tuned {
    blocks: Cache,
    rows: Cache,
    budget: u64,
    with_rows: bool,
    durability: Durability,
}

/// Bytes of the three parts.
#[derive(Debug, PartialEq, Eq)]
struct Parts {
    memtables: u64,
    blocks: u64,
    rows: u64,
}

impl Tuned {
    /// Caches and options for a new database or one that is there.
    pub fn new(setup: &Setup) -> (Self, Options) {
        let with_rows = setup.variant != "blocks";
        let direct = setup.variant != "cached";
        let parts = Self::divide(setup.budget, setup.focus, with_rows);
        let blocks = Cache::new_lru_cache(parts.blocks as usize);
        let rows = Cache::new_lru_cache(parts.rows as usize);
        let mut table = BlockBasedOptions::default();
        table.set_block_size(if setup.page_bytes > 0 {
            setup.page_bytes
        } else {
            BLOCK_BYTES
        });
        table.set_metadata_block_size(BLOCK_BYTES);
        table.set_block_cache(&blocks);
        table.set_bloom_filter(FILTER_BITS, false);
        table.set_partition_filters(true);
        table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
        table.set_cache_index_and_filter_blocks(true);
        table.set_cache_index_and_filter_blocks_with_high_priority(true);
        table.set_pin_l0_filter_and_index_blocks_in_cache(false);
        table.set_pin_top_level_index_and_filter(true);
        table.set_format_version(5);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&table);
        if with_rows {
            options.set_row_cache(&rows);
        }
        options.set_use_direct_reads(direct);
        options.set_use_direct_io_for_flush_and_compaction(direct);
        options.set_compression_type(DBCompressionType::None);
        options.set_write_buffer_size(Self::memtable_bytes(&parts) as usize);
        options.set_max_write_buffer_number(MEMTABLES as i32);
        options.set_level_zero_file_num_compaction_trigger(LEVEL0_RUNS);
        options.set_level_compaction_dynamic_level_bytes(false);
        options.set_max_bytes_for_level_base(LEVEL0_RUNS as u64 * Self::memtable_bytes(&parts));
        // A cap over all memtables, flushing ones included; the mixed and write phases need the
        // most.
        let most = Self::divide(setup.budget, Focus::Writes, with_rows).memtables as usize;
        options
            .set_write_buffer_manager(&WriteBufferManager::new_write_buffer_manager(most, false));
        options.set_target_file_size_base(16 << 20);
        options.set_max_background_jobs(BACKGROUND_JOBS);
        options.set_compaction_readahead_size(256 << 10);
        options.set_max_total_wal_size(setup.budget.max(64 << 20));
        let tuned = Self {
            blocks,
            rows,
            budget: setup.budget,
            with_rows,
            durability: setup.durability,
        };
        (tuned, options)
    }

    fn divide(budget: u64, focus: Focus, with_rows: bool) -> Parts {
        let part = |sixteenths: u64| budget / 16 * sixteenths;
        let (memtables, blocks, rows) = match focus {
            Focus::Writes => (8, 7, 0),
            Focus::Reads => (1, 4, 5),
            Focus::Mixed => (4, 4, 4),
        };
        let (blocks, rows) = if with_rows {
            (blocks, rows)
        } else {
            (blocks + rows, 0)
        };
        Parts {
            memtables: part(memtables),
            blocks: part(blocks),
            rows: part(rows),
        }
    }

    fn memtable_bytes(parts: &Parts) -> u64 {
        (parts.memtables / MEMTABLES).clamp(MIN_MEMTABLE_BYTES, MAX_MEMTABLE_BYTES)
    }

    /// Divides the caches anew; returns the bytes of a memtable.
    pub fn set_focus(&self, focus: Focus) -> u64 {
        let parts = Self::divide(self.budget, focus, self.with_rows);
        self.blocks.clone().set_capacity(parts.blocks as usize);
        self.rows.clone().set_capacity(parts.rows as usize);
        Self::memtable_bytes(&parts)
    }

    /// Bytes in the caches.
    pub fn cached(&self) -> u64 {
        (self.blocks.get_usage() + self.rows.get_usage()) as u64
    }

    /// Without a log, with one, or with one that is synced.
    pub fn write_options(&self) -> WriteOptions {
        let mut options = WriteOptions::default();
        options.disable_wal(self.durability == Durability::None);
        options.set_sync(self.durability == Durability::Sync);
        options
    }
}

impl Rocks {
    pub fn write_options(&self) -> WriteOptions {
        self.tuned.write_options()
    }

    pub fn database(&self) -> &DB {
        &self.db
    }

    fn property(&self, name: &str) -> u64 {
        self.db.property_int_value(name).ok().flatten().unwrap_or(0)
    }
}

pub struct RocksSession<'a> {
    db: &'a DB,
    write: WriteOptions,
    read: ReadOptions,
}

impl Contender for Rocks {
    type Session<'a> = RocksSession<'a>;

    fn open(setup: &Setup) -> Outcome<Self> {
        let (tuned, options) = Tuned::new(setup);
        // Named, so that there is a handle for many reads at once; with the options, or it would
        // get the defaults.
        let family = (rocksdb::DEFAULT_COLUMN_FAMILY_NAME, options.clone());
        let db = DB::open_cf_with_opts(&options, &setup.path, [family])?;
        Ok(Self { db, tuned })
    }

    fn session(&self) -> Outcome<RocksSession<'_>> {
        Ok(RocksSession {
            db: &self.db,
            write: self.write_options(),
            read: ReadOptions::default(),
        })
    }

    fn focus(&self, focus: Focus) -> Outcome<()> {
        let bytes = self.tuned.set_focus(focus).to_string();
        self.db.set_options(&[("write_buffer_size", &bytes)])?;
        if focus == Focus::Reads {
            self.db.flush()?;
        }
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        let mut flush = FlushOptions::default();
        flush.set_wait(true);
        self.db.flush_opt(&flush)?;
        Ok(self
            .db
            .wait_for_compact(&WaitForCompactOptions::default())?)
    }

    fn memory_used(&self) -> Option<u64> {
        let memtables = self.property("rocksdb.cur-size-all-mem-tables");
        let readers = self.property("rocksdb.estimate-table-readers-mem");
        Some(memtables + readers + self.tuned.cached())
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        let of = |name: &str, property: &str| (name.to_owned(), self.property(property) as f64);
        BTreeMap::from([
            of("level0_runs", "rocksdb.num-files-at-level0"),
            of("running_compactions", "rocksdb.num-running-compactions"),
            of("write_stopped", "rocksdb.is-write-stopped"),
            (
                "block_cache_bytes".to_owned(),
                self.tuned.blocks.get_usage() as f64,
            ),
            (
                "row_cache_bytes".to_owned(),
                self.tuned.rows.get_usage() as f64,
            ),
        ])
    }

    fn close(self) -> Outcome<()> {
        self.db.flush()?;
        self.db.cancel_all_background_work(true);
        Ok(())
    }
}

impl Session for RocksSession<'_> {
    #[inline]
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        Ok(self.db.put_opt(key, value, &self.write)?)
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        Ok(self
            .db
            .get_pinned_opt(key, &self.read)?
            .map(|value| see(&value)))
    }

    fn multi_get(
        &mut self,
        keys: &[&[u8]],
        mut see: impl FnMut(usize, Option<&[u8]>),
    ) -> Outcome<()> {
        let family = self
            .db
            .cf_handle(rocksdb::DEFAULT_COLUMN_FAMILY_NAME)
            .ok_or("no default column family")?;
        let found =
            self.db
                .batched_multi_get_cf_opt(&family, keys.iter().copied(), false, &self.read);
        for (index, value) in found.into_iter().enumerate() {
            see(index, value?.as_deref());
        }
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        Ok(self.db.delete_opt(key, &self.write)?)
    }

    fn pop(&mut self, end: End, see: impl FnOnce(&[u8])) -> Outcome<bool> {
        let mode = match end {
            End::First => IteratorMode::Start,
            End::Last => IteratorMode::End,
        };
        let Some(entry) = self.db.iterator(mode).next() else {
            return Ok(false);
        };
        let (key, _) = entry?;
        see(&key);
        self.db.delete_opt(&key, &self.write)?;
        Ok(true)
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<usize> {
        let mut options = ReadOptions::default();
        options.set_async_io(false);
        let mut seen = 0;
        for entry in self
            .db
            .iterator_opt(IteratorMode::From(from, Direction::Forward), options)
            .take(count)
        {
            let (key, value) = entry?;
            see(&key, &value);
            seen += 1;
        }
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_stay_within_the_budget() {
        for focus in [Focus::Writes, Focus::Reads, Focus::Mixed] {
            for with_rows in [true, false] {
                let parts = Tuned::divide(128 << 20, focus, with_rows);
                assert!(parts.memtables + parts.blocks + parts.rows <= (128 << 20) / 16 * 15);
            }
        }
    }
}
