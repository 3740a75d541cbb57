//! congee: a concurrent adaptive radix tree from 8-byte keys to 8-byte values, in memory.
//!
//! Tuning: its documentation calls pinning an epoch expensive and asks to reuse the guard, so a
//! session renews its guard every [`OPERATIONS_PER_PIN`] operations only.

use congee::{U64Congee, epoch::Guard};
use indexy_bench::contender::{
    About, Contender, Durability, KeyShape, Outcome, PageCache, Session, Setup, Storage,
};
use indexy_bench::registry::Registry;

const OPERATIONS_PER_PIN: u32 = 64;

pub fn register(registry: &mut Registry) {
    registry.add::<Congee>(About {
        name: "congee",
        summary: "concurrent adaptive radix tree in memory, 8-byte keys and values",
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

pub struct Congee {
    tree: U64Congee<usize>,
}

pub struct CongeeSession<'a> {
    tree: &'a U64Congee<usize>,
    guard: Guard,
    operations: u32,
    scanned: Vec<([u8; 8], usize)>,
}

impl CongeeSession<'_> {
    #[inline]
    fn guard(&mut self) -> &Guard {
        self.operations += 1;
        if self.operations.is_multiple_of(OPERATIONS_PER_PIN) {
            self.guard.repin();
        }
        &self.guard
    }
}

impl Contender for Congee {
    type Session<'a> = CongeeSession<'a>;

    fn open(_: &Setup) -> Outcome<Self> {
        Ok(Self {
            tree: U64Congee::new(),
        })
    }

    fn session(&self) -> Outcome<CongeeSession<'_>> {
        Ok(CongeeSession {
            tree: &self.tree,
            guard: congee::epoch::pin(),
            operations: 0,
            scanned: Vec::new(),
        })
    }

    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

#[inline]
fn number(bytes: &[u8]) -> Outcome<u64> {
    Ok(u64::from_be_bytes(bytes.try_into()?))
}

impl Session for CongeeSession<'_> {
    #[inline]
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let (key, value) = (number(key)?, usize::from_ne_bytes(value.try_into()?));
        let tree = self.tree;
        tree.insert(key, value, self.guard())
            .map_err(|_| "out of memory")?;
        Ok(())
    }

    #[inline]
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        let (key, tree) = (number(key)?, self.tree);
        Ok(tree
            .get(key, self.guard())
            .map(|value| see(&value.to_ne_bytes())))
    }

    fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        let (key, tree) = (number(key)?, self.tree);
        tree.remove(key, self.guard());
        Ok(())
    }

    fn scan(
        &mut self,
        from: &[u8],
        count: usize,
        mut see: impl FnMut(&[u8], &[u8]),
    ) -> Outcome<usize> {
        let (from, tree) = (number(from)?, self.tree);
        let mut scanned = std::mem::take(&mut self.scanned);
        scanned.resize(count, ([0; 8], 0));
        let seen = tree.range(from, u64::MAX, &mut scanned, self.guard());
        for (key, value) in &scanned[..seen] {
            see(key, &value.to_ne_bytes());
        }
        self.scanned = scanned;
        Ok(seen)
    }
}
