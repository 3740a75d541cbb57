//! Memory, I/O and CPU of this process, from `/proc/self`.
//!
//! A field that the kernel does not show (I/O counters need the same user) reads as 0.

use serde::{Deserialize, Serialize};
use std::{fs, ops::Sub};

/// Memory of this process, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Resident, all kinds.
    pub resident: u64,
    /// Resident and not backed by a file: what the process cannot do without.
    pub anonymous: u64,
    /// Most that was resident since [`reset_peak_memory`].
    pub peak: u64,
}

impl Memory {
    /// Reads the current state. Cost: some microseconds.
    pub fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    fn parse(status: &str) -> Self {
        let kib = |name: &str| field(status, name) * 1024;
        Self {
            resident: kib("VmRSS:"),
            anonymous: kib("RssAnon:"),
            peak: kib("VmHWM:"),
        }
    }
}

/// Starts a new peak at what is resident now. Returns false where the kernel does not permit it;
/// the peak is then that of the whole process.
pub fn reset_peak_memory() -> bool {
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// I/O of this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Io {
    /// Bytes fetched from the device.
    pub device_read: u64,
    /// Bytes sent to the device, or dirtied in the page cache.
    pub device_written: u64,
    /// Bytes asked for by read calls, cached or not.
    pub call_read: u64,
    /// Bytes given to write calls.
    pub call_written: u64,
    /// Read calls.
    pub read_calls: u64,
    /// Write calls.
    pub write_calls: u64,
}

impl Io {
    /// Reads the current state. Cost: some microseconds.
    pub fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/self/io").unwrap_or_default())
    }

    fn parse(io: &str) -> Self {
        Self {
            device_read: field(io, "read_bytes:"),
            device_written: field(io, "write_bytes:")
                .saturating_sub(field(io, "cancelled_write_bytes:")),
            call_read: field(io, "rchar:"),
            call_written: field(io, "wchar:"),
            read_calls: field(io, "syscr:"),
            write_calls: field(io, "syscw:"),
        }
    }
}

impl Sub for Io {
    type Output = Io;
    fn sub(self, before: Io) -> Io {
        Io {
            device_read: self.device_read.saturating_sub(before.device_read),
            device_written: self.device_written.saturating_sub(before.device_written),
            call_read: self.call_read.saturating_sub(before.call_read),
            call_written: self.call_written.saturating_sub(before.call_written),
            read_calls: self.read_calls.saturating_sub(before.read_calls),
            write_calls: self.write_calls.saturating_sub(before.write_calls),
        }
    }
}

/// CPU time of this process, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// In the program.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

impl Cpu {
    /// Reads the current state. Cost: some microseconds; resolution: a clock tick, usually 10 ms.
    pub fn now() -> Self {
        let ticks = rustix::param::clock_ticks_per_second().max(1) as f64;
        Self::parse(
            &fs::read_to_string("/proc/self/stat").unwrap_or_default(),
            ticks,
        )
    }

    fn parse(stat: &str, ticks: f64) -> Self {
        // The name in parentheses may hold spaces; utime and stime are the 12th and 13th after it.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let mut fields = after_name.split_ascii_whitespace().skip(11);
        let mut seconds = || {
            fields
                .next()
                .and_then(|f| f.parse::<f64>().ok())
                .unwrap_or(0.0)
                / ticks
        };
        Self {
            user: seconds(),
            system: seconds(),
        }
    }
}

impl Sub for Cpu {
    type Output = Cpu;
    fn sub(self, before: Cpu) -> Cpu {
        Cpu {
            user: self.user - before.user,
            system: self.system - before.system,
        }
    }
}

/// The first number after `name` at the start of a line.
fn field(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_the_kernel_writes() {
        let memory =
            Memory::parse("Name:\tx\nVmHWM:\t  200 kB\nVmRSS:\t  100 kB\nRssAnon:\t 40 kB\n");
        assert_eq!(
            memory,
            Memory {
                resident: 102_400,
                anonymous: 40_960,
                peak: 204_800
            }
        );
        let io = Io::parse(
            "rchar: 10\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: \
             6\ncancelled_write_bytes: 1\n",
        );
        assert_eq!(
            (io.call_read, io.device_read, io.device_written),
            (10, 5, 5)
        );
        let cpu = Cpu::parse("1 (a b) c) S 1 1 1 0 -1 4 1 0 0 0 250 50 0 0", 100.0);
        assert_eq!(
            cpu,
            Cpu {
                user: 2.5,
                system: 0.5
            }
        );
    }

    #[test]
    fn this_process_is_resident() {
        assert!(Memory::now().resident > 100_000);
    }
}
