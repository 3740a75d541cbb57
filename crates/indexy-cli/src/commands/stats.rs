//! `indexy stats`: what the database holds, for people or as JSON.

use crate::{
    args::Stats,
    size::{bytes, count, percent},
    stdout,
    store::{self, Access},
};
use indexy::Db;
use serde::Serialize;
use std::{fmt::Write as _, process::ExitCode};

#[derive(Serialize)]
struct TreeStats {
    name: String,
    index_x: String,
    index_y: String,
    approximate_len: u64,
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
            Ok(TreeStats {
                name,
                index_x: x.to_string(),
                index_y: y.to_string(),
                approximate_len: tree.approximate_len(),
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
            &format!("  {}", tree.name),
            format!(
                "{} + {}, about {} keys",
                tree.index_x,
                tree.index_y,
                count(tree.approximate_len)
            ),
        );
    }
    line(
        "memory",
        format!(
            "{} of {} ({})",
            bytes(s.memory_used_bytes),
            bytes(s.memory_budget_bytes),
            percent(s.memory_used_bytes as f64, s.memory_budget_bytes as f64)
        ),
    );
    line(
        "  Index X",
        format!("{} in {} keys", bytes(s.x_bytes), count(s.x_keys)),
    );
    line("  mount points", count(s.mount_points));
    line("disk", bytes(s.y_bytes_on_disk + s.log_bytes));
    line("  Index Y", bytes(s.y_bytes_on_disk));
    line("  log", bytes(s.log_bytes));
    out
}
