//! `ma3`, Figure 2 by size of the block: how much is read and written at once.
//!
//! Blocks are pages of the paged tree, of 4, 8 or 16 KiB. The paper's go from 1 KiB to 1 MiB, hold
//! the tuples that were evicted together, and come back as wholes; here a page holds neighbours by
//! key, and of a page that is read one value goes to memory.

use super::{
    ASIDE, Case, Device, LARGEST_PAGE, Sizes, add_ycsb, at, contender, is_enough, run_of,
    verdict::{Verdict, alike, at_least},
};
use crate::{
    contender::{About, Cold},
    format,
    measure::{PhaseResult, RunResult},
    suite::Plan,
};
use indexy::Admission;
use indexy_report::chart::{Plot, Series};

const FIGURE: &str = "ma3";
const PAGES: [usize; 3] = [4096, 8192, LARGEST_PAGE];
/// The exponent of the paper's experiment.
const SKEW: f64 = 1.0;
const KIB: usize = 1024;

/// As scenarios spell a policy.
fn name(retrieval: &str, page: usize) -> String {
    format!("{retrieval}-{}k", page / KIB)
}

const WAIT: &str = "wait";
const SET_ASIDE: &str = "aside";

pub(in crate::suite::figures) fn jobs(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let Some(about) = contender(all) else { return };
    for &device in &sizes.cold.devices {
        for (retrieval, aside) in [(WAIT, 0), (SET_ASIDE, ASIDE)] {
            for page_bytes in PAGES {
                let case = Case {
                    figure: FIGURE,
                    policy: &name(retrieval, page_bytes),
                    cold: Cold {
                        aside,
                        admission: Some(Admission::Always),
                        ..Cold::on(device)
                    },
                    page_bytes,
                    budget: sizes.cold.budget,
                };
                add_ycsb(sizes, &case, about, &[SKEW], plan);
            }
        }
    }
}

fn phase_of<'a>(
    results: &'a [RunResult],
    device: Device,
    retrieval: &str,
    page: usize,
) -> Option<(&'a RunResult, &'a PhaseResult)> {
    let run = run_of(results, FIGURE, device, &name(retrieval, page))?;
    Some((run, at(Some(run), SKEW)?))
}

pub(in crate::suite::figures) fn plots(results: &[RunResult]) -> Vec<Plot> {
    let mut series = Vec::new();
    for device in Device::ALL {
        for (retrieval, title) in [(WAIT, "wait"), (SET_ASIDE, "put aside")] {
            let points = PAGES.iter().filter_map(|&page| {
                let (_, phase) = phase_of(results, device, retrieval, page)?;
                Some(((page / KIB) as f64, phase.rate()))
            });
            series.push(Series {
                name: format!("{}, {title}", device.title()),
                points: points.collect(),
                dashed: retrieval == SET_ASIDE,
            });
        }
    }
    series.retain(|s| !s.points.is_empty());
    vec![Plot {
        title: "By size of the page, exponent 1".to_owned(),
        x_label: "KiB of a page".to_owned(),
        y_label: "operations/s".to_owned(),
        series,
        log_x: true,
        log_y: true,
        ..Plot::default()
    }]
}

pub(in crate::suite::figures) fn findings(results: &[RunResult]) -> Vec<String> {
    let mut found = Vec::new();
    for device in Device::ALL {
        found.extend(sizes_of(results, device));
        let rates = |retrieval: &str| {
            let of = |page| {
                let (run, phase) = phase_of(results, device, retrieval, page)?;
                Some(is_enough(run, phase).then(|| phase.rate()))
            };
            PAGES.map(of).into_iter().collect::<Option<Vec<_>>>()
        };
        if let Some((wait, aside)) = rates(WAIT).zip(rates(SET_ASIDE)) {
            let whole = |rates: Vec<Option<f64>>| rates.into_iter().collect::<Option<Vec<f64>>>();
            found.extend(match whole(wait).zip(whole(aside)) {
                Some((wait, aside)) => claims(device, &wait, &aside),
                None => vec![format!(
                    "{}, by page: {}",
                    device.title(),
                    Verdict::TooShort
                )],
            });
        }
    }
    if !found.is_empty() {
        found.push(format!(
            "blocks of 1 and 2 KiB, and of 32 KiB to 1 MiB; tuples that are evicted together in \
             one block and come back together; evicted-tuple tombstones: {}",
            Verdict::CannotBeTested
        ));
    }
    found
}

/// Of rates for each of [`PAGES`].
fn claims(device: Device, wait: &[f64], aside: &[f64]) -> Vec<String> {
    let last = PAGES.len() - 1;
    let range = |rates: &[f64]| {
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        rates.iter().copied().fold(0.0, f64::max) / least
    };
    let title = device.title();
    let (ratio, asides) = (wait[last] / wait[0], aside[last] / aside[0]);
    let by_size = |paper: &str, retrieval: &str, ratio: f64, verdict: Verdict| {
        format!("{title}, {retrieval}: 16 KiB do {ratio:.2} x 4 KiB; paper: {paper}: {verdict}")
    };
    if device.turns() {
        let verdict = at_least(Some(asides), 1.0);
        return vec![by_size("more", "put aside", asides, verdict)];
    }
    let mut found = Vec::new();
    if device == Device::Nvram {
        let verdict = at_least(Some(1.0 / ratio), 1.0);
        found.push(by_size("less", "wait", ratio, verdict));
        return found;
    }
    let verdict = match ratio < 1.0 {
        true => Verdict::AsClaimed,
        false => alike(Some(ratio)),
    };
    found.push(by_size("no gain", "wait", ratio, verdict));
    let (wait, aside) = (range(wait), range(aside));
    let verdict = match aside < wait {
        true => Verdict::AsClaimed,
        false => Verdict::NotShown,
    };
    found.push(format!(
        "{title}: fastest over slowest page {aside:.2} x when put aside, {wait:.2} x when waiting; \
         paper: put aside changes less: {verdict}"
    ));
    found
}

/// What leaves memory at once, and what the device is asked for.
fn sizes_of(results: &[RunResult], device: Device) -> Vec<String> {
    let of = |page: usize| {
        let (run, phase) = phase_of(results, device, WAIT, page)?;
        let each = |sum: &str, count: &str| {
            let count = run.grown(phase, count).filter(|count| *count > 0.0)?;
            Some(format::bytes(run.grown(phase, sum)? / count))
        };
        let per_op = |counter| Some(run.grown(phase, counter)? / phase.done as f64);
        let text = |part: Option<String>| part.unwrap_or_else(|| "-".to_owned());
        Some(format!(
            "{}, pages of {} KiB: a release drops {}, a run to the tree has {}, a device write {}, \
             a read {}; {:.2} reads an operation",
            device.title(),
            page / KIB,
            text(each("released_bytes", "releases")),
            text(each("cleaned_bytes", "cleaned_runs")),
            text(each("device_written_bytes", "device_writes")),
            text(each("device_read_bytes", "device_reads")),
            per_op("device_reads")?
        ))
    };
    PAGES.into_iter().filter_map(of).collect()
}
