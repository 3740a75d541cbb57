//! A value on its way into a leaf: inline, or in a large block that is not published yet.

#![forbid(unsafe_code)]

use super::{
    entry::{Form, NewEntry},
    large::{LargeRef, OwnedLarge},
};
use crate::mem::Memory;

/// Makes the large block when it is needed, keeps it over restarts, and frees it if it is not
/// published.
pub(crate) struct PendingValue<'a> {
    memory: &'a Memory,
    value: &'a [u8],
    large: Option<OwnedLarge<'a>>,
}

impl<'a> PendingValue<'a> {
    #[inline]
    pub(crate) fn new(memory: &'a Memory, value: &'a [u8]) -> Self {
        Self {
            memory,
            value,
            large: None,
        }
    }

    /// The entry, with its large block if it needs one.
    #[inline]
    pub(crate) fn entry<'s>(&'s mut self, suffix: &'s [u8], flags: u32) -> NewEntry<'s> {
        let value = self.value;
        let large = match Form::of(suffix.len(), value.len()) {
            Form::Inline => {
                self.large = None;
                None
            }
            form => Some(self.block(suffix, form)),
        };
        NewEntry {
            suffix,
            value,
            large,
            flags,
        }
    }

    fn block(&mut self, suffix: &[u8], form: Form) -> LargeRef<'_> {
        let out = if form == Form::BothOut { suffix } else { &[] };
        // The end of a longer suffix part serves as well; a shorter one does not.
        let fits = |large: &OwnedLarge<'_>| large.get().suffix_len() >= out.len();
        let large = match self.large.take().filter(fits) {
            Some(large) => large,
            None => OwnedLarge::create(self.memory, out, self.value),
        };
        self.large.insert(large).get()
    }

    /// The entry is in a leaf: the block belongs to that. Returns the bytes that it takes.
    #[inline]
    pub(crate) fn publish(&mut self) -> usize {
        self.large.take().map_or(0, OwnedLarge::publish)
    }
}
