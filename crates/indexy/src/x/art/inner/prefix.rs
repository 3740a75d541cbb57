//! Comparing a key with a node's compressed prefix.
//!
//! The prefix is complete (not a hint) and never changes in a node, so nothing has to be validated
//! after it.

use super::layout::{HEADER_BYTES, InnerRef};

impl InnerRef<'_> {
    /// The number of bytes, up to the prefix length, that the prefix and `rest` have in common.
    #[inline]
    pub(crate) fn match_prefix(self, rest: &[u8]) -> usize {
        let both = self.prefix_len().min(rest.len());
        let mut at = 0;
        while at < both {
            let mut chunk = [0u8; 8];
            let part = &rest[at..both.min(at + 8)];
            chunk[..part.len()].copy_from_slice(part);
            let differ = self.cell((HEADER_BYTES + at) / 8) ^ u64::from_le_bytes(chunk);
            let same = differ.trailing_zeros() as usize / 8;
            if same < part.len() {
                return at + same;
            }
            at += part.len();
        }
        both
    }

    /// Byte `i` of the prefix.
    pub(crate) fn prefix_byte(self, i: usize) -> u8 {
        (self.cell((HEADER_BYTES + i) / 8) >> (8 * (i % 8))) as u8
    }

    /// Appends the prefix to `out`.
    pub(crate) fn push_prefix(self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.prefix_len(), 0);
        self.words().copy_out(HEADER_BYTES, &mut out[start..]);
    }
}
