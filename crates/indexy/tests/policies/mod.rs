//! Which policies a campaign runs under: a number says so, made of its seed and of its case, round
//! or pair. It is printed with the choice, so that a failure can be repeated.

use crate::pairs;
use indexy::{Admission, Db, Error, Evicted, Options, Precleaning, Release, Tree, TreeOptions};
use rand::{Rng, SeedableRng, rngs::StdRng};

pub const RELEASES: [Release; 6] = [
    Release::AccessDensity,
    Release::Coldest,
    Release::Clock,
    Release::Lru,
    Release::Fifo,
    Release::Random,
];

pub const PRECLEANINGS: [Precleaning; 3] = [
    Precleaning::CheckBack,
    Precleaning::Oldest,
    Precleaning::Off,
];

const ADMISSIONS: [Admission; 4] = [
    Admission::Always,
    Admission::Top { percent: 30 },
    Admission::OnUpdate,
    Admission::Never,
];

const EVICTED: [Evicted; 2] = [Evicted::Ranges, Evicted::Filter { bits_per_key: 8 }];

/// One choice of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Policies {
    pub release: Release,
    pub precleaning: Precleaning,
    pub second_chance: bool,
    /// Of trees with a memory index.
    pub admission: Admission,
    pub evicted: Evicted,
}

/// The policies of `number`.
pub fn chosen(number: u64) -> Policies {
    let mut random = StdRng::seed_from_u64(number);
    Policies {
        release: one_of(&RELEASES, &mut random),
        precleaning: one_of(&PRECLEANINGS, &mut random),
        second_chance: random.random(),
        admission: one_of(&ADMISSIONS, &mut random),
        evicted: one_of(&EVICTED, &mut random),
    }
}

fn one_of<T: Copy>(all: &[T], random: &mut StdRng) -> T {
    all[random.random_range(0..all.len())]
}

impl Policies {
    /// Those of a database.
    pub fn options(self, options: Options) -> Options {
        options
            .release(self.release)
            .precleaning(self.precleaning)
            .second_chance(self.second_chance)
    }

    /// Opens or makes a tree, with those of a tree: as far as its kind goes, and the memory for
    /// filters.
    pub fn open_tree(self, db: &Db, name: &str, options: TreeOptions) -> Tree {
        let tree = db.tree_with(name, options).unwrap();
        if !pairs::keeps_nothing(tree.pair()) {
            let admitting = TreeOptions::new().admission(self.admission);
            db.tree_with(name, admitting).unwrap();
        }
        match db.tree_with(name, TreeOptions::new().evicted(self.evicted)) {
            // No room for a filter of so many keys.
            Ok(_)
            | Err(Error::InvalidOption {
                option: "evicted", ..
            }) => tree,
            Err(e) => panic!("{e}"),
        }
    }
}
