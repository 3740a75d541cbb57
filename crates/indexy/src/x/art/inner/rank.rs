//! How many separators are at most a byte: what selects a child in Node4, Node16 and Node48.
//!
//! A mask of comparisons is searched for its first zero, not counted: x86-64 has an instruction for
//! that in every processor, and none for a count. Unused separators are 0xFF, so that counting all
//! of them is off only for byte 255, where the caller's clamp to the last child is right.

use super::{
    super::symbol::Symbol,
    layout::{InnerRef, Kind, Shape},
};

impl InnerRef<'_> {
    /// The index of the child that covers `symbol`.
    #[inline]
    pub(super) fn index_of(self, shape: Shape, symbol: Symbol) -> usize {
        if shape.kind == Kind::Node256 {
            return symbol as usize;
        }
        let Some(byte) = symbol.checked_sub(1) else {
            return 0;
        };
        rank(self, shape, byte as u8).min(shape.children.saturating_sub(1))
    }
}

/// The number of separators (unused ones included) that are at most `byte`. They ascend: it is how
/// many come before the first that is above.
#[inline]
fn rank(node: InnerRef<'_>, shape: Shape, byte: u8) -> usize {
    let at = shape.separators();
    match shape.kind {
        Kind::Node4 => rank_8(node.cell(at), byte),
        Kind::Node16 => (!at_most(node.cells(at), byte)).trailing_zeros() as usize,
        Kind::Node48 => {
            let [a, b, c, d, e, f] = node.cells(at);
            let all =
                at_most([a, b], byte) | at_most([c, d], byte) << 16 | at_most([e, f], byte) << 32;
            (!all).trailing_zeros() as usize
        }
        Kind::Node256 => 0,
    }
}

/// How many of the eight bytes of `word` come before the first that is above `byte`.
#[inline]
fn rank_8(word: u64, byte: u8) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = LOW << 7;
    // Byte-wise `byte >= x` without carries between bytes: compare the low seven bits by a
    // subtraction that cannot borrow, then let the top bits decide where they differ.
    let wide = LOW * u64::from(byte);
    let low_at_least = (wide | HIGH) - (word & !HIGH);
    let at_least = (wide & !word) | (!(wide ^ word) & low_at_least);
    (!at_least & HIGH).trailing_zeros() as usize / 8
}

/// A bit for each of the 16 bytes: whether it is at most `byte`.
#[cfg(target_arch = "x86_64")]
#[inline]
fn at_most([low, high]: [u64; 2], byte: u8) -> u64 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8,
    };
    // SAFETY: SSE2 is a part of x86_64.
    let mask = unsafe {
        let separators = _mm_set_epi64x(high as i64, low as i64);
        let at_most = _mm_min_epu8(separators, _mm_set1_epi8(byte as i8));
        _mm_movemask_epi8(_mm_cmpeq_epi8(at_most, separators))
    };
    u64::from(mask as u16)
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn at_most(words: [u64; 2], byte: u8) -> u64 {
    let bytes = words.map(u64::to_le_bytes);
    let bits = bytes.as_flattened().iter().rev();
    bits.fold(0, |bits, &x| bits << 1 | u64::from(x <= byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_to_count_agree_with_the_plain_one() {
        let mut word = 0x0123_4567_89AB_CDEFu64;
        for _ in 0..2000 {
            word = word
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let other = word.rotate_left(23) ^ 0xFF00_8000_7F00_FFFF;
            let mut all = [word.to_le_bytes(), other.to_le_bytes()].concat();
            all.sort_unstable();
            let words: Vec<u64> = all
                .chunks_exact(8)
                .map(|eight| u64::from_le_bytes(eight.try_into().unwrap()))
                .collect();
            for byte in [0, 1, 0x7F, 0x80, 0x81, 0xFE, 0xFF, word as u8] {
                let plain = |bytes: &[u8]| bytes.iter().filter(|&&s| s <= byte).count();
                assert_eq!(rank_8(words[0], byte), plain(&all[..8]), "{word:x} {byte}");
                let bits = at_most([words[0], words[1]], byte);
                assert_eq!(
                    (!bits).trailing_zeros() as usize,
                    plain(&all),
                    "{word:x} {byte}"
                );
            }
        }
    }
}
