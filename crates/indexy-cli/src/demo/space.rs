//! Is there room on the device for the demo, and what kind of device is it?

use anyhow::{Context as _, ensure};
use indexy_report::size;
use rustix::fs::{StatFs, statfs, statvfs};
use std::path::Path;

/// Disk used per byte of data, at the worst moment: the data, their successor in a compaction, the
/// log.
const SPACE_PER_DATA: u64 = 3;
/// For the log's segments and what the data do not scale.
const SPACE_BASE: u64 = 128 << 20;
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Refuses to begin what the device at `dir` cannot hold.
pub fn require(dir: &Path, data_bytes: u64) -> anyhow::Result<()> {
    let needed = data_bytes
        .saturating_mul(SPACE_PER_DATA)
        .saturating_add(SPACE_BASE);
    let device = statvfs(dir).with_context(|| format!("cannot look at {}", dir.display()))?;
    let free = device.f_bavail.saturating_mul(device.f_frsize);
    ensure!(
        free >= needed,
        "the demo needs {} of disk space in {}, which has {}; set TMPDIR to a directory on \
         another device, or choose a \
         smaller --budget or fewer --seconds",
        size::bytes(needed),
        dir.display(),
        size::bytes(free)
    );
    Ok(())
}

/// The directory, with a remark if it is in memory.
pub fn describe(dir: &Path) -> String {
    let in_memory = statfs(dir).is_ok_and(|device: StatFs| device.f_type as u64 == TMPFS_MAGIC);
    let remark = if in_memory { " (in memory: tmpfs)" } else { "" };
    format!("{}{remark}", dir.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_refused_with_the_space_needed() {
        let dir = std::env::temp_dir();
        assert!(require(&dir, 0).is_ok());
        let error = require(&dir, 1 << 60).unwrap_err().to_string();
        assert!(
            error.contains("3.00 EiB") || error.contains("3072 PiB"),
            "{error}"
        );
    }
}
