//! The command line of `indexy-bench`, and of the program with peers.

/// Prints a line. Whoever was reading may have gone (`list | head`): that is no reason to lose the
/// rest of a run.
macro_rules! say {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($part)*);
    }};
}

mod arguments;
mod contenders;
mod dex;
mod execute;
mod exit;
mod policies;
mod tables;

use crate::{
    contender::About,
    harness::{CHILD_ARGUMENT, child_main},
    registry::Registry,
    report::{
        Document, change_table, compare, condition_notes, detail_table, goal_table, html_text,
    },
    stderr::tell,
    suite::{
        Plan, YcsbRun,
        core::{CoreOptions, Section, core_plan, core_rows},
        figures::{FIGURES, Figure, find},
        ycsb_plan,
    },
    workload::{Properties, builtin_names, builtin_text, described},
};
use arguments::{
    Arguments, Command, CompareCommand, CoreCommand, FiguresCommand, ReportCommand, YcsbCommand,
};
use clap::Parser as _;
use contenders::{chosen, leave_out};
use execute::{Execution, Failure};
use std::{fs, io, process::ExitCode};

/// The program, with the contenders of `registry`.
pub fn main_with(registry: &Registry) -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(CHILD_ARGUMENT) {
        return child_main(&|job, emitter| registry.run(job, emitter));
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // clap prints help to standard output and mistakes to standard error; both choose their
        // exit code.
        Err(error) => error.exit(),
    };
    match run(registry, arguments) {
        Ok(code) => code,
        Err(failure) => {
            tell!("error: {failure}");
            ExitCode::from(exit::REFUSED)
        }
    }
}

