//! When a frame that was taken out of sight may be reused: when every reader that may be in it has
//! left.
//!
//! Each reader counts itself in and out in the counter of its shard, under the phase (0 or 1) that
//! it found. A frame that was unlinked is unread once every counter was seen at zero at a later
//! time: a reader that was inside then holds its counter above zero until it leaves, and one that
//! came later does not see the frame. Changing the phase sends newcomers to the other counters, so
//! that each comes to zero however busy the readers are.
//!
//! Nothing waits here: [`Grace::step`] looks and comes back later.

use crate::sync::point;
use crossbeam_utils::CachePadded;
use std::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{Relaxed, Release, SeqCst},
};

/// Most shards: a bit for each.
const MAX_SHARDS: usize = 64;
const PHASES: usize = 2;
/// Looks at the counters in one step.
const LOOKS: usize = 2 * PHASES;

pub(super) struct Readers {
    phase: AtomicUsize,
    counts: Box<[CachePadded<[AtomicU32; PHASES]>]>,
}

/// Which counter a reader raised.
#[derive(Clone, Copy)]
pub(super) struct Ticket {
    shard: usize,
    phase: usize,
}

impl Readers {
    /// `shards` counters, a power of two: more of them are seldom shared, fewer are seen faster.
    pub(super) fn new(shards: usize) -> Self {
        assert!(shards.is_power_of_two() && shards <= MAX_SHARDS);
        let counts = (0..shards).map(|_| CachePadded::default());
        Self {
            phase: AtomicUsize::new(0),
            counts: counts.collect(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.counts)
    }

    /// A bit for each shard.
    fn all_shards(&self) -> u64 {
        u64::MAX >> (64 - self.counts.len())
    }

    #[inline]
    pub(super) fn enter(&self) -> Ticket {
        let ticket = Ticket {
            shard: crate::mem::thread_number() & (self.counts.len() - 1),
            phase: self.phase.load(Relaxed) % PHASES,
        };
        point();
        // Partner: the loads in `see_zeros`.
        self.counts[ticket.shard][ticket.phase].fetch_add(1, SeqCst);
        ticket
    }

    #[inline]
    pub(super) fn exit(&self, ticket: Ticket) {
        point();
        // Release: what was read in the frames was read before; partner: the loads in `see_zeros`.
        self.counts[ticket.shard][ticket.phase].fetch_sub(1, Release);
    }
}

/// Frames on their way from unlinked to free.
#[derive(Default)]
pub(super) struct Grace {
    /// Unlinked, not yet waited for.
    next: Vec<u32>,
    /// Waited for.
    waiting: Vec<u32>,
    /// A bit a shard: seen at zero since `waiting` was filled, by phase.
    seen: [u64; PHASES],
    /// Free, but above the limit.
    parked: Vec<u32>,
}

impl Grace {
    pub(super) fn add(&mut self, number: u32) {
        self.next.push(number);
    }

    pub(super) fn park(&mut self, number: u32) {
        self.parked.push(number);
    }

    pub(super) fn unpark(&mut self, limit: usize) -> Vec<u32> {
        self.parked
            .extract_if(.., |n| (*n as usize) < limit)
            .collect()
    }

    /// Looks at the readers; returns the frames that turned out to be unread.
    pub(super) fn step(&mut self, readers: &Readers) -> Vec<u32> {
        let mut unread = Vec::new();
        if self.waiting.is_empty() {
            self.begin();
        }
        for _ in 0..LOOKS {
            if self.waiting.is_empty() {
                break;
            }
            self.see_zeros(readers);
            if self.seen == [readers.all_shards(); PHASES] {
                unread.append(&mut self.waiting);
                self.begin();
            }
            readers.phase.fetch_add(1, Relaxed);
        }
        unread
    }

    fn begin(&mut self) {
        std::mem::swap(&mut self.waiting, &mut self.next);
        self.seen = [0; PHASES];
    }

    fn see_zeros(&mut self, readers: &Readers) {
        for (shard, counts) in readers.counts.iter().enumerate() {
            for (phase, count) in counts.iter().enumerate() {
                point();
                // Partner: `enter`; SeqCst for the order with the unlinking of the frames, which
                // came before.
                if count.load(SeqCst) == 0 {
                    self.seen[phase] |= 1 << shard;
                }
            }
        }
    }
}
