//! Options that several commands have, and what their values may be.

use crate::contender::Durability;
use clap::{Args, ValueEnum};
use indexy_report::size::parse_size;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(in crate::cli) struct Common {
    /// Contenders, by name, separated by commas; all by default.
    #[arg(long, value_delimiter = ',')]
    pub contenders: Vec<String>,
    /// Where the contenders keep their data. Not a tmpfs, which is memory, but for the figures
    /// of modelled devices.
    #[arg(long, default_value = "indexy-bench-data")]
    pub dir: PathBuf,
    /// Where the results go.
    #[arg(long, default_value = "indexy-bench-results")]
    pub out: PathBuf,
    /// Memory above the budget that the cgroup grants, for the process itself and what engines do
    /// not count; 0 for none. By default 10 % of the budget plus half of the budget within 24 to 48
    /// MiB.
    #[arg(long, value_parser = parse_size)]
    pub slack: Option<u64>,
    /// Limit memory only after the load: for engines that take hours to load within the limit, or
    /// do not survive it.
    #[arg(long, conflicts_with = "no_cgroup")]
    pub free_load: bool,
    /// Run without a memory cgroup: the page cache is then not limited.
    #[arg(long)]
    pub no_cgroup: bool,
    /// Seed of all keys and draws.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Keep the contenders' data afterwards.
    #[arg(long)]
    pub keep: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(in crate::cli) enum DurabilityArgument {
    None,
    Buffered,
    Sync,
}

impl From<DurabilityArgument> for Durability {
    fn from(argument: DurabilityArgument) -> Self {
        match argument {
            DurabilityArgument::None => Durability::None,
            DurabilityArgument::Buffered => Durability::Buffered,
            DurabilityArgument::Sync => Durability::Sync,
        }
    }
}

pub(super) fn scale(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "a number".to_owned())?;
    if value > 0.0 && value <= 1000.0 {
        Ok(value)
    } else {
        Err("above 0 and at most 1000".to_owned())
    }
}

pub(super) fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if value > 0.0 && value <= 1e6 => Ok(value),
        _ => Err("above 0 and at most 1000000".to_owned()),
    }
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.05..=0.95).contains(&value) => Ok(value),
        _ => Err("0.05 to 0.95".to_owned()),
    }
}

pub(super) fn repetitions(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=1024).contains(&n) => Ok(n),
        _ => Err("1 to 1024".to_owned()),
    }
}

pub(super) fn skew(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..=2.0).contains(&value) => Ok(value),
        _ => Err("0 to 2".to_owned()),
    }
}
