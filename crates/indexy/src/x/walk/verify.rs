//! Checking a tree: every range in key order, every leaf inside, and all counts.
//!
//! The walk over ranges runs beside readers and writers, because each leaf is checked on a
//! validated copy. Inner nodes, contiguity and counts are checked only when nobody else is there.

#![forbid(unsafe_code)]

use crate::x::{
    bounds::Bounds,
    leaf::{LeafBuffer, StableLeaf},
    tree::{Kind, Spot, Tree},
};

impl<S: Kind> Tree<S> {
    /// See [`IndexX::verify`](crate::x::IndexX::verify).
    pub(super) fn check(&self, quiescent: bool) -> Result<(), String> {
        if quiescent {
            // What is detached counts.
            self.take_detached_apart(usize::MAX);
        }
        let mut buffer = LeafBuffer::new();
        let mut at = Some(Vec::new());
        while let Some(key) = at {
            let (bounds, checked) = self.step(&key, |step| match step.spot()? {
                Spot::Leaf(leaf) => {
                    let copy = leaf.copy(&mut buffer)?;
                    let path = &step.key[..copy.raw().depth()];
                    Some(
                        copy.check()
                            .and_then(|()| check_range(copy, path, &step.bounds)),
                    )
                }
                Spot::Empty(_) => Some(Ok(())),
            });
            checked.map_err(|what| format!("range at {}: {what}", key.escape_ascii()))?;
            if quiescent && bounds.start != key {
                return Err(format!(
                    "the range at {} starts at {}",
                    key.escape_ascii(),
                    bounds.start.escape_ascii()
                ));
            }
            if bounds.end.as_ref().is_some_and(|end| *end <= key) {
                return Err(format!("the range at {} has no keys", key.escape_ascii()));
            }
            at = bounds.end;
        }
        if quiescent {
            let (counted, walked) = (self.counters.sum(), S::tally(self)?);
            if counted != walked {
                return Err(format!("counted {counted:?}, found {walked:?}"));
            }
        }
        Ok(())
    }
}

/// The keys of a leaf, which start with `path`, are inside its range.
fn check_range(leaf: StableLeaf<'_>, path: &[u8], bounds: &Bounds) -> Result<(), String> {
    for i in [0, leaf.len().wrapping_sub(1)] {
        if i >= leaf.len() {
            continue;
        }
        let mut key = path.to_vec();
        leaf.push_suffix(&leaf.entry(i), &mut key);
        if key < bounds.start || bounds.end.as_ref().is_some_and(|end| key >= *end) {
            return Err(format!(
                "the key {} is outside the range",
                key.escape_ascii()
            ));
        }
    }
    Ok(())
}
