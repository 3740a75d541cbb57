//! When a device is done with what it is asked for: a queue before its channels and its link.
//!
//! Pure: time is a number of nanoseconds that the caller knows. An operation takes the channel that
//! is free first, in the order of the calls. It keeps the channel until its transfer is over. The
//! same calls give the same times.

use super::model::{DeviceModel, Operation};

/// What a device was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) operation: Operation,
    pub(super) file: u64,
    pub(super) offset: u64,
    pub(super) bytes: usize,
}

/// See the module header.
#[derive(Debug)]
pub(super) struct Queue {
    model: DeviceModel,
    seed: u64,
    /// When each channel is free.
    channels: Vec<u64>,
    /// When the link is free.
    link: u64,
    /// Where the last read or write ended: file and offset.
    head: Option<(u64, u64)>,
    writes: u64,
}

impl Queue {
    pub(super) fn new(model: DeviceModel, seed: u64) -> Self {
        Self {
            model,
            seed,
            channels: vec![0; model.channels.max(1)],
            link: 0,
            head: None,
            writes: 0,
        }
    }

    /// When the device is done with what it is asked for at `now`, and how long it works on it.
    pub(super) fn book(&mut self, now: u64, asked: Asked) -> (u64, u64) {
        let (latency, transfer) = self.time_of(asked);
        let mut other = 0;
        let free = self.channels.iter_mut().min().unwrap_or(&mut other);
        let found = now.max(*free) + latency;
        let done = match transfer {
            0 => found,
            _ => {
                self.link = found.max(self.link) + transfer;
                self.link
            }
        };
        *free = done;
        (done, latency + transfer)
    }

    /// Nanoseconds of latency and of transfer, as long or as short as it comes.
    fn time_of(&mut self, asked: Asked) -> (u64, u64) {
        let Asked { file, offset, .. } = asked;
        let follows = self.head == Some((file, offset));
        if asked.operation != Operation::Sync {
            self.head = Some((file, offset + asked.bytes as u64));
        }
        let (latency, transfer) = self.model.parts(asked.operation, asked.bytes, follows);
        match asked.operation {
            Operation::Write => (self.varied(latency), transfer),
            Operation::Read | Operation::Sync => (latency, transfer),
        }
    }

    fn varied(&mut self, latency: u64) -> u64 {
        let percent = u64::from(self.model.write_variance_percent.min(100));
        let drawn = mixed(mixed(self.seed).wrapping_add(self.writes)) % (2 * percent + 1);
        self.writes += 1;
        latency * (100 - percent + drawn) / 100
    }
}

/// A number as good as drawn (the finalizer of SplitMix64).
fn mixed(n: u64) -> u64 {
    let n = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}
