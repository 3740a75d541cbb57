//! An Index Y in memory that loses what was not made durable, fails on demand and stops at named
//! points. For tests of the framework's protocols; compiled for tests only.
//!
//! - [`MemoryY::crash`] throws away every run since the last `make_durable` (or all but the oldest
//!   few of them: a real Y may have made more durable than it had to).
//! - [`MemoryY::fail`] lets the n-th call of an operation fail; a failing `write_run` applies a
//!   given part of its run first.
//! - [`MemoryY::pause`] stops the next thread that comes to a [`Point`], so that a test can force
//!   an interleaving.
//!
//! Clones share one store: keep a clone to reopen, crash or steer.

#![forbid(unsafe_code)]

use super::{Capabilities, IndexY, Maintained, RunSource, SortedLoad, YIter};
use crate::{
    error::{Error, Result},
    key::{Key, Value},
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
    x::Order,
};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::BTreeMap,
    ops::Bound,
    path::Path,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::Duration,
};

/// Longest that a test waits for a thread to reach a point.
const PATIENCE: Duration = Duration::from_secs(30);
const COPY_FILE: &str = "memory-y";

/// Operations that can be told to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Get,
    Range,
    WriteRun,
    /// While the run is read, before `before_publish`.
    DrainRun,
    MakeDurable,
    Maintain,
}

/// Places where a thread can be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// In `get` (and once in `multi_get`), before anything is read.
    GetStart,
    /// In `get`, with the answer in hand: what the caller gets may be stale by the time it returns.
    GetEnd,
    /// In `range`, before the entries are taken.
    RangeStart,
    /// In `range`, the entries taken.
    RangeEnd,
    /// In `write_run`, before the source is drained.
    RunStart,
    /// In `write_run`, the source drained, before `before_publish`.
    RunDrained,
    /// In `write_run`, after `before_publish`, before readers see the run.
    RunPublish,
    /// In `write_run`, the run visible, before it returns.
    RunVisible,
    /// In `make_durable`, before it has any effect.
    DurableStart,
    /// In `make_durable`, before it returns.
    DurableEnd,
    /// In `maintain`, before it has any effect.
    MaintainStart,
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Run = Vec<(Vec<u8>, Option<Vec<u8>>)>;

#[derive(Default)]
struct State {
    durable: Map,
    /// Runs since the last `make_durable`, oldest first; failed ones with what they had applied.
    pending: Vec<Run>,
    visible: Map,
}

struct Fault {
    op: Op,
    /// Calls that still succeed before it strikes.
    after: usize,
    /// Entries that a failing run applies.
    applied: usize,
    error: Error,
}

struct Stop {
    point: Point,
    reached: bool,
    resumed: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    faults: Mutex<Vec<Fault>>,
    stops: Mutex<Vec<Arc<Mutex<Stop>>>>,
    moved: Condvar,
    moves: Mutex<()>,
    congested: AtomicBool,
    reads: AtomicU64,
    calls: AtomicU64,
    preferred_run_bytes: AtomicUsize,
}

/// See the module header.
#[derive(Clone, Default)]
pub(crate) struct MemoryY(Arc<Shared>);

/// A stop set by [`MemoryY::pause`]. Dropping it lets the thread go on.
pub(crate) struct Pause {
    shared: Arc<Shared>,
    stop: Arc<Mutex<Stop>>,
}

impl MemoryY {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// What [`MemoryY::copy_to`](IndexY::copy_to) wrote; empty if there is nothing.
    pub(crate) fn open(dir: &Path) -> Self {
        let y = Self::new();
        if let Ok(bytes) = std::fs::read(dir.join(COPY_FILE)) {
            let mut state = y.0.state.lock();
            state.durable = decode(&bytes);
            state.visible = state.durable.clone();
            drop(state);
        }
        y
    }

    /// The machine stops: what was not made durable is gone.
    pub(crate) fn crash(&self) {
        self.crash_keeping(0);
    }

    /// As [`MemoryY::crash`], but the oldest `runs` of the runs that were not durable survive.
    pub(crate) fn crash_keeping(&self, runs: usize) {
        let mut state = self.0.state.lock();
        let pending = std::mem::take(&mut state.pending);
        for run in pending.iter().take(runs) {
            apply(&mut state.durable, run);
        }
        state.visible = state.durable.clone();
    }

