//! The commands of transactions over several tables.

use super::options::{Common, DurabilityArgument, positive, repetitions, share, skew};
use crate::{counters, tpcc, voter};
use clap::Args;
use indexy_report::size::parse_size;

#[derive(Debug, Args)]
pub(in crate::cli) struct TpccCommand {
    /// Warehouses; each is about 75 MB of rows.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub warehouses: u16,
    /// Items, and rows of stock per warehouse. The specification has 100000; fewer is for trials.
    #[arg(
        long,
        default_value_t = tpcc::ITEMS,
        value_parser = clap::value_parser!(u32).range(20..=100_000)
    )]
    pub items: u32,
    /// Customers per district. The specification has 3000; fewer is for trials.
    #[arg(
        long,
        default_value_t = tpcc::CUSTOMERS,
        value_parser = clap::value_parser!(u32).range(10..=3000)
    )]
    pub customers: u32,
    /// Which transactions: the specification's mix, or the paper's New-Order and Payment, half and
    /// half.
    #[arg(long, value_enum, default_value_t = tpcc::Mix::Standard)]
    pub mix: tpcc::Mix,
    /// The pair of indexes of all tables but ORDER-LINE, as `art-lsm`, in a database of ours beside
    /// the contender; by default the contender has all tables.
    #[arg(long)]
    pub others: Option<String>,
    /// With --others: these tables never leave memory, as in the paper.
    #[arg(long, requires = "others")]
    pub resident: bool,
    /// With --others: their share of the budget.
    #[arg(long, default_value_t = 0.75, value_parser = share, requires = "others")]
    pub others_share: f64,
    #[command(flatten)]
    pub tables: TablesArguments,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TatpCommand {
    /// Subscribers; each has ten rows of 300 bytes together. The description has 100000 and powers
    /// of ten times that.
    #[arg(
        long,
        default_value_t = 100_000,
        value_parser = clap::value_parser!(u32).range(100..=100_000_000)
    )]
    pub subscribers: u32,
    /// Exponents of Zipf, separated by commas: each is a run of its own, in which subscribers are
    /// drawn by Zipf, the popular ones spread. By default they are drawn as the description says.
    #[arg(long, value_delimiter = ',', value_parser = skew)]
    pub zipf: Vec<f64>,
    #[command(flatten)]
    pub tables: TablesArguments,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct VoterCommand {
    /// Contestants.
    #[arg(
        long,
        default_value_t = 6,
        value_parser = clap::value_parser!(u8).range(1..=i64::from(voter::MOST_CONTESTANTS))
    )]
    pub contestants: u8,
    /// Votes that are accepted of one telephone number.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub votes: u8,
    /// Telephone numbers of each of the 304 areas; fewer reach the limit of votes sooner.
    #[arg(
        long,
        default_value_t = 10_000_000,
        value_parser = clap::value_parser!(u32).range(1..=10_000_000)
    )]
    pub phones: u32,
    /// Exponents of Zipf, separated by commas: each is a run of its own, in which telephone numbers
    /// call by Zipf, the popular ones spread. By default each calls as often as any other.
    #[arg(long, value_delimiter = ',', value_parser = skew)]
    pub zipf: Vec<f64>,
    #[command(flatten)]
    pub tables: TablesArguments,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CountersCommand {
    /// Rows of the table.
    #[arg(
        long,
        default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u64).range(1000..=10_000_000_000)
    )]
    pub rows: u64,
    /// Bytes of a value.
    #[arg(
        long,
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(i64::from(counters::LEAST_VALUE_BYTES)..=4096)
    )]
    pub value_bytes: u32,
    /// Rows that a transaction reads and writes.
    #[arg(
        long,
        default_value_t = 4,
        value_parser = clap::value_parser!(u8).range(1..=i64::from(counters::MOST_ROWS_AT_ONCE))
    )]
    pub at_once: u8,
    /// Of 100 transactions, those that read one row.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=100))]
    pub reads: u8,
    /// Exponents of Zipf, separated by commas: each is a run of its own, in which rows are drawn by
    /// Zipf, the popular ones spread. By default each is drawn as often as any other.
    #[arg(long, value_delimiter = ',', value_parser = skew)]
    pub zipf: Vec<f64>,
    #[command(flatten)]
    pub tables: TablesArguments,
}

/// What workloads of transactions over several tables have in common.
#[derive(Debug, Args)]
pub(in crate::cli) struct TablesArguments {
    /// Threads.
    #[arg(long, default_value_t = 2, value_parser = repetitions)]
    pub threads: usize,
    /// Seconds that the mix runs.
    #[arg(long, default_value_t = 60.0, value_parser = positive)]
    pub seconds: f64,
    /// Time cap of the load in seconds; 0 for none. A load that is cut short leaves nothing to run
    /// on.
    #[arg(long, default_value_t = 0.0)]
    pub load_seconds: f64,
    /// Memory budget of each contender, all tables together.
    #[arg(long, default_value = "128MiB", value_parser = parse_size)]
    pub budget: u64,
    /// When a write survives a crash.
    #[arg(long, value_enum, default_value_t = DurabilityArgument::None)]
    pub durability: DurabilityArgument,
    /// Page size of contenders that let it be chosen.
    #[arg(long, default_value = "0", value_parser = parse_size)]
    pub page: u64,
    /// Repetitions.
    #[arg(long, default_value_t = 1, value_parser = repetitions)]
    pub repeat: usize,
    #[command(flatten)]
    pub common: Common,
}
