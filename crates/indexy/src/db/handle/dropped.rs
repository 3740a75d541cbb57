//! Dropped trees to which a writer may still write.
//!
//! `drop_tree` waits for writers no longer than a moment, and then empties the tree's memory. A
//! writer that looked at the tree before may be later still, because it waits or was not given the
//! processor: it leaves entries in Index X, or images, of a tree that is in no list, so that
//! nothing would release them. It holds a stripe from before its look until it is done (I8). So the
//! stripes that were held are remembered, and the tree is emptied again until all of them were free
//! once.
//!
//! Threads: any; the releaser looks at each of its steps. Nothing is waited for.

#![forbid(unsafe_code)]

use super::stripes::{Stripes, Unpassed};
use crate::framework::tree::Joined;
use parking_lot::Mutex;
use std::sync::Arc;

/// See the module header.
#[derive(Default)]
pub(crate) struct DroppedTrees(Mutex<Vec<(Arc<Joined>, Unpassed)>>);

impl DroppedTrees {
    /// `tree` was dropped and emptied, and there may be writers with the stripes `unpassed` that
    /// do not know that.
    pub(crate) fn watch(&self, tree: Arc<Joined>, unpassed: Unpassed) {
        if !unpassed.is_empty() {
            self.0.lock().push((tree, unpassed));
        }
    }

    /// Empties again what late writers may have written to. True if there was any such tree. Cost
    /// where there is none: a short lock.
    pub(crate) fn empty(&self, stripes: &Stripes) -> bool {
        let mut trees = self.0.lock();
        let any = !trees.is_empty();
        trees.retain_mut(|(tree, unpassed)| {
            // The stripes first: who has let go of one by now has left what goes here.
            stripes.pass(unpassed);
            let emptied = tree.try_discard();
            !(emptied && unpassed.is_empty())
        });
        any
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        db::{database::Db, options::Options},
        mem::Memory,
        x::IndexX,
    };
    use std::time::{Duration, Instant};

    const PATIENCE: Duration = Duration::from_secs(10);
    const MIB: usize = 1 << 20;

    /// A writer has looked whether its tree lives, and writes when that was dropped and emptied.
    #[test]
    fn i7_what_a_late_writer_leaves_goes_when_he_does() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), Options::new(8 * MIB)).unwrap();
        let tree = db.tree("t").unwrap();
        tree.insert("k", "v").unwrap();
        let core = db.core();
        let late = core.all_trees().pop().unwrap();
        let live_bytes = |memory: &Memory| {
            memory.collect();
            memory.live_bytes()
        };
        let stripe = core.stripes.lock(late.entry.id, b"k");
        let snapshot = db.snapshot().unwrap();
        db.drop_tree("t").unwrap();
        let before = live_bytes(&core.memory);
        for n in 0..1000u32 {
            late.joined.apply(&n.to_be_bytes(), Some(&[7; 500]));
        }
        let old = late.joined.old(b"k").unwrap();
        late.joined.keep(b"k", core.shared.versions.watch(), &old);
        assert!(live_bytes(&core.memory) > before + 500_000);
        assert!(db.stats().snapshot_memory_bytes > 0);
        drop(stripe);
        let start = Instant::now();
        while late.joined.x.stats().keys > 0
            || db.stats().snapshot_memory_bytes > 0
            || live_bytes(&core.memory) > before + 10_000
        {
            assert!(start.elapsed() < PATIENCE, "it stays");
            std::thread::sleep(Duration::from_millis(5));
        }
        // The tree's handles and snapshots are still there.
        drop((tree, snapshot, late));
    }
}
