//! A memory cgroup for one child: version 1 and version 2.
//!
//! The limit covers everything that the child makes the kernel hold: its heap, and its part of the
//! page cache. The group is made below the group of this process, where that is permitted, else
//! below the root.

use super::job::LaterLimit;
use crate::stderr::tell;
use std::{
    fs, io,
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

/// Why no group could be made.
#[derive(Debug, thiserror::Error)]
#[error(
    "no memory cgroup can be made here ({tried}). Run as root, or inside a scope that delegates it \
     (systemd-run --user --scope -p Delegate=yes ...), or pass --no-cgroup: the page cache is \
     then not limited, and every row says so"
)]
pub struct CgroupError {
    tried: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// A group with a limit; removed when dropped.
#[derive(Debug)]
pub struct MemoryGroup {
    dir: PathBuf,
    version: Version,
    limit: u64,
}

/// Children of a v2 group may only have controllers if the group itself has no processes; this one
/// takes them.
const SUPERVISOR: &str = "indexy-bench-supervisor";
const V1_WITH_SWAP: &str = "memory.memsw.limit_in_bytes";

impl MemoryGroup {
    /// Makes a group for `limit` bytes, swap included; `until_loaded` is the limit that holds until
    /// somebody writes [`later_limit`](Self::later_limit).
    pub fn create(limit: u64, until_loaded: Option<u64>) -> Result<Self, CgroupError> {
        let mut tried = Vec::new();
        for (version, parent) in parents() {
            let dir = parent.join(format!("indexy-bench-{}", process::id()));
            match Self::create_in(version, &parent, &dir, (limit, until_loaded)) {
                Ok(group) => return Ok(group),
                Err(error) => tried.push(format!("{}: {error}", parent.display())),
            }
        }
        if tried.is_empty() {
            tried.push("no cgroup file system with a memory controller is mounted".to_owned());
        }
        Err(CgroupError {
            tried: tried.join("; "),
        })
    }

    fn create_in(
        version: Version,
        parent: &Path,
        dir: &Path,
        (limit, until_loaded): (u64, Option<u64>),
    ) -> io::Result<Self> {
        if version == Version::V2 {
            enable_memory(parent)?;
        }
        match fs::create_dir(dir) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        let group = Self {
            dir: dir.to_path_buf(),
            version,
            limit,
        };
        let text = until_loaded.unwrap_or(limit).to_string();
        fs::write(group.limit_file(), &text)?;
        match version {
            Version::V1 => {
                // Absent where the kernel does not count swap; without swap it changes nothing.
                let _ = fs::write(dir.join(V1_WITH_SWAP), &text);
            }
            Version::V2 => {
                let _ = fs::write(dir.join("memory.swap.max"), "0");
            }
        }
        Ok(group)
    }

    /// The file that a process writes its number to in order to enter.
    pub fn procs(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    fn limit_file(&self) -> PathBuf {
        self.dir.join(match self.version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        })
    }

    /// What makes the limit hold that it was made for.
    pub fn later_limit(&self) -> LaterLimit {
        LaterLimit {
            memory: self.limit_file(),
            with_swap: (self.version == Version::V1).then(|| self.dir.join(V1_WITH_SWAP)),
            bytes: self.limit,
        }
    }

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// How often the kernel killed a process of the group for memory.
    pub fn out_of_memory_kills(&self) -> u64 {
        let file = match self.version {
            Version::V1 => "memory.oom_control",
            Version::V2 => "memory.events",
        };
        let text = fs::read_to_string(self.dir.join(file)).unwrap_or_default();
        text.lines()
            .find_map(|l| l.strip_prefix("oom_kill "))
            .and_then(|n| n.trim().parse().ok())
            .unwrap_or(0)
    }

    /// Most that the group held, page cache included, if the kernel tells.
    pub fn peak(&self) -> Option<u64> {
        let file = match self.version {
            Version::V1 => "memory.max_usage_in_bytes",
            Version::V2 => "memory.peak",
        };
        fs::read_to_string(self.dir.join(file))
            .ok()?
            .trim()
            .parse()
            .ok()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // The group is busy until the kernel has buried its last process.
        const ATTEMPTS: u32 = 50;
        const PAUSE: Duration = Duration::from_millis(20);
        for _ in 0..ATTEMPTS {
            match fs::remove_dir(&self.dir) {
                Ok(()) => return,
                Err(e) if e.kind() == io::ErrorKind::NotFound => return,
                Err(_) => thread::sleep(PAUSE),
            }
        }
        tell!("warning: could not remove {}", self.dir.display());
    }
}

/// Makes the memory controller available to children of `parent`.
fn enable_memory(parent: &Path) -> io::Result<()> {
    let controllers = fs::read_to_string(parent.join("cgroup.controllers"))?;
    if !controllers.split_ascii_whitespace().any(|c| c == "memory") {
        return Err(io::Error::other("the memory controller is not available"));
    }
    let control = parent.join("cgroup.subtree_control");
    if fs::read_to_string(&control)?
        .split_ascii_whitespace()
        .any(|c| c == "memory")
    {
        return Ok(());
    }
    if fs::write(&control, "+memory").is_ok() {
        return Ok(());
    }
    // Our own process is in the way: move it one level down.
    let supervisor = parent.join(SUPERVISOR);
    fs::create_dir_all(&supervisor)?;
    fs::write(supervisor.join("cgroup.procs"), process::id().to_string())?;
    fs::write(&control, "+memory")
}

/// Where a group may be made, best first.
fn parents() -> Vec<(Version, PathBuf)> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    parents_from(&mounts, &groups)
}

fn parents_from(mounts: &str, groups: &str) -> Vec<(Version, PathBuf)> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        let f: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, point, kind, options, ..] = f[..] else {
            continue;
        };
        let version = match kind {
            "cgroup" if options.split(',').any(|o| o == "memory") => Version::V1,
            "cgroup2" => Version::V2,
            _ => continue,
        };
        let own = groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let matches = match version {
                Version::V1 => controllers.split(',').any(|c| c == "memory"),
                Version::V2 => id == "0" && controllers.is_empty(),
            };
            matches.then(|| path.trim_start_matches('/').to_owned())
        });
        if let Some(own) = own.filter(|o| !o.is_empty()) {
            // A process that was moved by an earlier run of ours still makes groups beside its own.
            let own = own
                .strip_suffix(SUPERVISOR)
                .unwrap_or(&own)
                .trim_end_matches('/')
                .to_owned();
            found.push((version, Path::new(point).join(own)));
        }
        found.push((version, PathBuf::from(point)));
    }
    // Version 1 first: where both are mounted, the memory controller is usually bound to it.
    found.sort_by_key(|(version, _)| *version == Version::V2);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_groups_of_both_versions() {
        let mounts = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n";
        let groups = "4:memory:/a/b\n0::/\n";
        let found = parents_from(mounts, groups);
        let paths: Vec<_> = found
            .iter()
            .map(|(v, p)| (*v, p.to_str().unwrap()))
            .collect();
        assert_eq!(
            paths,
            vec![
                (Version::V1, "/sys/fs/cgroup/memory/a/b"),
                (Version::V1, "/sys/fs/cgroup/memory"),
                (Version::V2, "/sys/fs/cgroup/unified"),
            ]
        );
        let v2 = parents_from(
            "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
            "0::/user.slice/indexy-bench-supervisor\n",
        );
        assert_eq!(v2[0].1.to_str().unwrap(), "/sys/fs/cgroup/user.slice");
    }
}
