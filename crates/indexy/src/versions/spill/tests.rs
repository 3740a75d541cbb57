//! A store whose images go to disk again and again, against copies of what there was.

#![forbid(unsafe_code)]

use super::*;
use crate::{
    mem::budget::Budget,
    storage::{
        Storage,
        sim::{Fault, Sim},
    },
    versions::{Disk, Pin, Versions},
    y::pool::PageCache,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU32, Ordering::SeqCst},
};

type Content = BTreeMap<Vec<u8>, u64>;

fn versions(sim: &Sim, limit: u64) -> Versions {
    let versions = Versions::new(Arc::new(Budget::new(64 << 20)));
    let sim = sim.clone();
    versions.set_disk(Disk::new(limit, move || {
        let pool = PageCache::new(1 << 20).pool(4096);
        let storage: Arc<dyn Storage> = Arc::new(sim.clone());
        Arc::new(Scratch::new(storage, "/images".into(), pool).with_tables_of(32 << 10))
    }));
    versions
}

/// What Y has.
struct Y<'a>(&'a Content);

impl Cold for Y<'_> {
    fn at_once(&self) -> usize {
        3
    }

    fn read(&mut self, keys: &[&[u8]]) -> Result<Vec<Image>> {
        assert!(keys.len() <= 3 && !keys.is_empty());
        Ok(keys.iter().map(|key| image(self.0.get(*key))).collect())
    }
}

fn image(value: Option<&u64>) -> Image {
    match value {
        Some(value) => Image::Value(value.to_le_bytes().as_slice().into()),
        None => Image::Absent,
    }
}

struct Open {
    pin: Arc<Pin>,
    content: Content,
    written: BTreeSet<Vec<u8>>,
}

struct Rig {
    versions: Versions,
    store: Arc<Store>,
    now: Content,
    y: Content,
    /// Keys that X has.
    dirty: BTreeSet<Vec<u8>>,
    open: Vec<Open>,
    loads: usize,
}

impl Rig {
    fn new(sim: &Sim) -> Self {
        let versions = versions(sim, u64::MAX);
        Self {
            store: versions.new_store(),
            versions,
            now: Content::new(),
            y: Content::new(),
            dirty: BTreeSet::new(),
            open: Vec::new(),
            loads: 0,
        }
    }

    fn begin(&mut self) {
        self.open.push(Open {
            pin: self.versions.begin(),
            content: self.now.clone(),
            written: BTreeSet::new(),
        });
    }

    fn write(&mut self, key: &[u8], value: Option<u64>) {
        let (watch, newest) = (self.versions.watch(), self.store.newest_in_memory(key, 0));
        if newest < watch {
            let image = match self.dirty.contains(key) {
                true => image(self.now.get(key)),
                false => Image::InY,
            };
            self.versions.push(&self.store, key, watch, &image);
        }
        self.dirty.insert(key.to_vec());
        match value {
            Some(value) => self.now.insert(key.to_vec(), value),
            None => self.now.remove(key),
        };
        for open in &mut self.open {
            open.written.insert(key.to_vec());
        }
    }

