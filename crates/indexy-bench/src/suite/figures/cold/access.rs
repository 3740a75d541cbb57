//! `ma5`, Figure 5: access by block and by byte to memory that keeps what it has.
//!
//! By block a page is read into a buffer of the engine, checked against its checksum, and searched
//! there. By the byte a leaf, or a value that lies beside it, is looked at where it lies in a
//! mapped file, and the device takes the time of the bytes that were looked at. Inner pages are in
//! memory either way. Everything in memory says how much there is to gain.

use super::{
    Case, Cold, Device, Sizes, add_ycsb, contender, rate_ratio, rates_text, run_of, skews, tuned,
    verdict::{Verdict, at_least},
};
use crate::{contender::About, measure::RunResult, suite::Plan};
use indexy_report::chart::Plot;

const FIGURE: &str = "ma5";
const BLOCK: &str = "block";
const BYTE: &str = "byte";
const MEMORY: &str = "memory";
/// A budget of so many times the records holds all of them with what they need.
const ALL_FITS: u64 = 3;

pub(in crate::suite::figures) fn jobs(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let Some(about) = contender(all) else { return };
    // DRAM is what NVRAM is compared with.
    if !sizes.cold.devices.contains(&Device::Nvram) {
        return;
    }
    let bytes = sizes.cold.records * super::RECORD_BYTES as u64;
    for (device, policy, budget) in [
        (Device::Nvram, BLOCK, sizes.cold.budget),
        (Device::Nvram, BYTE, sizes.cold.budget),
        (Device::Dram, MEMORY, ALL_FITS * bytes),
    ] {
        let case = Case {
            figure: FIGURE,
            policy,
            cold: Cold {
                by_block: policy == BLOCK,
                ..tuned(device, None)
            },
            page_bytes: 0,
            budget,
        };
        add_ycsb(sizes, &case, about, sizes.cold.skews, plan);
    }
}

pub(in crate::suite::figures) fn plots(results: &[RunResult]) -> Vec<Plot> {
    let policies = [
        (BLOCK, "by block"),
        (BYTE, "by the byte"),
        (MEMORY, "all in memory"),
    ];
    super::by_device(results, FIGURE, &policies, "operations/s", |_, phase| {
        Some(phase.rate())
    })
}

pub(in crate::suite::figures) fn findings(results: &[RunResult]) -> Vec<String> {
    let block = run_of(results, FIGURE, Device::Nvram, BLOCK);
    let byte = run_of(results, FIGURE, Device::Nvram, BYTE);
    let memory = run_of(results, FIGURE, Device::Dram, MEMORY);
    let gain = |x: f64| rate_ratio(byte, block, x);
    let mut found = Vec::new();
    let all = skews(results);
    for &x in &all {
        let bytes = rates_text(byte, block, x).map(|text| {
            let verdict = at_least(gain(x), 1.0);
            format!("NVRAM at {x}: by the byte does {text} of by block: {verdict}")
        });
        let room = rates_text(memory, block, x)
            .map(|text| format!("at {x}: all in memory does {text} of NVRAM by block"));
        found.extend(bytes.into_iter().chain(room));
    }
    if let [first, .., last] = all[..] {
        let verdict = match gain(first).zip(gain(last)) {
            None => Verdict::TooShort,
            Some((low, high)) if low > high => Verdict::AsClaimed,
            Some(_) => Verdict::NotShown,
        };
        found.push(format!(
            "paper: access by the byte gains most at low skew: {verdict}"
        ));
    }
    found
}
