//! Images of snapshots for which memory has no room.

use super::*;
use crate::{
    framework::spill::RunLock,
    versions::Disk,
    y::{lsm::Scratch, pool::PageCache},
};

/// A range of several chunks is about to be removed by who can wait for nothing.
#[test]
fn i10_a_range_that_memory_has_no_room_for_is_kept_on_disk() {
    Rig::each(|rig, tree, _| {
        let versions = &rig.shared.versions;
        let storage: Arc<dyn Storage> = Arc::new(rig.sim.clone());
        versions.set_disk(Disk::new(u64::MAX, move || {
            let pool = PageCache::new(1 << 20).pool(4096);
            Arc::new(Scratch::new(storage.clone(), "/images".into(), pool))
        }));
        for n in 0..4000u32 {
            put(tree, &n.to_be_bytes(), &[7; 100]);
        }
        let snapshot = versions.begin();
        tree.keep_range(&[], None, versions.watch(), |_| false, RunLock::Held);
        assert!(!snapshot.is_expired());
        let (memory, disk) = versions.bytes();
        assert!(memory < 100 << 10 && disk > 50 << 10, "{memory}, {disk}");
        versions.end(&snapshot);
    });
}
