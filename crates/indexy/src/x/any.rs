//! The one place that chooses between the kinds of Index X: everything above is written once.

#![forbid(unsafe_code)]

use super::{
    Chunk, Cut, IndexX, LeafInfo, Load, Lookup, Order, Put, RunId, ScanLimits, Stamp, StopWalk,
    XStats,
};
use super::{art::Art, bptree::BPlus};
use std::ops::ControlFlow;

/// An Index X of any kind. The branch costs a predicted jump.
#[cfg_attr(
    test,
    allow(clippy::large_enum_variant, reason = "the reference is for tests")
)]
pub(crate) enum AnyX {
    Art(Art),
    BPlus(BPlus),
    /// The reference, for tests of the framework.
    #[cfg(test)]
    Model(super::model::ModelX),
}

macro_rules! each {
    ($self:ident, $x:ident => $call:expr) => {
        match $self {
            AnyX::Art($x) => $call,
            AnyX::BPlus($x) => $call,
            #[cfg(test)]
            AnyX::Model($x) => $call,
        }
    };
}

impl IndexX for AnyX {
    #[inline]
    fn get<R>(&self, key: &[u8], found: impl FnOnce(&[u8]) -> R) -> Lookup<R> {
        each!(self, x => x.get(key, found))
    }

    #[inline]
    fn put<E>(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<Put, E> {
        each!(self, x => x.put(key, value, commit))
    }

    fn load(&self, key: &[u8], value: &[u8], stamp: Stamp) -> Load {
        each!(self, x => x.load(key, value, stamp))
    }

    fn evict(&self, key: &[u8]) {
        each!(self, x => x.evict(key))
    }

    fn scan(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        limits: ScanLimits,
        out: &mut Chunk,
    ) {
        each!(self, x => x.scan(from, to, order, limits, out))
    }

    fn clean(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        run: RunId,
        sink: &mut crate::x::CleanSink<'_>,
    ) -> ControlFlow<StopWalk> {
        each!(self, x => x.clean(from, to, run, sink))
    }

    fn redirty(&self, from: &[u8], to: Option<&[u8]>, run: RunId) {
        each!(self, x => x.redirty(from, to, run))
    }

    fn settle(&self, from: &[u8], to: Option<&[u8]>, acked: RunId) {
        each!(self, x => x.settle(from, to, acked))
    }

    fn cut(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        acked: RunId,
        spare_referenced: bool,
        enough_bytes: usize,
    ) -> Cut {
        each!(self, x => x.cut(from, to, acked, spare_referenced, enough_bytes))
    }

    fn clear_mounts(&self, from: &[u8], to: Option<&[u8]>) {
        each!(self, x => x.clear_mounts(from, to))
    }

    fn leaves(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut dyn FnMut(LeafInfo<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk> {
        each!(self, x => x.leaves(from, to, visit))
    }

    fn relocate(&self) {
        each!(self, x => x.relocate())
    }

    fn track_references(&self, on: bool) {
        each!(self, x => x.track_references(on))
    }

    fn stats(&self) -> XStats {
        each!(self, x => x.stats())
    }

    fn verify(&self, quiescent: bool) -> Result<(), String> {
        each!(self, x => x.verify(quiescent))
    }
}
