//! The one place that chooses between the kinds of Index X: everything above is written once.

#![forbid(unsafe_code)]

use super::{
    Before, Chunk, CleanSink, Cut, IndexX, KeySeen, LeafInfo, Load, Lookup, Order, Put, RunId,
    ScanLimits, Stamp, StopWalk, Value, Waiting, XStats,
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

/// Methods that call the same method of the kind.
macro_rules! forward {
    ($(
        fn $name:ident $(<$generic:ident>)? (&self $(, $arg:ident: $of:ty)* $(,)?) $(-> $to:ty)?;
    )*) => {
        $(
            #[inline]
            fn $name $(<$generic>)? (&self $(, $arg: $of)*) $(-> $to)? {
                match self {
                    AnyX::Art(x) => x.$name($($arg),*),
                    AnyX::BPlus(x) => x.$name($($arg),*),
                    #[cfg(test)]
                    AnyX::Model(x) => x.$name($($arg),*),
                }
            }
        )*
    };
}

impl IndexX for AnyX {
    forward! {
        fn get<R>(&self, key: &[u8], found: impl FnOnce(&[u8]) -> R) -> Lookup<R>;
        fn put_over<E>(
            &self,
            key: &[u8],
            value: Option<&[u8]>,
            commit: impl FnOnce(&dyn Before) -> Result<(), E>,
        ) -> Result<Put, E>;
        fn load(&self, key: &[u8], value: &[u8], stamp: Stamp) -> Load;
        fn put_operand<E>(
            &self,
            key: &[u8],
            operand: &[u8],
            over: Option<&[u8]>,
            commit: impl FnOnce() -> Result<(), E>,
        ) -> Result<bool, E>;
        fn operand(&self, key: &[u8]) -> Option<(Value, Stamp)>;
        fn resolve<E>(
            &self,
            key: &[u8],
            operand: &[u8],
            stamp: Stamp,
            value: Option<&[u8]>,
            commit: impl FnOnce() -> Result<(), E>,
        ) -> Result<bool, E>;
        fn operands(
            &self,
            from: &[u8],
            to: Option<&[u8]>,
            enough: usize,
            out: &mut Vec<Waiting>,
        ) -> Option<Vec<u8>>;
        fn evict(&self, key: &[u8]);
        fn scan(
            &self,
            from: &[u8],
            to: Option<&[u8]>,
            order: Order,
            limits: ScanLimits,
            out: &mut Chunk,
        );
        fn count(&self, from: &[u8], to: Option<&[u8]>) -> (usize, Option<Vec<u8>>);
        fn clean(
            &self,
            from: &[u8],
            to: Option<&[u8]>,
            run: RunId,
            sink: &mut CleanSink<'_>,
        ) -> ControlFlow<StopWalk>;
        fn redirty(&self, from: &[u8], to: Option<&[u8]>, run: RunId);
        fn settle(&self, from: &[u8], to: Option<&[u8]>, acked: RunId);
        fn cut(
            &self,
            from: &[u8],
            to: Option<&[u8]>,
            acked: RunId,
            spare_referenced: bool,
            enough_bytes: usize,
        ) -> Cut;
        fn clear_mounts(&self, from: &[u8], to: Option<&[u8]>);
        fn clear(&self);
        fn take_apart(&self, enough_bytes: usize) -> usize;
        fn mount(&self, from: &[u8], to: Option<&[u8]>);
        fn restamp(&self, from: &[u8], to: Option<&[u8]>);
        fn leaves(
            &self,
            from: &[u8],
            to: Option<&[u8]>,
            visit: &mut dyn FnMut(LeafInfo<'_>) -> ControlFlow<StopWalk>,
        ) -> ControlFlow<StopWalk>;
        fn keys(
            &self,
            from: &[u8],
            to: Option<&[u8]>,
            longest: usize,
            visit: &mut dyn FnMut(KeySeen<'_>) -> ControlFlow<StopWalk>,
        ) -> ControlFlow<StopWalk>;
        fn relocate(&self);
        fn track_references(&self, on: bool);
        fn stats(&self) -> XStats;
        fn verify(&self, quiescent: bool) -> Result<(), String>;
    }
}
