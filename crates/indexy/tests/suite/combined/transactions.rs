//! Transactions that a writer leaves open while he writes on: they see the moment of their begin,
//! and conflict if something that they depend on was written meanwhile, and else not.

use super::{
    model::{Effect, Model, Window},
    world::{COUNTERS, EXPIRING, NEVER},
    writer::Writer,
    writes::put,
};
use indexy::{Error, Isolation, Transaction};

/// An open transaction.
pub struct Open {
    tx: Transaction,
    isolation: Isolation,
    /// What it sees, and when it began.
    model: Model,
    window: Window,
    /// What it depends on.
    keys: Vec<(usize, Vec<u8>)>,
    ranges: Vec<(usize, Vec<u8>, Vec<u8>)>,
}

/// Whether a commit conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Conflict {
    No,
    /// What it depends on was written with what was there already, or has expired.
    Maybe,
    Yes,
}

impl Writer<'_> {
    /// A step of the open transaction, or the begin of one.
    pub fn open_transaction(&mut self) {
        match self.open.take() {
            None => {
                let from = self.now();
                let mut tx = self.ok(self.world.db.begin());
                let isolation = match self.random.one_in(3) {
                    true => Isolation::Snapshot,
                    false => Isolation::Serializable,
                };
                tx.isolation(isolation);
                self.beside.clear();
                self.open = Some(Open {
                    tx,
                    isolation,
                    model: self.model.clone(),
                    window: self.since(from),
                    keys: Vec::new(),
                    ranges: Vec::new(),
                });
            }
            Some(open) if self.random.one_in(3) => self.commit(open),
            Some(mut open) => {
                // Given up like a snapshot: what comes of it is no longer of interest.
                match self.read_in(&mut open) {
                    Ok(()) => self.open = Some(open),
                    Err(Error::SnapshotTooOld) if self.world.setup.gives_up_snapshots() => {}
                    Err(error) => self.ok(Err(error)),
                }
            }
        }
    }

    fn read_in(&mut self, open: &mut Open) -> indexy::Result<()> {
        let tree = self.any_tree();
        let (at, key) = (&self.world.trees[tree], self.some_key(tree));
        if self.random.one_in(3) {
            let (from, to) = self.some_range(tree);
            let range = open.tx.range(at, &from[..]..&to[..]);
            let found = range.collect::<indexy::Result<Vec<_>>>()?;
            self.compare_range(&open.model, (tree, &from, &to), &found, open.window);
            if open.isolation == Isolation::Serializable {
                open.ranges.push((tree, from, to));
            }
            return Ok(());
        }
        let for_update = self.random.one_in(3);
        let found = match for_update {
            true => open.tx.get_for_update(at, &key)?,
            false => open.tx.get(at, &key)?,
        };
        self.compare(&open.model, (tree, &key), found.as_deref(), open.window);
        if for_update || open.isolation == Isolation::Serializable {
            open.keys.push((tree, key));
        }
        Ok(())
    }

    fn commit(&mut self, mut open: Open) {
        let world = self.world;
        let (_still, now) = world.clock.still();
        let effects = self.some_effects(now, false);
        for (n, effect) in effects.iter().enumerate() {
            // What the transaction has written itself it does not read.
            let own = |tree, key: &[u8]| effects[..n].iter().any(|e| e.touches(tree, key));
            match effect {
                Effect::Merge(key, _) if !own(COUNTERS, key) => {
                    open.keys.push((COUNTERS, key.clone()));
                }
                Effect::Put(tree, key, _) | Effect::Remove(tree, key)
                    if open.isolation == Isolation::Snapshot =>
                {
                    open.keys.push((*tree, key.clone()));
                }
                _ => {}
            }
        }
        let conflict = match effects.is_empty() {
            true => Conflict::No,
            false => self.conflict(&open, &effects, now),
        };
        let (isolation, beside) = (open.isolation, self.beside.len());
        let what = format!("commit, {isolation:?}, {conflict:?} beside {beside} effects");
        self.journal.begin(what, &effects);
        let mut tx = open.tx;
        let written = effects.iter().try_for_each(|e| put(world, &mut tx, e, now));
        let result = match written.and_then(|()| tx.commit()) {
            Err(Error::Conflict { .. }) if conflict >= Conflict::Maybe => Ok(false),
            Err(Error::SnapshotTooOld) if world.setup.gives_up_snapshots() => Ok(false),
            Ok(()) if conflict == Conflict::Yes => {
                let (tree, key) = self.first_conflict(&open.keys, &open.ranges);
                self.fail(tree, &key, "a commit over what was written meanwhile")
            }
            other => other.map(|()| true),
        };
        self.settle(&effects, result);
        self.beside.clear();
    }

    fn conflict(&self, open: &Open, effects: &[Effect], now: u64) -> Conflict {
        let (mut conflict, beside) = (Conflict::No, &self.beside);
        let changed = |tree: usize, key: &[u8]| {
            let mut all = beside.iter().flat_map(|(_, changed)| changed);
            all.any(|(at, own)| *at == tree && &own[..] == key)
        };
        let touched =
            |tree: usize, key: &[u8]| beside.iter().any(|(effect, _)| effect.touches(tree, key));
        for (tree, key) in &open.keys {
            let entry = open.model.0[*tree].get(key);
            conflict = conflict.max(match () {
                () if changed(*tree, key) => Conflict::Yes,
                () if touched(*tree, key) => Conflict::Maybe,
                () if entry.is_some_and(|entry| entry.expires <= now) => Conflict::Maybe,
                () => Conflict::No,
            });
        }
        for (tree, from, to) in &open.ranges {
            let inside = |at: usize, key: &[u8]| at == *tree && &from[..] <= key && key < &to[..];
            let mut seen = open.model.0[*tree].range(from.clone()..to.clone());
            let expired = *tree == EXPIRING
                && seen.any(|(_, entry)| entry.expires != NEVER && entry.expires <= now);
            let changes = beside.iter().flat_map(|(_, changed)| changed);
            let meets = |effect: &Effect| match effect {
                Effect::Put(at, key, _) | Effect::Remove(at, key) => inside(*at, key),
                Effect::RemoveRange(at, start, end) => at == tree && start < to && from < end,
                Effect::Merge(key, _) => inside(COUNTERS, key),
            };
            conflict = conflict.max(match () {
                () if changes.into_iter().any(|(at, key)| inside(*at, key)) => Conflict::Yes,
                () if beside.iter().any(|(effect, _)| meets(effect)) || expired => Conflict::Maybe,
                () => Conflict::No,
            });
        }
        // To write over what somebody has written since, without a look, is no conflict by itself.
        let blind = effects.iter().any(|effect| match effect {
            Effect::Put(tree, key, _) | Effect::Remove(tree, key) => touched(*tree, key),
            _ => false,
        });
        conflict.max(match blind {
            true => Conflict::Maybe,
            false => Conflict::No,
        })
    }

    /// What a commit should have conflicted with.
    fn first_conflict(
        &self,
        keys: &[(usize, Vec<u8>)],
        ranges: &[(usize, Vec<u8>, Vec<u8>)],
    ) -> (usize, Vec<u8>) {
        let mut changed = self.beside.iter().flat_map(|(_, changed)| changed);
        let read = |at: &&(usize, Vec<u8>)| {
            let inside = |(tree, from, to): &(usize, Vec<u8>, Vec<u8>)| {
                at.0 == *tree && *from <= at.1 && at.1 < *to
            };
            keys.contains(at) || ranges.iter().any(inside)
        };
        changed.find(read).cloned().unwrap_or_default()
    }
}
