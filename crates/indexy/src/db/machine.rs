//! What the machine lets this process use.

#![forbid(unsafe_code)]

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// The part of a budget of `bytes` that the machine has: caches are sized by this. Cost: a load,
/// unless the budget is larger than the memory seen before.
pub(crate) fn usable(bytes: usize) -> usize {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    if bytes <= SEEN.load(Relaxed) {
        return bytes;
    }
    let machine = memory_limit_bytes();
    SEEN.store(machine, Relaxed);
    bytes.min(machine)
}

/// Memory that this process may use, in bytes: the smallest of its cgroup limits (v1, v2) and
/// physical memory.
pub(crate) fn memory_limit_bytes() -> usize {
    let physical = rustix::param::page_size() as u64 * physical_pages();
    cgroup_limits()
        .into_iter()
        .fold(physical, u64::min)
        .try_into()
        .unwrap_or(usize::MAX)
}

fn physical_pages() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|n| n.trim().parse::<u64>().ok());
    // Without /proc: a gibibyte, which every machine of today has.
    kib.unwrap_or(1 << 20) * 1024 / rustix::param::page_size() as u64
}

/// Limits of the memory cgroups that the process is in, and of their parents.
fn cgroup_limits() -> Vec<u64> {
    let mut limits = Vec::new();
    for line in std::fs::read_to_string("/proc/self/cgroup")
        .unwrap_or_default()
        .lines()
    {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (mount, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            c if c.split(',').any(|c| c == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mut group = Some(Path::new(path));
        while let Some(at) = group {
            let relative = at.strip_prefix("/").unwrap_or(at);
            let text = std::fs::read_to_string(Path::new(mount).join(relative).join(file));
            limits.extend(text.ok().and_then(|t| t.trim().parse::<u64>().ok()));
            group = at.parent();
        }
    }
    limits
}
