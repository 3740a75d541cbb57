//! `ma5`, Figure 5: access by block and by byte to memory that keeps what it has.
//!
//! The engine has no access by the byte: a page is read into a buffer of its own, checked against
//! its checksum and searched there. Values are then copied to memory or to the caller. To read
//! mapped pages in place it would need files that can be mapped, a checksum at first touch instead
//! of at each read, and a rule for pages that are written again while they are looked at. What is
//! shown is the room that there is: access by block against everything in memory.

use super::{
    Case, Device, Sizes, add_ycsb, contender, rate_ratio, rates_text, run_of, skews, tuned,
    verdict::Verdict,
};
use crate::{contender::About, measure::RunResult, suite::Plan};
use indexy_report::chart::Plot;

const FIGURE: &str = "ma5";
const BLOCK: &str = "block";
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
        (Device::Dram, BLOCK, sizes.cold.budget),
        (Device::Dram, MEMORY, ALL_FITS * bytes),
    ] {
        let case = Case {
            figure: FIGURE,
            policy,
            cold: tuned(device, None),
            page_bytes: 0,
            budget,
        };
        add_ycsb(sizes, &case, about, sizes.cold.skews, plan);
    }
}

pub(in crate::suite::figures) fn plots(results: &[RunResult]) -> Vec<Plot> {
    let policies = [(BLOCK, "by block"), (MEMORY, "all in memory")];
    super::by_device(results, FIGURE, &policies, "operations/s", |_, phase| {
        Some(phase.rate())
    })
}

pub(in crate::suite::figures) fn findings(results: &[RunResult]) -> Vec<String> {
    let nvram = run_of(results, FIGURE, Device::Nvram, BLOCK);
    let dram = run_of(results, FIGURE, Device::Dram, BLOCK);
    let memory = run_of(results, FIGURE, Device::Dram, MEMORY);
    let mut found = Vec::new();
    for x in skews(results) {
        let room = rates_text(memory, nvram, x).map(|text| {
            format!(
                "at {x}: all in memory does {text} of NVRAM by block: access by the byte can gain \
                 no more"
            )
        });
        let device = rates_text(dram, nvram, x)
            .map(|text| format!("at {x}: DRAM by block does {text} of NVRAM by block"));
        found.extend(room.into_iter().chain(device));
    }
    let all = skews(results);
    let room = |x: Option<&f64>| rate_ratio(memory, nvram, *x?);
    if let Some((low, high)) = room(all.first())
        .zip(room(all.last()))
        .filter(|_| all.len() > 1)
    {
        let verdict = if low > high {
            "so is the room"
        } else {
            "the room is not"
        };
        found.push(format!(
            "paper: access by the byte gains most at low skew; {verdict}: {low:.2} x at the lowest \
             exponent, {high:.2} x at the highest"
        ));
    }
    if !found.is_empty() {
        found.push(format!(
            "access by the byte, of which the engine has none: {}",
            Verdict::CannotBeTested
        ));
    }
    found
}
