//! Buffers for reads past the page cache that are made together: few, of one size, lent and given
//! back.
//!
//! I7: their number is fixed by the memory that they may take. Who finds none left reads one block
//! after the other: then others keep the device busy. Threads: any; the lock is held for a push or
//! a pop.

#![forbid(unsafe_code)]

use crate::mem::aligned::AlignedBuffer;
use parking_lot::Mutex;
use std::ops::{Deref, DerefMut};

/// Room for some 34 blocks of the usual size. Two of these at work are as much as a device does in
/// parallel, and two are there from a budget of 48 MiB on: with one, of twice the size, the second
/// thread read one by one.
pub(crate) const BUFFER_BYTES: usize = 192 << 10;

/// See the module header.
#[derive(Default)]
pub(crate) struct ReadBuffers(Mutex<State>);

#[derive(Default)]
struct State {
    /// How many there may be.
    most: usize,
    made: usize,
    idle: Vec<AlignedBuffer>,
}

/// A buffer that is given back when dropped.
pub(crate) struct Lent<'a> {
    buffer: Option<AlignedBuffer>,
    owner: &'a ReadBuffers,
}

impl ReadBuffers {
    /// From now on they take `bytes` bytes at most. What is lent goes when it comes back.
    pub(crate) fn set_memory(&self, bytes: usize) {
        let mut state = self.0.lock();
        state.most = bytes / BUFFER_BYTES;
        state.drop_surplus();
    }

    /// What they take at most, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.lock().most * BUFFER_BYTES
    }

    /// A buffer of [`BUFFER_BYTES`], if one is left. Its content is anything.
    pub(crate) fn lend(&self) -> Option<Lent<'_>> {
        let mut state = self.0.lock();
        let buffer = match state.idle.pop() {
            Some(buffer) => buffer,
            None if state.made < state.most => {
                state.made += 1;
                AlignedBuffer::new(BUFFER_BYTES)
            }
            None => return None,
        };
        Some(Lent {
            buffer: Some(buffer),
            owner: self,
        })
    }
}

impl State {
    fn drop_surplus(&mut self) {
        while self.made > self.most && self.idle.pop().is_some() {
            self.made -= 1;
        }
    }
}

impl Deref for Lent<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.buffer.as_deref().unwrap_or_default()
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.buffer.as_deref_mut().unwrap_or_default()
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut state = self.owner.0.lock();
        state.idle.extend(self.buffer.take());
        state.drop_surplus();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_lent_than_there_may_be() {
        let buffers = ReadBuffers::default();
        assert!(buffers.lend().is_none());
        buffers.set_memory(2 * BUFFER_BYTES + 1);
        assert_eq!(buffers.bytes(), 2 * BUFFER_BYTES);
        let (mut one, two) = (buffers.lend().unwrap(), buffers.lend().unwrap());
        assert_eq!((one.len(), two.len()), (BUFFER_BYTES, BUFFER_BYTES));
        assert!(buffers.lend().is_none());
        one.fill(7);
        drop(one);
        assert_eq!(buffers.lend().unwrap()[0], 7, "the same again");
        buffers.set_memory(BUFFER_BYTES);
        // One is lent, and one may be.
        assert!(buffers.lend().is_none());
        drop(two);
        assert!(buffers.lend().is_some());
        assert_eq!(buffers.0.lock().made, 1);
    }
}
