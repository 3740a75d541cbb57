//! The engine's policies by name: a release, and what differs from the defaults.

use indexy::{Admission, Precleaning, Release};

/// A policy of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ours {
    /// Which regions go first.
    pub release: Release,
    /// Whether a release spares what was read since the last one.
    pub second_chance: bool,
    /// Which misses come into memory.
    pub admission: Admission,
    /// What is written ahead of need.
    pub precleaning: Precleaning,
}

impl Default for Ours {
    fn default() -> Self {
        Self {
            release: Release::default(),
            second_chance: true,
            admission: Admission::default(),
            precleaning: Precleaning::default(),
        }
    }
}

pub(super) const RELEASES: [(&str, Release, &str); 6] = [
    (
        "density",
        Release::AccessDensity,
        "ours: Algorithm 1 over access density (the default)",
    ),
    (
        "coldest",
        Release::Coldest,
        "ours: the coldest region first",
    ),
    (
        "region-clock",
        Release::Clock,
        "ours: a hand over the regions",
    ),
    (
        "region-lru",
        Release::Lru,
        "ours: the region used longest ago",
    ),
    (
        "region-fifo",
        Release::Fifo,
        "ours: the region released longest ago",
    ),
    ("region-random", Release::Random, "ours: any region"),
];

/// What may follow the name of a release, each after a `+`.
pub(super) const PARTS: [(&str, &str); 6] = [
    ("plain", "without the second chance of entries"),
    (
        "topN",
        "only the top N percent of the misses come into memory",
    ),
    ("on-update", "only what is read to be written does"),
    ("never", "no miss does"),
    (
        "oldest",
        "what was written to disk longest ago is cleaned ahead of need",
    ),
    ("unclean", "nothing is cleaned ahead of need"),
];

impl Ours {
    /// Changes what `part` says; none if that means nothing.
    pub(super) fn add(&mut self, part: &str) -> Option<()> {
        match part {
            "plain" => self.second_chance = false,
            "on-update" => self.admission = Admission::OnUpdate,
            "never" => self.admission = Admission::Never,
            "oldest" => self.precleaning = Precleaning::Oldest,
            "unclean" => self.precleaning = Precleaning::Off,
            _ => {
                let percent: u8 = part.strip_prefix("top")?.parse().ok()?;
                if !(1..=100).contains(&percent) {
                    return None;
                }
                self.admission = Admission::Top { percent };
            }
        }
        Some(())
    }

    /// Its name.
    pub fn name(&self) -> String {
        let release = RELEASES.iter().find(|(_, known, _)| *known == self.release);
        let mut name = release.map_or("?", |(name, ..)| name).to_owned();
        if !self.second_chance {
            name += "+plain";
        }
        match self.admission {
            Admission::Top { percent } => name += &format!("+top{percent}"),
            Admission::OnUpdate => name += "+on-update",
            Admission::Never => name += "+never",
            _ => {}
        }
        match self.precleaning {
            Precleaning::Oldest => name += "+oldest",
            Precleaning::Off => name += "+unclean",
            _ => {}
        }
        name
    }
}
