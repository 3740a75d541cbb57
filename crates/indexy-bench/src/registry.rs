//! Contenders by name, and how each runs a job.

use crate::contender::{
    About, BTreeTables, Contender, DeviceAlone, Indexy, IndexyTables, IndexyTransactions, Null,
    StdBTreeMap, TRANSACTIONS, Tables,
};
use crate::harness::{Emitter, Job, JobError, run_job, run_tables_job};
use std::fmt;

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

    /// Runs `job` in this process with the contender that it names.
    pub fn run(&self, job: &Job, emitter: &mut Emitter<'_>) -> Result<(), JobError> {
        let entry = self
            .get(&job.contender)
            .map_err(|e| JobError::Invalid(e.to_string()))?;
        entry.run(job, emitter)
    }

    /// What needs no other engine: ours, the standard library's map, nothing at all, and a modelled
    /// device.
    pub fn with_own() -> Self {
        let mut registry = Self::new();
        for about in Indexy::abouts() {
            let name = about.name;
            registry.add::<Indexy>(about);
            match name {
                TRANSACTIONS => registry.add_tables::<IndexyTransactions>(name),
                _ => registry.add_tables::<IndexyTables>(name),
            }
        }
        let btreemap = StdBTreeMap::about();
        let name = btreemap.name;
        registry.add::<StdBTreeMap>(btreemap);
        registry.add_tables::<BTreeTables>(name);
        registry.add::<Null>(Null::about());
        registry.add::<DeviceAlone>(DeviceAlone::about());
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
