//! A modelled device by itself: a table of blocks in memory, each read and each synced write of
//! which takes as long as on the device.
//!
//! Source: the micro benchmark of *Larger-than-Memory Data Management on Modern Storage Hardware*
//! (Ma and others), section 2: one thread, a hash table on the device, a sync after each write.
//! Differs: nothing is asked of a file, so that memory is not slower than its model.
//!
//! Latencies of the harness are those of a call, the comparison of its value included. The counters
//! are the device's part alone, which for memory is the smaller one: `device_read_us` and
//! `device_write_us`, summed up, without what the clock itself takes. A device that is faster than
//! a timer is slept for in naps ([`indexy::ModelledDevice`]): sums are right, and single calls are
//! not.

use super::{
    about::{About, KeyShape, PageCache, Storage},
    cold::{Device, device_counters},
    contract::{Contender, Durability, Outcome, Session, Setup},
};
use indexy::ModelledDevice;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// Its name.
pub(super) const DEVICE: &str = "device";

/// A device, and what is on it.
#[derive(Debug)]
pub struct DeviceAlone {
    device: ModelledDevice,
    clock_us: f64,
    blocks: Mutex<Blocks>,
}

/// Where a block is on the device, and its bytes.
type Block = (u64, Box<[u8]>);

#[derive(Debug, Default)]
struct Blocks {
    /// The block of each key.
    of: HashMap<Box<[u8]>, Block>,
    read_us: f64,
    write_us: f64,
}

impl DeviceAlone {
    /// What it is.
    pub fn about() -> About {
        About {
            name: DEVICE,
            summary: "a modelled device by itself: reads and synced writes of blocks (figure ma1)",
            storage: Storage::Memory,
            page_cache: PageCache::Unused,
            keys: KeyShape::Bytes,
            max_threads: 1,
            scans: false,
            reopens: false,
            pages: false,
            durabilities: &[Durability::Sync],
            variant: "",
        }
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Microseconds that two looks at the clock take by themselves: the least of some batches.
fn clock_us() -> f64 {
    const BATCHES: usize = 20;
    const BATCH: usize = 1000;
    let batch = |_| (0..BATCH).map(|_| timed(|| {})).sum::<f64>() / BATCH as f64;
    (0..BATCHES).map(batch).fold(f64::INFINITY, f64::min)
}

/// Microseconds of `wait`.
fn timed(wait: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    wait();
    begun.elapsed().as_secs_f64() * 1e6
}

impl Contender for DeviceAlone {
    type Session<'a> = &'a DeviceAlone;

    fn open(setup: &Setup) -> Outcome<Self> {
        const SEED: u64 = 1;
        let device = setup.cold.map_or(Device::Dram, |cold| cold.device);
        Ok(Self {
            device: ModelledDevice::new(device.model(), SEED),
            clock_us: clock_us(),
            blocks: Mutex::default(),
        })
    }

    fn session(&self) -> Outcome<&DeviceAlone> {
        Ok(self)
    }

    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        let mut counters = device_counters(&self.device);
        let blocks = self.blocks();
        counters.insert("device_read_us".to_owned(), blocks.read_us);
        counters.insert("device_write_us".to_owned(), blocks.write_us);
        counters
    }

    fn hurry(&self, hurry: bool) {
        self.device.hurry(hurry);
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

impl Session for &DeviceAlone {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let mut blocks = self.blocks();
        // Blocks lie apart: none begins where the one before ended.
        let next = 2 * (blocks.of.len() * value.len()) as u64;
        let (place, block) = blocks
            .of
            .entry(key.into())
            .or_insert_with(|| (next, value.into()));
        block.copy_from_slice(value);
        let (place, bytes) = (*place, block.len());
        blocks.write_us += timed(|| {
            self.device.write(place, bytes);
            self.device.sync();
        }) - self.clock_us;
        Ok(())
    }

    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        let mut blocks = self.blocks();
        let Some((place, block)) = blocks.of.get(key) else {
            return Ok(None);
        };
        let took = timed(|| self.device.read(*place, block.len())) - self.clock_us;
        let seen = see(block);
        blocks.read_us += took;
        Ok(Some(seen))
    }

    fn remove(&mut self, key: &[u8]) -> Outcome<()> {
        self.blocks().of.remove(key);
        Ok(())
    }

    fn scan(&mut self, _: &[u8], _: usize, _: impl FnMut(&[u8], &[u8])) -> Outcome<usize> {
        Ok(0)
    }
}
