//! What goes on beside the writers: the budget changes, time passes, everything is flushed, copied,
//! released, compacted, verified; trees are renamed, dropped and made again.

use super::world::{SCRAP, SCRATCH, STRETCHES, World, prefix};
use crate::{
    bank::Bank,
    pairs,
    places::fast_dir,
    support::{Random, assert_sound, open},
};
use indexy::{Error, TreeOptions};
use std::time::{Duration, Instant};

/// Budgets go up to so many times the smallest one.
const TIMES: u64 = 3;
/// In which a lowered budget is kept.
const LIMIT: Duration = Duration::from_secs(60);

pub fn run(world: &World, seed: u64) {
    let mut random = Random(seed);
    let mut allowed = world.db.stats().memory_budget_bytes;
    while !world.is_done() {
        let stats = world.db.stats();
        assert!(
            stats.memory_used_bytes <= allowed + world.setup.beside_budget(),
            "{:?}: more than {allowed} bytes: {stats:?}",
            world.setup
        );
        match random.below(200) {
            0..60 => world.clock.advance(random.below(40)),
            60 => world.clock.advance(random.below(6000)),
            61..70 => allowed = change_budget(world, &mut random, allowed),
            70..73 => world.db.flush().unwrap(),
            73 => checkpoint(world),
            74..90 => release(world, &mut random),
            90..92 => {
                let tree = &world.trees[random.below(world.trees.len() as u64) as usize];
                let (from, to) = range(&mut random);
                tree.compact(&from[..]..&to[..]).unwrap();
            }
            92 => assert_sound(&world.db),
            93 => scratch(world, &mut random),
            94 => world.rename(),
            95..99 => snapshot(world),
            99..130 => check_bank(world),
            _ => std::thread::sleep(Duration::from_millis(random.below(4))),
        }
    }
}

/// Returns the budget that is kept from now on.
fn change_budget(world: &World, random: &mut Random, before: u64) -> u64 {
    let least = world.setup.budget() as u64;
    let budget = match random.one_in(3) {
        true => least,
        false => least + random.below(least * (TIMES - 1)),
    };
    match world.db.set_memory_budget(budget as usize) {
        Ok(()) => {}
        Err(Error::BudgetTooSmall { .. }) => return before,
        Err(error) => panic!("{:?}: {error}", world.setup),
    }
    let start = Instant::now();
    while world.db.stats().memory_used_bytes > budget && !world.is_done() {
        let stats = world.db.stats();
        assert!(
            start.elapsed() < LIMIT,
            "{:?}: not within the budget: {stats:?}",
            world.setup
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    budget
}

fn range(random: &mut Random) -> (Vec<u8>, Vec<u8>) {
    let mut end = || prefix(random.below(5) as usize, random.below(STRETCHES));
    let (a, b) = (end(), end());
    (a.clone().min(b.clone()), a.max(b))
}

fn release(world: &World, random: &mut Random) {
    let tree = &world.trees[random.below(world.trees.len() as u64) as usize];
    let (from, to) = range(random);
    match random.one_in(4) {
        true => tree.release::<&[u8]>(..),
        false => tree.release(&from[..]..&to[..]),
    }
    .unwrap();
}

/// A copy is sound, and no money is missing in it.
fn checkpoint(world: &World) {
    let copies = fast_dir();
    let path = copies.path().join("copy");
    world.db.checkpoint(&path).unwrap();
    let copy = open(&path, &world.setup.options(&world.clock));
    assert_sound(&copy);
    let bank = Bank {
        accounts: copy.tree("accounts").unwrap(),
        by_balance: copy.tree("by balance").unwrap(),
        history: None,
        db: copy.clone(),
    };
    assert!(bank.check(&copy.snapshot().unwrap()).unwrap());
}

/// The scratch tree is dropped, and made again of another pair; or renamed to and fro.
fn scratch(world: &World, random: &mut Random) {
    if random.one_in(2) {
        world.db.rename_tree(SCRATCH, SCRAP).unwrap();
        world.db.rename_tree(SCRAP, SCRATCH).unwrap();
        return;
    }
    let options = match random.below(3) {
        0 => TreeOptions::new(),
        1 => pairs::second(pairs::DEFAULT),
        _ => pairs::second(world.setup.pair),
    };
    world.db.drop_tree(SCRATCH).unwrap();
    let new = world.db.tree_with(SCRATCH, options).unwrap();
    *world.scratch.lock().unwrap() = new;
}

/// A snapshot says the same twice.
fn snapshot(world: &World) {
    let snapshot = world.db.snapshot().unwrap();
    let all = || -> indexy::Result<Vec<_>> {
        let trees = world.trees.iter().flat_map(|tree| snapshot.iter(tree));
        trees.collect()
    };
    let twice = all().and_then(|first| Ok((first, all()?)));
    match twice {
        Ok((first, second)) => assert!(first == second, "{:?}: a snapshot changed", world.setup),
        Err(Error::SnapshotTooOld) if world.setup.gives_up_snapshots() => {}
        Err(error) => panic!("{:?}: {error}", world.setup),
    }
}

/// No money comes or goes.
fn check_bank(world: &World) {
    match world.bank.check(&world.db.snapshot().unwrap()) {
        Ok(full) => assert!(full, "the accounts are gone"),
        Err(Error::SnapshotTooOld) if world.setup.gives_up_snapshots() => {}
        Err(error) => panic!("{:?}: {error}", world.setup),
    }
}
