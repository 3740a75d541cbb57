//! Filters of lines: of most absent keys they say that they are absent, by one cache line each.
//!
//! The hash of a key (xxh3, seed 0) says which line of 64 bytes, and which bit of each of the
//! line's eight words of 64 bits the key sets. So a look-up costs one cache line, and has no
//! branch. The math is ours, thirty lines, because bits on disk (`lsm/table/filter.rs`) must mean
//! the same for ever and are read in a frame of the pool, and bits in memory
//! (`framework/evicted/`) are set by one thread while others read them. Of the crates measured
//! (`docs/lab/lsm-tree.md`), `sbbf-rs` wants memory of its own and denies fewer at equal size,
//! `fastbloom` promises no stable hash and spreads a key over the page, `xorf` denies twice as many
//! for seven times the time to build. Pure.

#![forbid(unsafe_code)]

use xxhash_rust::xxh3::xxh3_64;

pub(crate) const LINE_BYTES: usize = 64;
/// Words of a line.
pub(crate) const LANES: usize = 8;
const LANE_BITS: u32 = 64;
/// One odd multiplier a lane: those of Parquet's split block filters.
const SALTS: [u32; LANES] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];
const _: () = assert!(LANES * LANE_BITS as usize == LINE_BYTES * 8);

/// The hash of `key` that filters know it by.
#[inline]
pub(crate) fn hash_of(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// The bit that `hash` sets in each word of its line. The lower half of the hash says so; the upper
/// half is for the choice of the line.
#[inline]
pub(crate) fn lanes(hash: u64) -> [u64; LANES] {
    let low = hash as u32;
    SALTS.map(|salt| 1 << (low.wrapping_mul(salt) >> (32 - LANE_BITS.trailing_zeros())))
}

/// The part of absent keys that a filter of `bits` bits a key does not deny.
pub(crate) fn deny_nothing(bits: usize) -> f64 {
    if bits == 0 {
        return 1.0;
    }
    // A line's keys set a bit of each lane.
    let keys = (LINE_BYTES * 8) as f64 / bits as f64;
    let clear = (1.0 - 1.0 / f64::from(LANE_BITS)).powf(keys);
    (1.0 - clear).powi(LANES as i32)
}
