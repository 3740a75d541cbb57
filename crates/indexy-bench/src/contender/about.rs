//! What the harness must know of an engine before it opens it.

use super::contract::Durability;

/// Where an engine keeps its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// In memory only.
    Memory,
    /// On disk.
    Disk,
}

/// What holds the operating system's page cache at bay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageCache {
    /// The engine reads and writes no files.
    Unused,
    /// Direct I/O.
    Bypassed,
    /// The engine uses it; only the memory cgroup limits it.
    Used,
}

/// Which keys an engine takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyShape {
    /// Any bytes, with any value.
    Bytes,
    /// Keys and values of eight bytes each.
    EightBytes,
}

/// What the harness must know of an engine before it opens it.
#[derive(Debug, Clone)]
pub struct About {
    /// The name on the command line.
    pub name: &'static str,
    /// What it is and how it is tuned, one line.
    pub summary: &'static str,
    /// Where it keeps its data.
    pub storage: Storage,
    /// Its use of the page cache.
    pub page_cache: PageCache,
    /// Which keys it takes.
    pub keys: KeyShape,
    /// Most threads at a time.
    pub max_threads: usize,
    /// Has scans.
    pub scans: bool,
    /// Opens again what it closed.
    pub reopens: bool,
    /// Its page or block size can be chosen.
    pub pages: bool,
    /// Durabilities that it offers, by name.
    pub durabilities: &'static [Durability],
    /// Passed on to the engine in its setup.
    pub variant: &'static str,
}
