//! What the command line takes.

use crate::{contender::Durability, dex, policies::ENTRY_BYTES, suite::figures::Preset, tpcc};
use clap::{Args, Parser, Subcommand, ValueEnum};
use indexy_report::size::parse_size;
use std::path::PathBuf;

/// Measures IndeXY against other engines, each in a process and a memory cgroup of its own.
#[derive(Debug, Parser)]
#[command(version)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// The core's table: in memory, durability, larger than memory, replay; with goals.
    Core(CoreCommand),
    /// The figures of the paper.
    Figures(FiguresCommand),
    /// One or several YCSB workloads after one load.
    Ycsb(YcsbCommand),
    /// TPC-C: load, run, consistency check.
    Tpcc(TpccCommand),
    /// Replays traces through policies of eviction, ours and others, and counts hits.
    Policies(PoliciesCommand),
    /// The figures of DEX: a tree in the memory of other machines, counted verb by verb. Needs the
    /// cargo feature `dex`.
    Dex(DexCommand),
    /// What changed between two results.
    Compare(CompareCommand),
    /// Writes the HTML report of a result again.
    Report(ReportCommand),
    /// Contenders, sections, figures, workloads and properties.
    List,
}

#[derive(Debug, Args)]
pub(super) struct Common {
    /// Contenders, by name, separated by commas; all by default.
    #[arg(long, value_delimiter = ',')]
    pub contenders: Vec<String>,
    /// Where the contenders keep their data. Not a tmpfs: that is memory.
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

#[derive(Debug, Args)]
pub(super) struct CoreCommand {
    /// Scales key counts, budgets and times.
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    pub scale: f64,
    /// Sections, separated by commas: memory, durability, larger, replay, queue.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Budget of the larger-than-memory section at scale 1.
    #[arg(long, default_value = "128MiB", value_parser = parse_size)]
    pub budget: u64,
    /// Repetitions of the in-memory and durability sections; the median counts.
    #[arg(long, default_value_t = 3, value_parser = repetitions)]
    pub repeat: usize,
    /// Repetitions of the larger-than-memory section.
    #[arg(long, default_value_t = 1, value_parser = repetitions)]
    pub larger_repeat: usize,
    /// Seconds of a read phase at scale 1.
    #[arg(long, default_value_t = 15.0)]
    pub read_seconds: f64,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Args)]
pub(super) struct FiguresCommand {
    /// How large: smoke takes two minutes, laptop about an hour, paper many hours.
    #[arg(long, value_enum, default_value_t = Preset::Smoke)]
    pub preset: Preset,
    /// Figures, separated by commas; all by default.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Args)]
pub(super) struct YcsbCommand {
    /// A property file or a built-in workload; several run one after the other on the first one's
    /// records.
    #[arg(short = 'P', long = "workload", required = true)]
    pub files: Vec<String>,
    /// A property, `name=value`; it goes before those of the files.
    #[arg(short = 'p', long = "property")]
    pub properties: Vec<String>,
    /// Memory budget of each contender.
    #[arg(long, default_value = "128MiB", value_parser = parse_size)]
    pub budget: u64,
    /// When a write survives a crash.
    #[arg(long, value_enum, default_value_t = DurabilityArgument::None)]
    pub durability: DurabilityArgument,
    /// Threads, where no property says.
    #[arg(long, default_value_t = 2, value_parser = repetitions)]
    pub threads: usize,
    /// Time cap of each phase in seconds; 0 for none.
    #[arg(long, default_value_t = 0.0)]
    pub seconds: f64,
    /// Repetitions.
    #[arg(long, default_value_t = 1, value_parser = repetitions)]
    pub repeat: usize,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Args)]
pub(super) struct TpccCommand {
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
    /// Page size of contenders that let it be chosen.
    #[arg(long, default_value = "0", value_parser = parse_size)]
    pub page: u64,
    /// Repetitions.
    #[arg(long, default_value_t = 1, value_parser = repetitions)]
    pub repeat: usize,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum DurabilityArgument {
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

#[derive(Debug, Args)]
pub(super) struct PoliciesCommand {
    /// Traces, separated by commas; all by default, and none beside a trace of your own.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Policies, separated by commas, as `density+plain+top5`; `list` has them.
    #[arg(long, value_delimiter = ',')]
    pub policies: Vec<String>,
    /// A trace of your own: a number a line, alone or after `r`, `u` or `w`; or, where the name
    /// ends in .u64, numbers of eight bytes, little-endian.
    #[arg(long)]
    pub trace: Option<PathBuf>,
    /// Scales keys, accesses and bytes.
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    pub scale: f64,
    /// Bytes of entries at scale 1; of a trace of your own, as they stand.
    #[arg(long, default_value = "12.8MiB", value_parser = parse_size)]
    pub bytes: u64,
    /// Bytes of one entry.
    #[arg(
        long,
        default_value_t = ENTRY_BYTES,
        value_parser = clap::value_parser!(u64).range(1..=65536)
    )]
    pub entry: u64,
    /// Also sweeps sizes of regions and sampling rates: Algorithm 1 against the coldest first.
    #[arg(long)]
    pub sweep: bool,
    /// Seed of all draws.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where the results go.
    #[arg(long, default_value = "indexy-bench-results")]
    pub out: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct DexCommand {
    /// How large: smoke takes half a minute, laptop minutes, evening an hour or more.
    #[arg(long, value_enum, default_value_t = dex::Preset::Smoke)]
    pub preset: dex::Preset,
    /// Figures, separated by commas, fig6 to fig13; all by default.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Where the report goes.
    #[arg(long, default_value = "indexy-bench-results")]
    pub out: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct CompareCommand {
    /// `results.json` of the earlier run.
    pub before: PathBuf,
    /// `results.json` of the later run.
    pub after: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct ReportCommand {
    /// A `results.json`.
    pub results: PathBuf,
    /// The HTML file; beside the results by default.
    #[arg(long)]
    pub out: Option<PathBuf>,
}

fn scale(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "a number".to_owned())?;
    if value > 0.0 && value <= 1000.0 {
        Ok(value)
    } else {
        Err("above 0 and at most 1000".to_owned())
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if value > 0.0 && value <= 1e6 => Ok(value),
        _ => Err("above 0 and at most 1000000".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.05..=0.95).contains(&value) => Ok(value),
        _ => Err("0.05 to 0.95".to_owned()),
    }
}

fn repetitions(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=1024).contains(&n) => Ok(n),
        _ => Err("1 to 1024".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn ycsbs_own_spelling_is_understood() {
        let parsed = Arguments::try_parse_from([
            "x",
            "ycsb",
            "-P",
            "workloads/workloada",
            "-p",
            "recordcount=5",
        ])
        .unwrap();
        let Command::Ycsb(ycsb) = parsed.command else {
            panic!("not ycsb")
        };
        assert_eq!(
            (ycsb.files, ycsb.properties),
            (
                vec!["workloads/workloada".to_owned()],
                vec!["recordcount=5".to_owned()]
            )
        );
    }
}
