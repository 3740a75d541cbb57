//! Which device a directory lies on, by how long it takes.
//!
//! Writes that are synced tell disks that turn from all else: a hard disk answers a read of what
//! was just written from its own memory. Reads past the page cache tell the others apart. The
//! bounds lie in the middle, by ratio, between what the devices of the paper take
//! (`storage/modelled/model.rs`). A shingled disk looks like another one for as long as this takes;
//! their profiles are the same.
//!
//! The file lies in the folder of images, which every open has emptied before. Threads: the one
//! that opens the database, which owns the directory.

#![forbid(unsafe_code)]

use super::DeviceProfile;
use crate::{
    error::{Error, Result},
    mem::aligned::AlignedBuffer,
    storage::{Storage, StorageFile},
};
use std::{
    path::Path,
    time::{Duration, Instant},
};

const FILE: &str = "device";
const FILE_BYTES: usize = 1 << 20;
const BLOCK_BYTES: usize = 4096;
/// Time for reads, and for writes; one more of each may be under way.
const MOST_TIME: Duration = Duration::from_millis(60);
/// Reads of a batch, and batches: the fastest one counts, because noise only adds.
const BATCH: usize = 256;
const BATCHES: usize = 8;
const WRITES: usize = 16;

/// A synced write of a disk that turns waits for a part of a revolution.
const TURNING: Duration = Duration::from_millis(3);
/// Flash takes about 100 µs for a read, 3D XPoint 14,
const FLASH: Duration = Duration::from_micros(40);
/// memory 2.
const BEHIND_A_BUS: Duration = Duration::from_nanos(5400);

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Measured {
    /// A read of 4 KiB, on average of the best batch.
    pub(super) read: Duration,
    /// A write of 4 KiB with its sync: the median.
    pub(super) synced_write: Duration,
}

/// The profile of a device. Pure.
pub(super) fn profile_of(measured: Measured) -> DeviceProfile {
    let Measured { read, synced_write } = measured;
    if synced_write > TURNING && synced_write > read || read > TURNING {
        return DeviceProfile::Hdd;
    }
    match read {
        read if read > FLASH => DeviceProfile::Ssd,
        read if read > BEHIND_A_BUS => DeviceProfile::Xpoint,
        _ => DeviceProfile::Nvram,
    }
}

/// Measures the device of the directory `dir`, which is made if it is not there. `storage` reads
/// past the page cache where that is possible. Cost: up to some 200 ms, and a file of 1 MiB that is
/// removed again.
pub(crate) fn measure(storage: &dyn Storage, dir: &Path) -> Result<DeviceProfile> {
    storage.create_dir_all(dir)?;
    let path = dir.join(FILE);
    if storage.exists(&path)? {
        storage.remove(&path)?;
    }
    let file = storage.create(&path)?;
    let measured = write(&*file).and_then(|synced_write| {
        // Opened anew: whether direct reads work is found out then.
        let read = read(&*storage.open(&path, false)?)?;
        Ok(Measured { read, synced_write })
    });
    drop(file);
    storage.remove(&path)?;
    measured.map(profile_of)
}

/// The median of synced writes to places apart.
fn write(file: &dyn StorageFile) -> Result<Duration> {
    let whole = AlignedBuffer::new(FILE_BYTES);
    file.write_at(&whole, 0)?;
    file.sync()?;
    let block = AlignedBuffer::new(BLOCK_BYTES);
    let began = Instant::now();
    let mut took = Vec::with_capacity(WRITES);
    while took.len() < WRITES && (took.is_empty() || began.elapsed() < MOST_TIME) {
        let one = Instant::now();
        file.write_at(&block, place(took.len()))?;
        file.sync()?;
        took.push(one.elapsed());
    }
    took.sort_unstable();
    Ok(took.get(took.len() / 2).copied().unwrap_or_default())
}

/// What a read takes in the fastest batch.
fn read(file: &dyn StorageFile) -> Result<Duration> {
    let mut block = AlignedBuffer::new(BLOCK_BYTES);
    let began = Instant::now();
    let mut best = Duration::MAX;
    for batch in 0..BATCHES {
        let (one, mut done) = (Instant::now(), 0);
        while done < BATCH as u32 && (done == 0 || began.elapsed() < MOST_TIME) {
            if file.read_at(&mut block, place(batch * BATCH + done as usize))? < BLOCK_BYTES {
                return Err(Error::corrupt(file.path(), 0, "it has lost its end"));
            }
            done += 1;
        }
        best = best.min(one.elapsed() / done);
        if began.elapsed() >= MOST_TIME {
            break;
        }
    }
    Ok(best)
}

/// Where the n-th block is: never behind the one before.
fn place(n: usize) -> u64 {
    const BLOCKS: usize = FILE_BYTES / BLOCK_BYTES;
    ((n * 149 % BLOCKS) * BLOCK_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{
        modelled::{DeviceModel, ModelledDevice},
        sim::{Fault, Sim},
    };
    use std::sync::Arc;

    fn micros(read: f64, synced_write: f64) -> Measured {
        let of = |micros: f64| Duration::from_nanos((micros * 1000.0) as u64);
        Measured {
            read: of(read),
            synced_write: of(synced_write),
        }
    }

    #[test]
    fn devices_are_told_apart_by_what_they_take() {
        use DeviceProfile::{Hdd, Nvram, Ssd, Xpoint};
        for (read, write, profile) in [
            (12_700.0, 22_000.0, Hdd),
            // From its own memory.
            (150.0, 8_400.0, Hdd),
            (118.0, 180.0, Ssd),
            // Without a capacitor: a flush costs more than a millisecond.
            (90.0, 1_500.0, Ssd),
            (14.0, 20.0, Xpoint),
            (2.0, 2.0, Nvram),
            (0.5, 1.0, Nvram),
        ] {
            assert_eq!(profile_of(micros(read, write)), profile, "{read} {write}");
        }
    }

    /// Each modelled device is found out, within its time. The others are as their models say; a
    /// busy machine makes memory look like a device behind a bus, so that the fastest of three
    /// counts there.
    #[test]
    fn modelled_devices_are_found_out() {
        for (model, profile) in [
            (DeviceModel::HDD, DeviceProfile::Hdd),
            (DeviceModel::SMR, DeviceProfile::Hdd),
            (DeviceModel::SSD, DeviceProfile::Ssd),
            (DeviceModel::XPOINT, DeviceProfile::Xpoint),
            (DeviceModel::NVRAM, DeviceProfile::Nvram),
        ] {
            let sim = Sim::default();
            let found = (0..3).any(|_| {
                let device = ModelledDevice::new(model, 1).before(Arc::new(sim.clone()));
                measure(&device, Path::new("/db")).unwrap() == profile
            });
            assert!(found, "{profile:?}");
            assert!(sim.contents().is_empty());
        }
    }

    #[test]
    fn a_device_that_fails_is_an_error_and_leaves_no_file() {
        let sim = Sim::default();
        sim.fail_at(4, Fault::Eio, false);
        assert!(measure(&sim, Path::new("/db")).is_err());
        sim.heal();
        measure(&sim, Path::new("/db")).unwrap();
        assert!(sim.contents().is_empty());
    }
}
