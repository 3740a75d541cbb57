//! The machine, the commit and the time of a measurement.

use serde::{Deserialize, Serialize};
use std::{fs, path::Path};

/// The machine, as a reader of the results needs to know it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Physical memory in bytes.
    pub memory: u64,
    /// Kernel release.
    pub kernel: String,
    /// Type and device of the data's file system, as mounted.
    pub file_system: String,
}

impl Machine {
    /// Describes this machine; `data` is where the data go. What cannot be found out stays empty.
    #[must_use]
    pub fn here(data: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let after_colon = |text: &str, name: &str| {
            text.lines()
                .find(|l| l.starts_with(name))
                .and_then(|l| l.split_once(':'))
                .map_or_else(String::new, |(_, v)| v.trim().to_owned())
        };
        let memory = after_colon(&read("/proc/meminfo"), "MemTotal");
        let kib: u64 = memory
            .split_ascii_whitespace()
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0);
        Self {
            processor: after_colon(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: kib * 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            file_system: file_system(&read("/proc/self/mounts"), data),
        }
    }
}

/// Type and device of the longest mount point above `path`.
fn file_system(mounts: &str, path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    mounts
        .lines()
        .filter_map(|line| {
            let mut f = line.split_ascii_whitespace();
            let (device, point, kind) = (f.next()?, f.next()?, f.next()?);
            path.starts_with(point)
                .then(|| (point.len(), format!("{kind} on {device}")))
        })
        .max_by_key(|(len, _)| *len)
        .map_or_else(String::new, |(_, text)| text)
}

/// The commit that this was built from, with `-dirty` if the tree had changes; "unknown" if neither
/// a repository nor the package told the build.
#[must_use]
pub fn commit() -> &'static str {
    option_env!("INDEXY_COMMIT").unwrap_or("unknown")
}

/// Date and time now, in UTC, as `2025-01-31 23:59:59`.
#[must_use]
pub fn now_utc() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_point_wins() {
        let mounts = "/dev/a / ext4 rw 0 0\n/dev/b /tmp xfs rw 0 0\n";
        assert_eq!(file_system(mounts, Path::new("/tmp")), "xfs on /dev/b");
        assert_eq!(file_system(mounts, Path::new("/")), "ext4 on /dev/a");
    }

    #[test]
    fn this_machine_has_a_processor_and_memory() {
        let machine = Machine::here(Path::new("/"));
        assert!(machine.cores > 0 && machine.memory > 1 << 20, "{machine:?}");
        assert_eq!(now_utc().len(), "2025-01-31 23:59:59".len());
    }
}
