//! Scans, leaf by leaf. Source: DEX section 7: leaves have no links, a fence leads to the next.

use super::{Tree, attempt::Job};
use crate::{
    error::Result,
    node::{self, TreeKey},
    remote::RemoteMemory,
};

/// Most leaves that are read in one batch.
const MAX_BATCH: usize = 16;

impl<M: RemoteMemory, K: TreeKey> Tree<M, K> {
    /// Appends up to `most` entries with keys from `from` to `to` (included) to `found`, in
    /// order. Returns the key to go on from; `None`: there is nothing more up to `to`.
    ///
    /// The scan stops at the end of the range that is owned: its next key is then another
    /// owner's. Each leaf is read as one state, at some time during the call.
    ///
    /// Cost: none for cached leaves; leaves in the pool alone are read up to 16 at a time.
    pub fn scan(
        &self,
        from: K,
        to: K,
        most: usize,
        found: &mut Vec<(K, K::Value)>,
    ) -> Result<Option<K>> {
        let own = self.gate_read();
        own.check(from.prefix())?;
        let range = own.range_of(from.prefix());
        let end = range.map_or(from, |range| K::highest(range.1).min(to));
        let enough = found.len().saturating_add(most);
        let mut leaves = Vec::new();
        let mut next = from;
        while next <= to {
            if next > end || found.len() >= enough {
                return Ok(Some(next));
            }
            let wanted = (enough - found.len()).div_ceil(node::CAPACITY / 2);
            let mut job = Job::Copy {
                leaves: &mut leaves,
                most: wanted.clamp(1, MAX_BATCH),
            };
            self.run(&own, next, &mut job)?;
            for leaf in &leaves {
                for (key, value) in K::entries(leaf, next) {
                    if key > end {
                        break;
                    }
                    if found.len() >= enough {
                        return Ok(Some(key));
                    }
                    found.push((key, value));
                }
                match K::high(leaf).after() {
                    Some(after) => next = after,
                    None => return Ok(None),
                }
                if next > end {
                    break;
                }
            }
        }
        Ok(None)
    }

    /// Appends up to `most` entries with keys from `to` down to `from` (included) to `found`, in
    /// descending order. Returns the key to go on from, downwards; `None`: there is nothing more
    /// down to `from`.
    ///
    /// As [`Tree::scan`] otherwise. Cost: leaves in the pool alone are read one at a time.
    pub fn scan_back(
        &self,
        from: K,
        to: K,
        most: usize,
        found: &mut Vec<(K, K::Value)>,
    ) -> Result<Option<K>> {
        let own = self.gate_read();
        own.check(to.prefix())?;
        let range = own.range_of(to.prefix());
        let start = range.map_or(to, |range| K::lowest(range.0).max(from));
        let enough = found.len().saturating_add(most);
        let mut leaves = Vec::new();
        let mut next = to;
        while next >= from {
            if next < start || found.len() >= enough {
                return Ok(Some(next));
            }
            let mut job = Job::Copy {
                leaves: &mut leaves,
                most: 1,
            };
            self.run(&own, next, &mut job)?;
            let Some(leaf) = leaves.first() else {
                continue;
            };
            let inside: Vec<_> = K::entries(leaf, start)
                .take_while(|entry| entry.0 <= next)
                .collect();
            for entry in inside.into_iter().rev() {
                if found.len() >= enough {
                    return Ok(Some(entry.0));
                }
                found.push(entry);
            }
            match K::low(leaf).before() {
                Some(before) => next = before,
                None => return Ok(None),
            }
        }
        Ok(None)
    }
}
