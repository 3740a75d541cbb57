//! Runs figures, and keeps the report of those that are done.

use super::{
    FIGURES, Preset, contender::Pool, error::DexError, figures::ALL, load::Zipf, report::Report,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Of Zipfian keys.
const THETA: f64 = 0.99;
/// The report's name in its folder.
const REPORT: &str = "dex.md";

/// Keys, and operations of a line.
fn size(preset: Preset) -> (u64, u64) {
    match preset {
        Preset::Smoke => (200_000, 50_000),
        Preset::Laptop => (2_000_000, 500_000),
        Preset::Evening => (20_000_000, 5_000_000),
    }
}

/// Runs the figures of these names (none: all) and writes a report into `out` after each; `say`
/// gets each one's part of it. Returns the report's path.
///
/// Cost: the memory of the preset's keys four times over, and its time.
pub fn run(
    preset: Preset,
    only: &[String],
    out: &Path,
    mut say: impl FnMut(&str),
) -> Result<PathBuf, DexError> {
    fs::create_dir_all(out).map_err(DexError::at(out))?;
    let path = out.join(REPORT);
    let (keys, operations) = size(preset);
    let mut report = Report::default();
    report.line(&format!(
        "{keys} keys, {operations} operations a line, after as many to warm up; theta {THETA}."
    ));
    let mut said = 0;
    for ((name, title), figure) in FIGURES.iter().zip(ALL) {
        if !only.is_empty() && !only.iter().any(|named| named == name) {
            continue;
        }
        let heading = match name.strip_prefix("fig") {
            Some(number) => format!("\n# Figure {number}: {title}"),
            None => format!("\n# {title}"),
        };
        report.line(&heading);
        // A fresh pool: inserts of one figure do not change the next.
        let mut pool = Pool::new(keys)?;
        pool.load.zipf = Some(Zipf::new(keys, THETA));
        figure(&mut pool, operations, &mut report)?;
        say(report.text.get(said..).unwrap_or_default());
        said = report.text.len();
        fs::write(&path, &report.text).map_err(DexError::at(&path))?;
    }
    let (held, claims) = (report.held, report.claims);
    report.line(&format!("\n{held} of {claims} claims hold."));
    say(report.text.get(said..).unwrap_or_default());
    fs::write(&path, &report.text).map_err(DexError::at(&path))?;
    Ok(path)
}
