//! From results to series of points.

use crate::measure::{PhaseResult, RunResult};
use indexy_report::chart::Series;

/// For figures whose plot says it all.
pub(super) fn no_findings(_: &[RunResult]) -> Vec<String> {
    Vec::new()
}

/// Names of the contenders, in the order of their first run.
pub(super) fn contenders(results: &[RunResult]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for r in results {
        if !names.contains(&r.contender) {
            names.push(r.contender.clone());
        }
    }
    names
}

/// One series per contender: a point for each phase whose name begins with `phase` and that has an
/// x.
pub(super) fn by_x(
    results: &[RunResult],
    phase: &str,
    y: impl Fn(&RunResult, &PhaseResult) -> f64,
) -> Vec<Series> {
    let of = |name: &str| {
        let runs = results.iter().filter(|r| r.contender == name);
        let mut points: Vec<(f64, f64)> = runs
            .flat_map(|r| r.phases.iter().map(move |p| (r, p)))
            .filter(|(_, p)| p.done > 0 && p.name.starts_with(phase))
            .filter_map(|(r, p)| Some((p.x?, y(r, p))))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    contenders(results)
        .into_iter()
        .map(|name| Series {
            points: of(&name),
            name,
            dashed: false,
        })
        .collect()
}

/// The first contender of ours, and the others.
pub(super) fn ours_and_peers(names: &[String]) -> Option<(&str, Vec<&str>)> {
    let ours = names.iter().find(|n| n.starts_with("indexy"))?;
    Some((
        ours,
        names
            .iter()
            .filter(|n| !n.starts_with("indexy"))
            .map(String::as_str)
            .collect(),
    ))
}

/// The results whose load was finished, and a remark on each of the others: a contender with fewer
/// keys reads from fewer, so that its reads are shown and not compared.
pub(super) fn whole_loads(results: &[RunResult]) -> (Vec<RunResult>, Vec<String>) {
    use crate::format::count;
    let missing = |run: &RunResult| {
        let load = run.phase("load")?;
        (load.done < load.asked).then(|| {
            format!(
                "{} loaded {} of {} keys in its time: not compared",
                run.contender,
                count(load.done as f64),
                count(load.asked as f64)
            )
        })
    };
    let whole = results.iter().filter(|r| missing(r).is_none()).cloned();
    (
        whole.collect(),
        results.iter().filter_map(missing).collect(),
    )
}

/// "3.2 x rocksdb (1.2 M/s against 375 k/s)".
pub(super) fn ratio_text(ours: f64, peer: &str, theirs: f64) -> String {
    use crate::format::rate;
    format!(
        "{:.2} x {peer} ({} against {})",
        ours / theirs,
        rate(ours),
        rate(theirs)
    )
}

/// The best of `peers` in `series` at `x`.
pub(super) fn best_at<'a>(series: &'a [Series], peers: &[&str], x: f64) -> Option<(&'a str, f64)> {
    let at = |s: &'a Series| {
        s.points
            .iter()
            .find(|p| p.0 == x)
            .map(|p| (s.name.as_str(), p.1))
    };
    let values = series
        .iter()
        .filter(|s| peers.contains(&s.name.as_str()))
        .filter_map(at);
    values
        .filter(|v| v.1 > 0.0)
        .max_by(|a, b| a.1.total_cmp(&b.1))
}
