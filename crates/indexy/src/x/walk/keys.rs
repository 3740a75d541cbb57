//! Live keys with their reference bits, without their values.
//!
//! Threads: any; no latch is taken. Each leaf is read from a validated copy, as it was at one
//! moment, and is told of when no guard is held.

#![forbid(unsafe_code)]

use super::step::Step;
use crate::x::{
    KeySeen, StopWalk,
    bounds::first,
    leaf::{Bit, LeafBuffer, LeafSeen, mask, ones},
    tree::{Descend, Spot, Tree},
};
use std::ops::ControlFlow;

/// The keys of one leaf.
#[derive(Default)]
struct Leaf {
    bytes: Vec<u8>,
    keys: Vec<Noted>,
}

struct Noted {
    /// In `Leaf::bytes`.
    end: usize,
    value_bytes: usize,
    referenced: bool,
}

impl<S: Descend> Tree<S> {
    /// See [`IndexX::keys`](crate::x::IndexX::keys).
    pub(super) fn visit_keys(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        longest: usize,
        visit: &mut dyn FnMut(KeySeen<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk> {
        let mut noted = Leaf::default();
        let mut buffer = LeafBuffer::new();
        let mut at = first(from, to);
        while let Some(key) = at {
            noted.bytes.clear();
            noted.keys.clear();
            let (bounds, ()) = self.step(&key, |step| match step.spot()? {
                Spot::Leaf(leaf) => noted.fill(step, leaf, to, longest, &mut buffer),
                Spot::Empty(_) => Some(()),
            });
            noted.tell(visit)?;
            at = bounds.next(to);
        }
        ControlFlow::Continue(())
    }
}

impl Leaf {
    /// Notes the keys of `leaf` up to `to`. `None`: it changed, and nothing was noted.
    fn fill<S: Descend>(
        &mut self,
        step: &Step<'_, '_, S>,
        leaf: LeafSeen<'_>,
        to: Option<&[u8]>,
        longest: usize,
        buffer: &mut LeafBuffer,
    ) -> Option<()> {
        let copy = leaf.copy(buffer)?;
        let live = mask(step.entries(copy, to)) & !copy.bits(Bit::Tombstone);
        let path = &step.key[..copy.raw().depth()];
        for i in ones(live) {
            let entry = copy.entry(i);
            if path.len() + entry.suffix_len > longest {
                continue;
            }
            self.bytes.extend_from_slice(path);
            copy.push_suffix(&entry, &mut self.bytes);
            self.keys.push(Noted {
                end: self.bytes.len(),
                value_bytes: entry.value_len,
                referenced: copy.has(i, Bit::Referenced),
            });
        }
        Some(())
    }

    fn tell(
        &self,
        visit: &mut dyn FnMut(KeySeen<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk> {
        let mut start = 0;
        for noted in &self.keys {
            visit(KeySeen {
                key: &self.bytes[start..noted.end],
                value_bytes: noted.value_bytes,
                referenced: noted.referenced,
            })?;
            start = noted.end;
        }
        ControlFlow::Continue(())
    }
}
