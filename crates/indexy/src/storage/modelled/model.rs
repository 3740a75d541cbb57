//! What devices cost: figures of data sheets, and what an operation takes by them. Pure.
//!
//! Source: *Larger-than-Memory Data Management on Modern Storage Hardware* (Ma et al.), Figure 1,
//! of which the text gives ratios. Absolute values are from the data sheets of the devices that it
//! names; where a sheet leaves a value open, it was chosen so that the ratios hold (`tests.rs`).

use std::time::Duration;

/// An operation on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write,
    Sync,
}

/// What a device costs. An operation takes its latency on one of `channels`, which work side by
/// side, and then its transfer on the link, which all share. The difference between a mechanical
/// device and another one is `reposition`.
///
/// ```
/// use indexy::DeviceModel;
/// use std::time::Duration;
/// let slow = DeviceModel { channels: 1, ..DeviceModel::SSD };
/// assert!(DeviceModel::HDD.read_time(1024) > Duration::from_millis(10));
/// assert!(slow.read_time(65_536) > slow.read_time(1024));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceModel {
    /// Of a read, before its first byte comes.
    pub read_latency: Duration,
    /// Of a write, before its first byte goes.
    pub write_latency: Duration,
    /// Added where an operation does not begin where the last one ended.
    pub reposition: Duration,
    /// Of a sync, or of making a directory durable.
    pub sync: Duration,
    /// Bytes a second of reads, all channels together.
    pub read_bytes_per_second: u64,
    /// Bytes a second of writes, all channels together.
    pub write_bytes_per_second: u64,
    /// Operations under way at once.
    pub channels: usize,
    /// The latency of a write is up to so many percent shorter or longer, evenly spread.
    pub write_variance_percent: u32,
}

const MICROSECOND: u64 = 1000;
const MB: u64 = 1_000_000;

impl DeviceModel {
    /// A hard disk of 7200 revolutions a minute (Seagate Barracuda 3 TB, ST3000DM001): seeks of 8.5
    /// ms, half a revolution of 4.2 ms, 156 MB/s on average. A sync is a revolution.
    pub const HDD: Self = Self {
        read_latency: Duration::from_micros(100),
        write_latency: Duration::from_micros(1100),
        reposition: Duration::from_micros(8500 + 4167),
        sync: Duration::from_micros(8333),
        read_bytes_per_second: 156 * MB,
        write_bytes_per_second: 156 * MB,
        channels: 1,
        write_variance_percent: 10,
    };

    /// A shingled disk of 5900 revolutions a minute (Seagate Archive v2): reads as of a hard disk
    /// with half a revolution of 5.1 ms, 150 MB/s. Writes repair what they overlap: slower by some
    /// milliseconds, and of uncertain length; the sheet does not say how uncertain.
    pub const SMR: Self = Self {
        read_latency: Duration::from_micros(100),
        write_latency: Duration::from_micros(2100),
        reposition: Duration::from_micros(8500 + 5085),
        sync: Duration::from_micros(10_169),
        read_bytes_per_second: 150 * MB,
        write_bytes_per_second: 150 * MB,
        channels: 1,
        write_variance_percent: 60,
    };

    /// Flash behind SATA (Intel DC S3700, 400 GB): 500 and 460 MB/s, 65 µs for a write, and eight
    /// channels, with which reads of 4 KiB come to about the 75,000 a second of the sheet. A random
    /// read is a read of flash, 110 µs; the 50 µs of the sheet are those of sequential reads. A
    /// sync with its entry in the file system's journal: 108 µs.
    pub const SSD: Self = Self {
        read_latency: Duration::from_micros(110),
        write_latency: Duration::from_micros(65),
        reposition: Duration::ZERO,
        sync: Duration::from_micros(108),
        read_bytes_per_second: 500 * MB,
        write_bytes_per_second: 460 * MB,
        channels: 8,
        write_variance_percent: 10,
    };

    /// 3D XPoint behind PCIe (Intel Optane DC P4800X): 10 µs and two of the system, 2400 and 2000
    /// MB/s, and seven channels, with which reads of 4 KiB come to about the 550,000 a second of
    /// the sheet.
    pub const XPOINT: Self = Self {
        read_latency: Duration::from_micros(12),
        write_latency: Duration::from_micros(12),
        reposition: Duration::ZERO,
        sync: Duration::from_micros(6),
        read_bytes_per_second: 2400 * MB,
        write_bytes_per_second: 2000 * MB,
        channels: 7,
        write_variance_percent: 5,
    };

    /// Memory that keeps what it has: four times the latency of [`DeviceModel::DRAM`] and a quarter
    /// of its bandwidth, as the emulator of the paper is set.
    pub const NVRAM: Self = Self {
        read_latency: Duration::from_nanos(800),
        write_latency: Duration::from_nanos(840),
        reposition: Duration::ZERO,
        sync: Duration::ZERO,
        read_bytes_per_second: 3200 * MB,
        write_bytes_per_second: 3200 * MB,
        channels: 4,
        write_variance_percent: 0,
    };

    /// One channel of DDR3-1600, 12.8 GB/s, with 200 ns for what finds the bytes: what the others
    /// are compared with.
    pub const DRAM: Self = Self {
        read_latency: Duration::from_nanos(200),
        write_latency: Duration::from_nanos(210),
        reposition: Duration::ZERO,
        sync: Duration::ZERO,
        read_bytes_per_second: 12_800 * MB,
        write_bytes_per_second: 12_800 * MB,
        channels: 4,
        write_variance_percent: 0,
    };

    /// What a read of `bytes` anywhere takes while the device does nothing else.
    ///
    /// ```
    /// use indexy::DeviceModel;
    /// let time = |bytes| DeviceModel::DRAM.read_time(bytes);
    /// let (small, large) = (time(1024), time(65_536));
    /// assert!(large < 20 * small);
    /// ```
    #[must_use]
    pub fn read_time(&self, bytes: usize) -> Duration {
        let (latency, transfer) = self.parts(Operation::Read, bytes, false);
        Duration::from_nanos(latency + transfer)
    }

    /// What a write of `bytes` anywhere, with its sync, takes on average while the device does
    /// nothing else.
    ///
    /// ```
    /// use indexy::DeviceModel;
    /// assert!(DeviceModel::SMR.write_time(1024) > DeviceModel::SMR.read_time(1024));
    /// ```
    #[must_use]
    pub fn write_time(&self, bytes: usize) -> Duration {
        let (latency, transfer) = self.parts(Operation::Write, bytes, false);
        Duration::from_nanos(latency + transfer) + self.sync
    }

    /// Nanoseconds of latency and of transfer.
    pub(super) fn parts(&self, operation: Operation, bytes: usize, follows: bool) -> (u64, u64) {
        let (latency, rate) = match operation {
            Operation::Read => (self.read_latency, self.read_bytes_per_second),
            Operation::Write => (self.write_latency, self.write_bytes_per_second),
            Operation::Sync => return (nanos(self.sync), 0),
        };
        let reposition = if follows { 0 } else { nanos(self.reposition) };
        // 1000 bytes and nanoseconds in a microsecond at a rate of 1 GB/s: no overflow below 18 PB.
        let transfer = (bytes as u64).saturating_mul(MICROSECOND) / (rate / MB).max(1);
        (nanos(latency) + reposition, transfer)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}
