//! What a writer reads of its own keys, now and in snapshots.

use super::{
    world::{COUNTERS, EXPIRING, PREFIX_BYTES, STRETCHES, expires, prefix},
    writer::{Held, Writer},
};
use indexy::{Error, Key, Range, Result, Value};

/// Snapshots that a writer holds, at most.
const HELD: usize = 3;
/// Entries of a scan, at most.
const SCANNED: u64 = 400;

/// Where a scan reads.
struct Where {
    tree: usize,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Writer<'_> {
    pub fn read(&mut self) {
        let tree = self.any_tree();
        let (at, key) = (&self.world.trees[tree], self.some_key(tree));
        let from = self.now();
        match self.random.below(12) {
            0..5 => {
                let found = self.ok(at.get(&key));
                self.compare(
                    &self.model,
                    (tree, &key),
                    found.as_deref(),
                    self.since(from),
                );
            }
            5 => {
                let found = self.ok(at.get_with(&key, <[u8]>::to_vec));
                self.compare(
                    &self.model,
                    (tree, &key),
                    found.as_deref(),
                    self.since(from),
                );
            }
            6..8 => {
                let found = self.ok(at.try_get(&key).and_then(indexy::Fetch::wait));
                self.compare(
                    &self.model,
                    (tree, &key),
                    found.as_deref(),
                    self.since(from),
                );
            }
            8 => {
                let there = self.ok(at.contains_key(&key));
                let (window, entry) = (self.since(from), self.model.0[tree].get(&key));
                let right = match there {
                    true => entry.is_some_and(|entry| entry.may_be_seen(window)),
                    false => entry.is_none_or(|entry| !entry.must_be_seen(window)),
                };
                if !right {
                    self.fail(tree, &key, &format!("contains_key said {there}"));
                }
            }
            9 if tree == EXPIRING => self.read_moment(&key),
            _ => {
                let keys: Vec<_> = (0..24).map(|_| self.some_key(tree)).collect();
                let from = self.now();
                let found = self.ok(at.multi_get(&keys));
                let window = self.since(from);
                for (key, found) in keys.iter().zip(found) {
                    self.compare(&self.model, (tree, key), found.as_deref(), window);
                }
            }
        }
    }

    fn read_moment(&self, key: &[u8]) {
        let (_still, now) = self.world.clock.still();
        let found = self.ok(self.world.trees[EXPIRING].expires_at(key));
        let entry = self.model.live(EXPIRING, key, now);
        let expected = entry.map(|entry| expires(entry.expires));
        if found != expected {
            self.fail(EXPIRING, key, &format!("expires at {found:?}"));
        }
    }

    fn somewhere(&mut self) -> Where {
        let tree = self.any_tree();
        let (a, mut b) = (self.some_key(tree), self.some_key(tree));
        b[..PREFIX_BYTES].copy_from_slice(&a[..PREFIX_BYTES]);
        let (from, to) = (a.clone().min(b.clone()), a.max(b));
        Where { tree, from, to }
    }

    pub fn scan(&mut self) {
        let place = self.somewhere();
        let from = self.now();
        let range = self.world.trees[place.tree].range(&place.from[..]..&place.to[..]);
        self.check_scan(None, &place, range, from);
        if self.random.one_in(10) {
            let stretch = prefix(self.id, self.random.below(STRETCHES));
            let (tree, from) = (place.tree, self.now());
            let found: Vec<_> = self.ok(self.world.trees[tree].prefix(&stretch).collect());
            let window = self.since(from);
            let mut to = stretch.clone();
            to[PREFIX_BYTES - 1] += 1;
            self.compare_range(&self.model, (tree, &stretch, &to), &found, window);
        }
    }

    /// A scan of a whole tree, across the keys of others.
    pub fn scan_all(&mut self) {
        let tree = self.any_tree();
        let from = self.now();
        self.compare_own(&self.model, tree, self.world.trees[tree].iter(), from);
    }

    /// Takes entries from both ends of a scan until they meet, or some, and compares. Of a snapshot
    /// it is that of its number.
    fn check_scan(&mut self, of: Option<usize>, place: &Where, range: Range, from: u64) {
        let ends = self.random.below(3);
        let most = match self.random.one_in(4) {
            true => 1 + self.random.below(30),
            false => SCANNED,
        };
        let taken = match take(range, most, || match ends {
            0 => true,
            1 => false,
            _ => self.random.one_in(2),
        }) {
            Ok(taken) => taken,
            Err(error) => return self.given_up(of, error),
        };
        let (model, window) = match of {
            Some(n) => (&self.held[n].model, self.held[n].window),
            None => (&self.model, self.since(from)),
        };
        let Taken { front, back, met } = taken;
        let Where { tree, from, to } = place;
        if met {
            let all: Vec<_> = front.into_iter().chain(back.into_iter().rev()).collect();
            self.compare_range(model, (*tree, from, to), &all, window);
            return;
        }
        if let Some((last, _)) = front.last() {
            let end = [&last[..], &[0]].concat();
            self.compare_range(model, (*tree, from, &end), &front, window);
        }
        if let Some((first, _)) = back.last() {
            let begin = first.to_vec();
            let back: Vec<_> = back.into_iter().rev().collect();
            self.compare_range(model, (*tree, &begin, to), &back, window);
        }
    }

