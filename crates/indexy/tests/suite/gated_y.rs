//! An Index Y that stands still where a test wants it to: on the way into a call, or out of it.

use crate::custom_y::FileY;
use indexy::{
    Key, Result, Value,
    index_y::{
        Capabilities, IndexY, IndexYFactory, IndexYShared, Maintained, Order, RunEntry, RunSource,
        YIter,
    },
};
use std::{
    path::Path,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// Who is to come to a gate comes before that.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Get,
    /// A get that has read.
    Got,
    WriteRun,
    /// A run that is about to be shown.
    Publish,
    RemoveRange,
    Verify,
    Copy,
    Compact,
}

/// Holds one kind of call up, on its way in, until it is opened.
#[derive(Default)]
pub struct Gate {
    closed: Mutex<Option<Call>>,
    opened: Condvar,
    /// Somebody stands before it.
    reached: AtomicBool,
}

impl Gate {
    /// From now on `call` is held up, and what was before goes on.
    pub fn close(&self, call: Call) {
        let mut closed = self.closed.lock().unwrap();
        self.reached.store(false, SeqCst);
        *closed = Some(call);
        self.opened.notify_all();
    }

    pub fn open(&self) {
        *self.closed.lock().unwrap() = None;
        self.opened.notify_all();
    }

    fn pass(&self, call: Call) {
        let mut closed = self.closed.lock().unwrap();
        while *closed == Some(call) {
            self.reached.store(true, SeqCst);
            closed = self.opened.wait(closed).unwrap();
        }
    }

    pub fn wait_until_reached(&self) {
        let start = Instant::now();
        while !self.reached.load(SeqCst) {
            assert!(start.elapsed() < PATIENCE, "nobody comes");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Opens the gate at the end of a scope, also when a check in it fails.
pub struct OpenAtDrop<'a>(pub &'a Gate);

impl Drop for OpenAtDrop<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

struct GatedY {
    y: FileY,
    gate: Arc<Gate>,
}

struct Published<'a> {
    source: &'a mut dyn RunSource,
    gate: &'a Gate,
}

impl RunSource for Published<'_> {
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
        self.source.drain(sink)
    }

    fn before_publish(&mut self) -> Result<()> {
        self.source.before_publish()?;
        self.gate.pass(Call::Publish);
        Ok(())
    }
}

/// A run that removes keys.
struct Removal(Vec<Key>);

impl RunSource for Removal {
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
        self.0.iter().try_for_each(|key| sink((key, None)))
    }

    fn before_publish(&mut self) -> Result<()> {
        Ok(())
    }
}

impl IndexY for GatedY {
    fn capabilities(&self) -> Capabilities {
        self.y.capabilities()
    }
    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.gate.pass(Call::Get);
        let found = self.y.get(key);
        self.gate.pass(Call::Got);
        found
    }
    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        self.y.range(from, to, order)
    }
    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        self.gate.pass(Call::WriteRun);
        let gate = &self.gate;
        self.y.write_run(&mut Published { source, gate })
    }
    fn removes_ranges(&self) -> bool {
        true
    }
    fn remove_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        self.gate.pass(Call::RemoveRange);
        let entries = self.y.range(from, to, Order::Ascending)?;
        let keys = entries.map(|entry| Ok(entry?.0));
        self.y.write_run(&mut Removal(keys.collect::<Result<_>>()?))
    }
    fn make_durable(&self) -> Result<()> {
        self.y.make_durable()
    }
    fn maintain(&self) -> Result<Maintained> {
        self.y.maintain()
    }
    fn compact(&self, _: &[u8], _: Option<&[u8]>) -> Result<Maintained> {
        self.gate.pass(Call::Compact);
        // As one that was interrupted.
        Ok(Maintained::Idle)
    }
    fn congested(&self) -> bool {
        false
    }
    fn is_empty(&self) -> Result<bool> {
        self.y.is_empty()
    }
    fn approximate_len(&self) -> u64 {
        self.y.approximate_len()
    }
    fn memory_bytes(&self) -> usize {
        self.y.memory_bytes()
    }
    fn disk_bytes(&self) -> u64 {
        self.y.disk_bytes()
    }
    fn run_count(&self) -> usize {
        self.y.run_count()
    }
    fn verify(&self) -> Result<u64> {
        self.gate.pass(Call::Verify);
        self.y.verify()
    }
    fn release_files(&self) -> bool {
        self.y.release_files()
    }
    fn copies_beside_runs(&self) -> bool {
        true
    }
    fn copy_to(&self, dest: &Path) -> Result<()> {
        self.gate.pass(Call::Copy);
        self.y.copy_to(dest)
    }
}

pub struct Gated(pub Arc<Gate>);

impl IndexYFactory for Gated {
    fn share(&self, _: usize) -> Result<Arc<dyn IndexYShared>> {
        Ok(Arc::new(Gated(self.0.clone())))
    }
}

impl IndexYShared for Gated {
    fn open(&self, dir: &Path, read_only: bool) -> Result<Arc<dyn IndexY>> {
        Ok(Arc::new(GatedY {
            y: FileY::open(dir, read_only)?,
            gate: self.0.clone(),
        }))
    }
    fn memory_bytes(&self) -> usize {
        0
    }
    fn set_memory(&self, _: usize) {}
}
