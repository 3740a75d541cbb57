//! How filters are built and asked: bits a key of layers and of bases, and which bases' filters are
//! worth a place in the pool.
//!
//! Filters may fill [`ROOM_DIVISOR`] of the pool, and what is lent to them beside
//! (`y/pool/loan.rs`); their bits are chosen for the largest loan. Those of layers come first: they
//! are small, and nearly every key asks them in vain. What is left is the bases'. Where all of
//! their filters fit, more bits deny more. Where they do not, fewer bits for more keys deny more
//! than many bits for few: with half of the room, 5 bits for all keys deny five in six, 10 bits for
//! half of the keys deny one in two. As many segments of filters as fit are asked; the others would
//! be read for each key, and a page of a filter costs as much as the leaf that it may save.
//!
//! A filter says nothing of a key that is there. While hardly any key is absent, bases' filters are
//! not asked at all, and their place in the pool goes to leaves.
//!
//! Pure but for the share of absent keys, which any thread may count: it is an estimate, and a lost
//! update changes nothing.

#![forbid(unsafe_code)]

use super::table::deny_nothing;
use crate::y::pool::loan::FilterLoan;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

/// Part of the pool that filters may fill.
pub(super) const ROOM_DIVISOR: usize = 2;
/// Bits a key that are considered: with fewer, bases' filters would deny little, and with more than
/// these not much more.
const BASE_BITS: std::ops::RangeInclusive<usize> = 5..=10;
const LAYER_BITS: std::ops::RangeInclusive<usize> = 10..=14;
/// Layers grow to about this part of the bases before they are merged with them.
const LAYERS_DIVISOR: u64 = 8;

/// What a tree has to filter.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entries {
    pub(super) layers: u64,
    pub(super) bases: u64,
    /// Layers over a key, at most.
    pub(super) depth: usize,
}

/// Bits a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits {
    pub(super) layer: usize,
    pub(super) base: usize,
}

/// The bits with which an absent key looks into the fewest leaves, if filters have `room_bytes`.
pub(super) fn bits(entries: Entries, room_bytes: usize) -> Bits {
    let layers = entries.layers.max(entries.bases / LAYERS_DIVISOR) as f64;
    let (bases, room) = (entries.bases as f64, room_bytes as f64 * 8.0);
    let leaves = |bits: Bits| {
        // The part of the leaves that is looked into, and the room that is left.
        let looks = |keys: f64, bits: usize, room: f64| {
            let needed = (keys * bits as f64).max(1.0);
            let denied = (room / needed).min(1.0) * (1.0 - deny_nothing(bits));
            (1.0 - denied, (room - needed).max(0.0))
        };
        let (over, left) = looks(layers, bits.layer, room);
        let (under, _) = looks(bases, bits.base, left);
        entries.depth.max(1) as f64 * over + under
    };
    let all = LAYER_BITS.flat_map(|layer| BASE_BITS.map(move |base| Bits { layer, base }));
    // Of equal ones the first: the smallest.
    let best = all.min_by(|a, b| leaves(*a).total_cmp(&leaves(*b)));
    best.unwrap_or(Bits {
        layer: *LAYER_BITS.start(),
        base: *BASE_BITS.start(),
    })
}

/// Which part of the keys that reads look for in bases is absent, lately.
pub(super) struct AbsentShare {
    share: AtomicU32,
    /// Who hears of absent keys.
    loan: Arc<FilterLoan>,
}

/// All of them.
const ONE: u32 = 1 << 16;
/// A key that is counted moves the share by this part of the way.
const STEP_DIVISOR: u32 = 64;
/// One key in so many is counted: readers share the count.
const COUNTED: u64 = 8;
/// Bases' filters are asked if this part of the keys is absent: in the place of ten bits a key,
/// leaves would save about so many reads.
const WORTH: u32 = ONE / 16;

impl AbsentShare {
    pub(super) fn new(loan: Arc<FilterLoan>) -> Self {
        Self {
            share: AtomicU32::new(ONE / 2),
            loan,
        }
    }

    /// A base was asked for the key of `hash`.
    pub(super) fn note(&self, hash: u64, absent: bool) {
        if !hash.is_multiple_of(COUNTED) {
            return;
        }
        let share = self.share.load(Relaxed);
        // Filters that are not asked need no memory.
        if absent && share >= WORTH {
            self.loan.note_absent(COUNTED);
        }
        let next = match absent {
            true => share + (ONE - share) / STEP_DIVISOR,
            false => share - share / STEP_DIVISOR,
        };
        if next != share {
            self.share.store(next, Relaxed);
        }
    }

    /// Whether filters of bases are worth asking.
    pub(super) fn is_worth_filters(&self) -> bool {
        self.share.load(Relaxed) >= WORTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(layers: u64, bases: u64, depth: usize, room: usize) -> Bits {
        let entries = Entries {
            layers,
            bases,
            depth,
        };
        bits(entries, room)
    }

    #[test]
    fn all_get_the_most_bits_where_they_fit() {
        let most = Bits {
            layer: 14,
            base: 10,
        };
        assert_eq!(of(0, 0, 0, 1 << 20), most);
        assert_eq!(of(100_000, 1_000_000, 4, 4 << 20), most);
    }

    #[test]
    fn bases_get_fewer_bits_where_room_is_short() {
        let mut before = 10;
        for room in (0..40).rev() {
            let bits = of(1_000_000, 30_000_000, 6, room << 20);
            assert!(bits.base <= before, "{room} MiB: {bits:?}");
            assert!(LAYER_BITS.contains(&bits.layer));
            before = bits.base;
        }
        assert_eq!(before, *BASE_BITS.start());
    }

    #[test]
    fn the_share_follows_what_is_asked() {
        let loan = Arc::new(FilterLoan::new(&Arc::default()));
        let share = AbsentShare::new(Arc::clone(&loan));
        assert!(share.is_worth_filters(), "nothing is known");
        let hashes = (0..4000u64).map(|n| n * 5);
        hashes.clone().for_each(|hash| share.note(hash, false));
        assert!(!share.is_worth_filters());
        hashes
            .clone()
            .take(200)
            .for_each(|hash| share.note(hash, true));
        assert!(share.is_worth_filters());
        // One absent key in a hundred is not worth it, one in four is.
        for (every, worth) in [(100, false), (4, true)] {
            for _ in 0..3 {
                let marked = hashes.clone().map(|hash| (hash, hash / 40 % every == 0));
                marked.for_each(|(hash, absent)| share.note(hash, absent));
            }
            assert_eq!(share.is_worth_filters(), worth, "one in {every}");
        }
        // Of the keys above: 200 and those of three rounds each, one in eight counted.
        let absent = loan.take_absent();
        assert!((2_500..4_500).contains(&absent), "{absent}");
    }
}
