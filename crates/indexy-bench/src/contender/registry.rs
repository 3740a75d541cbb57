//! Contenders by name.

use super::{Contender, Tables};
use crate::harness::{Emitter, Job, JobError, run_job, run_tables_job};
use std::fmt;

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
    pub durabilities: &'static [super::Durability],
    /// Passed on to the engine in its setup.
    pub variant: &'static str,
}

const NO_TABLES: &str = "has no named tables that are written to as one";

type Runner = fn(&Job, &mut Emitter<'_>) -> Result<(), JobError>;

/// A registered contender.
pub struct Entry {
    /// What it is.
    pub about: About,
    runner: Runner,
    tables_runner: Option<Runner>,
}

impl Entry {
    /// Runs `job` in this process.
    pub fn run(&self, job: &Job, emitter: &mut Emitter<'_>) -> Result<(), JobError> {
        if job.needs_tables() {
            let none = || JobError::Invalid(NO_TABLES.to_owned());
            return self.tables_runner.ok_or_else(none)?(job, emitter);
        }
        (self.runner)(job, emitter)
    }

    /// Why the contender cannot run `job`, if it cannot.
    pub fn refusal(&self, job: &Job) -> Option<&'static str> {
        (job.needs_tables() && self.tables_runner.is_none()).then_some(NO_TABLES)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.about.fmt(f)
    }
}

/// A name that is not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown contender {name:?}; the valid ones are: {}{}", .valid.join(", "), .hint)]
pub struct UnknownContender {
    name: String,
    valid: Vec<&'static str>,
    hint: &'static str,
}

/// All contenders of a program.
#[derive(Debug, Default)]
pub struct Registry {
    entries: Vec<Entry>,
    with_peers: bool,
}

impl Registry {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a contender.
    pub fn add<C: Contender>(&mut self, about: About) {
        assert!(
            self.get(about.name).is_err(),
            "{} is registered twice",
            about.name
        );
        self.entries.push(Entry {
            about,
            runner: run_job::<C>,
            tables_runner: None,
        });
    }

    /// Says that the contender `name`, added before, has several tables too: `T` are they.
    pub fn add_tables<T: Tables>(&mut self, name: &str) {
        let entry = self.entries.iter_mut().find(|e| e.about.name == name);
        entry.expect("added before").tables_runner = Some(run_tables_job::<T>);
    }

    /// Says that the peers are there, so that messages need not point to them.
    pub fn set_with_peers(&mut self) {
        self.with_peers = true;
    }

    /// The contender named `name`.
    pub fn get(&self, name: &str) -> Result<&Entry, UnknownContender> {
        self.entries
            .iter()
            .find(|e| e.about.name == name)
            .ok_or_else(|| UnknownContender {
                name: name.to_owned(),
                valid: self.names(),
                hint: if self.with_peers {
                    ""
                } else {
                    " (other engines: build crates/indexy-bench-peers)"
                },
            })
    }

    /// What needs no other engine: ours, the standard library's map, and nothing at all.
    pub fn with_own() -> Self {
        let mut registry = Self::new();
        super::indexy::register(&mut registry);
        super::btreemap::register(&mut registry);
        super::null::register(&mut registry);
        registry
    }

    /// Of `wanted`, those that are registered, in that order.
    pub fn present<'a>(&self, wanted: &[&'a str]) -> Vec<&'a str> {
        wanted
            .iter()
            .copied()
            .filter(|name| self.get(name).is_ok())
            .collect()
    }

    /// All names, in the order of registration.
    pub fn names(&self) -> Vec<&'static str> {
        self.entries.iter().map(|e| e.about.name).collect()
    }

    /// Names of those that have several tables, in the order of registration.
    pub fn with_tables(&self) -> Vec<&'static str> {
        let tables = self.entries.iter().filter(|e| e.tables_runner.is_some());
        tables.map(|e| e.about.name).collect()
    }

    /// All contenders, in the order of registration.
    pub fn iter(&self) -> impl Iterator<Item = &About> {
        self.entries.iter().map(|e| &e.about)
    }
}