    /// A sorted load of `keys`, of which there is none.
    fn load(&mut self, keys: &[Vec<u8>]) {
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
            return;
        };
        if keys.len() < 2 || keys.iter().any(|key| self.now.contains_key(key)) {
            return;
        }
        self.clean();
        self.versions.push_span(&self.store, first, last);
        for (n, key) in keys[..keys.len() - 1].iter().enumerate() {
            if n % 3 != 1 {
                self.now.insert(key.clone(), 1 << 40);
                self.y.insert(key.clone(), 1 << 40);
            }
            for open in &mut self.open {
                open.written.insert(key.clone());
            }
        }
        self.loads += 1;
    }

    /// A run of everything.
    fn clean(&mut self) {
        let keys = self.store.markers(&[], None, self.versions.oldest());
        let images: Vec<_> = keys.iter().map(|key| image(self.y.get(&**key))).collect();
        self.versions
            .resolve(&self.store, 0, keys.iter().zip(images));
        self.y = self.now.clone();
        self.dirty.clear();
    }

    fn spill(&self) -> Result<()> {
        let disk = self.versions.disk().unwrap();
        let (frozen, epochs) = (self.store.freeze(), self.versions.epochs());
        let mut y = Y(&self.y);
        self.store.spill(&frozen, disk, &epochs, &mut y)
    }

    fn merge(&self) -> bool {
        let (disk, open) = (self.versions.disk().unwrap(), || self.versions.epochs());
        self.store
            .merge(disk, open, u64::MAX, &mut || true)
            .unwrap()
    }

    fn value(&self, key: &[u8], image: Option<Image>) -> Image {
        match image {
            None => super::tests::image(self.now.get(key)),
            Some(Image::InY) => super::tests::image(self.y.get(key)),
            Some(image) => image,
        }
    }

    fn check(&self, keys: &[Vec<u8>]) {
        for open in &self.open {
            let epoch = open.pin.epoch();
            for key in keys {
                let seen = self.value(key, self.store.at(key, epoch).unwrap());
                assert_eq!(seen, image(open.content.get(key)), "{key:?} at {epoch}");
                let written = self.store.is_written_since(key, epoch).unwrap();
                assert_eq!(written, open.written.contains(key), "{key:?} since {epoch}");
            }
            for order in [Order::Ascending, Order::Descending] {
                self.check_range(open, order);
            }
            let (from, to) = (&keys[keys.len() / 3], &keys[keys.len() / 2]);
            let found = self
                .store
                .written_in(from, Some(to), epoch, |_| false)
                .unwrap();
            let expected = open.written.range(from.clone()..to.clone()).next();
            assert_eq!(found.is_some(), expected.is_some());
        }
    }

    fn check_range(&self, open: &Open, order: Order) {
        let (mut from, mut to, mut content) = (Vec::new(), None, self.now.clone());
        let mut first = true;
        loop {
            let epoch = open.pin.epoch();
            let seen = self.store.range_at(&from, to.as_deref(), order, epoch);
            let seen = seen.unwrap();
            if std::mem::take(&mut first) {
                content.retain(|key, _| !seen.was_absent(key));
            }
            for (key, image) in seen.images {
                match self.value(&key, Some(image)) {
                    Image::Value(value) => {
                        let value = u64::from_le_bytes((*value).try_into().unwrap());
                        content.insert(key.to_vec(), value)
                    }
                    _ => content.remove(&*key),
                };
            }
            match (seen.resume, order) {
                (None, _) => break,
                (Some(at), Order::Ascending) => from = at,
                (Some(at), Order::Descending) => to = Some(at),
            }
        }
        assert_eq!(content, open.content);
    }
}

#[test]
fn i10_i13_images_are_in_memory_or_on_disk() {
    let (mut merges, mut loads) = (0, 0);
    for seed in 0..12 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut rig = Rig::new(&Sim::default());
        let keys: Vec<Vec<u8>> = (0..60u32).map(|n| n.to_be_bytes().to_vec()).collect();
        for step in 0..1500u64 {
            match random.random_range(0..100) {
                0..5 if rig.open.len() < 6 => rig.begin(),
                5..8 if !rig.open.is_empty() => {
                    let at = random.random_range(0..rig.open.len());
                    rig.versions.end(&rig.open.remove(at).pin);
                }
                8..12 => rig.clean(),
                12..20 => rig.spill().unwrap(),
                20..23 => merges += usize::from(rig.merge()),
                23..25 => rig.versions.collect(),
                25..27 => rig.check(&keys),
                27..30 => {
                    let at = random.random_range(0..keys.len() - 6);
                    for key in &keys[at..at + 6] {
                        rig.write(key, None);
                    }
                }
                30..36 => {
                    let at = random.random_range(0..keys.len() - 6);
                    rig.load(&keys[at..at + 6]);
                }
                _ => {
                    let key = &keys[random.random_range(0..keys.len())];
                    rig.write(key, (step % 4 > 0).then_some(step));
                }
            }
        }
        rig.check(&keys);
        loads += rig.loads;
        for open in rig.open.drain(..) {
            rig.versions.end(&open.pin);
        }
        rig.versions.collect();
        assert_eq!(rig.versions.bytes(), (0, 0));
    }
    assert!(merges > 20 && loads > 20, "{merges} {loads}");
}

