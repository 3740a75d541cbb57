//! Large values and long keys: one read, one write, space that is used again, files of version 1.

use super::*;
use crate::{
    storage::{ReadAt, StorageFile},
    y::{
        conformance::{Entries, Model, check, del, put, write},
        crashes,
        page::{self as pages, PageSource},
        paged::file::extent,
    },
};
use std::sync::atomic::AtomicU64;

/// The device, and how often it was read and written.
struct Counting {
    device: Arc<dyn Storage>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    reads: AtomicU64,
    writes: AtomicU64,
}

struct CountingFile {
    file: Arc<dyn StorageFile>,
    counts: Arc<Counts>,
}

impl Counting {
    fn counted(&self, file: Arc<dyn StorageFile>) -> Arc<dyn StorageFile> {
        let counts = Arc::clone(&self.counts);
        Arc::new(CountingFile { file, counts })
    }
}

impl Storage for Counting {
    fn create(&self, path: &Path) -> Result<Arc<dyn StorageFile>> {
        Ok(self.counted(self.device.create(path)?))
    }
    fn open(&self, path: &Path, write: bool) -> Result<Arc<dyn StorageFile>> {
        Ok(self.counted(self.device.open(path, write)?))
    }
    fn list(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        self.device.list(dir)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.device.exists(path)
    }
    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.device.create_dir_all(dir)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.device.rename(from, to)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.device.remove(path)
    }
    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.device.sync_dir(dir)
    }
}

