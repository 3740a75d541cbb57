//! `ma1`, Figure 1: what reads and synced writes take on each device, by size of the block.
//!
//! The models were fitted to the ratios of the paper, so that this says whether threads that wait
//! for them wait as long as they should. The largest blocks are beyond the paper's figure.

use super::{
    RECORD_BYTES, Sizes, run_of, scenario,
    verdict::{Verdict, at_least, within},
};
use crate::{
    contender::{About, Cold, Device, DeviceAlone, Durability, Focus},
    format,
    harness::{Phase, UNBOUNDED, Work},
    measure::RunResult,
    suite::{Draft, Plan},
    workload::Pick,
};
use indexy_report::chart::{Plot, Series};

const FIGURE: &str = "ma1";
const WRITE: &str = "write";
const READ: &str = "read";
const KIB: usize = 1024;
/// The sizes that the paper speaks of, in KiB.
const SMALL: usize = 1;
const LARGE: usize = 64;
/// Bounds of the number of blocks.
const BLOCKS: (u64, u64) = (64, 65_536);
/// Its draws are highly skewed.
const EXPONENT: f64 = 1.0;

pub(in crate::suite::figures) fn jobs(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    if super::contender(all).is_none() {
        return;
    }
    let cold = &sizes.cold;
    for device in Device::ALL {
        for &kib in cold.block_kib {
            let bytes = kib * KIB;
            let count = (cold.block_bytes / bytes as u64).clamp(BLOCKS.0, BLOCKS.1);
            let name = scenario(FIGURE, device, &kib.to_string());
            let mut draft = Draft::new(name, 0, count, sizes.seed);
            draft.durability = Durability::Sync;
            draft.value_bytes = bytes;
            draft.cold = Some(Cold::on(device));
            let read = Work::Read {
                pick: Pick::Zipf {
                    keys: count,
                    exponent: EXPONENT,
                    scattered: true,
                    rotate: 0,
                },
                ops: UNBOUNDED,
                unit: 1,
            };
            let phase = |name, focus, work| {
                let phase = Phase::new(name, 1, focus, work).capped(cold.block_seconds);
                phase.at(kib as f64)
            };
            let write = Work::Load { from: 0, count };
            let phases = vec![
                phase(WRITE, Focus::Writes, write),
                phase(READ, Focus::Reads, read),
            ];
            plan.add(&draft, &DeviceAlone::about(), 0, phases);
        }
    }
}

/// Microseconds of one operation of `phase`, on average.
fn mean(results: &[RunResult], device: Device, kib: usize, phase: &str) -> Option<f64> {
    let run = run_of(results, FIGURE, device, &kib.to_string())?;
    let phase = run.phase(phase).filter(|phase| phase.done > 0)?;
    let took = run.grown(phase, &format!("device_{}_us", phase.name))?;
    Some(took / phase.done as f64)
}

pub(in crate::suite::figures) fn plots(results: &[RunResult]) -> Vec<Plot> {
    let plot = |phase: &str, title: &str| {
        let series = Device::ALL.into_iter().map(|device| {
            let of_device = |run: &&RunResult| {
                let prefix = scenario(FIGURE, device, "");
                run.scenario.starts_with(&prefix)
            };
            let sizes = results.iter().filter(of_device);
            let sizes = sizes.filter_map(|run| run.phase(phase)?.x);
            let points = sizes.filter_map(|kib| {
                let took = mean(results, device, kib as usize, phase)?;
                Some((kib, took))
            });
            Series {
                name: device.title().to_owned(),
                points: points.collect(),
                dashed: false,
            }
        });
        Plot {
            title: title.to_owned(),
            x_label: "KiB of a block".to_owned(),
            y_label: "microseconds".to_owned(),
            series: series.filter(|s| !s.points.is_empty()).collect(),
            log_x: true,
            log_y: true,
            ..Plot::default()
        }
    };
    vec![
        plot(READ, "Reads of a block"),
        plot(WRITE, "Writes of a block, with its sync"),
    ]
}

/// What is compared: what, this over that, and what became of it.
type Claim<'a> = (String, Option<f64>, &'a str, Verdict);

