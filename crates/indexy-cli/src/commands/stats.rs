//! `indexy stats`: what the database holds, for people or as JSON.

use crate::{
    args::Stats,
    format::escape::escaped,
    stdout,
    store::{self, Access},
};
use indexy::{Db, Ttl};
use indexy_report::size::{bytes, count, counted, percent};
use serde::Serialize;
use std::{fmt::Write as _, process::ExitCode};

#[derive(Serialize)]
struct TreeStats {
    name: String,
    index_x: String,
    index_y: String,
    approximate_len: u64,
    y_bytes_on_disk: u64,
    /// Those of them that hold nothing of use, as far as the disk index knows.
    y_dead_bytes: u64,
    /// Where entries expire: after how many milliseconds, or `per entry`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<String>,
}

/// Runs the command.
pub fn run(args: &Stats) -> anyhow::Result<ExitCode> {
    let db = store::open(&args.database, Access::Read)?;
    let trees = trees(&db)?;
    let stats = db.stats();
    let text = if args.json {
        let mut json = serde_json::to_value(&stats)?;
        if let Some(object) = json.as_object_mut() {
            object.insert("per_tree".into(), serde_json::to_value(&trees)?);
        }
        json.to_string()
    } else {
        human(&stats, &trees)
    };
    stdout::print(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn trees(db: &Db) -> anyhow::Result<Vec<TreeStats>> {
    db.tree_names()
        .into_iter()
        .map(|name| {
            let tree = db.tree(&name)?;
            let (x, y) = tree.pair();
            let space = tree.stats();
            Ok(TreeStats {
                name,
                index_x: x.to_string(),
                index_y: y.to_string(),
                approximate_len: tree.approximate_len(),
                y_bytes_on_disk: space.y_bytes_on_disk,
                y_dead_bytes: space.y_dead_bytes,
                ttl: tree.ttl().map(|ttl| match ttl {
                    Ttl::Default(ttl) => format!("{} ms", ttl.as_millis()),
                    Ttl::PerEntry => "per entry".into(),
                }),
            })
        })
        .collect()
}

fn human(s: &indexy::Stats, trees: &[TreeStats]) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<22} {value}");
    };
    line("trees", count(trees.len() as u64));
    for tree in trees {
        line(
            &format!("  {}", escaped(tree.name.as_bytes())),
            format!(
                "{} + {}, about {} in {} on disk{}",
                tree.index_x,
                tree.index_y,
                counted(tree.approximate_len, "key"),
                bytes(tree.y_bytes_on_disk),
                tree.ttl
                    .as_ref()
                    .map_or(String::new(), |ttl| format!(", ttl {ttl}"))
            ),
        );
    }
    let memory = Memory::of(s);
    line("memory budget", bytes(s.memory_budget_bytes));
    line(
        "  in use",
        format!(
            "{} ({})",
            bytes(memory.in_use),
            percent(memory.in_use as f64, s.memory_budget_bytes as f64)
        ),
    );
    line(
        "  set aside",
        format!("{} for caches and buffers", bytes(memory.reserved)),
    );
    line(
        "  memory index",
        format!("{} in {}", bytes(s.x_bytes), counted(s.x_keys, "key")),
    );
    line("  mount points", count(s.mount_points));
    line("disk", bytes(s.y_bytes_on_disk + s.log_bytes));
    line(
        "  disk index",
        format!(
            "{}, {} of no use",
            bytes(s.y_bytes_on_disk),
            bytes(s.y_dead_bytes)
        ),
    );
    line("  log", bytes(s.log_bytes));
    out
}

/// How the budget is divided at this moment.
struct Memory {
    /// What holds data.
    in_use: u64,
    /// What caches and buffers may fill, and what Index X has taken and not filled yet.
    reserved: u64,
}

impl Memory {
    fn of(s: &indexy::Stats) -> Self {
        Self {
            in_use: s.memory_in_use_bytes,
            reserved: s.memory_reserved_bytes,
        }
    }
}