impl StorageFile for CountingFile {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.counts.reads.fetch_add(1, Relaxed);
        self.file.read_at(buf, offset)
    }
    fn read_all(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        self.counts.reads.fetch_add(reads.len() as u64, Relaxed);
        self.file.read_all(reads)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.counts.writes.fetch_add(1, Relaxed);
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

/// A store whose device counts.
fn counting() -> (OnDisk, Arc<Counts>) {
    let counts = Arc::<Counts>::default();
    let storage = Counting {
        device: device(),
        counts: Arc::clone(&counts),
    };
    let store = OnDisk {
        storage: Arc::new(storage),
        ..OnDisk::new(4096, 8 << 20)
    };
    (store, counts)
}

#[test]
fn a_large_value_is_one_read_and_one_write() {
    let (store, counts) = counting();
    let y = store.open();
    let value = |i: u8| vec![i; 64 << 10];
    let before = counts.writes.load(Relaxed);
    write(&y, &(0..40).map(|i| put(&[i], &value(i))).collect()).unwrap();
    // Three of them fill a write.
    let writes = counts.writes.load(Relaxed) - before;
    assert!(writes <= 15, "{writes}");
    drop(y);
    let y = store.open();
    y.get(b"no such key").unwrap();
    for i in 0..40 {
        let before = counts.reads.load(Relaxed);
        assert_eq!(y.get(&[i]).unwrap().unwrap(), value(i));
        assert_eq!(counts.reads.load(Relaxed) - before, 1);
    }
}

#[test]
fn values_of_every_length_come_back() {
    for page_bytes in [4096, 16384] {
        let store = OnDisk::new(page_bytes, 1 << 20);
        let y = store.open();
        let page = page_bytes as usize;
        let ends = [page, 2 * page, extent::READ_BYTES, 2 * extent::READ_BYTES];
        let near = ends.into_iter().flat_map(|end| end - 58..end - 53);
        let lengths = near.chain([5000, 70_000, 100_000, 1 << 20, (3 << 20) + 17]);
        let model: Model = lengths
            .map(|length| {
                let value = (0..length).map(|i| (i * 7 + length) as u8);
                ((length as u32).to_be_bytes().to_vec(), value.collect())
            })
            .collect();
        let run: Entries = model.iter().map(|(k, v)| put(k, v)).collect();
        write(&y, &run).unwrap();
        y.make_durable().unwrap();
        check(&y, &model);
        y.copy_to(&store.copy_dir()).unwrap();
        drop(y);
        check(&store.open(), &model);
        assert_eq!(store.open().verify().unwrap(), model.len() as u64);
        let copy = store.open_copy(&store.copy_dir());
        check(&copy, &model);
        assert_eq!(copy.verify().unwrap(), model.len() as u64);
    }
}

/// The space of what was overwritten or removed is used again, whatever the lengths.
#[test]
fn space_of_extents_is_used_again() {
    let store = OnDisk::new(4096, 1 << 20);
    let y = store.open();
    let mut model = Model::new();
    let mut grown = 0;
    for round in 0..40u32 {
        let run: Entries = (0..60u32)
            .map(|i| match (i * 7 + round * 3) % 11 {
                0 => del(&i.to_be_bytes()),
                n => put(&i.to_be_bytes(), &vec![round as u8; n as usize * 9000]),
            })
            .collect();
        write(&y, &run).unwrap();
        y.make_durable().unwrap();
        for (key, value) in run {
            match value {
                Some(value) => model.insert(key, value),
                None => model.remove(&key),
            };
        }
        if round == 10 {
            grown = y.disk_bytes();
        }
    }
    check(&y, &model);
    y.verify().unwrap();
    assert!(
        y.disk_bytes() <= grown + grown / 4,
        "{grown} {}",
        y.disk_bytes()
    );
    let all: Entries = model.keys().map(|key| del(key)).collect();
    write(&y, &all).unwrap();
    y.make_durable().unwrap();
    assert_eq!(y.space.lock().busy_pages(), 2, "the map is left");
}

/// A length that cannot be is found before memory is taken for it.
#[test]
fn an_extent_that_cannot_be_is_found_without_reading_it() {
    let (store, counts) = counting();
    let y = store.open();
    write(&y, &vec![put(b"a", &[1; 9000])]).unwrap();
    let before = counts.reads.load(Relaxed);
    for bytes in [200 << 20, (256 << 20) + 1, (1 << 31) - 1] {
        let far = extent::reference(4, bytes);
        assert!(matches!(
            y.pages.file.fetch(far),
            Err(Error::Corrupt { .. })
        ));
    }
    assert_eq!(counts.reads.load(Relaxed), before);
    for (first, bytes) in [(4, 9001), (4, 8999), (5, 4000), (4, 100_000)] {
        let far = extent::reference(first, bytes);
        assert!(matches!(
            y.pages.file.fetch(far),
            Err(Error::Corrupt { .. })
        ));
    }
    assert_eq!(
        y.pages.file.fetch(extent::reference(4, 9000)).unwrap(),
        [1; 9000]
    );
}

/// A file of version 1, with its chains, is read and written; the next commit gives it the present
/// version.
#[test]
fn a_file_of_version_1_goes_on() {
    let fixtures = Path::new("tests/fixtures");
    let pages_of_1 = fixtures.join("v1-bplus-bplus/trees/1/pages");
    let bytes = std::fs::read(pages_of_1).unwrap();
    let version = |bytes: &[u8]| pages::u32_at(bytes, 8).unwrap();
    assert_eq!(version(&bytes), 1);
    let owner = pages::u64_at(&bytes, 72).unwrap();
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("pages");
    std::fs::write(&path, &bytes).unwrap();
    let shared = PageCache::new(1 << 20);
    let open = || PagedY::open(&device(), dir.path(), 4096, &shared, owner, false).unwrap();
    let y = open();
    y.verify().unwrap();
    let mut model: Model = crashes::content(&y).unwrap();
    let (long, large) = (vec![0xfe; 3000], b"large".to_vec());
    assert_eq!(model[&long], b"long");
    assert_eq!(model[&large], vec![7; 9000]);
    drop(y);
    assert_eq!(
        std::fs::read(&path).unwrap(),
        bytes,
        "nothing was to be written"
    );
    // Some leaves are rewritten and name the old chains.
    let y = open();
    write(&y, &vec![put(b"larg", b"1"), put(b"larger", &[8; 9000])]).unwrap();
    model.insert(b"larg".to_vec(), b"1".to_vec());
    model.insert(b"larger".to_vec(), vec![8; 9000]);
    drop(y);
    assert_eq!(version(&std::fs::read(&path).unwrap()), superblock::VERSION);
    let y = open();
    check(&y, &model);
    y.verify().unwrap();
    // And the chains go.
    write(&y, &vec![put(&large, &[9; 20]), del(&long)]).unwrap();
    model.insert(large, vec![9; 20]);
    model.remove(&long);
    y.make_durable().unwrap();
    check(&y, &model);
    assert_eq!(y.verify().unwrap(), model.len() as u64);
}

#[test]
fn another_version_is_refused() {
    const OTHER: u32 = superblock::VERSION + 1;
    let store = OnDisk::new(4096, 1 << 20);
    drop(store.open());
    let path = store.dir().unwrap().join("pages");
    let mut bytes = std::fs::read(&path).unwrap();
    for copy in superblock::COPIES {
        let at = copy as usize;
        bytes[at + 8] = OTHER as u8;
        let sum = xxhash_rust::xxh3::xxh3_64(&bytes[at..at + 80]);
        bytes[at + 80..at + 88].copy_from_slice(&sum.to_le_bytes());
    }
    std::fs::write(&path, bytes).unwrap();
    let dir = store.dir().unwrap();
    let found = PagedY::open(&device(), &dir, 4096, &store.shared, 1, false);
    assert!(matches!(
        found,
        Err(Error::FormatVersion {
            found: OTHER,
            supported: superblock::VERSION,
            ..
        })
    ));
}