/// A reader beside a spill, or a merge, finds each image: in memory or in a file.
#[test]
fn i10_each_image_is_found_beside_spills_and_merges() {
    const KEYS: u32 = 6000;
    let (sim, left) = (Sim::default(), AtomicU32::new(0));
    let versions = versions(&sim, u64::MAX);
    let store = versions.new_store();
    let pin = versions.begin();
    let (epoch, value) = (pin.epoch(), image(Some(&7)));
    std::thread::scope(|s| {
        for thread in 0..2 {
            let (store, left, value) = (&store, &left, &value);
            s.spawn(move || {
                let mut random = StdRng::seed_from_u64(thread);
                while left.load(SeqCst) < KEYS {
                    let n = random.random_range(0..left.load(SeqCst).max(1));
                    let there = left.load(SeqCst);
                    let key = n.to_be_bytes();
                    let found = store.at(&key, epoch).unwrap();
                    assert!(found.is_none_or(|found| found == *value));
                    if n < there {
                        let found = store.at(&key, epoch).unwrap();
                        assert_eq!(found.as_ref(), Some(value), "{n}");
                        assert!(store.is_written_since(&key, epoch).unwrap());
                        let end = (n + 1).to_be_bytes();
                        let seen = store.range_at(&key, Some(&end), Order::Ascending, epoch);
                        assert_eq!(seen.unwrap().images.len(), 1, "{n}");
                    }
                }
            });
        }
        let (disk, none) = (versions.disk().unwrap(), Content::new());
        for n in 0..KEYS {
            versions.push(&store, &n.to_be_bytes(), epoch + 1, &value);
            left.store(n + 1, SeqCst);
            if n % 60 == 59 {
                let epochs = versions.epochs();
                let spilled = store.spill(&store.freeze(), disk, &epochs, &mut Y(&none));
                spilled.unwrap();
                let open = || versions.epochs();
                store.merge(disk, open, u64::MAX, &mut || true).unwrap();
            }
        }
    });
    versions.end(&pin);
    assert!(sim.contents().is_empty());
}

#[test]
fn files_go_with_the_snapshots_that_need_them() {
    let sim = Sim::default();
    let mut rig = Rig::new(&sim);
    rig.begin();
    for n in 0..9000u32 {
        rig.write(&n.to_be_bytes(), Some(1));
        if n % 3000 == 2999 {
            rig.spill().unwrap();
        }
    }
    assert_eq!(rig.store.files().len(), 3);
    assert!(rig.versions.bytes().1 > 0 && !sim.contents().is_empty());
    let old = rig.open.remove(0);
    rig.begin();
    rig.versions.end(&old.pin);
    assert!(sim.contents().is_empty() && rig.store.files().is_empty());
}

/// A snapshot begins while a merge learns which are open, and what it sees is overwritten and
/// spilled before the merge has begun.
#[test]
fn i10_i13_a_merge_keeps_what_a_snapshot_that_has_just_begun_sees() {
    let (sim, none) = (Sim::default(), Content::new());
    let versions = versions(&sim, u64::MAX);
    let (store, disk) = (versions.new_store(), versions.disk().unwrap());
    let keys: Vec<_> = (0..300u32).map(u32::to_be_bytes).collect();
    let leave = |value: u64| {
        for key in &keys {
            versions.push(&store, key, versions.watch(), &image(Some(&value)));
        }
        let spilled = store.spill(&store.freeze(), disk, &versions.epochs(), &mut Y(&none));
        spilled.unwrap();
    };
    let old = versions.begin();
    for value in 1..=4 {
        leave(value);
    }
    let mut new = None;
    let open = || {
        let epochs = versions.epochs();
        new = Some(versions.begin());
        leave(5);
        epochs
    };
    assert!(store.merge(disk, open, u64::MAX, &mut || true).unwrap());
    let new = new.unwrap();
    for key in &keys {
        assert_eq!(store.at(key, old.epoch()).unwrap(), Some(image(Some(&1))));
        assert_eq!(store.at(key, new.epoch()).unwrap(), Some(image(Some(&5))));
        assert!(store.is_written_since(key, new.epoch()).unwrap());
    }
    versions.end(&old);
    versions.end(&new);
}

