//! What a writer's keys hold: the model, and what calls do to it.

use super::world::{COUNTERS, NEVER, TREES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a key has; the value follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Number of the write, or the number that is the value.
    pub stamp: u64,
    /// From then on it is absent. It stays in the model.
    pub expires: u64,
}

/// The time between the two moments at which a call looked at the clock.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub from: u64,
    pub to: u64,
}

impl Entry {
    pub fn lasting(stamp: u64) -> Self {
        let expires = NEVER;
        Self { stamp, expires }
    }

    pub fn is_live(self, at: u64) -> bool {
        self.expires > at
    }

    pub fn must_be_seen(self, window: Window) -> bool {
        self.is_live(window.to)
    }

    pub fn may_be_seen(self, window: Window) -> bool {
        self.is_live(window.from)
    }
}

pub type Map = BTreeMap<Vec<u8>, Entry>;

/// A part of what a call does. A batch and a transaction do several.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Effect {
    Put(usize, Vec<u8>, Entry),
    Remove(usize, Vec<u8>),
    /// The end is not in it.
    RemoveRange(usize, Vec<u8>, Vec<u8>),
    /// Adds to a counter.
    Merge(Vec<u8>, u64),
}

impl Effect {
    pub fn touches(&self, at: usize, key: &[u8]) -> bool {
        match self {
            Self::Put(tree, own, _) | Self::Remove(tree, own) => *tree == at && own == key,
            Self::RemoveRange(tree, from, to) => *tree == at && &from[..] <= key && key < &to[..],
            Self::Merge(own, _) => at == COUNTERS && own == key,
        }
    }
}

/// A key, and what it had before.
#[derive(Debug)]
pub struct Changed {
    pub tree: usize,
    pub key: Vec<u8>,
    pub had: Option<Entry>,
}

impl Changed {
    fn new(tree: usize, key: Vec<u8>, had: Option<Entry>) -> Self {
        Self { tree, key, had }
    }
}

/// All that one writer has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model(pub [Map; TREES]);

impl Model {
    /// Returns the keys that it concerns, and what they had.
    pub fn apply(&mut self, effect: &Effect) -> Vec<Changed> {
        let one = |tree: &usize, key: &Vec<u8>, had| vec![Changed::new(*tree, key.clone(), had)];
        match effect {
            Effect::Put(tree, key, entry) => {
                let had = self.0[*tree].insert(key.clone(), *entry);
                one(tree, key, had)
            }
            Effect::Remove(tree, key) => one(tree, key, self.0[*tree].remove(key)),
            Effect::RemoveRange(tree, from, to) => {
                let range = self.0[*tree].range(from.clone()..to.clone());
                let gone: Vec<_> = range.map(|(key, _)| key.clone()).collect();
                let had = |key: &Vec<u8>| self.0[*tree].remove(key);
                let had: Vec<_> = gone.iter().map(had).collect();
                let gone = gone.into_iter().zip(had);
                gone.map(|(key, had)| Changed::new(*tree, key, had))
                    .collect()
            }
            Effect::Merge(key, by) => {
                let new = Entry::lasting(self.counter(key).wrapping_add(*by));
                let had = self.0[COUNTERS].insert(key.clone(), new);
                one(&COUNTERS, key, had)
            }
        }
    }

    fn counter(&self, key: &[u8]) -> u64 {
        self.0[COUNTERS].get(key).map_or(0, |entry| entry.stamp)
    }

    /// The entry of a key, unless it has expired.
    pub fn live(&self, tree: usize, key: &[u8], at: u64) -> Option<Entry> {
        self.0[tree]
            .get(key)
            .copied()
            .filter(|entry| entry.is_live(at))
    }

    /// One call that makes all of it.
    pub fn as_effects(&self) -> Vec<Effect> {
        let of = |(tree, map): (usize, &Map)| -> Vec<Effect> {
            let put = |(key, entry): (&Vec<u8>, &Entry)| Effect::Put(tree, key.clone(), *entry);
            map.iter().map(put).collect()
        };
        self.0.iter().enumerate().flat_map(of).collect()
    }
}
