//! fjall: a log-structured merge tree in Rust.
//!
//! Tuning: five eighths of the budget are block cache, a quarter is memtables, the rest is left for
//! what it does not count; index and filter blocks are partitioned and not pinned, as a small cache
//! needs. Its journal cannot be turned off: with durability `none` it is written but never synced,
//! and journal bytes stay in user memory as long as possible.

use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode,
    config::{CompressionPolicy, PartitioningPolicy, PinningPolicy},
};
use indexy_bench::contender::{
    About, Contender, Durability, End, KeyShape, Outcome, PageCache, Session, Setup, Storage,
};
use indexy_bench::registry::Registry;
use std::{collections::BTreeMap, thread, time::Duration};

const MEMTABLES: u64 = 3;
/// The keyspace that has everything.
pub const KEYSPACE: &str = "data";

/// The contender whose tables have fjall's own transactions.
pub const TRANSACTIONS: &str = "fjall-transactions";

pub fn register(registry: &mut Registry) {
    let about = About {
        name: "fjall",
        summary: "LSM tree in Rust: 5/8 block cache, 1/4 memtables, partitioned index and \
            filters, journal always on",
        storage: Storage::Disk,
        page_cache: PageCache::Used,
        keys: KeyShape::Bytes,
        max_threads: usize::MAX,
        scans: true,
        reopens: true,
        pages: false,
        durabilities: &[Durability::None, Durability::Buffered, Durability::Sync],
        variant: "",
    };
    registry.add::<Fjall>(about.clone());
    registry.add::<Fjall>(About {
        name: TRANSACTIONS,
        summary: "fjall; its tables with optimistic transactions, serializable",
        ..about
    });
}

pub struct Fjall {
    pub database: Database,
    pub keyspace: Keyspace,
    /// Every write is synced.
    pub sync: bool,
}

pub struct FjallSession<'a> {
    engine: &'a Fjall,
}

/// Bytes of the block cache for a budget.
pub fn cache_bytes(setup: &Setup) -> u64 {
    setup.budget / 8 * 5
}

/// Options of the keyspace for a budget.
pub fn keyspace_options(setup: &Setup) -> KeyspaceCreateOptions {
    let memtables = (setup.budget / 4).max(2 << 20);
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtables / MEMTABLES)
        .index_block_partitioning_policy(PartitioningPolicy::all(true))
        .filter_block_partitioning_policy(PartitioningPolicy::all(true))
        .index_block_pinning_policy(PinningPolicy::all(false))
        .filter_block_pinning_policy(PinningPolicy::all(false))
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
}

impl Fjall {
    /// What is open by now.
    pub fn of(database: Database, keyspace: Keyspace, setup: &Setup) -> Self {
        Self {
            database,
            keyspace,
            sync: setup.durability == Durability::Sync,
        }
    }
}

impl Contender for Fjall {
    type Session<'a> = FjallSession<'a>;

    fn open(setup: &Setup) -> Outcome<Self> {
        let database = Database::builder(&setup.path)
            .cache_size(cache_bytes(setup))
            .manual_journal_persist(setup.durability == Durability::None)
            .open()?;
        let keyspace = database.keyspace(KEYSPACE, || keyspace_options(setup))?;
        Ok(Self::of(database, keyspace, setup))
    }

    fn session(&self) -> Outcome<FjallSession<'_>> {
        Ok(FjallSession { engine: self })
    }

    fn settle(&self) -> Outcome<()> {
        const QUIET: u32 = 3;
        const LOOK: Duration = Duration::from_millis(100);
        self.keyspace.rotate_memtable_and_wait()?;
        let mut quiet = 0;
        while quiet < QUIET {
            let busy =
                self.database.outstanding_flushes() > 0 || self.database.active_compactions() > 0;
            quiet = if busy { 0 } else { quiet + 1 };
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn memory_used(&self) -> Option<u64> {
        Some(self.database.cache_size() + self.database.write_buffer_size())
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        BTreeMap::from([
            (
                "level0_runs".to_owned(),
                self.keyspace.l0_table_count() as f64,
            ),
            ("tables".to_owned(), self.keyspace.table_count() as f64),
        ])
    }

    fn close(self) -> Outcome<()> {
        self.database.persist(PersistMode::SyncAll)?;
        Ok(())
    }
}

impl FjallSession<'_> {
    #[inline]
    fn written(&self) -> Outcome<()> {
        if self.engine.sync {
            self.engine.database.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }
}

impl Session for FjallSession<'_> {
    #[inline]
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        self.engine.keyspace.insert(key, value)?;
        self.written()
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        Ok(self.engine.keyspace.get(key)?.map(|value| see(&value)))
    }

    fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        self.engine.keyspace.remove(key)?;
        self.written()
    }

    fn pop(&mut self, end: End, see: impl FnOnce(&[u8])) -> Outcome<bool> {
        let keyspace = &self.engine.keyspace;
        let entry = match end {
            End::First => keyspace.first_key_value(),
            End::Last => keyspace.last_key_value(),
        };
        let Some(entry) = entry else {
            return Ok(false);
        };
        let key = entry.key()?;
        see(&key);
        keyspace.remove(key)?;
        self.written()?;
        Ok(true)
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<usize> {
        let mut seen = 0;
        for entry in self.engine.keyspace.range(from..).take(count) {
            let (key, value) = entry.into_inner()?;
            see(&key, &value);
            seen += 1;
        }
        Ok(seen)
    }
}
