//! Figures 6 to 13 of DEX ("DEX: Scalable Range Indexing on Disaggregated Memory"): verbs and bytes
//! an operation of a B+ tree in the memory of other machines.
//!
//! One compute server of four and one thread; caches are scaled by the number of keys from the
//! paper's 200 million. Counts are exact and repeat. Times are the model's: 2, 3 or 8 us a
//! one-sided verb, 2 us more a call, 12.5 GB/s, and 0.3 us of computing an operation. `clock` alone
//! measures time.
//!
//! The cargo feature `dex` compiles what runs them; the names are always known.

#[cfg(feature = "dex")]
mod clock;
#[cfg(feature = "dex")]
mod contender;
#[cfg(feature = "dex")]
mod error;
#[cfg(feature = "dex")]
mod figures;
#[cfg(feature = "dex")]
mod load;
#[cfg(feature = "dex")]
mod report;
#[cfg(feature = "dex")]
mod run;

use clap::ValueEnum;

#[cfg(feature = "dex")]
pub use error::DexError;
#[cfg(feature = "dex")]
pub use run::run;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// 200,000 keys: under half a minute.
    Smoke,
    /// 2 million keys: minutes.
    Laptop,
    /// 20 million keys: an hour or more, and 5 GiB of memory.
    Evening,
}

/// A figure's name, and what it shows.
pub const FIGURES: [(&str, &str); 9] = [
    ("fig6", "skewed"),
    ("fig7", "uniform"),
    (
        "fig8",
        "one part after the other, write-intensive, cache of 1 %",
    ),
    (
        "fig9",
        "lazy admission (the cooling map's gain is not shown: it needs many cores)",
    ),
    ("fig10", "a quarter of a partition changes hands"),
    ("fig11", "everything is cached"),
    ("fig12", "the cache's size"),
    (
        "fig13",
        "offloading, cache of 1 % (threads of memory servers are not varied: one compute thread \
         does not fill them)",
    ),
    ("clock", "By the clock, one thread"),
];
