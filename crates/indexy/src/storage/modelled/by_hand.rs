//! A modelled device by hand: for whoever measures the device itself, and what is no part of a
//! measurement.
//!
//! Threads: any; the switch may change while others are under way.

#![forbid(unsafe_code)]

use super::{ModelledDevice, model::Operation, pace, queue::Asked};
use std::sync::atomic::Ordering::Relaxed;

/// The file of [`ModelledDevice::read`] and [`ModelledDevice::write`]; others are numbered from 0.
const NO_FILE: u64 = u64::MAX;

impl ModelledDevice {
    /// From now on it takes no time (`true`), or as long as it takes again. For what is no part of
    /// a measurement: a load, or reads that fill memory. What is under way ends as it would have.
    /// Operations are counted either way, and keep it busy only where they take time.
    ///
    /// ```
    /// use indexy::{DeviceModel, ModelledDevice};
    /// use std::time::{Duration, Instant};
    /// let disk = ModelledDevice::new(DeviceModel::HDD, 1);
    /// disk.hurry(true);
    /// (0..1000).for_each(|block| disk.read(block * 8192, 4096));
    /// assert_eq!(disk.figures().reads, 1000);
    /// disk.hurry(false);
    /// let begun = Instant::now();
    /// disk.read(0, 4096);
    /// assert!(begun.elapsed() > Duration::from_millis(10));
    /// ```
    pub fn hurry(&self, hurry: bool) {
        self.0.hurried.store(hurry, Relaxed);
    }

    /// Waits as long as a read of so many bytes takes, of a file that has no bytes. For whoever
    /// measures the device itself: nothing behind it is slower than it is.
    ///
    /// Cost: the device's time, asleep. Times below some 50 µs are right on average only.
    ///
    /// ```
    /// use indexy::{DeviceModel, ModelledDevice};
    /// let device = ModelledDevice::new(DeviceModel::NVRAM, 1);
    /// device.read(0, 4096);
    /// assert_eq!(device.figures().read_bytes, 4096);
    /// ```
    pub fn read(&self, offset: u64, bytes: usize) {
        self.wait_for(Operation::Read, offset, bytes);
    }

    /// The same of a write, without its sync.
    ///
    /// ```
    /// use indexy::{DeviceModel, ModelledDevice};
    /// let device = ModelledDevice::new(DeviceModel::NVRAM, 1);
    /// device.write(0, 4096);
    /// assert_eq!(device.figures().written_bytes, 4096);
    /// ```
    pub fn write(&self, offset: u64, bytes: usize) {
        self.wait_for(Operation::Write, offset, bytes);
    }

    /// The same of a sync.
    ///
    /// ```
    /// use indexy::{DeviceModel, ModelledDevice};
    /// let device = ModelledDevice::new(DeviceModel::XPOINT, 1);
    /// device.sync();
    /// assert_eq!(device.figures().syncs, 1);
    /// ```
    pub fn sync(&self) {
        self.wait_for(Operation::Sync, 0, 0);
    }

    fn wait_for(&self, operation: Operation, offset: u64, bytes: usize) {
        let asked = Asked {
            operation,
            file: NO_FILE,
            offset,
            bytes,
        };
        pace::end(self.book(pace::begin(), asked));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Storage as _, modelled::DeviceModel, sim::Sim};
    use std::{
        path::Path,
        sync::Arc,
        time::{Duration, Instant},
    };

    const BYTES: usize = 4096;

    #[test]
    fn a_device_in_a_hurry_takes_no_time_and_counts() {
        let device = ModelledDevice::new(DeviceModel::HDD, 1);
        device.hurry(true);
        let storage = device.before(Arc::new(Sim::default()));
        let file = storage.create(Path::new("/file")).unwrap();
        file.write_at(&[1; 16 * BYTES], 0).unwrap();
        let begun = Instant::now();
        for block in (0..2000).map(|n: u64| n * 7 % 16 * BYTES as u64) {
            device.read(block, BYTES);
            device.write(block, BYTES);
            device.sync();
            file.read_at(&mut [0; BYTES], block).unwrap();
        }
        // In its own time: more than a minute.
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(5), "{took:?}");
        let figures = device.figures();
        assert_eq!((figures.reads, figures.syncs), (4000, 2000));
        assert_eq!(figures.busy, Duration::ZERO);
    }

    #[test]
    fn by_hand_a_device_takes_its_own_time_again() {
        let device = ModelledDevice::new(DeviceModel::HDD, 1);
        device.hurry(true);
        device.read(1 << 20, BYTES);
        device.hurry(false);
        let begun = Instant::now();
        device.read(2 << 20, BYTES);
        device.write(0, BYTES);
        device.sync();
        let (took, model) = (begun.elapsed(), device.model());
        // Writes vary by a tenth of their latency.
        let due = model.read_time(BYTES) + model.write_time(BYTES) - model.write_latency / 5;
        assert!(took > due, "{took:?} of {due:?}");
        assert!(device.figures().busy > due);
    }
}
