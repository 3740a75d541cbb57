//! RocksDB's settings: the paper's (small buffers, a small cache, Bloom filters, no log of its own)
//! and what keeps its memory within the budget (IndeXY II-D, III-A).

#![forbid(unsafe_code)]

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DBCompressionType, InfoLogger, LogLevel, Options,
};

/// Data, index and filter blocks: one read of the device.
const BLOCK_BYTES: usize = 4 << 10;
/// Bits a key in the filters: about one false answer in a hundred.
const FILTER_BITS: f64 = 10.0;
/// The format of tables that is written; fixed, so that another version of RocksDB does not change
/// it silently.
const TABLE_FORMAT: i32 = 6;
/// Tables in level 0 at which they are merged into the next level.
pub(super) const LEVEL0_TRIGGER: i32 = 4;
/// Size of the tables that compaction writes. What it holds of filter and index while it writes one
/// grows with this.
const TABLE_BYTES: u64 = 16 << 20;
/// Size of the highest level that is not level 0; the sizes of the others follow from the last one.
const LEVEL_BASE_BYTES: u64 = 64 << 20;
/// Levels, level 0 included.
pub(super) const LEVELS: i32 = 7;
/// Open files of one tree, at most; a process has 1,024 descriptors by default.
pub(super) const MAX_OPEN_FILES: i32 = 256;
/// Parts of the table of open files, as a power of two; RocksDB's 64 would leave each 4 files.
const OPEN_FILES_SHARD_BITS: i32 = 2;
/// Jobs at a time: one compaction, and one that deletes files. Each is one thread of the process,
/// for all trees.
const BACKGROUND_JOBS: i32 = 2;
/// Memtables are never written to; this is what an empty one may take.
const MEMTABLE_BYTES: usize = 64 << 10;
/// Read ahead in each table that a compaction reads.
const COMPACTION_READ_BYTES: usize = 128 << 10;
/// Buffer of a file being written.
const WRITE_BUFFER_BYTES: u64 = 256 << 10;
/// Bytes after which a file being written is sent to the device, so that its sync has little left
/// to do.
const BYTES_PER_SYNC: u64 = 1 << 20;
/// Size at which the manifest is written anew.
const MANIFEST_BYTES: usize = 4 << 20;
const MANIFEST_PREALLOCATION_BYTES: usize = 64 << 10;

/// Tables: index and filter are cut into blocks that come and go through the cache like data.
pub(super) fn table(cache: &Cache) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_format_version(TABLE_FORMAT);
    table.set_block_size(BLOCK_BYTES);
    table.set_block_cache(cache);
    table.set_bloom_filter(FILTER_BITS, false);
    table.set_whole_key_filtering(true);
    table.set_optimize_filters_for_memory(true);
    table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    table.set_partition_filters(true);
    table.set_metadata_block_size(BLOCK_BYTES);
    table.set_cache_index_and_filter_blocks(true);
    table.set_cache_index_and_filter_blocks_with_high_priority(true);
    // I7: what is pinned cannot make room. Blocks in use all the time stay by themselves.
    table.set_pin_l0_filter_and_index_blocks_in_cache(false);
    table.set_pin_top_level_index_and_filter(false);
    table
}

/// A tree. It must exist unless the caller adds `create_if_missing`.
pub(super) fn tree(table: &BlockBasedOptions) -> Options {
    let mut options = Options::default();
    options.set_block_based_table_factory(table);
    options.set_compression_type(DBCompressionType::None);
    options.set_paranoid_checks(true);
    silence(&mut options);
    bound_memory(&mut options);

    options.set_num_levels(LEVELS);
    options.set_level_zero_file_num_compaction_trigger(LEVEL0_TRIGGER);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_max_bytes_for_level_base(LEVEL_BASE_BYTES);
    options.set_target_file_size_base(TABLE_BYTES);
    options.set_max_background_jobs(BACKGROUND_JOBS);
    options.set_max_subcompactions(1);
    options.set_bytes_per_sync(BYTES_PER_SYNC);
    // A reader that was the last one of an old table leaves its deletion to a thread of RocksDB.
    options.set_avoid_unnecessary_blocking_io(true);
    // Nothing is rewritten for its age alone.
    options.set_ttl(0);
    options.set_periodic_compaction_seconds(0);
    options
}

/// The tables of runs.
pub(super) fn run(table: &BlockBasedOptions) -> Options {
    let mut options = Options::default();
    options.set_block_based_table_factory(table);
    options.set_compression_type(DBCompressionType::None);
    options.set_writable_file_max_buffer_size(WRITE_BUFFER_BYTES);
    options.set_bytes_per_sync(BYTES_PER_SYNC);
    options
}

fn bound_memory(options: &mut Options) {
    options.set_write_buffer_size(MEMTABLE_BYTES);
    options.set_max_open_files(MAX_OPEN_FILES);
    options.set_table_cache_num_shard_bits(OPEN_FILES_SHARD_BITS);
    options.set_max_file_opening_threads(1);
    options.set_compaction_readahead_size(COMPACTION_READ_BYTES);
    options.set_writable_file_max_buffer_size(WRITE_BUFFER_BYTES);
    options.set_max_manifest_file_size(MANIFEST_BYTES);
    options.set_manifest_preallocation_size(MANIFEST_PREALLOCATION_BYTES);
}

/// No log of what RocksDB does and no statistics: neither files nor the thread that would write
/// them.
fn silence(options: &mut Options) {
    options.set_log_level(LogLevel::Fatal);
    // A logger of ours keeps it from writing LOG files.
    options.set_info_logger(InfoLogger::new_callback_logger(LogLevel::Fatal, |_, _| {}));
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
}
