//! Dirty entries that were copied under a leaf's latch, on their way to the sink.

#![forbid(unsafe_code)]

use super::{CleanSink, StopWalk};
use std::ops::ControlFlow;

/// Values copied in one step: the rest of a leaf with large values is taken in further steps.
pub(crate) const COPIED_BYTES: usize = 256 << 10;

struct Entry {
    /// End of the key and of the value in the bytes of all.
    key_end: usize,
    end: usize,
    tombstone: bool,
    /// Y may have held the key before.
    in_y: bool,
}

/// Entries on their way to the sink.
#[derive(Default)]
pub(crate) struct Copied {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

impl Copied {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(2 * COPIED_BYTES);
        self.entries.clear();
    }

    /// Adds an entry: `key` and `value` append their bytes; without a `value` it is a tombstone.
    /// `in_y`: Y may have held the key before.
    pub(crate) fn push(
        &mut self,
        key: impl FnOnce(&mut Vec<u8>),
        value: Option<impl FnOnce(&mut Vec<u8>)>,
        in_y: bool,
    ) {
        key(&mut self.bytes);
        let key_end = self.bytes.len();
        let tombstone = value.is_none();
        if let Some(value) = value {
            value(&mut self.bytes);
        }
        self.entries.push(Entry {
            key_end,
            end: self.bytes.len(),
            tombstone,
            in_y,
        });
    }

    pub(crate) fn drain(&self, sink: &mut CleanSink<'_>) -> ControlFlow<StopWalk> {
        let mut start = 0;
        for entry in &self.entries {
            let (key_end, end) = (entry.key_end, entry.end);
            let value = (!entry.tombstone).then(|| &self.bytes[key_end..end]);
            sink(&self.bytes[start..key_end], value, entry.in_y)?;
            start = end;
        }
        ControlFlow::Continue(())
    }
}
