//! What every kind of tree does the same way: go to a range, then look at what is there or change
//! it.
//!
//! Each file implements a part of [`IndexX`] over a tree's [structure](super::tree) and the
//! [leaves](super::leaf).
//!
//! Threads: any. Readers take no latch: they read versions, then words, and validate. Writers
//! latch a leaf, or a leaf and its parent, and wait for no latch while they hold one. Blocks that
//! were replaced are retired under the guard of `mem/`.
//!
//! | file | what |
//! |---|---|
//! | `step` | from range to range |
//! | `get`, `put` | reads, writes and loads of single keys |
//! | `operand` | what waits to be merged with what Y has |
//! | `scan`, `count`, `keys` | chunks of a scan; counts of entries; keys alone |
//! | `clean` | copies of dirty entries for Y's runs |
//! | `cut`, `clear` | dropping what Y has; dropping all |
//! | `verify` | checks |

#![forbid(unsafe_code)]

mod clean;
mod clear;
mod count;
mod cut;
mod get;
mod keys;
mod operand;
mod put;
mod scan;
mod step;
#[cfg(test)]
mod tests;
mod verify;

pub(crate) use step::Step;

use super::{
    Before, Chunk, CleanSink, Cut, IndexX, KeySeen, LeafInfo, Load, Lookup, Order, Put, RunId,
    ScanLimits, Stamp, StopWalk, Waiting, XStats,
    tree::{Kind, Tree},
};
use crate::key::Value;
use std::ops::ControlFlow;

impl<S: Kind> IndexX for Tree<S> {
    #[inline]
    fn get<R>(&self, key: &[u8], found: impl FnOnce(&[u8]) -> R) -> Lookup<R> {
        self.search(key, found)
    }

    #[inline]
    fn put_over<E>(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        commit: impl FnOnce(&dyn Before) -> Result<(), E>,
    ) -> Result<Put, E> {
        self.write(key, value, commit)
    }

    fn load(&self, key: &[u8], value: &[u8], stamp: Stamp) -> Load {
        self.install(key, value, stamp)
    }

    fn put_operand<E>(
        &self,
        key: &[u8],
        operand: &[u8],
        over: Option<&[u8]>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        self.put_waiting(key, operand, over, commit)
    }

    fn operand(&self, key: &[u8]) -> Option<(Value, Stamp)> {
        self.waiting_at(key)
    }

    fn resolve<E>(
        &self,
        key: &[u8],
        operand: &[u8],
        stamp: Stamp,
        value: Option<&[u8]>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        self.settle_waiting(key, operand, stamp, value, commit)
    }

    fn operands(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        enough: usize,
        out: &mut Vec<Waiting>,
    ) -> Option<Vec<u8>> {
        self.collect_waiting(from, to, enough, out)
    }

    fn evict(&self, key: &[u8]) {
        self.evict_key(key);
    }

    fn scan(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        limits: ScanLimits,
        out: &mut Chunk,
    ) {
        self.collect(from, to, order, limits, out);
    }

    fn count(&self, from: &[u8], to: Option<&[u8]>) -> (usize, Option<Vec<u8>>) {
        self.count_live(from, to)
    }

    fn clean(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        run: RunId,
        sink: &mut CleanSink<'_>,
    ) -> ControlFlow<StopWalk> {
        self.copy_dirty(from, to, run, sink)
    }

    fn redirty(&self, from: &[u8], to: Option<&[u8]>, run: RunId) {
        self.mark_dirty(from, to, run);
    }

    fn settle(&self, from: &[u8], to: Option<&[u8]>, acked: RunId) {
        self.purge_tombstones(from, to, acked);
    }

    fn cut(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        acked: RunId,
        spare_referenced: bool,
        enough_bytes: usize,
    ) -> Cut {
        self.cut_range(from, to, acked, spare_referenced, enough_bytes)
    }

    fn clear(&self) {
        self.drop_all();
    }

    fn take_apart(&self, enough_bytes: usize) -> usize {
        self.take_detached_apart(enough_bytes)
    }

    fn mount(&self, from: &[u8], to: Option<&[u8]>) {
        self.mount_all(from, to);
    }

    fn restamp(&self, from: &[u8], to: Option<&[u8]>) {
        self.stamp_mounts(from, to);
    }

    fn clear_mounts(&self, from: &[u8], to: Option<&[u8]>) {
        self.complete(from, to);
    }

    fn leaves(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut dyn FnMut(LeafInfo<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk> {
        S::visit_leaves(self, from, to, visit)
    }

    fn keys(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        longest: usize,
        visit: &mut dyn FnMut(KeySeen<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk> {
        self.visit_keys(from, to, longest, visit)
    }

    fn relocate(&self) {
        S::leave_emptying_slabs(self);
    }

    fn track_references(&self, on: bool) {
        self.set_tracks_references(on);
    }

    fn stats(&self) -> XStats {
        self.counters.sum()
    }

    fn verify(&self, quiescent: bool) -> Result<(), String> {
        self.check(quiescent)
    }
}
