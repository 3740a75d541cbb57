//! What a writer writes: each call, with its effects on the model.

use super::{
    model::{Effect, Entry},
    world::{
        COUNTERS, EXPIRING, LIFE, NEVER, PLAIN, PREFIX_BYTES, STRETCHES, TREES, World, expires,
        prefix,
    },
    writer::Writer,
};
use indexy::{Batch, Error, Result, Transaction};
use std::time::Duration;

/// Entries of a load, at most.
const LOADED: u64 = 150;
/// Effects of a batch, at most.
const BATCH: u64 = 24;
/// Of a batch or transaction there are large values of this part of the budget, at most.
const LARGE_DIVISOR: usize = 8;

/// How an entry of a tree whose entries expire is written.
#[derive(Clone, Copy, Debug)]
enum Life {
    Default,
    For(u64),
    Until(u64),
}

impl Life {
    fn ends(self, now: u64) -> u64 {
        match self {
            Self::Default => now + LIFE,
            Self::For(life) => now + life,
            Self::Until(moment) => moment,
        }
    }
}

impl Writer<'_> {
    fn any_stamp(&mut self, tree: usize) -> u64 {
        match tree {
            COUNTERS => self.random.below(1 << 40),
            _ => self.next_stamp(),
        }
    }

    fn any_life(&mut self, now: u64) -> Life {
        match self.random.below(6) {
            0 | 1 => Life::Default,
            2 => Life::For(1 + self.random.below(300)),
            3 => Life::For(1 + self.random.below(10_000)),
            4 => Life::Until((now - 50) + self.random.below(2000)),
            _ => Life::Until(NEVER),
        }
    }

    pub fn insert(&mut self) {
        let tree = self.any_tree();
        let (key, stamp) = (self.some_key(tree), self.any_stamp(tree));
        let value = self.world.value(tree, &key, stamp);
        let at = &self.world.trees[tree];
        if tree != EXPIRING {
            let put = Effect::Put(tree, key.clone(), Entry::lasting(stamp));
            self.write("insert", &[put], |_| at.insert(key, value));
            return;
        }
        let (_still, now) = self.world.clock.still();
        let life = self.any_life(now);
        let expires_at = life.ends(now);
        let entry = Entry {
            stamp,
            expires: expires_at,
        };
        let put = Effect::Put(tree, key.clone(), entry);
        self.write(format!("insert {life:?}"), &[put], |_| match life {
            Life::Default => at.insert(key, value),
            Life::For(ms) => at.insert_with_ttl(key, value, Duration::from_millis(ms)),
            Life::Until(moment) => at.insert_until(key, value, expires(moment)),
        });
    }

    pub fn remove(&mut self) {
        let tree = self.any_tree();
        let key = self.some_key(tree);
        let remove = Effect::Remove(tree, key.clone());
        self.write("remove", &[remove], |world| world.trees[tree].remove(key));
    }

    pub fn merge(&mut self) {
        let (key, by) = (self.some_key(COUNTERS), self.random.below(1000));
        let merge = Effect::Merge(key.clone(), by);
        let operand = by.to_be_bytes();
        self.write("merge", &[merge], |world| {
            world.trees[COUNTERS].merge(key, operand)
        });
    }

    /// Writes that look at what is there. The time stands still meanwhile.
    pub fn change(&mut self) {
        let tree = self.any_tree();
        let (key, stamp) = (self.some_key(tree), self.any_stamp(tree));
        let world = self.world;
        let (_still, now) = world.clock.still();
        let had = self.model.live(tree, &key, now);
        let old = had.map(|entry| world.value(tree, &key, entry.stamp));
        let new = (!self.random.one_in(4)).then(|| world.value(tree, &key, stamp));
        let mut expires = if tree == EXPIRING { now + LIFE } else { NEVER };
        let (at, put) = (&world.trees[tree], |expires| match new {
            Some(_) => Effect::Put(tree, key.clone(), Entry { stamp, expires }),
            None => Effect::Remove(tree, key.clone()),
        });
        match self.random.below(4) {
            0 => {
                let remove = Effect::Remove(tree, key.clone());
                self.write("take", &[remove], |_| {
                    let taken = at.take(&key)?;
                    assert!(
                        taken.as_deref() == old.as_deref(),
                        "took {taken:?} of {key:?}"
                    );
                    Ok(())
                });
            }
            1 => {
                // Another value than that which is there.
                let wrong = world.value(tree, &key, stamp + 1);
                let effects = match old.as_ref() == Some(&wrong) {
                    true => vec![put(expires)],
                    false => vec![],
                };
                self.write("failing compare_and_swap", &effects, |_| {
                    let swapped = at.compare_and_swap(&key, Some(&wrong), new.as_ref())?;
                    assert_eq!(swapped, !effects.is_empty(), "{key:?}");
                    Ok(())
                });
            }
            2 => self.write("compare_and_swap", &[put(expires)], |_| {
                let swapped = at.compare_and_swap(&key, old.as_ref(), new.as_ref())?;
                assert!(swapped, "{key:?} of {tree} has not {had:?}");
                Ok(())
            }),
            _ => {
                expires = had.map_or(expires, |entry| entry.expires);
                self.write("update", &[put(expires)], |_| {
                    let change = |found: Option<&[u8]>| {
                        assert!(found == old.as_deref(), "update of {key:?} found {found:?}");
                        new.clone()
                    };
                    let left = at.update(&key, change)?;
                    assert!(left.as_deref() == new.as_deref());
                    Ok(())
                });
            }
        }
    }

    /// Two keys of one stretch with some keys between them, or the second one is behind all.
    pub fn some_range(&mut self, tree: usize) -> (Vec<u8>, Vec<u8>) {
        let from = self.any_key();
        let end = behind(&from);
        let far = match self.random.one_in(6) {
            true => 200,
            false => 10,
        };
        let mut behind = self.model.0[tree].range(from.clone()..end.clone());
        let to = behind.nth(1 + self.random.below(far) as usize);
        let to = to.map_or(end, |(key, _)| key.clone());
        (from, to)
    }

    pub fn remove_range(&mut self) {
        let tree = self.any_tree();
        let (from, to) = self.some_range(tree);
        let remove = Effect::RemoveRange(tree, from.clone(), to.clone());
        self.write("remove_range", &[remove], |w| {
            w.trees[tree].remove_range(&from[..]..&to[..])
        });
    }

    /// A whole stretch goes.
    fn remove_prefix(&mut self) {
        let tree = self.any_tree();
        let prefix = prefix(self.id, self.random.below(STRETCHES));
        let remove = Effect::RemoveRange(tree, prefix.clone(), behind(&prefix));
        self.write("remove_prefix", &[remove], |w| {
            w.trees[tree].remove_prefix(&prefix)
        });
    }

    /// Effects over several trees. Entries that expire do so after some time from `now`.
    pub fn some_effects(&mut self, now: u64, ranges: bool) -> Vec<Effect> {
        let mut room = self.world.setup.budget() / LARGE_DIVISOR;
        let mut effects: Vec<Effect> = Vec::new();
        for _ in 0..1 + self.random.below(BATCH) {
            let tree = self.any_tree();
            // Now and then one that this batch has written.
            let again = effects.last().filter(|_| self.random.one_in(6));
            let (tree, key) = match again {
                Some(Effect::Put(tree, key, _) | Effect::Remove(tree, key)) => (*tree, key.clone()),
                _ => (tree, self.some_key(tree)),
            };
            match self.random.below(40) {
                0 if ranges => {
                    let (from, to) = self.some_range(tree);
                    effects.push(Effect::RemoveRange(tree, from, to));
                }
                1..8 => effects.push(Effect::Remove(tree, key)),
                8..14 if tree == COUNTERS => {
                    effects.push(Effect::Merge(key, self.random.below(1000)));
                }
                _ => {
                    let stamp = self.any_stamp(tree);
                    let bytes = self.world.value(tree, &key, stamp).len();
                    if bytes > room {
                        continue;
                    }
                    room -= bytes;
                    let life = 1 + self.random.below(2 * LIFE);
                    let expires = if tree == EXPIRING { now + life } else { NEVER };
                    effects.push(Effect::Put(tree, key, Entry { stamp, expires }));
                }
            }
        }
        effects
    }

    pub fn batch(&mut self) {
        let ranges = self.random.one_in(4);
        let effects = self.some_effects(self.now(), ranges);
        let mut batch = self.world.db.batch();
        effects
            .iter()
            .for_each(|effect| add(self.world, &mut batch, effect));
        let scratch = self.random.one_in(8).then(|| self.world.scratch());
        if let Some(scratch) = &scratch {
            batch.insert(scratch, "key", [7; 900]);
        }
        let bytes = batch.bytes();
        self.journal
            .begin(format!("batch of {bytes} bytes, {scratch:?}"), &effects);
        let result = match batch.commit() {
            // All of it or nothing.
            Err(Error::TreeDropped { .. }) if scratch.is_some() => Ok(false),
            other => other.map(|()| true),
        };
        self.settle(&effects, result);
    }

    /// A transaction that reads and writes this writer's keys: nobody is in its way.
    pub fn transaction(&mut self) {
        let world = self.world;
        let (_still, now) = world.clock.still();
        let effects = self.some_effects(now, false);
        let reads: Vec<_> = (0..self.random.below(6))
            .map(|_| {
                let tree = self.any_tree();
                (tree, self.some_key(tree))
            })
            .collect();
        let merges = effects
            .iter()
            .any(|effect| matches!(effect, Effect::Merge(..)));
        let (gives_up, appends) = (self.random.one_in(5), !merges && self.random.one_in(2));
        self.journal.begin("transaction".into(), &effects);
        let mut after = self.model.clone();
        effects.iter().for_each(|effect| drop(after.apply(effect)));
        let result = world.db.transact(|tx| {
            for (tree, key) in &reads {
                let found = tx.get(&world.trees[*tree], key)?;
                self.compare(&self.model, (*tree, key), found.as_deref(), self.since(now));
            }
            let savepoint = tx.savepoint();
            tx.insert(&world.trees[PLAIN], self.junk(), "junk")?;
            tx.rollback_to(savepoint)?;
            if appends {
                let mut batch = world.db.batch();
                effects
                    .iter()
                    .for_each(|effect| add(world, &mut batch, effect));
                tx.append(batch)?;
            } else {
                effects
                    .iter()
                    .try_for_each(|effect| put(world, tx, effect, now))?;
            }
            for (tree, key) in &reads {
                let found = tx.get(&world.trees[*tree], key)?;
                self.compare(&after, (*tree, key), found.as_deref(), self.since(now));
            }
            match gives_up {
                // As a body that fails.
                true => Err(Error::NoSuchTree {
                    name: "given up".into(),
                }),
                false => Ok(()),
            }
        });
        let result = match result {
            Err(Error::NoSuchTree { .. }) if gives_up => Ok(false),
            other => other.map(|()| true),
        };
        self.settle(&effects, result);
    }

    /// A key that is never written for good.
    fn junk(&self) -> Vec<u8> {
        [&prefix(self.id, 0)[..], b"junk"].concat()
    }

    /// Loads sorted keys where there are none, or tries to.
    pub fn load(&mut self) {
        let tree = self.any_tree();
        let (from, count) = (self.any_key(), 1 + self.random.below(LOADED));
        let over = |n: u64| [&from[..], &(n as u32).to_be_bytes()].concat();
        let world = self.world;
        let (_still, now) = world.clock.still();
        let expires = if tree == EXPIRING { now + LIFE } else { NEVER };
        let there = self.model.0[tree].range(over(0)..=over(count - 1));
        let (any, live) = there.fold((false, false), |(_, live), (_, entry)| {
            (true, live || entry.is_live(now))
        });
        let entries: Vec<_> = (0..count)
            .map(|n| {
                let entry = Entry {
                    stamp: self.any_stamp(tree),
                    expires,
                };
                (over(n), entry)
            })
            .collect();
        let effects: Vec<_> = entries
            .iter()
            .map(|(key, entry)| Effect::Put(tree, key.clone(), *entry))
            .collect();
        let values = entries
            .iter()
            .map(|(key, entry)| (key, world.value(tree, key, entry.stamp)));
        self.journal
            .begin(format!("load_sorted of {count}"), &effects);
        let result = match world.trees[tree].load_sorted(values) {
            // Snapshots may still see what has expired; of some of it the model knows no more.
            Err(Error::RangeNotEmpty { .. }) if any || tree == EXPIRING => Ok(false),
            other => other.map(|loaded| {
                assert!(loaded == count && !live, "a load over what is there");
                true
            }),
        };
        self.settle(&effects, result);
    }

    /// What was written before is durable after it.
    pub fn sync(&mut self) {
        self.ok(self.world.db.sync());
        self.journal.durable();
    }

    pub fn write_something(&mut self) {
        match self.random.below(100) {
            0..36 => self.insert(),
            36..46 => self.remove(),
            46..58 => self.merge(),
            58..72 => self.batch(),
            72..80 => self.transaction(),
            80..96 => self.change(),
            96 if self.random.one_in(20) => self.remove_prefix(),
            96..98 => self.remove_range(),
            98 => self.load(),
            _ => self.sync(),
        }
    }
}

