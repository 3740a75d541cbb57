//! A disk index in memory whose calls fail, or wait, as long as a test wants.

use indexy::{
    Db, Durability, Error, IndexYKind, Key, Options, Result, Value,
    index_y::{
        Capabilities, IndexY, IndexYFactory, IndexYShared, Maintained, Order, RunSource, YIter,
    },
    limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES},
};
use std::{
    collections::BTreeMap,
    ops::Bound,
    path::Path,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender},
    },
};

/// How the disk indexes of one database fail.
#[derive(Default)]
pub struct Faults {
    pub reads: Mutex<Option<Error>>,
    pub writes: Mutex<Option<Error>>,
    /// The next read says that it is there, and waits for an answer.
    pub pause: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Faults {
    fn read(&self) -> Result<()> {
        let pause = self.pause.lock().unwrap().take();
        if let Some((there, go)) = pause {
            // A test that failed meanwhile has dropped its ends.
            let _ = there.send(());
            let _ = go.recv();
        }
        self.reads.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn write(&self) -> Result<()> {
        self.writes.lock().unwrap().clone().map_or(Ok(()), Err)
    }
}

/// A database all of whose trees have such a disk index.
pub fn open(path: &Path, durability: Durability) -> (Db, Arc<Faults>) {
    let faults: Arc<Faults> = Arc::default();
    let options = Options::new(8 << 20)
        .durability(durability)
        .index_y(IndexYKind::custom("failing").unwrap())
        .register_index_y("failing", Arc::new(Factory(faults.clone())))
        .unwrap();
    (Db::open(path, options).unwrap(), faults)
}

/// Makes and opens the disk indexes.
struct Factory(Arc<Faults>);

impl IndexYFactory for Factory {
    fn share(&self, _: usize) -> Result<Arc<dyn IndexYShared>> {
        Ok(Arc::new(Self(self.0.clone())))
    }
}

impl IndexYShared for Factory {
    fn open(&self, dir: &Path, _: bool) -> Result<Arc<dyn IndexY>> {
        std::fs::create_dir_all(dir).map_err(|e| Error::io("mkdir", dir, e))?;
        Ok(Arc::new(FailingY {
            faults: self.0.clone(),
            map: Mutex::default(),
        }))
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn set_memory(&self, _: usize) {}
}

struct FailingY {
    faults: Arc<Faults>,
    map: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl IndexY for FailingY {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_key_bytes: MAX_KEY_BYTES,
            max_value_bytes: MAX_VALUE_BYTES,
            preferred_run_bytes: 64 << 10,
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.faults.read()?;
        Ok(self.map.lock().unwrap().get(key).map(|v| Value::new(v)))
    }

    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>> {
        self.faults.read()?;
        if to.is_some_and(|to| to <= from) {
            return Ok(Box::new(std::iter::empty()));
        }
        let (map, to) = (
            self.map.lock().unwrap(),
            to.map_or(Bound::Unbounded, Bound::Excluded),
        );
        let entries = map.range::<[u8], _>((Bound::Included(from), to));
        let copied = entries.map(|(k, v)| Ok((Key::new(k), Value::new(v))));
        let mut all: Vec<_> = copied.collect();
        if order == Order::Descending {
            all.reverse();
        }
        Ok(Box::new(all.into_iter()))
    }

    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        self.faults.write()?;
        let mut run = Vec::new();
        source.drain(&mut |(key, value)| {
            run.push((key.to_vec(), value.map(<[u8]>::to_vec)));
            Ok(())
        })?;
        source.before_publish()?;
        let mut map = self.map.lock().unwrap();
        for (key, value) in run {
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        Ok(())
    }

    fn make_durable(&self) -> Result<()> {
        self.faults.write()
    }

    fn maintain(&self) -> Result<Maintained> {
        Ok(Maintained::Idle)
    }

    fn congested(&self) -> bool {
        false
    }

    fn is_empty(&self) -> Result<bool> {
        Ok(self.map.lock().unwrap().is_empty())
    }

    fn approximate_len(&self) -> u64 {
        self.map.lock().unwrap().len() as u64
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn disk_bytes(&self) -> u64 {
        0
    }

    fn run_count(&self) -> usize {
        1
    }

    fn verify(&self) -> Result<u64> {
        Ok(self.approximate_len())
    }

    fn release_files(&self) -> bool {
        true
    }

    fn copy_to(&self, _: &Path) -> Result<()> {
        let what = "copies of what is in memory".into();
        Err(Error::Unsupported { what })
    }
}