pub(in crate::suite::figures) fn findings(results: &[RunResult]) -> Vec<String> {
    let of = |device, kib, phase| mean(results, device, kib, phase);
    let over = |one: Option<f64>, other: Option<f64>| Some(one? / other?);
    let mut claims: Vec<Claim<'_>> = Vec::new();
    let mut claim = |what: String, ratio, paper, verdict: &dyn Fn(Option<f64>) -> Verdict| {
        claims.push((what, ratio, paper, verdict(ratio)));
    };
    for device in [Device::Hdd, Device::Smr] {
        for phase in [READ, WRITE] {
            let ratio = over(of(device, LARGE, phase), of(device, SMALL, phase));
            let what = format!("{}, {phase}: 64 KiB over 1 KiB", device.title());
            claim(what, ratio, "about the same", &|r| within(r, 1.0..=1.1));
        }
    }
    let ratio = over(of(Device::Ssd, LARGE, WRITE), of(Device::Ssd, SMALL, WRITE));
    let what = "SSD, write: 64 KiB over 1 KiB".to_owned();
    claim(what, ratio, "1.8 x", &|r| within(r, 1.8..=1.8));
    for kib in [SMALL, LARGE] {
        for phase in [READ, WRITE] {
            let ratio = over(of(Device::Ssd, kib, phase), of(Device::Xpoint, kib, phase));
            let what = format!("SSD over 3DX, {phase} of {kib} KiB");
            claim(what, ratio, "5.5 to 10 x", &|r| within(r, 5.5..=10.0));
        }
    }
    for kib in [SMALL, LARGE] {
        for phase in [READ, WRITE] {
            let ratio = over(of(Device::Nvram, kib, phase), of(Device::Dram, kib, phase));
            let what = format!("NVRAM over DRAM, {phase} of {kib} KiB");
            claim(what, ratio, "4 x", &|r| within(r, 4.0..=4.0));
        }
    }
    for device in [Device::Nvram, Device::Dram] {
        for phase in [READ, WRITE] {
            let ratio = over(of(device, LARGE, phase), of(device, SMALL, phase));
            let what = format!("{}, {phase}: 64 KiB over 1 KiB", device.title());
            claim(what, ratio, "up to 20 x", &|r| within(r, 10.0..=20.0));
        }
    }
    let difference = |device| over(of(device, SMALL, WRITE), of(device, SMALL, READ));
    let slowest = Device::ALL.into_iter().filter_map(difference);
    let ratio = slowest.reduce(f64::max);
    let what = "write over read of 1 KiB, at most".to_owned();
    claim(what, ratio, "1.94 x", &|r| within(r, 1.94..=1.94));
    let ratio = over(spread(results, Device::Smr), spread(results, Device::Hdd));
    let what = "SMR over HDD: spread of writes of 1 KiB".to_owned();
    claim(what, ratio, "larger", &|r| at_least(r, 1.0));
    let measured = claims
        .into_iter()
        .filter_map(|(what, ratio, paper, verdict)| {
            let ratio = ratio?;
            Some(format!("{what}: {ratio:.2} x; paper: {paper}: {verdict}"))
        });
    let took = Device::ALL.into_iter().filter_map(|device| {
        let [read, write, large_read, large_write] =
            [(SMALL, READ), (SMALL, WRITE), (LARGE, READ), (LARGE, WRITE)]
                .map(|(kib, phase)| of(device, kib, phase).map(format::micros));
        Some(format!(
            "{}: 1 KiB read in {}, written in {}; 64 KiB in {} and {}",
            device.title(),
            read?,
            write?,
            large_read?,
            large_write?
        ))
    });
    took.chain(measured).collect()
}

/// From the median of writes of the smallest block to their slow end, in microseconds.
fn spread(results: &[RunResult], device: Device) -> Option<f64> {
    let run = run_of(results, FIGURE, device, &SMALL.to_string())?;
    let latency = run.phase(WRITE)?.latency.get("insert")?;
    Some(latency.p95_us - latency.p50_us).filter(|spread| *spread > 0.0)
}

const _: () = assert!(RECORD_BYTES == SMALL * KIB);
