//! masstree: a concurrent trie of B+ trees in memory, values as 64-bit numbers inside its leaves.
//!
//! Tuning: a session keeps its guard and renews it every [`OPERATIONS_PER_GUARD`] operations, as
//! its documentation advises for many operations in a row. The allocator is everybody's, not
//! mimalloc.

use indexy_bench::contender::{
    About, Contender, Durability, KeyShape, Outcome, PageCache, Session, Setup, Storage,
};
use indexy_bench::registry::Registry;
use masstree::{MassTree15Inline, RangeBound};
use seize::{Guard, LocalGuard};

const OPERATIONS_PER_GUARD: u32 = 64;

pub fn register(registry: &mut Registry) {
    registry.add::<Masstree>(About {
        name: "masstree",
        summary: "concurrent trie of B+ trees in memory, 8-byte keys and values",
        storage: Storage::Memory,
        page_cache: PageCache::Unused,
        keys: KeyShape::EightBytes,
        max_threads: usize::MAX,
        scans: true,
        reopens: false,
        pages: false,
        durabilities: &[Durability::None],
        variant: "",
    });
}

pub struct Masstree {
    tree: MassTree15Inline<u64>,
}

pub struct MasstreeSession<'a> {
    tree: &'a MassTree15Inline<u64>,
    guard: LocalGuard<'a>,
    operations: u32,
}

impl MasstreeSession<'_> {
    #[inline]
    fn guard(&mut self) -> &LocalGuard<'_> {
        self.operations += 1;
        if self.operations.is_multiple_of(OPERATIONS_PER_GUARD) {
            self.guard.refresh();
        }
        &self.guard
    }
}

impl Contender for Masstree {
    type Session<'a> = MasstreeSession<'a>;

    fn open(_: &Setup) -> Outcome<Self> {
        Ok(Self {
            tree: MassTree15Inline::new(),
        })
    }

    fn session(&self) -> Outcome<MasstreeSession<'_>> {
        Ok(MasstreeSession {
            tree: &self.tree,
            guard: self.tree.guard(),
            operations: 0,
        })
    }

    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

impl Session for MasstreeSession<'_> {
    #[inline]
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let (tree, value) = (self.tree, u64::from_ne_bytes(value.try_into()?));
        tree.insert_with_guard(key, value, self.guard());
        Ok(())
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        let tree = self.tree;
        let value = tree.get_with_guard(key, self.guard());
        Ok(value.map(|value| see(&value.to_ne_bytes())))
    }

    fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        let tree = self.tree;
        tree.remove_with_guard(key, self.guard())?;
        Ok(())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<usize> {
        let (tree, mut seen) = (self.tree, 0);
        if count == 0 {
            return Ok(0);
        }
        let each = |key: &[u8], value: u64| {
            see(key, &value.to_ne_bytes());
            seen += 1;
            seen < count
        };
        let from = RangeBound::Included(from);
        tree.scan_intra_leaf_batch(from, RangeBound::Unbounded, each, self.guard());
        Ok(seen)
    }
}
