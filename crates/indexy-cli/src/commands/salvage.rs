//! `indexy salvage`: what can be read of a damaged database, in a new one.

use crate::{
    args::Salvage,
    exit,
    format::escape::escaped,
    interrupt::Interrupt,
    stdout::{self, say},
    store,
    unfinished::{Empty, Unfinished},
};
use indexy::{Doubtful, Loss, SalvageReport};
use indexy_report::size::{self, counted};
use serde_json::json;
use std::{process::ExitCode, time::Instant};

/// Runs the command.
pub fn run(args: &Salvage) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let doubtful = match args.doubtful {
        true => Doubtful::Take,
        false => Doubtful::LeaveOut,
    };
    let interrupt = Interrupt::install()?;
    let unfinished = Unfinished::make(&args.src, &args.dest, Empty::Taken)?;
    let undo = || {
        unfinished.remove();
        say("interrupted; nothing was saved");
    };
    let report = interrupt.undo(undo, || {
        store::salvage(&args.src, &unfinished.path, args.budget, doubtful)
    })?;
    unfinished.becomes()?;
    if args.json {
        let seconds = start.elapsed().as_secs_f64();
        let whole = report.is_whole();
        stdout::print_if_read(
            json!({"whole": whole, "seconds": seconds, "trees": report.trees,
            "lost": report.lost, "losses": report.losses}),
        )?;
    } else {
        print(&report, args, start)?;
    }
    Ok(match report.is_whole() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(exit::FAILED),
    })
}

fn print(report: &SalvageReport, args: &Salvage, start: Instant) -> anyhow::Result<()> {
    for loss in &report.losses {
        say(told(loss));
    }
    let listed = report.losses.len() as u64;
    if report.lost > listed {
        say(format_args!("and {} more", report.lost - listed));
    }
    for tree in &report.trees {
        let mut text = format!(
            "{}: {}",
            escaped(tree.name.as_bytes()),
            counted(tree.entries, "record")
        );
        if tree.doubtful > 0 {
            let verb = if args.doubtful { "taken" } else { "left out" };
            text += &format!("; {} doubtful, {verb}", counted(tree.doubtful, "key"));
        }
        if tree.may_be_older {
            text += "; records of the log are lost: any record may be an older version";
        }
        stdout::print_if_read(text)?;
    }
    let verdict = match report.is_whole() {
        true => "nothing is missing".to_string(),
        false => format!("{} lost", counted(report.lost, "place")),
    };
    stdout::print_if_read(format_args!(
        "salvaged to {} in {}; {verdict}",
        args.dest.display(),
        size::duration(start.elapsed())
    ))
}

fn told(loss: &Loss) -> String {
    let mut text = format!(
        "lost: {} at byte {}: {}",
        loss.path.display(),
        loss.offset,
        loss.what
    );
    if let Some(tree) = &loss.tree {
        text += &format!("; tree \"{}\"", escaped(tree.as_bytes()));
    }
    if let Some(from) = &loss.from {
        text += &format!(", keys from \"{}\"", escaped(from));
        match &loss.to {
            Some(to) => text += &format!(", before \"{}\"", escaped(to)),
            None => text += " on",
        }
    }
    text
}
