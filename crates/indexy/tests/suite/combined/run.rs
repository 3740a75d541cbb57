//! A run of all threads, and what holds afterwards.

use super::{
    disturb,
    model::Model,
    replica::Replica,
    world::{Setup, TestClock, World},
    writer::Writer,
};
use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, Random, StopAtDrop, assert_sound, setting, side_by_side},
};
use indexy::{Error, IndexYKind};
use std::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::{Duration, Instant},
};

pub const WRITERS: usize = 4;
/// Memory is within the budget so soon after everything ended.
const LIMIT: Duration = Duration::from_secs(10);
/// After so many steps of each writer,
const JUDGED_STEPS: u64 = 1000;
/// so many runs were cleaned at least, of all pairs, and something was released.
const LEAST_RUNS: u64 = 10;

/// The pairs of test number `number` of two. RocksDB removes no ranges in a batch.
pub fn pairs_of(number: usize) -> impl Iterator<Item = pairs::Pair> {
    let chosen = pairs::chosen(number, 2).into_iter();
    chosen.filter(|pair| pair.1 != IndexYKind::RocksDb)
}

impl Writer<'_> {
    pub fn step(&mut self) {
        match self.random.below(100) {
            0..48 => self.write_something(),
            48..74 => self.read(),
            74..82 => self.scan(),
            82 if self.random.one_in(4) => self.scan_all(),
            82..90 => self.snapshots(),
            90..95 => self.open_transaction(),
            _ => self.transfer(),
        }
    }

    fn transfer(&mut self) {
        self.world.bank.transfer(&mut self.random);
    }
}

/// Writers do `steps` calls each, beside the thread that disturbs; each begins with what its model
/// has. `steps`: after so many a writer ends.
pub fn run<'w>(writers: &mut [Writer<'w>], world: &'w World, steps: u64, seed: u64) {
    std::thread::scope(|s| {
        let disturber = s.spawn(move || {
            let _stop = StopAtDrop(&world.done);
            disturb::run(world, seed);
        });
        std::thread::scope(|s| {
            for writer in writers {
                s.spawn(move || {
                    let stop = StopAtDrop(&world.done);
                    for _ in 0..steps {
                        if world.is_done() {
                            return;
                        }
                        writer.step();
                    }
                    writer.check_snapshots();
                    writer.check_all();
                    std::mem::forget(stop);
                });
            }
        });
        world.done.store(true, SeqCst);
        disturber.join().unwrap();
    });
}

/// Returns the numbers of runs cleaned and of regions released.
fn run_with(setup: Setup, steps: u64) -> (u64, u64) {
    let (dir, clock) = (fast_dir(), TestClock::new(None));
    let world = World::open(dir.path(), setup, &clock, setup.budget());
    let random = |id: usize| Random(setup.seed * 100 + id as u64);
    let new = |id| Writer::new(&world, id, random(id), Model::default());
    let mut writers: Vec<_> = (0..WRITERS).map(new).collect();
    let replica = std::thread::scope(|s| {
        let follow = || {
            let _stop = StopAtDrop(&world.done);
            Replica::follow(&world, world.start)
        };
        let replica = setup.has_replica().then(|| s.spawn(follow));
        run(&mut writers, &world, steps, setup.seed);
        replica.map(|replica| replica.join().unwrap())
    });
    if let Some(mut replica) = replica {
        replica.compare(&world);
    }
    let models: Vec<_> = writers.into_iter().map(|writer| writer.model).collect();
    within_budget(&world);
    let stats = world.db.stats();
    check(&world, &models);
    world.db.close().unwrap();
    drop(world);
    let world = World::open(dir.path(), setup, &clock, setup.budget() + MIB);
    check(&world, &models);
    println!(
        "{setup:?}: {} runs, {} regions released, {} stalls",
        stats.cleaned_runs, stats.released_regions, stats.stalls
    );
    (stats.cleaned_runs, stats.released_regions)
}

fn within_budget(world: &World) {
    match world.db.set_memory_budget(world.setup.budget()) {
        Ok(()) | Err(Error::BudgetTooSmall { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    let start = Instant::now();
    while let stats = world.db.stats()
        && stats.memory_used_bytes > stats.memory_budget_bytes
    {
        assert!(start.elapsed() < LIMIT, "{:?}: {stats:?}", world.setup);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Everything is as the models say.
pub fn check(world: &World, models: &[Model]) {
    assert_sound(&world.db);
    for (id, model) in models.iter().enumerate() {
        Writer::new(world, id, Random(0), model.clone()).check_all();
    }
    assert!(world.bank.check(&world.db.snapshot().unwrap()).unwrap());
}

#[test]
fn everything_at_once_agrees_with_the_models() {
    let (seed, steps) = (
        setting("INDEXY_COMBINED_SEED", 1),
        setting("INDEXY_COMBINED_STEPS", 1500),
    );
    let (runs, regions) = (AtomicU64::new(0), AtomicU64::new(0));
    side_by_side((seed..).zip(pairs_of(0)), |(seed, pair)| {
        let sync = false;
        let (cleaned, released) = run_with(Setup { seed, pair, sync }, steps);
        runs.fetch_add(cleaned, SeqCst);
        regions.fetch_add(released, SeqCst);
    });
    // In a large budget a single run may release next to nothing.
    let (runs, regions) = (runs.into_inner(), regions.into_inner());
    let did_enough = runs >= LEAST_RUNS && regions > 0;
    assert!(steps < JUDGED_STEPS || did_enough, "{runs}, {regions}");
}
