//! The process is killed (SIGKILL) again and again in the middle of everything. With
//! `Durability::Sync` each writer's keys are what his acknowledged calls have left, and at most the
//! call that was under way beside them; else they are what a prefix of his calls leaves, which
//! reaches as far as his last `sync`. Each call is there whole or not at all (I8).

use super::{
    journal::{Journal, Record},
    model::{Effect, Entry, Map, Model},
    run::{WRITERS, pairs_of, run},
    world::{self, EXPIRING, Setup, TREES, TestClock, World, expires},
    writer::Writer,
};
use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, Random, assert_sound, child, child_argument, setting, side_by_side},
};
use indexy::Expires;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

fn journal(dir: &Path, writer: usize) -> PathBuf {
    dir.join(format!("journal-{writer}"))
}

fn clock(dir: &Path) -> Arc<TestClock> {
    let mut note = File::options();
    let note = note.create(true).truncate(false).read(true).write(true);
    TestClock::new(Some(note.open(dir.join("clock")).unwrap()))
}

fn open(dir: &Path, setup: Setup, budget: usize) -> World {
    World::open(&dir.join("db"), setup, &clock(dir), budget)
}

// --- what is there, and what it may be ---------------------------------------------------

/// What the trees have of a writer; a key with a value that nobody writes fails.
struct Found<'w> {
    world: &'w World,
    /// Values, by tree.
    values: Vec<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// When those of the tree expire whose entries do: two writes may leave one value.
    expires: BTreeMap<Vec<u8>, Expires>,
}

impl<'w> Found<'w> {
    fn read(world: &'w World, writer: usize) -> Self {
        let own = |tree: &indexy::Tree| {
            let entries = tree.iter().map(Result::unwrap);
            let own = entries.filter(|(key, _)| world::writer_of(key) == writer);
            own.map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
        };
        let values: Vec<BTreeMap<_, _>> = world.trees.iter().map(own).collect();
        let moment = |key: &Vec<u8>| {
            let expires = world.trees[EXPIRING].expires_at(key).unwrap();
            (key.clone(), expires.unwrap())
        };
        Self {
            world,
            expires: values[EXPIRING].keys().map(moment).collect(),
            values,
        }
    }

    /// A key is as `model` says, at the time of now, which stands still.
    fn agrees(&self, model: &Model, (tree, key): (usize, &[u8])) -> bool {
        let entry = model.live(tree, key, self.world.clock.millis());
        let value = entry.map(|entry| self.world.value(tree, key, entry.stamp));
        let moment = entry.filter(|_| tree == EXPIRING);
        let moment = moment.map(|entry| expires(entry.expires));
        self.values[tree].get(key) == value.as_ref()
            && (tree != EXPIRING || self.expires.get(key) == moment.as_ref())
    }

    fn keys(&self) -> impl Iterator<Item = (usize, Vec<u8>)> {
        let all = self.values.iter().enumerate();
        all.flat_map(|(tree, map)| map.keys().map(move |key| (tree, key.clone())))
    }

    /// The largest number of the first `calls`, `least` or more, that leaves what is there, and the
    /// model of that; else what is wrong.
    fn fits(&self, calls: &[Vec<Effect>], least: usize) -> Result<(usize, Model), String> {
        let mut model = Model::default();
        let mut wrong: BTreeSet<(usize, Vec<u8>)> = self.keys().collect();
        let (mut fitting, mut nearest) = (None, (usize::MAX, String::new()));
        for (n, effects) in (0..).zip(std::iter::once(&Vec::new()).chain(calls)) {
            let changed: Vec<_> = effects.iter().flat_map(|e| model.apply(e)).collect();
            for at in changed {
                let at = (at.tree, at.key);
                match self.agrees(&model, (at.0, &at.1)) {
                    true => wrong.remove(&at),
                    false => wrong.insert(at),
                };
            }
            if wrong.is_empty() && n >= least {
                fitting = Some((n, model.clone()));
            }
            if wrong.len() < nearest.0 || n == least {
                nearest = (wrong.len(), self.tell(&model, &calls[..n], &wrong));
            }
        }
        fitting.ok_or(nearest.1)
    }

    fn tell(
        &self,
        model: &Model,
        calls: &[Vec<Effect>],
        wrong: &BTreeSet<(usize, Vec<u8>)>,
    ) -> String {
        let n = calls.len();
        let Some((tree, key)) = wrong.first() else {
            return format!("all as after call {n}");
        };
        let own = (1..)
            .zip(calls)
            .flat_map(|(n, all)| all.iter().map(move |e| (n, e)));
        let own: Vec<_> = own.filter(|(_, e)| e.touches(*tree, key)).collect();
        let there = self.values[*tree].get(key).map(|v| &v[..v.len().min(16)]);
        let (entry, now) = (model.0[*tree].get(key), self.world.clock.millis());
        let value = entry.map(|entry| self.world.value(*tree, key, entry.stamp));
        let value = value.as_ref().map(|v| &v[..v.len().min(16)]);
        let others = wrong.len();
        format!(
            "after call {n}, at {now}, {others} keys are wrong, as {key:?} of tree {tree}: \
             {there:?} for {entry:?} with {value:?}; calls that touched it: {own:?}"
        )
    }
}

