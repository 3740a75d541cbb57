//! The threads of the framework: cleaner, releaser, compactor.
//!
//! Source: IndeXY II-B (insert-count timer), II-C (release thread); design 4.
//! - cleaner: one check-back pass per expired timer; the oldest regions when that selects nothing and memory is short, and
//!   when the releaser is short of clean ones; regions below a target when the log is over its limit; then truncates the log.
//! - releaser: from the high watermark down to the low one.
//! - compactor: Y's maintenance.
//!
//! A database that is open read-only has the releaser alone.
//!
//! They stop and are joined by [`Background::stop`]. A panic in one poisons the database. A Y that is out of
//! space is asked again while someone needs it; any other failure of Y poisons.

#![forbid(unsafe_code)]

use super::{
    counters, joined::Joined, pressure::Pressure, release, shared::Shared, transfer::Pick,
    truncate, watermark,
};
use crate::{
    error::Result,
    mem::{Freed, budget::Holder},
    wal::Lsn,
    x::IndexX,
    y::Maintained,
};
use parking_lot::Mutex;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

/// A thread without a signal looks around this often.
const IDLE: Duration = Duration::from_millis(200);

/// Pause before Y is asked again after it was out of space.
const RETRY: Duration = Duration::from_millis(100);

/// Looks at what was freed this often, and so many times, before more is released.
const RECLAIM_POLL: Duration = Duration::from_micros(500);
const RECLAIM_TRIES: u32 = 8;

/// Slabs of this part of the budget beyond what is needed are emptied at once: to find what lies in them costs a walk over X.
const EMPTIED_AHEAD_PART: usize = 32;

/// How often the releaser looks how full the holes are that writers fill.
const HOLES_POLL: Duration = Duration::from_millis(2);

/// The releaser's wait for the cleaner.
const CLEANER_POLL: Duration = Duration::from_millis(2);

/// Memory that grows by this part of the budget from pass to pass is about to be released.
const GROWING_PART: usize = 64;

/// What the framework needs to see of the database.
pub(crate) trait Trees: Send + Sync + 'static {
    /// The trees that are open now.
    fn trees(&self) -> Vec<Arc<Joined>>;
    /// Records the new start of the log durably, before the log is cut there.
    fn persist_log_start(&self, start: Lsn) -> Result<()>;
    /// Log bytes above which regions are cleaned by age.
    fn log_limit_bytes(&self) -> u64;
    /// Gives retired memory back where possible.
    fn collect_garbage(&self);
    /// The same; tells when that is freed too which readers hold up.
    fn when_freed(&self) -> Freed;
    /// Moves what is in the way of slabs going back, some `bytes` bytes of them.
    fn empty_slabs(&self, bytes: usize);
    /// Live bytes of all Xs.
    fn x_bytes(&self) -> usize;
    /// Gives X and the caches of Y their parts of the budget, as they are now.
    fn divide_memory(&self);
}

/// What a thread does until it is stopped.
type Body = fn(&Worker);

/// The running threads.
pub(crate) struct Background {
    stop: Arc<AtomicBool>,
    shared: Arc<Shared>,
    trees: Arc<dyn Trees>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Background {
    /// `read_only`: nothing is written, so that only the releaser runs.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        trees: &Arc<dyn Trees>,
        read_only: bool,
    ) -> std::io::Result<Self> {
        shared.watch(trees);
        let stop = Arc::new(AtomicBool::new(false));
        let background = Self {
            stop,
            shared: shared.clone(),
            trees: trees.clone(),
            threads: Mutex::default(),
        };
        let bodies: [(&str, Body); 3] = [
            ("indexy-release", Worker::release_loop),
            ("indexy-clean", Worker::clean_loop),
            ("indexy-compact", Worker::compact_loop),
        ];
        for (name, body) in bodies.into_iter().take(if read_only { 1 } else { 3 }) {
            let worker = Worker {
                stop: background.stop.clone(),
                shared: shared.clone(),
                trees: trees.clone(),
                read_only,
            };
            let thread = std::thread::Builder::new()
                .name(name.into())
                .spawn(move || worker.run(name, body))?;
            background.threads.lock().push(thread);
        }
        Ok(background)
    }

