//! bf-tree: a concurrent B+ tree with small cached pages in a circular buffer, by Microsoft
//! Research.
//!
//! Tuning: the buffer is the largest power of two (it takes no other) within the budget; inner
//! nodes come on top. Direct I/O. It has no log here: its own one is written every millisecond and
//! fits none of our durabilities but `buffered`. It opens what it wrote only from a snapshot, so no
//! reopening.
//!
//! `bf-tree-memory` is its own mode without a file: everything is in the buffer, which has to have
//! room for it. The other one writes pages out however large its buffer is, and reads them back.

use bf_tree::{BfTree, Config, LeafInsertResult, LeafReadResult, ScanReturnField, StorageBackend};
use indexy_bench::contender::{
    About, Contender, Durability, KeyShape, Outcome, PageCache, Session, Setup, Storage,
};
use indexy_bench::registry::Registry;
use std::path::PathBuf;

/// The variant without a file, and what bf-tree calls that.
const IN_MEMORY: &str = "memory";
const NO_FILE: &str = ":cache:";
/// Smallest page in bytes; larger records need a larger one.
const PAGE_BYTES: usize = 4096;
const MAX_PAGE_BYTES: usize = 32_768;
/// Least records that a page must hold.
const RECORDS_PER_PAGE: usize = 3;

pub fn register(registry: &mut Registry) {
    registry.add::<Bf>(About {
        name: "bf-tree",
        summary: "concurrent B+ tree with record cache: circular buffer of the budget, direct \
            I/O, no log",
        storage: Storage::Disk,
        page_cache: PageCache::Bypassed,
        keys: KeyShape::Bytes,
        max_threads: usize::MAX,
        scans: true,
        reopens: false,
        pages: true,
        durabilities: &[Durability::None],
        variant: "",
    });
    registry.add::<Bf>(About {
        name: "bf-tree-memory",
        summary: "bf-tree without a file: its buffer, of the budget, holds everything",
        storage: Storage::Memory,
        page_cache: PageCache::Unused,
        keys: KeyShape::Bytes,
        max_threads: usize::MAX,
        scans: true,
        reopens: false,
        pages: false,
        durabilities: &[Durability::None],
        variant: IN_MEMORY,
    });
}

pub struct Bf {
    tree: BfTree,
    record_bytes: usize,
}

pub struct BfSession<'a> {
    tree: &'a BfTree,
    buffer: Vec<u8>,
}

fn previous_power_of_two(n: u64) -> u64 {
    if n == 0 { 0 } else { 1 << n.ilog2() }
}

impl Contender for Bf {
    type Session<'a> = BfSession<'a>;

    fn open(setup: &Setup) -> Outcome<Self> {
        let record_bytes = setup.key_bytes + setup.value_bytes;
        let wanted = setup
            .page_bytes
            .max(PAGE_BYTES)
            .max((record_bytes * RECORDS_PER_PAGE).next_power_of_two());
        if wanted > MAX_PAGE_BYTES {
            return Err(format!("bf-tree takes no records of {record_bytes} bytes").into());
        }
        let in_memory = setup.variant == IN_MEMORY;
        let file = if in_memory {
            PathBuf::from(NO_FILE)
        } else {
            setup.path.join("data.bftree")
        };
        let mut config = Config::new(file, previous_power_of_two(setup.budget) as usize);
        if !in_memory {
            config.storage_backend(StorageBackend::StdDirect);
        }
        config
            .leaf_page_size(wanted)
            .cb_max_key_len(setup.key_bytes)
            .cb_max_record_size(record_bytes.max(64))
            // At most 4096 records may fit a page by this lower bound.
            .cb_min_record_size((wanted / 4096).max(2));
        let tree = BfTree::with_config(config, None).map_err(|e| format!("{e:?}"))?;
        Ok(Self { tree, record_bytes })
    }

    fn session(&self) -> Outcome<BfSession<'_>> {
        Ok(BfSession {
            tree: &self.tree,
            buffer: vec![0; self.record_bytes.max(64)],
        })
    }

    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

impl Session for BfSession<'_> {
    #[inline]
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        match self.tree.insert(key, value) {
            LeafInsertResult::Success => Ok(()),
            LeafInsertResult::InvalidKV(why) => Err(why.into()),
        }
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        match self.tree.read(key, &mut self.buffer) {
            LeafReadResult::Found(len) => Ok(Some(see(&self.buffer[..len as usize]))),
            LeafReadResult::Deleted | LeafReadResult::NotFound => Ok(None),
            LeafReadResult::InvalidKey => Err("invalid key".into()),
        }
    }

    fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        self.tree.delete(key);
        Ok(())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<usize> {
        let scan = self
            .tree
            .scan_with_count(from, count, ScanReturnField::KeyAndValue);
        let mut scan = scan.map_err(|_| "scan refused")?;
        let mut seen = 0;
        while let Some((key_bytes, value_bytes)) = scan.next(&mut self.buffer) {
            let (key, value) = self.buffer[..key_bytes + value_bytes].split_at(key_bytes);
            see(key, value);
            seen += 1;
        }
        Ok(seen)
    }
}