    /// The `nth` call of `op` from now on (0: the next) fails with `error`. A failing `write_run`
    /// applies the first `applied` entries of its run.
    pub(crate) fn fail(&self, op: Op, nth: usize, applied: usize, error: Error) {
        self.0.faults.lock().push(Fault {
            op,
            after: nth,
            applied,
            error,
        });
    }

    /// The next thread that comes to `point` stops there until the `Pause` is dropped.
    pub(crate) fn pause(&self, point: Point) -> Pause {
        let stop = Arc::new(Mutex::new(Stop {
            point,
            reached: false,
            resumed: false,
        }));
        self.0.stops.lock().push(Arc::clone(&stop));
        Pause {
            shared: Arc::clone(&self.0),
            stop,
        }
    }

    /// From now on it has fallen behind, or has not.
    pub(crate) fn set_congested(&self, congested: bool) {
        self.0.congested.store(congested, SeqCst);
    }

    /// Calls of `get` and `multi_get` so far.
    pub(crate) fn calls(&self) -> u64 {
        self.0.calls.load(Relaxed)
    }

    /// Point reads so far.
    pub(crate) fn reads(&self) -> u64 {
        self.0.reads.load(Relaxed)
    }

    /// What a reader sees.
    pub(crate) fn contents(&self) -> Map {
        self.0.state.lock().visible.clone()
    }

    /// What a crash now would leave.
    pub(crate) fn durable_contents(&self) -> Map {
        self.0.state.lock().durable.clone()
    }

    /// The error and the part applied of a fault that strikes this call.
    fn strike(&self, op: Op) -> Option<(Error, usize)> {
        let mut faults = self.0.faults.lock();
        let at = faults.iter().position(|f| f.op == op)?;
        if faults[at].after > 0 {
            faults[at].after -= 1;
            return None;
        }
        let fault = faults.remove(at);
        Some((fault.error, fault.applied))
    }

    fn check(&self, op: Op) -> Result<()> {
        self.strike(op).map_or(Ok(()), |(error, _)| Err(error))
    }

    fn at(&self, point: Point) {
        let stop = {
            let mut stops = self.0.stops.lock();
            let Some(i) = stops.iter().position(|s| s.lock().point == point) else {
                return;
            };
            stops.remove(i)
        };
        stop.lock().reached = true;
        self.0.wait(|| stop.lock().resumed, "to be resumed");
    }

    fn look_up(&self, key: &[u8]) -> Option<Value> {
        self.0.reads.fetch_add(1, Relaxed);
        self.0.state.lock().visible.get(key).map(|v| Value::new(v))
    }
}

impl Shared {
    fn wait(&self, done: impl Fn() -> bool, what: &str) {
        let mut moves = self.moves.lock();
        self.moved.notify_all();
        while !done() {
            let timed_out = self.moved.wait_for(&mut moves, PATIENCE).timed_out();
            assert!(!timed_out || done(), "waited too long {what}");
        }
    }

    fn notify(&self) {
        let _moves = self.moves.lock();
        self.moved.notify_all();
    }
}

impl Pause {
    /// Waits until a thread is stopped here.
    pub(crate) fn wait_reached(&self) {
        let reached = || self.stop.lock().reached;
        self.shared.wait(reached, "for a thread to come to a pause");
    }

    /// Lets the thread go on.
    pub(crate) fn resume(self) {}
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.stop.lock().resumed = true;
        // A stop that no thread came to is of no use to anyone any more.
        self.shared
            .stops
            .lock()
            .retain(|s| !Arc::ptr_eq(s, &self.stop));
        self.shared.notify();
    }
}

fn apply(map: &mut Map, run: &[(Vec<u8>, Option<Vec<u8>>)]) {
    for (key, value) in run {
        match value {
            Some(value) => map.insert(key.clone(), value.clone()),
            None => map.remove(key),
        };
    }
}

fn encode(map: &Map) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in map.iter().flat_map(|(k, v)| [k, v]) {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part);
    }
    bytes
}

fn decode(mut bytes: &[u8]) -> Map {
    let mut part = || {
        let (len, rest) = bytes.split_first_chunk::<8>()?;
        let (part, rest) = rest.split_at(u64::from_le_bytes(*len) as usize);
        bytes = rest;
        Some(part.to_vec())
    };
    std::iter::from_fn(|| Some((part()?, part()?))).collect()
}