/// Behind all keys of the stretch of `key`.
fn behind(key: &[u8]) -> Vec<u8> {
    let mut end = key[..PREFIX_BYTES].to_vec();
    end[PREFIX_BYTES - 1] += 1;
    end
}

fn add(world: &World, batch: &mut Batch, effect: &Effect) {
    let trees = &world.trees[..TREES];
    match effect {
        Effect::Put(tree, key, entry) => {
            let value = world.value(*tree, key, entry.stamp);
            match *tree {
                EXPIRING => batch.insert_until(&trees[*tree], key, value, expires(entry.expires)),
                tree => batch.insert(&trees[tree], key, value),
            }
        }
        Effect::Remove(tree, key) => batch.remove(&trees[*tree], key),
        Effect::RemoveRange(tree, from, to) => {
            batch.remove_range(&trees[*tree], &from[..]..&to[..]);
        }
        Effect::Merge(key, by) => batch.merge(&trees[COUNTERS], key, by.to_be_bytes()),
    }
}

pub fn put(world: &World, tx: &mut Transaction, effect: &Effect, now: u64) -> Result<()> {
    let trees = &world.trees;
    match effect {
        Effect::Put(tree, key, entry) => {
            let value = world.value(*tree, key, entry.stamp);
            match *tree {
                EXPIRING => {
                    let life = Duration::from_millis(entry.expires - now);
                    tx.insert_with_ttl(&trees[*tree], key, value, life)
                }
                tree => tx.insert(&trees[tree], key, value),
            }
        }
        Effect::Remove(tree, key) => tx.remove(&trees[*tree], key),
        Effect::RemoveRange(..) => unreachable!("transactions remove no ranges"),
        Effect::Merge(key, by) => tx.merge(&trees[COUNTERS], key, by.to_be_bytes()),
    }
}
