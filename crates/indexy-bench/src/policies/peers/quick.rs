//! The crate `quick_cache` (a variant of Clock-PRO and S3-FIFO) on one thread, with a fixed hash:
//! it draws nothing at random and reads no clock.

use crate::policies::{Access, Cache};
use quick_cache::{
    UnitWeighter,
    unsync::{self, DefaultLifecycle},
};
use std::hash::{BuildHasherDefault, DefaultHasher};

type Hash = BuildHasherDefault<DefaultHasher>;

/// See the module header.
pub(in crate::policies) struct QuickCache(unsync::Cache<u32, (), UnitWeighter, Hash>);

impl QuickCache {
    pub(in crate::policies) fn new(room: usize) -> Self {
        let (weight, lifecycle) = (room as u64, DefaultLifecycle::default());
        let hash = Hash::default();
        Self(unsync::Cache::with(
            room,
            weight,
            UnitWeighter,
            hash,
            lifecycle,
        ))
    }
}

impl Cache for QuickCache {
    fn access(&mut self, key: u32, _: Access) -> bool {
        let hit = self.0.get(&key).is_some();
        if !hit {
            self.0.insert(key, ());
        }
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::super::hits;
    use super::*;

    #[test]
    fn what_fits_stays_and_two_of_them_do_the_same() {
        let keys: Vec<u32> = (0..50).chain(0..50).chain(0..5000).chain(0..50).collect();
        let [first, second] = [100, 100].map(|room| hits(&mut QuickCache::new(room), &keys));
        assert_eq!(first, second);
        assert_eq!(&first[50..100], "+".repeat(50));
    }
}
