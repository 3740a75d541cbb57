//! Replays traces of accesses through policies of eviction, and counts hits: ours, those of caches,
//! and the best that there can be, at the same bytes.
//!
//! No clock is in it, and no I/O: a trace and a seed make the same table each time. What is ours
//! runs the engine's own policies (`indexy::replay`) over a *model* of the memory index
//! (`memory/`): an entry is a bit of presence, of reference and of dirt, all entries have the same
//! bytes, and a release happens at once. A test holds the model against a database
//! (`fidelity_tests.rs`): they agree within six points.
//!
//! - `trace`: what is accessed; `peers`: caches of others; `policy`: what can be chosen, by name;
//! - `replay`: runs them; `report`: tables, plots, files.
//!
//! Not here: how fast anything is.

mod memory;
mod ours;
mod peers;
mod policy;
mod replay;
mod report;
mod trace;

pub use memory::{Memory, Settings};
pub use ours::Ours;
pub use policy::{Peer, Policy, default_policies, described};
pub use replay::{Counts, Outcome, Plan, SWEEP_DIVISORS, SWEEP_PERIODS, Swept, run, sweep};
pub use report::Replay;
pub use trace::{Access, Size, TRACES, Trace, TraceError, read_file};

/// Whatever answers accesses from memory.
pub trait Cache {
    /// Accesses `key`; whether it was there.
    fn access(&mut self, key: u32, access: Access) -> bool;
}

/// Bytes of an entry: what a key and a value of eight bytes each take in the memory index.
pub const ENTRY_BYTES: u64 = 24;

/// Why nothing can be replayed.
#[derive(Debug, thiserror::Error)]
pub enum PoliciesError {
    /// There is no trace of that name.
    #[error("unknown trace {name:?}; the valid ones are: {}", TRACES.map(|t| t.0).join(", "))]
    UnknownTrace {
        /// The name.
        name: String,
    },
    /// There is no policy of that name.
    #[error("unknown policy {name:?}: {why}; `indexy-bench list` has them")]
    UnknownPolicy {
        /// The name.
        name: String,
        /// Which part of it means nothing.
        why: String,
    },
    /// Memory would hold next to nothing.
    #[error("{bytes} bytes hold {entries} entries; at least {LEAST_ENTRIES} are needed")]
    TooSmall {
        /// What was asked for.
        bytes: u64,
        /// What fits.
        entries: u64,
    },
    /// A file that is no trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The results could not be written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The system's answer.
        source: std::io::Error,
    },
}

/// With fewer, regions are of a handful of entries.
pub const LEAST_ENTRIES: u64 = 2000;

#[cfg(test)]
mod fidelity_tests;
