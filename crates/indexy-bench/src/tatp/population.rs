//! How large the database is, and what the driver knows of it.

use super::kinds::{KINDS, Transaction};
use crate::{
    application::random::nurand,
    workload::{Chooser, Pick, Rng},
};
use serde::{Deserialize, Serialize};
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU8, AtomicU32, Ordering::Relaxed},
};

/// Subscribers of one piece of the load, and of the check.
pub(super) const SUBSCRIBERS_A_UNIT: u32 = 500;
const STRIPES: usize = 1024;

/// How large the database is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Subscribers, numbered from 1 on.
    pub subscribers: u32,
    /// The exponent, where subscribers are drawn by Zipf; none: as the description says.
    pub zipf: Option<f64>,
}

impl Config {
    /// Rows of the loaded database, those of the index included, about: 2.5 of access info and 2.5
    /// facilities a subscriber, 1.5 forwardings a facility.
    pub fn entries(&self) -> u64 {
        u64::from(self.subscribers) * 1075 / 100
    }

    /// Bytes of keys and values, about.
    pub fn bytes(&self) -> u64 {
        const SUBSCRIBER: u64 = 4 + 45 + 19 + 25 * 15 / 10 + 25 * 13 / 10 + 375 * 22 / 100;
        u64::from(self.subscribers) * SUBSCRIBER
    }

    /// How subscribers are drawn.
    pub(super) fn draw(&self) -> Draw {
        let pick = |exponent| Pick::Zipf {
            keys: self.subscribers.into(),
            exponent,
            scattered: true,
            rotate: 0,
        };
        match self.zipf {
            None => Draw::Described(self.subscribers),
            Some(exponent) => Draw::Zipf(pick(exponent).chooser()),
        }
    }
}

/// How subscribers are drawn.
#[derive(Debug)]
pub(super) enum Draw {
    /// As the description says, from so many.
    Described(u32),
    Zipf(Chooser),
}

impl Draw {
    /// A subscriber.
    pub(super) fn subscriber(&self, rng: &mut Rng) -> u32 {
        match self {
            Self::Described(subscribers) => nurand(rng, spread(*subscribers), 0, 1, *subscribers),
            Self::Zipf(chooser) => chooser.next(rng) as u32 + 1,
        }
    }
}

/// The constant A of the description's draw.
fn spread(subscribers: u32) -> u32 {
    match subscribers {
        0..=1_000_000 => 65_535,
        1_000_001..=10_000_000 => 1_048_575,
        _ => 2_097_151,
    }
}

/// How often transactions of each kind were tried, and how often they succeeded.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outcomes([(u64, u64); KINDS]);

impl Outcomes {
    pub(super) fn note(&mut self, kind: Transaction, succeeded: bool) {
        let (tried, successes) = &mut self.0[kind as usize];
        *tried += 1;
        *successes += u64::from(succeeded);
    }

    /// How often `kind` was tried, and how often it succeeded.
    pub(super) fn of(&self, kind: Transaction) -> (u64, u64) {
        self.0[kind as usize]
    }
}

/// The driver's locks, and what it knows behind them.
#[derive(Debug)]
pub(super) struct Known {
    stripes: Vec<Mutex<()>>,
    /// Call forwardings of each subscriber. Where the engine isolates, adding follows the commit,
    /// so these hold when all clients have finished.
    forwardings: Vec<AtomicU8>,
    /// The last location of each subscriber that was committed. Means something behind locks only.
    locations: Vec<AtomicU32>,
    /// Of clients that finished.
    outcomes: Mutex<Outcomes>,
}

impl Known {
    pub(super) fn new(config: &Config) -> Self {
        let of_each = 0..=config.subscribers;
        Self {
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            forwardings: of_each.clone().map(|_| AtomicU8::default()).collect(),
            locations: of_each.map(|_| AtomicU32::default()).collect(),
            outcomes: Mutex::default(),
        }
    }

    pub(super) fn lock(&self, s: u32) -> MutexGuard<'_, ()> {
        let stripe = &self.stripes[s as usize % STRIPES];
        stripe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn forwardings(&self, s: u32) -> u8 {
        self.forwardings[s as usize].load(Relaxed)
    }

    pub(super) fn add_forwarding(&self, s: u32) {
        self.forwardings[s as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn take_forwarding(&self, s: u32) {
        self.forwardings[s as usize].fetch_sub(1, Relaxed);
    }

    pub(super) fn location(&self, s: u32) -> u32 {
        self.locations[s as usize].load(Relaxed)
    }

    pub(super) fn set_location(&self, s: u32, location: u32) {
        self.locations[s as usize].store(location, Relaxed);
    }

    /// Adds the outcomes of a client that finished.
    pub(super) fn add_outcomes(&self, of: &Outcomes) {
        let mut sums = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        for (sum, one) in sums.0.iter_mut().zip(of.0) {
            sum.0 += one.0;
            sum.1 += one.1;
        }
    }

    /// Of all clients that finished.
    pub(super) fn outcomes(&self) -> Outcomes {
        *self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A database of TATP, as its driver knows it.
#[derive(Debug)]
pub struct Tatp {
    pub(super) config: Config,
    pub(super) seed: u64,
    pub(super) known: Known,
}

impl Tatp {
    /// One that is not loaded yet; `seed` decides its population.
    pub fn new(config: Config, seed: u64) -> Self {
        Self {
            config,
            seed,
            known: Known::new(&config),
        }
    }
}
