//! Where and by what a result was measured.

use serde::{Deserialize, Serialize};
use std::{fs, path::Path, time::SystemTime};

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
    /// File system of the data directory, as mounted.
    pub file_system: String,
}

impl Machine {
    /// Describes this machine; `data` is where the contenders write.
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

/// Device, type and options of the longest mount point above `path`.
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

/// The commit this was built from, with `-dirty` if the tree had changes; "unknown" outside a repository.
pub fn commit() -> &'static str {
    option_env!("INDEXY_BENCH_COMMIT").unwrap_or("unknown")
}

/// Date and time now, in UTC, as `2025-01-31 23:59:59`.
pub fn today_utc() -> String {
    let seconds = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    let (h, m, s) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}")
}

/// Year, month and day of a day counted from 1970-01-01, by years from a March 1st.
fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_454), (2026, 1, 1));
    }

    #[test]
    fn the_longest_mount_point_wins() {
        let mounts = "/dev/a / ext4 rw 0 0\n/dev/b /tmp xfs rw 0 0\n";
        assert_eq!(file_system(mounts, Path::new("/tmp")), "xfs on /dev/b");
        assert_eq!(file_system(mounts, Path::new("/")), "ext4 on /dev/a");
    }
}