/// A load of a [`MemoryY`].
struct MemoryLoad<'y> {
    y: &'y MemoryY,
    run: Run,
}

impl SortedLoad for MemoryLoad<'_> {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.run.push((key.to_vec(), Some(value.to_vec())));
        Ok(())
    }

    fn seal(&mut self) -> Result<()> {
        self.y.check(Op::DrainRun)
    }

    fn publish(self: Box<Self>) -> Result<()> {
        self.y.check(Op::WriteRun)?;
        let mut state = self.y.0.state.lock();
        apply(&mut state.visible, &self.run);
        state.pending.push(self.run);
        drop(state);
        self.y.at(Point::RunVisible);
        self.y.make_durable()
    }
}

impl IndexY for MemoryY {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_key_bytes: MAX_KEY_BYTES,
            max_value_bytes: MAX_VALUE_BYTES,
            preferred_run_bytes: self.0.preferred_run_bytes.load(Relaxed).max(1),
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.0.calls.fetch_add(1, Relaxed);
        self.at(Point::GetStart);
        self.check(Op::Get)?;
        let value = self.look_up(key);
        self.at(Point::GetEnd);
        Ok(value)
    }

    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.0.calls.fetch_add(1, Relaxed);
        self.at(Point::GetStart);
        self.check(Op::Get)?;
        let values = keys.iter().map(|key| self.look_up(key)).collect();
        self.at(Point::GetEnd);
        Ok(values)
    }

    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        self.at(Point::RangeStart);
        self.check(Op::Range)?;
        let empty = to.is_some_and(|to| to <= from);
        let bounds = (
            Bound::Included(from),
            to.map_or(Bound::Unbounded, Bound::Excluded),
        );
        let mut entries: Vec<_> = match empty {
            true => vec![],
            false => {
                let state = self.0.state.lock();
                let entries = state.visible.range::<[u8], _>(bounds);
                entries
                    .map(|(k, v)| Ok((Key::new(k), Value::new(v))))
                    .collect()
            }
        };
        if order == Order::Descending {
            entries.reverse();
        }
        self.at(Point::RangeEnd);
        Ok(Box::new(entries.into_iter()))
    }

    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        self.at(Point::RunStart);
        let fault = self.strike(Op::WriteRun);
        let mut run = Run::new();
        let drained = source.drain(&mut |(key, value)| {
            if key.len() > MAX_KEY_BYTES {
                return Err(Error::KeyTooLong {
                    len: key.len(),
                    limit: MAX_KEY_BYTES,
                });
            }
            assert!(
                run.last().is_none_or(|(last, _)| &last[..] < key),
                "run out of order"
            );
            run.push((key.to_vec(), value.map(<[u8]>::to_vec)));
            Ok(())
        });
        drained?;
        self.check(Op::DrainRun)?;
        self.at(Point::RunDrained);
        source.before_publish()?; // I5
        self.at(Point::RunPublish);
        if let Some((_, applied)) = &fault {
            run.truncate(*applied);
        }
        let mut state = self.0.state.lock();
        apply(&mut state.visible, &run);
        if !run.is_empty() {
            state.pending.push(run);
        }
        drop(state);
        self.at(Point::RunVisible);
        fault.map_or(Ok(()), |(error, _)| Err(error))
    }

    fn removes_ranges(&self) -> bool {
        true
    }

    fn remove_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        self.check(Op::WriteRun)?;
        let mut state = self.0.state.lock();
        let within = |key: &&Vec<u8>| &***key >= from && to.is_none_or(|to| &***key < to);
        let keys = state.visible.keys().filter(within);
        let run: Run = keys.map(|key| (key.clone(), None)).collect();
        apply(&mut state.visible, &run);
        state.pending.push(run);
        drop(state);
        self.at(Point::RunVisible);
        Ok(())
    }

    fn begin_load(&self) -> Result<Option<Box<dyn SortedLoad + '_>>> {
        Ok(Some(Box::new(MemoryLoad {
            y: self,
            run: Run::new(),
        })))
    }

    fn make_durable(&self) -> Result<()> {
        self.at(Point::DurableStart);
        self.check(Op::MakeDurable)?;
        let mut state = self.0.state.lock();
        for run in std::mem::take(&mut state.pending) {
            apply(&mut state.durable, &run);
        }
        drop(state);
        self.at(Point::DurableEnd);
        Ok(())
    }

    fn maintain(&self) -> Result<Maintained> {
        self.at(Point::MaintainStart);
        self.check(Op::Maintain)?;
        Ok(Maintained::Idle)
    }

    fn congested(&self) -> bool {
        self.0.congested.load(SeqCst)
    }

    fn is_empty(&self) -> Result<bool> {
        Ok(self.0.state.lock().visible.is_empty())
    }

    fn approximate_len(&self) -> u64 {
        self.0.state.lock().visible.len() as u64
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn disk_bytes(&self) -> u64 {
        let state = self.0.state.lock();
        let bytes = |(k, v): (&Vec<u8>, &Vec<u8>)| (k.len() + v.len()) as u64;
        state.visible.iter().map(bytes).sum()
    }

    fn run_count(&self) -> usize {
        usize::from(!self.0.state.lock().visible.is_empty())
    }

    fn verify(&self) -> Result<u64> {
        Ok(self.approximate_len())
    }

    fn copy_to(&self, dest: &Path) -> Result<()> {
        let bytes = encode(&self.0.state.lock().visible);
        std::fs::create_dir_all(dest)
            .and_then(|()| std::fs::write(dest.join(COPY_FILE), bytes))
            .map_err(|e| Error::io("copy", dest, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::y::conformance::{self, Store, conformance_tests, put};

    struct InMemory {
        y: MemoryY,
        dir: tempfile::TempDir,
        copies: Mutex<BTreeMap<std::path::PathBuf, MemoryY>>,
    }

    impl InMemory {
        fn new() -> Self {
            Self {
                y: MemoryY::new(),
                dir: tempfile::TempDir::new().unwrap(),
                copies: Mutex::default(),
            }
        }
    }

    impl Store for InMemory {
        type Y = MemoryY;
        fn open(&self) -> MemoryY {
            self.y.clone()
        }
        fn open_copy(&self, dir: &Path) -> MemoryY {
            let mut copies = self.copies.lock();
            let copy = copies.entry(dir.to_path_buf());
            copy.or_insert_with(|| MemoryY::open(dir)).clone()
        }
        fn copy_dir(&self) -> std::path::PathBuf {
            self.dir.path().join("copy")
        }
    }

    mod suite {
        use super::*;
        conformance_tests!(InMemory::new());
    }

    #[test]
    fn a_crash_loses_what_was_not_durable() {
        let y = MemoryY::new();
        conformance::write(&y, &vec![put(b"a", b"1")]).unwrap();
        y.make_durable().unwrap();
        for value in [b"2", b"3"] {
            conformance::write(&y, &vec![put(b"a", value)]).unwrap();
        }
        let other = y.clone();
        y.crash_keeping(1);
        assert_eq!(other.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
        conformance::write(&y, &vec![put(b"a", b"4")]).unwrap();
        y.crash();
        assert_eq!(y.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
    }

    #[test]
    fn faults_strike_the_nth_call_and_apply_a_part() {
        let y = MemoryY::new();
        y.fail(Op::WriteRun, 1, 1, Error::Closed);
        conformance::write(&y, &vec![put(b"a", b"1"), put(b"b", b"1")]).unwrap();
        let failed = conformance::write(&y, &vec![put(b"a", b"2"), put(b"b", b"2")]);
        assert!(matches!(failed, Err(Error::Closed)));
        assert_eq!(y.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
        assert_eq!(y.get(b"b").unwrap().as_deref(), Some(&b"1"[..]));
        conformance::write(&y, &vec![put(b"b", b"3")]).unwrap();
    }

    #[test]
    fn a_pause_stops_one_thread_until_dropped() {
        let y = MemoryY::new();
        conformance::write(&y, &vec![put(b"a", b"1")]).unwrap();
        let pause = y.pause(Point::GetEnd);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| y.get(b"a").unwrap());
            pause.wait_reached();
            conformance::write(&y, &vec![put(b"a", b"2")]).unwrap();
            assert_eq!(y.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
            pause.resume();
            assert_eq!(reader.join().unwrap().as_deref(), Some(&b"1"[..]));
        });
    }
}
