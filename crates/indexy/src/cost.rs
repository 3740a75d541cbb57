//! What each operation costs.
//!
//! Words: a *hit* is an operation on a key that the memory index holds, or knows to be absent; a
//! *miss* asks the disk index. *One read* is about one read of the device for a [`get`] with the
//! upper levels of the disk index in its cache; a key that is absent costs an LSM tree less (Bloom
//! filters), a paged tree the same. An *allocation* is one of the process's heap; the memory index
//! has its own.
//!
//! # Reads
//!
//! Reads take no lock. A miss loads the key into the memory index, unless the tree's
//! [`Admission`](crate::Admission) says no, or the call is to remove it.
//!
//! | operation | hit | miss | allocations |
//! |---|---|---|---|
//! | [`get`] | no I/O | one read | one above 20 bytes of value |
//! | [`get_with`], [`contains_key`] | no I/O | one read | none on a hit |
//! | [`multi_get`] | no I/O | reads overlap: about half of one per key | the answer |
//! | [`try_get`] | no I/O | none for the caller: reads of all callers overlap | one above 20 bytes of value; a key and a slot on a miss |
//! | [`range`], `prefix`, `iter` | no I/O | reads in key order | a bounded chunk, copied |
//! | [`first`], [`last`], `is_empty` | no I/O | one read or two | a small chunk |
//! | [`len`] | a walk over leaves where all is in memory, else a scan | a scan | as a scan |
//! | [`approximate_len`] | no I/O | no I/O | none |
//!
//! In a tree whose entries [expire](crate::TreeOptions::ttl) a read of an entry with a moment asks
//! the clock, and [`len`] is a scan. Scans and [`first`] walk once over entries that have expired.
//!
//! # Writes
//!
//! A write takes one of many locks, by the hash of its key: it waits for writers of the same key,
//! and rarely for another one. Readers never wait for it. It writes to the log what its
//! [`Durability`] asks for: nothing, a copy to a buffer, or that and a shared fsync. When memory is
//! short it waits for the background to release some (at most a minute; then `MemoryStalled`).
//!
//! | operation | hit | miss | waits |
//! |---|---|---|---|
//! | [`insert`], [`remove`] | no I/O | no I/O: nothing is read | log, memory |
//! | [`merge`] | no I/O | no I/O: nothing is read, unless operands take half of the budget, or 4 KiB of one key | log, memory |
//! | [`take`], [`compare_and_swap`], [`update`] | no I/O | one read, lock held | log, memory |
//! | [`remove_range`], `clear` | a walk over its leaves | a few pages (LSM), its leaves (paged) | all writers, a sync of the log |
//! | [`load_sorted`] | each entry is written once | a few syncs | all writers, at the end; a checkpoint |
//! | [`release`] | writes what is not on disk yet | none | a run under way; a sync of the log |
//! | [`Batch::commit`] | no I/O | no I/O: nothing is read, but for merges and removed ranges | the locks of all keys; log, memory |
//!
//! While a snapshot is open, the first write to a key since then also keeps what the key was: two
//! searches and an insert in memory, no I/O. Beyond a part of the budget that goes to disk in the
//! background; a writer that is faster waits. A range that is removed meanwhile is read first and
//! kept whole, in memory or on disk, while all writers wait.
//!
//! A value over an eighth of the memory budget that is written alone goes to the disk index at
//! once, one at a time per tree. Every written entry is written a second time later, in the
//! background, in sorted runs.
//!
//! # Snapshots and transactions
//!
//! | operation | cost | waits |
//! |---|---|---|
//! | [`snapshot`], [`begin`], and their end | two short locks | a batch that is being applied |
//! | reads of a [`Snapshot`] | those of the tree; where it was written since, a search in memory more, and a look at each file of images that is newer | nobody |
//! | reads of a [`Transaction`] | the same, and what was read is remembered | nobody |
//! | writes of a [`Transaction`] | a copy | nobody |
//! | [`commit`] | that of [`Batch::commit`], and a search in memory for each key read in trees that were written since; a look at files of images that are newer | as that |
//!
//! # The change feed
//!
//! | operation | I/O | allocations | waits |
//! |---|---|---|---|
//! | [`changes`], then the first set | from the start of a log file to the position | a buffer | nobody |
//! | each further set | in order: 64 KiB at a time | one or two | nobody |
//! | [`newest_change`] | as `sync` | none | a sync of the log |
//!
//! # The database
//!
//! | operation | I/O | holds up |
//! |---|---|---|
//! | [`open`] | a few reads per tree, and the log since the last flush | - |
//! | [`tree`] of an existing tree | none | nobody |
//! | [`tree`] of a new one, [`drop_tree`] | a few fsyncs | others that make or drop trees |
//! | [`sync`] | at most a write and an fsync, shared | nobody |
//! | [`flush`] | writes all that is not on disk yet | nobody |
//! | [`checkpoint`] | hard links or copies, and the log | sorted loads; at the end, others that make or drop trees; runs to disk indexes that cannot be copied beside them (RocksDB) |
//! | [`verify`] | reads everything twice, with a filter of evicted keys three times | nobody |
//! | [`stats`] | none | nobody |
//! | [`close`] | as `flush`, and the hot set | refuses everybody |
//!
//! [`snapshot`]: crate::Db::snapshot
//! [`begin`]: crate::Db::begin
//! [`Snapshot`]: crate::Snapshot
//! [`Transaction`]: crate::Transaction
//! [`commit`]: crate::Transaction::commit
//! [`changes`]: crate::Db::changes
//! [`newest_change`]: crate::Db::newest_change
//! [`get`]: crate::Tree::get
//! [`get_with`]: crate::Tree::get_with
//! [`contains_key`]: crate::Tree::contains_key
//! [`multi_get`]: crate::Tree::multi_get
//! [`try_get`]: crate::Tree::try_get
//! [`range`]: crate::Tree::range
//! [`release`]: crate::Tree::release
//! [`load_sorted`]: crate::Tree::load_sorted
//! [`first`]: crate::Tree::first
//! [`last`]: crate::Tree::last
//! [`len`]: crate::Tree::len
//! [`approximate_len`]: crate::Tree::approximate_len
//! [`Durability`]: crate::Durability
//! [`insert`]: crate::Tree::insert
//! [`remove`]: crate::Tree::remove
//! [`take`]: crate::Tree::take
//! [`compare_and_swap`]: crate::Tree::compare_and_swap
//! [`update`]: crate::Tree::update
//! [`merge`]: crate::Tree::merge
//! [`remove_range`]: crate::Tree::remove_range
//! [`Batch::commit`]: crate::Batch::commit
//! [`open`]: crate::Db::open
//! [`tree`]: crate::Db::tree
//! [`drop_tree`]: crate::Db::drop_tree
//! [`sync`]: crate::Db::sync
//! [`flush`]: crate::Db::flush
//! [`checkpoint`]: crate::Db::checkpoint
//! [`verify`]: crate::Db::verify
//! [`stats`]: crate::Db::stats
//! [`close`]: crate::Db::close
