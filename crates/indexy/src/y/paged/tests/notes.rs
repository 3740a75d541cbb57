//! Reads that stand still on the device while versions are shown (`turns.rs`, rules 2 and 3): what
//! they note, and what they find by a note.

use super::*;
use crate::{
    storage::{Buffered, StorageFile},
    y::{
        GotAt, Locator, Reach,
        conformance::{Entries, Store, put, write},
    },
};
use parking_lot::{Condvar, Mutex};
use std::time::Duration;

const KEYS: u32 = 3000;
const KEY: u32 = 1234;
/// Longer than any read takes.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// The next read stops.
    Shut,
    /// One stands here; others go past it.
    Reached,
}

/// Where one read stops.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, to: State) {
        *self.state.lock() = to;
        self.changed.notify_all();
    }

    /// Returns when the gate is in another state than `state`.
    fn wait_while(&self, state: State) {
        let mut now = self.state.lock();
        let same = |now: &mut State| *now == state;
        let waited = self.changed.wait_while_for(&mut now, same, PATIENCE);
        assert!(!waited.timed_out(), "still {state:?}");
    }

    fn pass(&self) {
        {
            let mut state = self.state.lock();
            if *state != State::Shut {
                return;
            }
            *state = State::Reached;
            self.changed.notify_all();
        }
        self.wait_while(State::Reached);
    }

    /// Stops the first read of the device that `read` does, until `meanwhile` has happened.
    fn while_stopped<R: Send>(
        &self,
        read: impl FnOnce() -> R + Send,
        meanwhile: impl FnOnce(),
    ) -> R {
        self.set(State::Shut);
        std::thread::scope(|scope| {
            let reader = scope.spawn(read);
            self.wait_while(State::Shut);
            meanwhile();
            self.set(State::Open);
            reader.join().unwrap()
        })
    }
}

/// Files whose reads pass a gate.
struct Gated(Arc<Gate>);

struct GatedFile {
    file: Arc<dyn StorageFile>,
    gate: Arc<Gate>,
}

impl Gated {
    fn file(&self, file: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        let gate = Arc::clone(&self.0);
        Arc::new(GatedFile { file, gate })
    }
}

impl Storage for Gated {
    fn create(&self, path: &Path) -> Result<Arc<dyn StorageFile>> {
        Buffered.create(path).map(|file| self.file(file))
    }
    fn open(&self, path: &Path, write: bool) -> Result<Arc<dyn StorageFile>> {
        Buffered.open(path, write).map(|file| self.file(file))
    }
    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        Buffered.list(dir)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        Buffered.exists(path)
    }
    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        Buffered.create_dir_all(dir)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        Buffered.rename(from, to)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        Buffered.remove(path)
    }
    fn sync_dir(&self, dir: &Path) -> Result<()> {
        Buffered.sync_dir(dir)
    }
}

impl StorageFile for GatedFile {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.gate.pass();
        self.file.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.file.write_at(buf, offset)
    }
    fn sync(&self) -> Result<()> {
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

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn value(n: u32, version: u8) -> Vec<u8> {
    vec![version.wrapping_add(n as u8); 100]
}

/// A run over every leaf.
fn fill(y: &PagedY, version: u8) {
    let all: Entries = (0..KEYS)
        .map(|n| put(&key(n), &value(n, version)))
        .collect();
    write(y, &all).unwrap();
}

fn locate(y: &PagedY) -> (Option<Vec<u8>>, Option<Locator>) {
    let located = y.locate(&key(KEY), Reach::Key).unwrap();
    let value = located.value.map(Into::into);
    (value, located.at.map(|(locator, _)| locator))
}

/// Runs `test` over a tree in its first version, with a locator of [`KEY`], whose leaf is in no
/// frame.
fn over_a_tree(test: impl FnOnce(&PagedY, &Gate, &Locator)) {
    let gate = Arc::<Gate>::default();
    let store = OnDisk::of(Arc::new(Gated(Arc::clone(&gate))), 4096, 0);
    let y = store.open();
    fill(&y, 1);
    let (found, locator) = locate(&y);
    assert_eq!(found, Some(value(KEY, 1)));
    // Eight frames.
    for n in (0..KEYS).step_by(30).filter(|n| n.abs_diff(KEY) > 100) {
        y.get(&key(n)).unwrap();
    }
    test(&y, &gate, &locator.unwrap());
}

/// Rule 2: or the note would have the turn that its page got when it went.
#[test]
fn a_page_that_goes_while_it_is_looked_for_is_not_noted() {
    over_a_tree(|y, gate, _| {
        let (found, locator) = gate.while_stopped(|| locate(y), || fill(y, 2));
        assert_eq!(found, Some(value(KEY, 1)), "of the version that it took");
        assert_eq!(locator, None);
        let (found, locator) = locate(y);
        assert_eq!(found, Some(value(KEY, 2)));
        assert!(locator.is_some(), "nothing was shown meanwhile");
    });
}

/// Rule 3: or the page would be another one by the time it is read.
#[test]
fn a_read_by_a_note_holds_the_version_of_its_page() {
    over_a_tree(|y, gate, locator| {
        let read = || y.get_at(&key(KEY), locator).unwrap();
        let got = gate.while_stopped(read, || (2..20).for_each(|version| fill(y, version)));
        match got {
            GotAt::Found(found) | GotAt::Moved(found, _) => assert_eq!(&*found, value(KEY, 1)),
            got => panic!("{got:?}"),
        }
        let got = y.get_at(&key(KEY), locator).unwrap();
        assert!(matches!(got, GotAt::Stale), "{got:?}");
    });
}
