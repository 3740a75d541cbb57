//! Many point reads at once, their device reads overlapped.

#![forbid(unsafe_code)]

use super::{
    keys,
    read_pool::{ReadPool, Reads},
    snapshot::Snapshot,
};
use crate::{
    error::{Error, Result},
    key::Value,
};
use std::sync::{Arc, OnceLock};

struct Gets {
    snapshot: Arc<Snapshot>,
    /// Distinct stored keys in order: neighbours share blocks.
    keys: Vec<Vec<u8>>,
    values: Vec<OnceLock<Result<Option<Value>>>>,
}

impl Reads for Gets {
    fn len(&self) -> usize {
        self.keys.len()
    }

    fn read(&self, i: usize) {
        if let (Some(key), Some(slot)) = (self.keys.get(i), self.values.get(i)) {
            // Every read has a slot of its own, so it is empty.
            let _ = slot.set(self.snapshot.get(key));
        }
    }
}

/// Values of `keys` in the order asked. All are read from one snapshot.
pub(super) fn multi_get(
    pool: &ReadPool,
    snapshot: Arc<Snapshot>,
    keys: &[&[u8]],
) -> Result<Vec<Option<Value>>> {
    if let [key] = keys {
        return Ok(vec![snapshot.get_original(key)?]);
    }
    let mut sorted: Vec<Vec<u8>> = keys.iter().map(|k| keys::stored(k).into_owned()).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let gets = Arc::new(Gets {
        snapshot,
        values: sorted.iter().map(|_| OnceLock::new()).collect(),
        keys: sorted,
    });
    pool.run(Arc::clone(&gets) as Arc<dyn Reads>);
    keys.iter()
        .map(|key| gets.value_of(&keys::stored(key)))
        .collect()
}

impl Gets {
    fn value_of(&self, stored: &[u8]) -> Result<Option<Value>> {
        let found = self.keys.binary_search_by(|k| k.as_slice().cmp(stored));
        let slot = found.ok().and_then(|i| self.values.get(i)?.get());
        slot.cloned().unwrap_or_else(|| {
            Err(Error::Unsupported {
                what: "a read that was never made".into(),
            })
        })
    }
}
