//! The keys and runs that the measurements of each Index Y use.

#![forbid(unsafe_code)]

use super::{RunEntry, RunSource};
use crate::error::Result;

/// Key number `i`: distinct and in no order.
pub(super) fn key(i: u64) -> [u8; 8] {
    let mut x = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)).to_be_bytes()
}

/// A run of such keys, in order, each with its number.
pub(super) struct Sorted(pub(super) Vec<([u8; 8], u64)>);

impl RunSource for Sorted {
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
        self.0
            .iter()
            .try_for_each(|(key, i)| sink((key, Some(&i.to_le_bytes()))))
    }
    fn before_publish(&mut self) -> Result<()> {
        Ok(())
    }
}
