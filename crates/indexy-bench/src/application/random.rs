//! Random values: NURand of TPC-C and TATP, texts, digits.

use crate::workload::Rng;
use rand::Rng as _;

/// NURand(a, from, to) with constant `c`: numbers of `from..=to`, some much more often than others.
pub(crate) fn nurand(rng: &mut Rng, a: u32, c: u32, from: u32, to: u32) -> u32 {
    let mixed = rng.random_range(0..=a) | rng.random_range(from..=to);
    (mixed + c) % (to - from + 1) + from
}

/// True `percent` times of 100.
pub(crate) fn chance(rng: &mut Rng, percent: u32) -> bool {
    rng.random_range(0..100) < percent
}

/// A text of at most `N` bytes, without an allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<const N: usize> {
    pub(crate) bytes: [u8; N],
    pub(crate) len: usize,
}

impl<const N: usize> Text<N> {
    pub(crate) fn new() -> Self {
        Self {
            bytes: [0; N],
            len: 0,
        }
    }

    /// Adds as much of `more` as there is room for.
    pub(crate) fn push(&mut self, more: &[u8]) {
        let taken = more.len().min(N - self.len);
        self.bytes[self.len..self.len + taken].copy_from_slice(&more[..taken]);
        self.len += taken;
    }

    /// Letters and digits, `from..=N` of them.
    pub(crate) fn random(rng: &mut Rng, from: usize) -> Self {
        let len = rng.random_range(from..=N);
        Self {
            bytes: alphanumeric(rng),
            len,
        }
    }
}

impl<const N: usize> std::ops::Deref for Text<N> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// `N` letters and digits.
pub(crate) fn alphanumeric<const N: usize>(rng: &mut Rng) -> [u8; N] {
    const SIGNS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz01";
    let mut text = [0; N];
    for bytes in text.chunks_mut(8) {
        // Six bits of one draw for each.
        let mut draw = rng.random::<u64>();
        for byte in bytes {
            *byte = SIGNS[(draw % 64) as usize];
            draw >>= 6;
        }
    }
    text
}

/// `N` digits.
pub(crate) fn digits<const N: usize>(rng: &mut Rng) -> [u8; N] {
    std::array::from_fn(|_| rng.random_range(b'0'..=b'9'))
}