    /// Stops and joins the threads. Idempotent.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        for tree in self.trees.trees() {
            tree.y.interrupt();
        }
        for thread in self.threads.lock().drain(..) {
            while !thread.is_finished() {
                self.shared.wake_cleaner.notify();
                self.shared.wake_releaser.notify();
                self.shared.wake_compactor.notify();
                std::thread::sleep(Duration::from_micros(200));
            }
            let _ = thread.join();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Half of what a tree has in X is dirty: the next release might find too little.
fn mostly_dirty(tree: &Joined) -> bool {
    let stats = tree.x.stats();
    stats.dirty * 2 > stats.keys
}

/// Keys written, bytes released and bytes used when the last check-back pass began.
#[derive(Default)]
struct Passed {
    written: u64,
    released: u64,
    used: usize,
}

struct Worker {
    stop: Arc<AtomicBool>,
    shared: Arc<Shared>,
    trees: Arc<dyn Trees>,
    read_only: bool,
}

impl Worker {
    fn run(&self, name: &str, body: Body) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(self))) {
            let what = panic
                .downcast_ref::<&str>()
                .map(ToString::to_string)
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            self.shared
                .poison
                .set(&format!("thread {name} panicked: {what}"));
            self.shared.announce_freed();
        }
    }

    fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.shared.poison.check().is_err()
    }

    /// True if `result` is a failure, which is remembered for those who wait for memory.
    fn failed<T>(&self, result: Result<T>) -> bool {
        let failure = self.shared.guarded(result).err();
        let failed = failure.is_some();
        self.shared.set_y_failure(failure);
        if failed {
            self.shared.announce_freed();
        }
        failed
    }

    // --- cleaner ---------------------------------------------------------------

    fn clean_loop(&self) {
        let mut passed = Passed::default();
        let mut next_floor = Lsn(0);
        while !self.stopping() {
            self.shared.wake_cleaner.wait(IDLE);
            if self.stopping() {
                break;
            }
            let trees = self.trees.trees();
            self.monitor(&trees);
            let written = self.shared.counters.writes();
            let result = if self.shared.urgent.load(Ordering::Acquire) {
                let ahead = self.timer_keys(&trees);
                self.clean_for_release(&trees)
                    .and_then(|()| self.keep_ahead(&trees, ahead))
            } else if written - passed.written >= self.timer_keys(&trees) {
                let now = Passed {
                    written,
                    released: counters::read(&self.shared.counters.released_bytes),
                    used: self.shared.budget.used(),
                };
                let before = std::mem::replace(&mut passed, now);
                self.one_pass(&trees)
                    .and_then(|cleaned| match self.needs_room(&before, &passed) {
                        true => self
                            .keep_ahead(&trees, (written - before.written).saturating_sub(cleaned)),
                        false => Ok(()),
                    })
            } else {
                Ok(())
            };
            if self.failed(result.and_then(|()| self.tend_log(&mut next_floor))) {
                std::thread::sleep(RETRY);
            }
        }
    }

    /// Regions are chosen and watched once the low watermark is first reached (II-C).
    fn monitor(&self, trees: &[Arc<Joined>]) {
        if self.shared.budget.used() < self.shared.watermarks().low {
            return;
        }
        let target = watermark::region_bytes(self.shared.budget.limit()) as u64;
        for tree in trees.iter().filter(|t| !t.regions.monitored()) {
            tree.choose_regions(target);
        }
    }

    /// Keys whose insertion makes a pass due.
    fn timer_keys(&self, trees: &[Arc<Joined>]) -> u64 {
        let (keys, bytes) = trees.iter().fold((0, 0), |(keys, bytes), tree| {
            let stats = tree.x.stats();
            (keys + stats.keys as u64, bytes + stats.bytes as u64)
        });
        watermark::timer_keys(self.shared.budget.limit(), keys, bytes)
    }

    /// One check-back pass over every monitored tree; returns how many keys it wrote.
    fn one_pass(&self, trees: &[Arc<Joined>]) -> Result<u64> {
        let mut cleaned = 0;
        for tree in trees
            .iter()
            .filter(|t| t.regions.monitored() && !t.resident)
        {
            self.wait_while_congested(tree);
            cleaned += tree.write_back(Pick::CheckBack)?.keys;
            if tree.y.approximate_len() == 0 {
                tree.clear_mounts_if_y_is_empty()?;
            }
        }
        Ok(cleaned)
    }

    /// Memory was released between two passes, or soon will be.
    fn needs_room(&self, before: &Passed, now: &Passed) -> bool {
        let growing = now.used >= before.used + self.shared.budget.limit() / GROWING_PART;
        now.released > before.released || growing && now.used >= self.shared.watermarks().low
    }

    /// Memory is short, and too little went quiet: what was cleaned longest ago, in the dirtiest
    /// tree, run by run, so that the releaser need not wait for it. Ends when half is clean, or with as many `keys` as were
    /// written meanwhile.
    fn keep_ahead(&self, trees: &[Arc<Joined>], keys: u64) -> Result<()> {
        let mut cleaned = 0;
        while cleaned < keys && !self.stopping() {
            let releasable = trees.iter().filter(|t| !t.resident);
            let Some(tree) = releasable
                .max_by_key(|t| t.x.stats().dirty)
                .filter(|tree| mostly_dirty(tree))
            else {
                break;
            };
            self.wait_while_congested(tree);
            let written = tree.write_back(Pick::Oldest)?.keys;
            self.answer_releaser();
            if written == 0 {
                break;
            }
            cleaned += written;
        }
        Ok(())
    }

    /// The releaser found too little clean: the oldest dirty regions of every tree, a run each.
    fn clean_for_release(&self, trees: &[Arc<Joined>]) -> Result<()> {
        let cleaned = trees.iter().filter(|t| !t.resident).try_for_each(|tree| {
            self.wait_while_congested(tree);
            tree.write_back(Pick::Oldest).map(drop)
        });
        self.answer_releaser();
        cleaned
    }

    /// Something was cleaned: the releaser may look again.
    fn answer_releaser(&self) {
        if self.shared.urgent.swap(false, Ordering::AcqRel) {
            self.shared.wake_releaser.notify();
        }
    }

    fn wait_while_congested(&self, tree: &Joined) {
        while tree.y.congested() && !self.stopping() {
            self.shared.wake_compactor.notify();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Keeps the log under its limit: cuts what is below the floor, cleans by age when that is not enough.
    fn tend_log(&self, next_floor: &mut Lsn) -> Result<()> {
        let Some(log) = self.shared.log.get() else {
            return Ok(());
        };
        let limit = self.trees.log_limit_bytes();
        let (all, shared) = (&*self.trees, &*self.shared);
        if log.bytes_on_disk() > limit {
            let target = Lsn(log.end().0.saturating_sub(limit / 2));
            truncate::clean_below(all, target)?;
            truncate::truncate(all, shared)?;
        } else if let Some(floor) = truncate::floor(all, shared) {
            // A floor that moved far enough frees a segment.
            if floor >= *next_floor && floor > log.start() {
                truncate::truncate(all, shared)?;
                *next_floor = Lsn(floor.0 + limit / 8);
            }
        }
        Ok(())
    }

    // --- releaser --------------------------------------------------------------

    fn release_loop(&self) {
        let mut pressure = Pressure::default();
        let mut pause = IDLE;
        let mut seen = (0, 0);
        while !self.stopping() {
            let woken = self.shared.wake_releaser.wait(pause);
            self.tally_index_y();
            self.release_while_due(&mut pressure);
            self.shared.rest_release();
            // While writers fill the holes in what X holds, nothing tells how full they are: look, as long as something changes.
            let marks = self.shared.watermarks();
            let now = (self.shared.budget.used(), self.shared.live());
            pause = match now.0 >= marks.high {
                true if woken || now != seen => HOLES_POLL,
                true => (pause * 2).min(IDLE),
                false => IDLE,
            };
            seen = now;
        }
    }

    fn release_while_due(&self, pressure: &mut Pressure) {
        let mut patience = RECLAIM_TRIES;
        let mut emptied = false;
        while !self.stopping() {
            self.trees.divide_memory();
            let (marks, limit) = (self.shared.watermarks(), self.shared.budget.limit());
            let (over, live) = (self.slabs_over() > 0, self.shared.live());
            let goal = pressure.observe(live, over, &marks, limit);
            // Where nothing but resident trees is left, writers are not told of a cap that nothing can be released for.
            if goal.high == marks.high || self.shared.releasable_bytes.load(Ordering::Relaxed) > 0 {
                self.shared.set_live_limit(goal.high);
            }
            if live > goal.high {
                if self.release_once((live - goal.low) as u64) {
                    continue;
                }
                // All of it stays: resident trees, or what Y refuses. There are its holes.
                let goal = pressure.nothing_to_release(&marks);
                self.shared.set_live_limit(goal.high);
                if self.slabs_over() == 0 || !self.empty_slabs() {
                    break;
                }
            } else if over {
                // What was freed may still wait for readers, or lie in slabs that are not empty yet.
                self.trees.collect_garbage();
                self.shared.announce_freed();
                if patience > 0 {
                    patience -= 1;
                    std::thread::sleep(RECLAIM_POLL);
                    continue;
                }
                patience = RECLAIM_TRIES;
                emptied = !emptied;
                if emptied {
                    self.empty_slabs();
                } else if live <= pressure.crowded(live, &marks, limit).high {
                    // Hardly anything lives: what is in the way is not X's to give.
                    break;
                }
            } else {
                break;
            }
        }
    }

    /// Bytes, holes in slabs and retired blocks included, over what they may be: less where somebody wants much at once, to whom
    /// holes are of no use (I7).
    fn slabs_over(&self) -> u64 {
        let (marks, wanted) = (self.shared.watermarks(), self.shared.wanted());
        let mark = match wanted {
            0 => marks.slabs,
            _ => marks.high.midpoint(marks.hard),
        };
        (self.shared.budget.used() + wanted).saturating_sub(mark) as u64
    }

    /// Has slabs run empty and go back without anything being lost from X; whether enough went back.
    fn empty_slabs(&self) -> bool {
        let ahead = self.shared.budget.limit() / EMPTIED_AHEAD_PART;
        self.trees.empty_slabs(self.slabs_over() as usize + ahead);
        self.shared.announce_freed();
        self.slabs_over() == 0
    }

    /// Releases once; asks the cleaner when too little was clean. False when nothing more can be done now.
    fn release_once(&self, need: u64) -> bool {
        let trees = self.trees.trees();
        let freed = release::release(&trees, &self.shared, need);
        self.trees.collect_garbage();
        self.shared.look_at_live();
        self.shared.announce_freed();
        if release::enough(freed, need) {
            return true;
        }
        let dirty: usize = trees
            .iter()
            .filter(|t| !t.resident)
            .map(|t| t.x.stats().dirty)
            .sum();
        if self.read_only || dirty == 0 || self.shared.y_failure().is_some() && freed == 0 {
            if dirty > 0 && !self.read_only {
                self.shared.urgent.store(true, Ordering::Release);
                self.shared.wake_cleaner.notify();
            }
            return freed > 0;
        }
        self.wait_for_cleaner();
        true
    }

    fn wait_for_cleaner(&self) {
        self.shared.urgent.store(true, Ordering::Release);
        while self.shared.urgent.load(Ordering::Acquire) && !self.stopping() {
            self.shared.wake_cleaner.notify();
            std::thread::sleep(CLEANER_POLL);
        }
    }

    /// Charges what the Ys hold now.
    fn tally_index_y(&self) {
        let bytes: usize = self.trees.trees().iter().map(|t| t.y.memory_bytes()).sum();
        self.shared.budget.set(Holder::IndexYTrees, bytes);
    }

    // --- compactor -------------------------------------------------------------

    fn compact_loop(&self) {
        while !self.stopping() {
            self.shared.wake_compactor.wait(IDLE);
            for tree in self.trees.trees() {
                while !self.stopping() {
                    match tree.y.maintain() {
                        Ok(Maintained::More) => {}
                        Ok(Maintained::Idle) => break,
                        Err(_) if tree.discarded() => break,
                        Err(error) => {
                            if self.failed(Err::<(), _>(error)) {
                                std::thread::sleep(RETRY);
                            }
                            break;
                        }
                    }
                }
            }
        }
    }
}