/// Merges leave one image of a key that is written again and again.
#[test]
fn superfluous_images_go_when_files_are_merged() {
    let mut rig = Rig::new(&Sim::default());
    rig.begin();
    for round in 0..40 {
        for n in 0..2000u32 {
            rig.write(&n.to_be_bytes(), Some(round));
        }
        rig.spill().unwrap();
        while rig.merge() {}
    }
    let files = rig.store.files();
    assert!(files.len() < 9, "{} files", files.len());
    let keys: Vec<_> = (0..2000u32).map(|n| n.to_be_bytes().to_vec()).collect();
    rig.check(&keys);
}

#[test]
fn a_spill_that_fails_changes_nothing() {
    let sim = Sim::default();
    let mut rig = Rig::new(&sim);
    let keys: Vec<_> = (0..500u32).map(|n| n.to_be_bytes().to_vec()).collect();
    for key in &keys {
        rig.write(key, Some(1));
    }
    rig.clean();
    rig.begin();
    for key in &keys {
        rig.write(key, None);
    }
    for at in 1..6 {
        sim.fail_at(sim.ios() + at, Fault::Full, false);
        let spilled = rig.spill();
        let struck = sim.faults() > 0;
        sim.heal();
        assert_eq!(spilled.is_err(), struck, "at {at}");
        rig.check(&keys);
        if struck {
            assert!(sim.contents().is_empty());
        }
    }
    rig.spill().unwrap();
    assert_eq!(rig.store.files().len(), 1);
    rig.check(&keys);
}

/// Bytes of a file that are damaged are an error, not another value.
#[test]
fn a_damaged_file_is_an_error() {
    let sim = Sim::default();
    let mut rig = Rig::new(&sim);
    let keys: Vec<_> = (0..2000u32).map(|n| n.to_be_bytes().to_vec()).collect();
    rig.begin();
    for key in &keys {
        rig.write(key, Some(1));
    }
    rig.spill().unwrap();
    for path in sim.contents().keys() {
        let file = sim.open(path, true).unwrap();
        file.write_at(&[7; 4096], 4096).unwrap();
    }
    let epoch = rig.open[0].pin.epoch();
    let wrong = keys.iter().filter(|key| rig.store.at(key, epoch).is_err());
    assert!(wrong.count() > 100);
    let range = rig.store.range_at(&[], None, Order::Ascending, epoch);
    assert!(matches!(range, Err(Error::Corrupt { .. })));
    assert!(
        rig.store
            .written_in(&[], None, epoch, |key| key < &keys[1999][..])
            .is_err()
    );
}

#[test]
fn past_the_limit_on_disk_the_oldest_snapshots_are_given_up() {
    let versions = versions(&Sim::default(), 300 << 10);
    let store = versions.new_store();
    let (old, mut n) = (versions.begin(), 0u32);
    while !old.is_expired() {
        for _ in 0..2000 {
            let watch = versions.watch();
            versions.push(&store, &n.to_be_bytes(), watch, &Image::Absent);
            n += 1;
        }
        let (frozen, epochs) = (store.freeze(), versions.epochs());
        let disk = versions.disk().unwrap();
        let none = Content::new();
        store.spill(&frozen, disk, &epochs, &mut Y(&none)).unwrap();
        versions.spilled();
        assert!(versions.bytes().1 <= 300 << 10);
        assert!(n < 100_000);
    }
    assert!(n > 4000);
    versions.end(&old);
}
