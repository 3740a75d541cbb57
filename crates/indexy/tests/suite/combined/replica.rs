//! A replica that follows the change feed beside everything else: in the end it is what the trees
//! are, and no money was missing behind any set of changes.

use super::world::{COUNTERS, NAMES, NEVER, PLAIN, RENAMED, World};
use crate::bank;
use indexy::{Change, ChangePosition, Changes, Expires, Tree};
use std::{
    collections::BTreeMap,
    time::{Duration, UNIX_EPOCH},
};

/// Time of one wait for more.
const WAIT: Duration = Duration::from_millis(5);

/// What a tree's keys have, and when that expires; `None`: it was removed.
#[derive(Default)]
struct Copy {
    entries: BTreeMap<Vec<u8>, Option<(Vec<u8>, u64)>>,
    /// Ranges of loads, whose entries the feed does not tell.
    loaded: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Copy {
    fn may_be_loaded(&self, key: &[u8]) -> bool {
        let mut loaded = self.loaded.iter();
        loaded.any(|(from, to)| &from[..] <= key && to.as_ref().is_none_or(|to| key < &to[..]))
    }

    fn forget(&mut self, from: &[u8], to: Option<&[u8]>) -> Vec<Vec<u8>> {
        let inside = self
            .entries
            .range(from.to_vec()..)
            .map(|(key, _)| key.clone());
        let inside = inside.take_while(|key| to.is_none_or(|to| &key[..] < to));
        let inside: Vec<_> = inside.collect();
        inside.iter().for_each(|key| {
            self.entries.remove(key);
        });
        inside
    }

    fn merge(&mut self, key: &[u8], operand: &[u8]) {
        let base = match self.entries.get(key) {
            Some(known) => known.as_ref().map(|(value, _)| bank::number(value)),
            // Whatever it makes of that is not known either.
            None if self.may_be_loaded(key) => return,
            None => None,
        };
        let sum = base.unwrap_or(0).wrapping_add(bank::number(operand));
        let entry = Some((sum.to_be_bytes().to_vec(), NEVER));
        self.entries.insert(key.to_vec(), entry);
    }

    /// All that is known of it is in `tree`, and nothing else.
    fn compare(&self, tree: &Tree, now: u64, setup: &str) {
        let mut expected = self.entries.iter().filter_map(|(key, entry)| {
            let (value, expires) = entry.as_ref()?;
            (*expires > now).then_some((key, value))
        });
        for entry in tree.iter() {
            let (key, value) = entry.unwrap();
            if self.entries.contains_key(&key[..]) || !self.may_be_loaded(&key) {
                let next = expected.next();
                let right = next.is_some_and(|(k, v)| key == k[..] && value == v[..]);
                let next = next.map(|(k, v)| (k, v.len()));
                assert!(
                    right,
                    "{setup}, {}: {key:?}, replica: {next:?}",
                    tree.name()
                );
            }
        }
        let left = expected.next();
        assert!(
            left.is_none(),
            "{setup}, {}: the replica has {left:?}",
            tree.name()
        );
    }
}

pub struct Replica {
    copies: BTreeMap<String, Copy>,
    money: u64,
}

impl Replica {
    /// Follows from `start` to where the feed is when all is done.
    pub fn follow(world: &World, start: ChangePosition) -> Self {
        let mut changes = world.db.changes(start).unwrap();
        let mut replica = Self {
            copies: BTreeMap::new(),
            money: 0,
        };
        while !world.is_done() {
            changes.wait(WAIT).unwrap();
            replica.apply(&mut changes);
        }
        world.db.sync().unwrap();
        let end = world.db.newest_change().unwrap();
        while changes.at() < end {
            replica.apply(&mut changes);
        }
        replica
    }

    fn apply(&mut self, changes: &mut Changes) {
        for set in changes {
            let set = set.unwrap();
            let money = self.money;
            set.iter().for_each(|change| self.change(change));
            assert!(money == 0 || self.money == money, "money came or went");
        }
    }

    fn copy(&mut self, name: &str) -> &mut Copy {
        let name = if name == RENAMED { NAMES[PLAIN] } else { name };
        self.copies.entry(name.into()).or_default()
    }

    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::Insert { tree, key, value } => self.put(tree, key, value, NEVER),
            Change::InsertUntil {
                tree,
                key,
                value,
                expires,
            } => {
                let Expires::At(moment) = expires else {
                    panic!("{change:?}")
                };
                let at = moment.duration_since(UNIX_EPOCH).unwrap().as_millis();
                self.put(tree, key, value, at as u64);
            }
            Change::Remove { tree, key } => {
                self.copy(tree).entries.insert(key.to_vec(), None);
            }
            Change::RemoveRange { tree, from, to } => {
                let copy = self.copy(tree);
                for key in copy.forget(from, to) {
                    copy.entries.insert(key, None);
                }
            }
            Change::Load { tree, from, to } => {
                let copy = self.copy(tree);
                copy.forget(from, to);
                copy.loaded.push((from.to_vec(), to.map(<[u8]>::to_vec)));
            }
            Change::Merge { tree, key, operand } => {
                assert!(tree == NAMES[COUNTERS], "{change:?}");
                self.copy(tree).merge(key, operand);
            }
            _ => panic!("{change:?}"),
        }
    }

    fn put(&mut self, tree: &str, key: &[u8], value: &[u8], expires: u64) {
        let entry = Some((value.to_vec(), expires));
        let before = self.copy(tree).entries.insert(key.to_vec(), entry);
        if tree == "accounts" {
            let before = before
                .flatten()
                .map_or(0, |(value, _)| bank::number(&value));
            self.money = self.money + bank::number(value) - before;
        }
    }

    /// It is what the database is. Nobody writes.
    pub fn compare(&mut self, world: &World) {
        let (setup, now) = (format!("{:?}", world.setup), world.clock.millis());
        for (tree, name) in world.trees.iter().zip(NAMES) {
            self.copy(name).compare(tree, now, &setup);
        }
        for tree in [&world.bank.accounts, &world.bank.by_balance] {
            self.copy(tree.name()).compare(tree, now, &setup);
        }
    }
}
