//! The paper's workloads: YCSB's, over one of four partitions or over all keys.

use indexy_dex::Result;

/// SplitMix64.
pub(super) struct Dice(pub u64);

pub(super) fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

impl Dice {
    pub(super) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// From 0 to below 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Ranks from 0, the first the most frequent; after Gray et al., as in YCSB.
pub(super) struct Zipf {
    items: u64,
    zeta: f64,
    eta: f64,
    alpha: f64,
    second: f64,
}

impl Zipf {
    pub(super) fn new(items: u64, theta: f64) -> Self {
        let zeta = |n: u64| (1..=n).map(|i| (i as f64).powf(-theta)).sum::<f64>();
        let all = zeta(items);
        let share = (2.0 / items as f64).powf(1.0 - theta);
        Self {
            items,
            zeta: all,
            eta: (1.0 - share) / (1.0 - zeta(2) / all),
            alpha: 1.0 / (1.0 - theta),
            second: 1.0 + 0.5_f64.powf(theta),
        }
    }

    pub(super) fn rank(&self, unit: f64) -> u64 {
        let at = unit * self.zeta;
        if at < 1.0 {
            return 0;
        }
        if at < self.second {
            return 1;
        }
        let rank = self.items as f64 * (self.eta * unit - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.items - 1)
    }
}

/// A permutation of `0..items`: four Feistel rounds, again until the result is below `items`.
pub(super) fn scramble(rank: u64, items: u64) -> u64 {
    let half = (64 - (items - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1_u64 << half) - 1;
    let mut word = rank;
    loop {
        let (mut left, mut right) = (word >> half, word & mask);
        for round in 0..4_u64 {
            (left, right) = (right, left ^ (mix(right ^ round << 56) & mask));
        }
        word = left << half | right;
        if word < items {
            return word;
        }
    }
}

/// What an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Lookup,
    Update,
    Insert,
    Scan,
}

/// Table 1 of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mix {
    ReadOnly,
    ReadIntensive,
    WriteIntensive,
    InsertIntensive,
    ScanIntensive,
}

impl Mix {
    pub(super) const ALL: [Self; 5] = [
        Self::ReadOnly,
        Self::ReadIntensive,
        Self::WriteIntensive,
        Self::InsertIntensive,
        Self::ScanIntensive,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::ReadIntensive => "read-intensive",
            Self::WriteIntensive => "write-intensive",
            Self::InsertIntensive => "insert-intensive",
            Self::ScanIntensive => "scan-intensive",
        }
    }

    fn operation(self, unit: f64) -> Operation {
        let (share, what, other) = match self {
            Self::ReadOnly => (0.0, Operation::Lookup, Operation::Lookup),
            Self::ReadIntensive => (0.05, Operation::Update, Operation::Lookup),
            Self::WriteIntensive => (0.5, Operation::Update, Operation::Lookup),
            Self::InsertIntensive => (0.5, Operation::Insert, Operation::Lookup),
            Self::ScanIntensive => (0.05, Operation::Insert, Operation::Scan),
        };
        if unit < share { what } else { other }
    }
}

/// Keys and how often each is meant.
pub(super) struct Load {
    pub(super) keys: u64,
    /// Keys of the first partition: those below.
    pub(super) own_keys: u64,
    /// `None`: all the same.
    pub(super) zipf: Option<Zipf>,
}

impl Load {
    /// Calls `operation` with keys below `below`.
    pub(super) fn run(
        &self,
        seed: u64,
        operations: u64,
        mix: Mix,
        below: u64,
        mut operation: impl FnMut(Operation, u64) -> Result<()>,
    ) -> Result<()> {
        let mut dice = Dice(seed);
        let mut done = 0;
        while done < operations {
            let key = match &self.zipf {
                Some(zipf) => scramble(zipf.rank(dice.unit()), self.keys),
                None => dice.word() % below,
            };
            if key < below {
                operation(mix.operation(dice.unit()), key)?;
                done += 1;
            }
        }
        Ok(())
    }
}
