//! What the command line takes.

mod options;
mod tables;

pub(super) use options::Common;
pub(super) use tables::{CountersCommand, TablesArguments, TatpCommand, TpccCommand, VoterCommand};

use crate::{contender::Device, dex, policies::ENTRY_BYTES, suite::figures::Preset};
use clap::{Args, Parser, Subcommand};
use indexy_report::size::parse_size;
use options::{DurabilityArgument, positive, repetitions, scale};
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
    /// The figures of two papers: IndeXY, and policies for cold data on modelled devices.
    Figures(FiguresCommand),
    /// One or several YCSB workloads after one load.
    Ycsb(YcsbCommand),
    /// TPC-C: load, run, consistency check.
    Tpcc(TpccCommand),
    /// TATP, a telephone network's register: load, run, consistency check.
    Tatp(TatpCommand),
    /// Voter, a telephone vote with a limit for each number: load, run, consistency check.
    Voter(VoterCommand),
    /// Counters, read-modify-writes of several rows: load, run, consistency check.
    Counters(CountersCommand),
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
    /// How large: smoke takes three minutes, laptop about an hour,
    /// evening up to two hours for each engine, paper many hours.
    #[arg(long, value_enum, default_value_t = Preset::Smoke)]
    pub preset: Preset,
    /// Figures, separated by commas; all by default.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Modelled devices of figures ma2 to ma6, separated by commas; by the preset.
    #[arg(long, value_delimiter = ',', value_enum)]
    pub devices: Vec<Device>,
    /// Seconds of a measured phase on modelled disks that turn, which read some 80 times a second;
    /// by the preset.
    #[arg(long, value_parser = positive)]
    pub turning_seconds: Option<f64>,
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
    /// Figures, separated by commas, fig6 to fig13 and clock; all by default.
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