/// Checks all writers' keys; returns their models. The journals begin anew with these.
fn check(dir: &Path, world: &World) -> Vec<Model> {
    let setup = world.setup;
    assert_sound(&world.db);
    assert!(world.bank.check(&world.db.snapshot().unwrap()).unwrap());
    let of = |writer| {
        let path = journal(dir, writer);
        let record = Record::read(&path);
        let least = match setup.sync {
            true => record.acknowledged,
            false => record.durable,
        };
        let found = Found::read(world, writer);
        let (n, model) = found.fits(&record.calls, least).unwrap_or_else(|nearest| {
            let (calls, acknowledged) = (record.calls.len(), record.acknowledged);
            let last = record.calls.iter().enumerate().rev().take(4).rev();
            let last: Vec<_> = last.map(|(n, all)| format!("{}: {all:?}", n + 1)).collect();
            panic!(
                "{setup:?}: writer {writer} of {calls} calls, {acknowledged} acknowledged, at \
                 least {least}: {nearest}\n{}",
                last.join("\n")
            )
        });
        assert!(n >= least);
        Record::begin_with(&path, model.as_effects());
        model
    };
    (0..WRITERS).map(of).collect()
}

// --- processes ---------------------------------------------------------------------------

#[test]
fn everything_at_once_child() {
    let Some(argument) = child_argument() else {
        return;
    };
    let mut parts = argument.splitn(5, ' ');
    let [seed, life, pair, sync, dir] = [(); 5].map(|()| parts.next().unwrap());
    let (seed, life): (u64, u64) = (seed.parse().unwrap(), life.parse().unwrap());
    let (pair, sync, dir) = (pairs::named(pair), sync == "true", Path::new(dir));
    let setup = Setup { seed, pair, sync };
    let world = open(dir, setup, setup.budget());
    let models = check(dir, &world);
    let new = |(id, model): (usize, Model)| {
        let random = Random(seed * 100 + life * 10 + id as u64);
        let mut writer = Writer::new(&world, id, random, model);
        writer.journal = Journal::at(&journal(dir, id));
        writer
    };
    let mut writers: Vec<_> = models.into_iter().enumerate().map(new).collect();
    run(&mut writers, &world, u64::MAX, seed + life);
}

fn kill_again_and_again(setup: Setup, kills: u64) {
    let dir = fast_dir();
    let mut random = Random(setup.seed);
    let (mut calls, pair) = (0, pairs::name(setup.pair));
    for life in 0..kills {
        let (path, sync) = (dir.path().display(), setup.sync);
        let argument = format!("{} {life} {pair} {sync} {path}", setup.seed);
        let name = "combined::killed::everything_at_once_child";
        let mut child = child(name, &argument).spawn().unwrap();
        // Now and then while it is still recovering.
        let life = match life % 4 {
            3 => random.below(60),
            _ => 300 + random.below(700),
        };
        std::thread::sleep(Duration::from_millis(life));
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "{setup:?}: the child failed");
        child.kill().unwrap();
        child.wait().unwrap();
        if !dir.path().join("db").exists() {
            continue;
        }
        // Opened twice: recovery of what a recovery left.
        calls += (0..WRITERS)
            .map(|writer| Record::read(&journal(dir.path(), writer)).calls.len())
            .sum::<usize>();
        for budget in [setup.budget() + MIB, setup.budget()] {
            check(dir.path(), &open(dir.path(), setup, budget));
        }
    }
    println!("{setup:?}: {calls} calls in {kills} lives");
    assert!(calls > 0);
}

#[test]
fn i8_everything_at_once_survives_kills() {
    let (seed, kills) = (
        setting("INDEXY_COMBINED_SEED", 1),
        setting("INDEXY_COMBINED_KILLS", 3),
    );
    side_by_side((seed..).zip(pairs_of(1)), |(seed, pair)| {
        let sync = seed % 2 == 0;
        kill_again_and_again(Setup { seed, pair, sync }, kills);
    });
}

/// The checker itself: it tells what no prefix leaves.
#[test]
fn half_a_batch_is_noticed() {
    let dir = fast_dir();
    let setup = Setup {
        seed: 1,
        pair: pairs::DEFAULT,
        sync: true,
    };
    let world = open(dir.path(), setup, setup.budget());
    let mut writer = Writer::new(&world, 0, Random(1), Model::default());
    writer.journal = Journal::at(&journal(dir.path(), 0));
    while writer.model.0.iter().map(Map::len).sum::<usize>() < 300 {
        writer.write_something();
    }
    let calls = Record::read(&journal(dir.path(), 0)).calls;
    let fits = |calls: &[Vec<Effect>], least| Found::read(&world, 0).fits(calls, least);
    let (n, model) = fits(&calls, calls.len()).unwrap();
    assert!(n == calls.len() && model == writer.model);
    assert!(fits(&calls[..n - 20], 0).is_err(), "calls that never were");
    let (tree, now) = (&world.trees[EXPIRING], world.clock.millis());
    let live = |(_, entry): &(&Vec<u8>, &Entry)| entry.is_live(now);
    let (key, entry) = model.0[EXPIRING].iter().find(live).unwrap();
    let write = |moment| {
        let value = world.value(EXPIRING, key, entry.stamp);
        tree.insert_until(key, value, expires(moment)).unwrap();
    };
    write(entry.expires - 1);
    assert!(fits(&calls, 0).is_err(), "another life");
    write(entry.expires);
    assert!(fits(&calls, n).is_ok());
    let tree = (0..TREES).find(|tree| !model.0[*tree].is_empty()).unwrap();
    let (key, _) = model.0[tree].first_key_value().unwrap();
    world.trees[tree].remove(key).unwrap();
    assert!(fits(&calls, 0).is_err(), "a key is gone");
}