fn run(registry: &Registry, arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Command::Core(command) => run_core(registry, &command),
        Command::Figures(command) => run_figures(registry, &command),
        Command::Ycsb(command) => run_ycsb(registry, &command),
        Command::Tpcc(command) => tables::run_tpcc(registry, &command),
        Command::Tatp(command) => tables::run_tatp(registry, &command),
        Command::Voter(command) => tables::run_voter(registry, &command),
        Command::Counters(command) => tables::run_counters(registry, &command),
        Command::Policies(command) => policies::run(&command),
        Command::Dex(command) => dex::run(&command),
        Command::Compare(command) => run_compare(&command),
        Command::Report(command) => run_report(&command),
        Command::List => {
            list(registry);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Contenders that take part only when they are named.
const ONLY_IF_NAMED: [&str; 1] = ["null"];

fn run_core(registry: &Registry, command: &CoreCommand) -> Result<ExitCode, Failure> {
    let contenders = chosen(registry, &command.common, &ONLY_IF_NAMED)?;
    let sections = if command.only.is_empty() {
        Section::ALL.to_vec()
    } else {
        sections(&command.only)?
    };
    let options = CoreOptions {
        scale: command.scale,
        sections,
        budget: command.budget,
        repeats: command.repeat,
        larger_repeats: command.larger_repeat,
        read_seconds: command.read_seconds,
        seed: command.common.seed,
    };
    let plan = core_plan(&options, &contenders);
    let mut execution = Execution::begin("core", registry, &command.common, &plan)?;
    execution.rows = Some(core_rows);
    let document = execution.run(&plan)?;
    for scenario in document.scenarios() {
        say!("{}", detail_table(&scenario, &document.results));
    }
    say!("{}", goal_table(&document.rows));
    execution.finish(&document)
}

fn sections(names: &[String]) -> Result<Vec<Section>, Failure> {
    let parse = |name: &String| {
        Section::ALL
            .into_iter()
            .find(|s| s.name() == name)
            .ok_or_else(|| {
                let valid = Section::ALL.map(Section::name).join(", ");
                Failure::Usage(format!(
                    "unknown section {name:?}; the valid ones are: {valid}"
                ))
            })
    };
    names.iter().map(parse).collect()
}

/// Variants of a peer that the figures do without.
const NOT_IN_FIGURES: [&str; 3] = ["null", "rocksdb-blocks", "rocksdb-cached"];

fn run_figures(registry: &Registry, command: &FiguresCommand) -> Result<ExitCode, Failure> {
    let mut contenders = chosen(registry, &command.common, &NOT_IN_FIGURES)?;
    if command.common.contenders.is_empty() {
        let ours = command.preset.ours();
        contenders.extend(registry.iter().filter(|a| ours.contains(&a.name)));
    }
    let mut figures: Vec<&Figure> = Vec::new();
    for name in &command.only {
        let found = find(name);
        if found.is_empty() {
            let valid: Vec<&str> = FIGURES.iter().map(|f| f.id).collect();
            return Err(Failure::Usage(format!(
                "unknown figure {name:?}; the valid ones are: {}",
                valid.join(", ")
            )));
        }
        // `fig9` and `fig9-all` name one of them twice.
        for figure in found {
            if !figures.iter().any(|named| named.id == figure.id) {
                figures.push(figure);
            }
        }
    }
    if figures.is_empty() {
        figures = FIGURES.iter().collect();
    }
    let mut sizes = command.preset.sizes(command.common.seed);
    if !command.devices.is_empty() {
        sizes.cold.devices.clone_from(&command.devices);
    }
    if let Some(seconds) = command.turning_seconds {
        sizes.cold.turning_seconds = seconds;
    }
    let mut plan = Plan::default();
    let named = !command.common.contenders.is_empty();
    for figure in &figures {
        let takes_part = |a: &&About| named || !figure.only_if_named.contains(&a.name);
        let contenders: Vec<&About> = contenders.iter().copied().filter(takes_part).collect();
        figure.add_jobs(&sizes, &contenders, &mut plan);
    }
    leave_out(registry, &mut plan);
    let mut execution = Execution::begin("figures", registry, &command.common, &plan)?;
    let document = execution.run(&plan)?;
    for figure in figures {
        say!("{}", figure.title);
        for finding in figure.findings(&document.results) {
            say!("  {finding}");
        }
    }
    execution.finish(&document)
}

fn run_ycsb(registry: &Registry, command: &YcsbCommand) -> Result<ExitCode, Failure> {
    let contenders = chosen(registry, &command.common, &ONLY_IF_NAMED)?;
    let mut workloads = Vec::new();
    for file in &command.files {
        let mut properties = Properties::default();
        properties
            .read(&workload_text(file)?)
            .map_err(|e| Failure::Usage(format!("{file}: {e}")))?;
        for line in &command.properties {
            properties
                .set_line(line)
                .map_err(|e| Failure::Usage(e.to_string()))?;
        }
        let name = file.rsplit('/').next().unwrap_or(file).to_owned();
        workloads.push((name, properties));
    }
    let run = YcsbRun {
        scenario: "ycsb".to_owned(),
        workloads,
        budget: command.budget,
        durability: command.durability.into(),
        threads: command.threads,
        max_seconds: command.seconds,
        repeats: command.repeat,
        seed: command.common.seed,
        confined: true,
    };
    let plan = ycsb_plan(&run, &contenders).map_err(|e| Failure::Usage(e.to_string()))?;
    let mut execution = Execution::begin("ycsb", registry, &command.common, &plan)?;
    let document = execution.run(&plan)?;
    say!("{}", detail_table("ycsb", &document.results));
    execution.finish(&document)
}

/// The text of a property file or, if there is no such file, of the built-in workload of that name.
fn workload_text(name: &str) -> Result<String, Failure> {
    match fs::read(name) {
        Ok(bytes) => Ok(property_text(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // `workloads/workloada` works without a checkout of the files.
            let base = name.rsplit('/').next().unwrap_or(name);
            builtin_text(base).map(str::to_owned).ok_or_else(|| {
                let valid = builtin_names().join(", ");
                Failure::Usage(format!("workload {name}: {error}; built in are: {valid}"))
            })
        }
        Err(error) => Err(Failure::Usage(format!("workload {name}: {error}"))),
    }
}

/// The text of `bytes`: UTF-8 or else Latin-1, which Java writes property files in.
fn property_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| error.into_bytes().into_iter().map(char::from).collect())
}

fn run_compare(command: &CompareCommand) -> Result<ExitCode, Failure> {
    let (before, after) = (
        Document::read(&command.before)?,
        Document::read(&command.after)?,
    );
    say!(
        "before: {} {} ({})",
        before.started,
        before.commit,
        before.machine.processor
    );
    say!(
        "after:  {} {} ({})",
        after.started,
        after.commit,
        after.machine.processor
    );
    if before.machine != after.machine {
        say!("note: not the same machine, kernel or file system");
    }
    let changes = compare(&before, &after);
    if changes.iter().all(|change| change.relative().is_none()) {
        return Err(Failure::Usage(
            "the two results have no phase in common".to_owned(),
        ));
    }
    let mut table = change_table(&changes);
    table.notes = condition_notes(&before, &after);
    say!("{table}");
    Ok(ExitCode::SUCCESS)
}

fn run_report(command: &ReportCommand) -> Result<ExitCode, Failure> {
    let document = Document::read(&command.results)?;
    let path = command
        .out
        .clone()
        .unwrap_or_else(|| command.results.with_file_name("report.html"));
    fs::write(&path, html_text(&document))
        .map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))?;
    say!("{}", path.display());
    Ok(ExitCode::SUCCESS)
}

fn list(registry: &Registry) {
    say!("contenders");
    for about in registry.iter() {
        say!("  {:16} {}", about.name, about.summary);
    }
    say!(
        "\nof these, with tables for tpcc, tatp, voter, counters and figures 9 to 11\n  {}",
        registry.with_tables().join(", ")
    );
    say!(
        "\nsections of core\n  {}",
        Section::ALL.map(Section::name).join(", ")
    );
    say!("\nfigures");
    for figure in FIGURES {
        say!("  {:16} {}", figure.id, figure.title);
    }
    policies::list();
    dex::list();
    say!("\nworkloads\n  {}", builtin_names().join(", "));
    say!("\nproperties (-p name=value)");
    for (name, default, about) in described() {
        say!(
            "  {name:28} {:10} {about}",
            if default.is_empty() { "-" } else { default }
        );
    }
}
