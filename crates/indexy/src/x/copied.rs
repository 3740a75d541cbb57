//! Dirty entries that were copied under a leaf's latch, on their way to the sink.

#![forbid(unsafe_code)]

use super::{CleanSink, StopWalk};
use std::ops::ControlFlow;

/// Values copied in one step: the rest of a leaf with large values is taken in further steps.
pub(crate) const COPIED_BYTES: usize = 256 << 10;

/// Entries on their way to the sink.
#[derive(Default)]
pub(crate) struct Copied {
    bytes: Vec<u8>,
    /// End of the key and of the value in `bytes`; whether it is a tombstone.
    entries: Vec<(usize, usize, bool)>,
}

impl Copied {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(2 * COPIED_BYTES);
        self.entries.clear();
    }

    /// Adds an entry: `key` and `value` append their bytes; without a `value` it is a tombstone.
    pub(crate) fn push(
        &mut self,
        key: impl FnOnce(&mut Vec<u8>),
        value: Option<impl FnOnce(&mut Vec<u8>)>,
    ) {
        key(&mut self.bytes);
        let key_end = self.bytes.len();
        let tombstone = value.is_none();
        if let Some(value) = value {
            value(&mut self.bytes);
        }
        self.entries.push((key_end, self.bytes.len(), tombstone));
    }

    pub(crate) fn drain(&self, sink: &mut CleanSink<'_>) -> ControlFlow<StopWalk> {
        let mut start = 0;
        for &(key_end, end, tombstone) in &self.entries {
            let value = (!tombstone).then(|| &self.bytes[key_end..end]);
            sink(&self.bytes[start..key_end], value)?;
            start = end;
        }
        ControlFlow::Continue(())
    }
}
