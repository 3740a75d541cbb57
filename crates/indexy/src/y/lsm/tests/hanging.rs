//! A device that hangs: whoever asks for figures is answered.

use super::*;
use crate::storage::{ReadAt, StorageFile};
use parking_lot::{Condvar, Mutex};
use std::sync::mpsc;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where operations of a kind wait while it is shut.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    shut: Option<&'static str>,
    waits: bool,
}

impl Gate {
    fn pass(&self, what: &'static str) {
        let mut state = self.state.lock();
        while state.shut == Some(what) {
            state.waits = true;
            self.changed.notify_all();
            self.changed.wait(&mut state);
        }
    }

    fn shut(&self, what: &'static str) {
        *self.state.lock() = State {
            shut: Some(what),
            waits: false,
        };
    }

    /// Returns when somebody waits in front of it; false if that takes too long.
    fn await_one(&self) -> bool {
        let mut state = self.state.lock();
        let still = |state: &mut State| !state.waits;
        let waited = self.changed.wait_while_for(&mut state, still, PATIENCE);
        !waited.timed_out()
    }

    fn open(&self) {
        self.state.lock().shut = None;
        self.changed.notify_all();
    }
}

/// A disk whose syncs and removals pass a gate.
struct Gated {
    sim: Sim,
    gate: Arc<Gate>,
}

struct GatedFile {
    file: Arc<dyn StorageFile>,
    gate: Arc<Gate>,
}

impl Gated {
    fn file(&self, file: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        let gate = Arc::clone(&self.gate);
        Arc::new(GatedFile { file, gate })
    }
}

impl Storage for Gated {
    fn create(&self, path: &Path) -> Result<Arc<dyn StorageFile>> {
        self.sim.create(path).map(|file| self.file(file))
    }
    fn open(&self, path: &Path, write: bool) -> Result<Arc<dyn StorageFile>> {
        self.sim.open(path, write).map(|file| self.file(file))
    }
    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        self.sim.list(dir)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.sim.exists(path)
    }
    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.sim.create_dir_all(dir)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.sim.rename(from, to)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.gate.pass("remove");
        self.sim.remove(path)
    }
    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.gate.pass("sync directory");
        self.sim.sync_dir(dir)
    }
}

impl StorageFile for GatedFile {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buf, offset)
    }
    fn read_all(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        self.file.read_all(reads)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.file.write_at(buf, offset)
    }
    fn sync(&self) -> Result<()> {
        self.gate.pass("sync");
        self.file.sync()
    }
    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)
    }
    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.file.allocate(offset, len)
    }
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn set_path(&self, path: &Path) {
        self.file.set_path(path);
    }
}

/// What `Tree::stats` and `Db::stats` ask for; the bytes on disk.
fn figures(y: &LsmY) -> u64 {
    let _ = (y.approximate_len(), y.dead_bytes(), y.run_count());
    let _ = (y.damaged(), y.settled(), y.congested(), y.memory_bytes());
    y.disk_bytes()
}

/// In the middle of a commit, wherever it hangs.
#[test]
fn figures_wait_for_no_device() {
    for what in ["sync", "sync directory", "remove"] {
        let (sim, gate) = (Sim::default(), Arc::<Gate>::default());
        let storage: Arc<dyn Storage> = Arc::new(Gated {
            sim: sim.clone(),
            gate: Arc::clone(&gate),
        });
        let cache = PageCache::new(0);
        let y = LsmY::open_with(&storage, Path::new(DIR), &cache, 1, false, TINY).unwrap();
        let entry = |n: u8| vec![put(&[n], &[n; 40])];
        write(&y, &entry(1)).unwrap();
        y.make_durable().unwrap();
        y.remove_range(b"", None).unwrap();
        write(&y, &entry(2)).unwrap();
        let before = y.disk_bytes();
        gate.shut(what);
        let (hangs, told) = std::thread::scope(|scope| {
            scope.spawn(|| y.make_durable().unwrap());
            let hangs = gate.await_one();
            let (tell, told) = mpsc::channel();
            let y = &y;
            scope.spawn(move || tell.send(figures(y)));
            let told = told.recv_timeout(PATIENCE);
            gate.open();
            (hangs, told)
        });
        assert!(hangs, "{what}: it did not hang");
        let told = told.unwrap_or_else(|_| panic!("{what}: no answer"));
        let all: usize = sim.contents().values().map(Vec::len).sum();
        let after = y.disk_bytes();
        assert_eq!(after, all as u64, "{what}");
        // The log's record counts when it is acknowledged, the table's file until it is removed.
        match what {
            "remove" => assert!(told > before && told > after, "{before} {told} {after}"),
            _ => assert_eq!(told, before, "{what}"),
        }
    }
}
