//! The conformance suite on real files, and what is special about this engine.

use super::*;
use crate::y::conformance::{Store, conformance_tests};
use tempfile::TempDir;

mod crash;
mod damage;
mod decode;
mod stress;

/// A tree in a temporary directory.
pub(super) struct OnDisk {
    dir: TempDir,
    storage: Arc<dyn Storage>,
    shared: PagedShared,
    page_bytes: u32,
}

impl OnDisk {
    pub(super) fn new(page_bytes: u32, memory_bytes: usize) -> Self {
        Self {
            dir: TempDir::new().unwrap(),
            storage: device(),
            shared: PagedShared::new(memory_bytes),
            page_bytes,
        }
    }

    fn open_at(&self, path: &Path) -> PagedY {
        PagedY::open(&self.storage, path, self.page_bytes, &self.shared, 1, false).unwrap()
    }
}

impl Store for OnDisk {
    type Y = PagedY;
    fn open(&self) -> PagedY {
        self.open_at(&self.dir.path().join("tree"))
    }
    fn open_copy(&self, dir: &Path) -> PagedY {
        self.open_at(dir)
    }
    fn copy_dir(&self) -> PathBuf {
        self.dir.path().join("copy")
    }
    fn dir(&self) -> Option<PathBuf> {
        Some(self.dir.path().join("tree"))
    }
    fn open_read_only(&self, dir: &Path) -> Option<Result<PagedY>> {
        let (storage, shared) = (&self.storage, &self.shared);
        Some(PagedY::open(storage, dir, self.page_bytes, shared, 1, true))
    }
}

mod pages_of_4_kib {
    use super::*;
    conformance_tests!(OnDisk::new(4096, 4 << 20));
}

/// With as few frames as a pool can have.
mod pages_of_16_kib_tiny_pool {
    use super::*;
    conformance_tests!(OnDisk::new(16384, 0));
}

/// Cold and warm, with room for all pages and for next to none: what single reads find, in the order asked.
#[test]
fn many_at_once_find_what_single_reads_find() {
    use crate::y::conformance::{Entries, put, write};
    for memory_bytes in [0, 128 << 10, 8 << 20] {
        let store = OnDisk::new(4096, memory_bytes);
        let key = |i: u32| (i * 2).wrapping_mul(0x9e37_79b1).to_be_bytes();
        let y = store.open();
        let mut run: Entries = (0..20_000u32)
            .map(|i| {
                put(
                    &key(i),
                    &vec![i as u8; if i % 500 == 7 { 9000 } else { 40 }],
                )
            })
            .collect();
        run.sort();
        write(&y, &run).unwrap();
        drop(y);
        let y = store.open();
        for round in 0..20u32 {
            let wanted: Vec<Vec<u8>> = (0..300u32)
                .map(|i| match (i * 71 + round * 997) % 21_000 {
                    absent @ 20_000.. => absent.to_be_bytes().to_vec(),
                    there => key(there).to_vec(),
                })
                .collect();
            let wanted: Vec<&[u8]> = wanted.iter().map(|k| &k[..]).collect();
            let found = y.multi_get(&wanted).unwrap();
            for (key, value) in wanted.iter().zip(found) {
                assert_eq!(value, y.get(key).unwrap());
            }
        }
        assert!(y.multi_get(&[]).unwrap().is_empty());
    }
}

/// After the directory was unlocked the file is somebody else's: what was published is durable by then, and a late drop writes nothing.
#[test]
fn a_tree_that_released_its_file_leaves_it_alone() {
    use crate::y::conformance::{put, write};
    let store = OnDisk::new(4096, 4 << 20);
    let y = store.open();
    write(&y, &vec![put(b"a", b"1")]).unwrap();
    y.make_durable().unwrap();
    write(&y, &vec![put(b"b", b"2")]).unwrap();
    assert!(y.release_files());
    let next = store.open();
    assert_eq!(next.get(b"b").unwrap().as_deref(), Some(&b"2"[..]));
    write(&next, &vec![put(b"c", b"3")]).unwrap();
    next.make_durable().unwrap();
    assert!(matches!(
        write(&y, &vec![put(b"d", b"4")]),
        Err(Error::Closed)
    ));
    assert!(matches!(y.make_durable(), Err(Error::Closed)));
    drop(y);
    drop(next);
    let y = store.open();
    assert_eq!(y.verify().unwrap(), 3);
    assert_eq!(y.get(b"c").unwrap().as_deref(), Some(&b"3"[..]));
}

/// Runs that change most leaves fill pages, and the file stays near what the entries take; runs here and there leave halves.
#[test]
fn neighbours_that_change_fill_pages() {
    use crate::y::conformance::{Entries, put, write};
    use rand::{Rng, SeedableRng, rngs::StdRng};
    const RUNS: usize = 8;
    const RUN_KEYS: usize = 5000;
    let store = OnDisk::new(4096, 0);
    let y = store.open();
    let mut rng = StdRng::seed_from_u64(3);
    for _ in 0..RUNS {
        let mut run: Entries = (0..RUN_KEYS)
            .map(|_| put(&rng.random::<[u8; 8]>(), &[7; 8]))
            .collect();
        run.sort();
        write(&y, &run).unwrap();
    }
    y.make_durable().unwrap();
    assert_eq!(y.verify().unwrap(), (RUNS * RUN_KEYS) as u64);
    // A slot, seven bytes of a key behind its prefix, a length and a value.
    let least = RUNS * RUN_KEYS * (8 + 7 + 4 + 8) / 4096;
    let used = y.space.lock().busy_pages() as usize;
    assert!(used <= least * 6 / 5, "{used} pages for {least}");
}

/// Keys of all lengths, whose bounds lie in chains: every run joins, splits and carries over.
#[test]
fn leaves_of_long_keys_take_what_their_neighbours_leave() {
    use crate::y::conformance::{Model, check, write};
    use rand::{Rng, SeedableRng, rngs::StdRng};
    let store = OnDisk::new(4096, 64 << 10);
    let y = store.open();
    let mut model = Model::new();
    let mut rng = StdRng::seed_from_u64(4);
    for round in 0..12u8 {
        let mut run = std::collections::BTreeMap::new();
        for _ in 0..400 {
            let len = [3, 30, 300, 510, 520, 900][rng.random_range(0..6)];
            let mut key = vec![rng.random_range(0..3); len];
            let tail = rng.random::<u16>().to_be_bytes();
            let at = rng.random_range(0..len - 1);
            key[at..at + 2].copy_from_slice(&tail);
            let value = vec![round; [0, 10, 500, 1500][rng.random_range(0..4)]];
            run.insert(key, (round % 4 != 3 || rng.random()).then_some(value));
        }
        for key in model.keys().filter(|_| round % 4 == 3) {
            if rng.random_bool(0.6) {
                run.insert(key.clone(), None);
            }
        }
        for (key, value) in &run {
            match value {
                Some(value) => model.insert(key.clone(), value.clone()),
                None => model.remove(key),
            };
        }
        write(&y, &run.into_iter().collect()).unwrap();
        y.make_durable().unwrap();
        assert_eq!(y.verify().unwrap(), model.len() as u64, "round {round}");
        check(&y, &model);
    }
}
