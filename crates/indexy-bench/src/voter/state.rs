//! How large the vote is, the driver's locks, and what it knows behind them.

use super::schema::{AREAS, STATES};
use crate::workload::{Pick, mix};
use serde::{Deserialize, Serialize};
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};

const STRIPES: usize = 1024;
/// Most contestants.
pub const MOST_CONTESTANTS: u8 = 12;
/// Rows of counts: one for each contestant and state.
pub(super) const COUNTS: usize = MOST_CONTESTANTS as usize * STATES;

/// How large the vote is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Contestants, numbered from 1 on; at most [`MOST_CONTESTANTS`].
    pub contestants: u8,
    /// Votes that are accepted of one telephone number.
    pub votes_a_phone: u8,
    /// Telephone numbers of each area, 10 million at most.
    pub phones_an_area: u32,
    /// The exponent, where numbers call by Zipf; none: each as often as any other.
    pub zipf: Option<f64>,
}

impl Config {
    /// Rows of the loaded database: it begins without votes.
    pub fn entries(&self) -> u64 {
        u64::from(self.contestants) + u64::from(AREAS)
    }

    /// Bytes of keys and values, about.
    pub fn bytes(&self) -> u64 {
        self.entries() * 8
    }

    pub(super) fn phones(&self) -> Pick {
        let keys = u64::from(AREAS) * u64::from(self.phones_an_area);
        match self.zipf {
            None => Pick::Uniform { keys },
            Some(exponent) => Pick::Zipf {
                keys,
                exponent,
                scattered: true,
                rotate: 0,
            },
        }
    }

    /// Whom half of an area's calls are for: contestant 1 in 30 areas of 100, and any in the rest.
    pub(super) fn favourite(&self, area: u16) -> u8 {
        let draw = mix(area.into());
        if draw % 100 < 30 {
            return 1;
        }
        ((draw >> 32) % u64::from(self.contestants)) as u8 + 1
    }
}

/// A vote, as its driver knows it.
#[derive(Debug)]
pub struct Voter {
    pub(super) config: Config,
    phones: Vec<Mutex<()>>,
    counts: Vec<Mutex<()>>,
    /// Votes that were accepted, by [`Voter::place`]; those of clients that finished.
    accepted: Vec<AtomicU64>,
}

impl Voter {
    /// One that is not loaded yet.
    pub fn new(config: Config) -> Self {
        let locks = |count| (0..count).map(|_| Mutex::default()).collect();
        Self {
            config,
            phones: locks(STRIPES),
            counts: locks(COUNTS),
            accepted: (0..COUNTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Where the counts of a contestant, from 1 on, and a state are.
    pub(super) fn place(contestant: u8, state: u8) -> usize {
        usize::from(contestant - 1) * STATES + usize::from(state)
    }

    pub(super) fn lock_phone(&self, phone: u64) -> MutexGuard<'_, ()> {
        let stripe = &self.phones[phone as usize % STRIPES];
        stripe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Taken after the lock of a telephone number.
    pub(super) fn lock_count(&self, contestant: u8, state: u8) -> MutexGuard<'_, ()> {
        let count = &self.counts[Self::place(contestant, state)];
        count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn accepted(&self, contestant: u8, state: u8) -> u64 {
        self.accepted[Self::place(contestant, state)].load(Relaxed)
    }
    /// Adds what a client that finished had accepted, by [`Voter::place`].
    pub(super) fn accept(&self, of: &[u64]) {
        for (sum, accepted) in self.accepted.iter().zip(of) {
            sum.fetch_add(*accepted, Relaxed);
        }
    }
}
