//! Scans, leaf by leaf. Source: DEX section 7: leaves have no links, a fence leads to the next.

use super::{Tree, attempt::Job};
use crate::{error::Result, node, remote::RemoteMemory};

/// Most leaves that are read in one batch.
const MAX_BATCH: usize = 16;

impl<M: RemoteMemory> Tree<M> {
    /// Appends up to `most` entries with keys from `from` to `to` (included) to `found`, in
    /// order. Returns the key to go on from; `None`: there is nothing more up to `to`.
    ///
    /// The scan stops at the end of the range that is owned: its next key is then another
    /// owner's. Each leaf is read as one state, at some time during the call.
    ///
    /// Cost: none for cached leaves; leaves in the pool alone are read up to 16 at a time.
    pub fn scan(
        &self,
        from: u64,
        to: u64,
        most: usize,
        found: &mut Vec<(u64, u64)>,
    ) -> Result<Option<u64>> {
        let own = self.gate_read();
        own.check(from)?;
        let end = own.range_of(from).map_or(from, |range| range.1.min(to));
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
                for (key, value) in node::entries(leaf, next) {
                    if key > end {
                        break;
                    }
                    if found.len() >= enough {
                        return Ok(Some(key));
                    }
                    found.push((key, value));
                }
                match node::high(leaf).checked_add(1) {
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
}