    // --- snapshots -----------------------------------------------------------------------

    pub fn snapshots(&mut self) {
        match self.random.below(10) {
            0..3 if self.held.len() < HELD => {
                let from = self.now();
                let snapshot = self.ok(self.world.db.snapshot());
                self.held.push(Held {
                    snapshot,
                    model: self.model.clone(),
                    window: self.since(from),
                });
            }
            0 if self.held.len() == HELD => {
                let gone = self.random.below(HELD as u64) as usize;
                self.check_snapshot(gone);
                if self.held.len() == HELD {
                    self.held.swap_remove(gone);
                }
            }
            _ if !self.held.is_empty() => {
                let n = self.random.below(self.held.len() as u64) as usize;
                self.read_snapshot(n);
            }
            _ => {}
        }
    }

    /// Single keys and a scan of an open snapshot.
    fn read_snapshot(&mut self, n: usize) {
        let tree = self.any_tree();
        for _ in 0..4 {
            let key = match self.random.one_in(2) {
                true => self.some_key(tree),
                false => self.key_of(n, tree),
            };
            let held = &self.held[n];
            match held.snapshot.get(&self.world.trees[tree], &key) {
                Ok(found) => {
                    self.compare(&held.model, (tree, &key), found.as_deref(), held.window);
                }
                Err(error) => return self.given_up(Some(n), error),
            }
        }
        let place = self.somewhere();
        let range = &place.from[..]..&place.to[..];
        let range = self.held[n]
            .snapshot
            .range(&self.world.trees[place.tree], range);
        self.check_scan(Some(n), &place, range, 0);
    }

    /// A key that the snapshot has and that may be gone.
    fn key_of(&mut self, n: usize, tree: usize) -> Vec<u8> {
        let key = self.any_key();
        let there = self.held[n].model.0[tree].range(key.clone()..).next();
        there.map_or(key, |(there, _)| there.clone())
    }

    /// All that an open snapshot sees of this writer's.
    fn check_snapshot(&mut self, n: usize) {
        for tree in 0..self.world.trees.len() {
            let Held {
                snapshot,
                model,
                window,
            } = &self.held[n];
            let range = snapshot.iter(&self.world.trees[tree]);
            let own = |entry: &Result<(Key, Value)>| match entry {
                Ok((key, _)) => super::world::writer_of(key) == self.id,
                Err(_) => true,
            };
            match range.filter(own).collect::<Result<Vec<_>>>() {
                Ok(found) => self.compare_range(model, (tree, &[], &[0xff; 3]), &found, *window),
                Err(error) => return self.given_up(Some(n), error),
            }
        }
    }

    pub fn check_snapshots(&mut self) {
        for n in (0..self.held.len()).rev() {
            self.check_snapshot(n);
        }
    }

    /// A read of snapshot number `n` failed: it was given up, if that may be.
    #[track_caller]
    fn given_up(&mut self, n: Option<usize>, error: Error) {
        let may = self.world.setup.gives_up_snapshots();
        match (n, &error) {
            (Some(n), Error::SnapshotTooOld) if may => drop(self.held.swap_remove(n)),
            _ => self.fail(COUNTERS, b"", &error.to_string()),
        }
    }
}

/// Entries of both ends of a scan.
struct Taken {
    front: Vec<(Key, Value)>,
    /// Descending.
    back: Vec<(Key, Value)>,
    /// Both ends have met.
    met: bool,
}

fn take(mut range: Range, most: u64, mut in_front: impl FnMut() -> bool) -> Result<Taken> {
    let (mut front, mut back) = (Vec::new(), Vec::new());
    for _ in 0..most {
        let (next, side) = match in_front() {
            true => (range.next(), &mut front),
            false => (range.next_back(), &mut back),
        };
        match next {
            Some(entry) => side.push(entry?),
            None => {
                let met = true;
                return Ok(Taken { front, back, met });
            }
        }
    }
    let met = false;
    Ok(Taken { front, back, met })
}
