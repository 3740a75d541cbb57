//! A writer: a thread with keys of its own, which knows what each of them holds.

use super::{
    journal::Journal,
    model::{Changed, Effect, Entry, Model, Window},
    transactions::Open,
    world::{self, PLAIN, TREES, World},
};
use crate::support::Random;
use indexy::{Result, Snapshot};
use std::panic::Location;

/// A tree and a key of it.
pub type At = (usize, Vec<u8>);

pub struct Writer<'w> {
    pub world: &'w World,
    pub id: usize,
    pub random: Random,
    pub model: Model,
    pub journal: Journal,
    /// Number of the last write.
    pub stamp: u64,
    /// Open snapshots, and what each of them sees of this writer's.
    pub held: Vec<Held>,
    /// An open transaction.
    pub open: Option<Open>,
    /// What this writer has done beside it, with the keys that have something else since.
    pub beside: Vec<(Effect, Vec<At>)>,
}

pub struct Held {
    pub snapshot: Snapshot,
    pub model: Model,
    /// When it began.
    pub window: Window,
}

impl<'w> Writer<'w> {
    pub fn new(world: &'w World, id: usize, random: Random, model: Model) -> Self {
        let entries = model.0.iter().flat_map(|map| map.values());
        Self {
            stamp: entries.map(|entry| entry.stamp).max().unwrap_or(0),
            world,
            id,
            random,
            model,
            journal: Journal::default(),
            held: Vec::new(),
            open: None,
            beside: Vec::new(),
        }
    }

    pub fn any_tree(&mut self) -> usize {
        self.random.below(TREES as u64) as usize
    }

    /// A key of this writer, there or not.
    pub fn any_key(&mut self) -> Vec<u8> {
        world::key(self.id, &mut self.random)
    }

    /// Mostly a key that the model has.
    pub fn some_key(&mut self, tree: usize) -> Vec<u8> {
        let key = self.any_key();
        if self.random.one_in(3) {
            return key;
        }
        let there = self.model.0[tree].range(key.clone()..).next();
        there.map_or(key, |(there, _)| there.clone())
    }

    pub fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    /// Does something that changes this writer's keys by `effects`, all of them.
    pub fn write(
        &mut self,
        what: impl Into<String>,
        effects: &[Effect],
        call: impl FnOnce(&'w World) -> Result<()>,
    ) {
        self.journal.begin(what.into(), effects);
        let result = call(self.world);
        self.settle(effects, result.map(|()| true));
    }

    /// The call that has begun has done all of `effects`, or nothing.
    pub fn settle(&mut self, effects: &[Effect], result: Result<bool>) {
        let done = self.ok(result);
        self.journal.end(done);
        if done {
            effects.iter().for_each(|effect| self.apply(effect));
        }
    }

    fn apply(&mut self, effect: &Effect) {
        let changed = self.model.apply(effect);
        if self.open.is_none() {
            return;
        }
        let now = self.now();
        let differs = |at: &Changed| {
            let had = at.had.filter(|entry| entry.is_live(now));
            had != self.model.live(at.tree, &at.key, now)
        };
        let changed = changed.into_iter().filter(differs);
        let changed = changed.map(|at| (at.tree, at.key)).collect();
        self.beside.push((effect.clone(), changed));
    }

    /// What a call returned that must not fail.
    #[track_caller]
    pub fn ok<T>(&self, result: Result<T>) -> T {
        match result {
            Ok(result) => result,
            Err(error) => self.fail(PLAIN, b"", &error.to_string()),
        }
    }

    #[track_caller]
    pub fn fail(&self, tree: usize, key: &[u8], text: &str) -> ! {
        let at = Location::caller();
        let entry = self.model.0[tree].get(key);
        panic!(
            "{at}: {text}\n{:?}, writer {}, at {}: the model has {entry:?}\n{}\n{:?}",
            self.world.setup,
            self.id,
            self.world.clock.millis(),
            self.journal.tell(tree, key),
            self.world.db.stats()
        );
    }

    /// `found` is what the model, or that of a snapshot, has of a key.
    #[track_caller]
    pub fn compare(
        &self,
        model: &Model,
        (tree, key): (usize, &[u8]),
        found: Option<&[u8]>,
        window: Window,
    ) {
        let entry = model.0[tree].get(key);
        let right = match (found, entry) {
            (Some(found), Some(entry)) => {
                entry.may_be_seen(window) && found == self.world.value(tree, key, entry.stamp)
            }
            (Some(_), None) => false,
            (None, entry) => entry.is_none_or(|entry| !entry.must_be_seen(window)),
        };
        if !right {
            let begins = found.map(|value| &value[..value.len().min(16)]);
            let text = format!("found {begins:?}, not {entry:?}, in {window:?}");
            self.fail(tree, key, &text);
        }
    }

    /// `found`, ascending, is what the model has between two keys (the second one is not in it).
    #[track_caller]
    pub fn compare_range(
        &self,
        model: &Model,
        (tree, from, to): (usize, &[u8], &[u8]),
        found: &[(impl AsRef<[u8]>, impl AsRef<[u8]>)],
        window: Window,
    ) {
        let mut expected = model.0[tree].range(from.to_vec()..to.to_vec()).peekable();
        let missing = |key: &[u8], entry: &Entry| {
            if entry.must_be_seen(window) {
                self.fail(
                    tree,
                    key,
                    &format!("a scan did not see {entry:?}, {window:?}"),
                );
            }
        };
        for (key, value) in found {
            let (key, value) = (key.as_ref(), value.as_ref());
            while let Some((passed, entry)) = expected.next_if(|(k, _)| &k[..] < key) {
                missing(passed, entry);
            }
            if expected.next_if(|(k, _)| &k[..] == key).is_none() {
                self.fail(tree, key, "a scan saw a key that is not there, or twice");
            }
            self.compare(model, (tree, key), Some(value), window);
        }
        expected.for_each(|(key, entry)| missing(key, entry));
    }

    /// The time now, for the beginning of a window.
    pub fn now(&self) -> u64 {
        self.world.clock.millis()
    }

    /// A window that ends now.
    pub fn since(&self, from: u64) -> Window {
        let to = self.now();
        Window { from, to }
    }

    /// All of this writer's keys are as the model says.
    pub fn check_all(&self) {
        for tree in 0..TREES {
            let from = self.now();
            let range = self.world.trees[tree].iter();
            self.compare_own(&self.model, tree, range, from);
        }
    }

    /// A scan of a whole tree; keys of others only have values that somebody writes.
    #[track_caller]
    pub fn compare_own(&self, model: &Model, tree: usize, range: indexy::Range, from: u64) {
        let mut own = Vec::new();
        let mut last: Option<indexy::Key> = None;
        for entry in range {
            let (key, value) = self.ok(entry);
            if last.is_some_and(|last| last >= key) {
                self.fail(tree, &key, "out of order");
            }
            if world::writer_of(&key) == self.id {
                own.push((key.clone(), value));
            } else if !self.world.is_a_value(tree, &key, &value) {
                self.fail(tree, &key, "a damaged value of another writer");
            }
            last = Some(key);
        }
        let window = self.since(from);
        self.compare_range(model, (tree, &[], &[0xff; 3]), &own, window);
    }
}
