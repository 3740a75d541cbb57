//! `ma2`, Figure 2 by skew: reads that wait for the device, and reads that are put aside.

use super::{
    ASIDE, Case, Device, Sizes, add_ycsb, at, by_device, contender, rate_ratio, rates_text, run_of,
    skews, tuned, unsteadiness,
    verdict::{Verdict, alike, at_least},
};
use crate::{
    contender::{About, Cold},
    measure::RunResult,
    suite::Plan,
};
use indexy::Admission;
use indexy_report::chart::Plot;

const FIGURE: &str = "ma2";
const WAIT: &str = "wait";
const SET_ASIDE: &str = "aside";
/// A policy, as figures spell it, and how many reads may be aside.
const POLICIES: [(&str, &str, usize); 2] = [(WAIT, "wait", 0), (SET_ASIDE, "put aside", ASIDE)];

pub(in crate::suite::figures) fn jobs(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let Some(about) = contender(all) else { return };
    for &device in &sizes.cold.devices {
        for (policy, _, aside) in POLICIES {
            let case = Case {
                figure: FIGURE,
                policy,
                // All are merged here, as in the paper's first experiment.
                cold: Cold {
                    aside,
                    ..tuned(device, Some(Admission::Always))
                },
                page_bytes: 0,
                budget: sizes.cold.budget,
            };
            add_ycsb(sizes, &case, about, sizes.cold.skews_on(device), plan);
        }
    }
}

pub(in crate::suite::figures) fn plots(results: &[RunResult]) -> Vec<Plot> {
    let titles = POLICIES.map(|(policy, title, _)| (policy, title));
    let mut plots = by_device(results, FIGURE, &titles, "operations/s", |_, phase| {
        Some(phase.rate())
    });
    for plot in &mut plots {
        plot.log_y = true;
    }
    plots
}

/// What the paper has of `aside` over `wait` on a device.
pub(super) fn verdict_of(device: Device, ratio: Option<f64>) -> (&'static str, Verdict) {
    match device {
        _ if device.turns() => ("more", at_least(ratio, 1.0)),
        Device::Ssd | Device::Xpoint => ("about the same", alike(ratio)),
        _ => {
            let less = ratio.map(|ratio| 1.0 / ratio);
            ("less", at_least(less, 1.0))
        }
    }
}

pub(in crate::suite::figures) fn findings(results: &[RunResult]) -> Vec<String> {
    let mut found = Vec::new();
    for device in Device::ALL {
        let of = |policy| run_of(results, FIGURE, device, policy);
        let (wait, aside) = (of(WAIT), of(SET_ASIDE));
        for x in skews(results) {
            let Some(text) = rates_text(aside, wait, x) else {
                continue;
            };
            let (paper, verdict) = verdict_of(device, rate_ratio(aside, wait, x));
            let steady = |run| at(run, x).and_then(unsteadiness);
            let steady = steady(wait).zip(steady(aside)).map(|(wait, aside)| {
                format!("; ticks spread by {aside:.2} of their median, {wait:.2} when waiting")
            });
            found.push(format!(
                "{} at {x}: put aside do {text} of waiting; paper: {paper}: {verdict}{}",
                device.title(),
                steady.unwrap_or_default()
            ));
        }
    }
    found
}
