//! The figures of the IndeXY paper (section III), scaled to the machine, those of a paper about
//! cold data on several devices (`cold/`), and one of a thesis about a radix cache.
//!
//! A [`Figure`] says what is run, what the paper claims in words, how the results are drawn and
//! which ratio speaks to the claim.

mod cold;
mod draw;
mod inserts;
mod radix;
mod reads;
mod sizes;
mod tpcc;
mod ycsb;

pub use sizes::{ColdSizes, Preset, Sizes, TpccSizes};

use crate::{
    contender::{About, Storage},
    harness::Work,
    measure::RunResult,
    suite::{Plan, Step},
};
use indexy_report::chart::Plot;

/// One figure or table of the paper.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// How `--only` names it.
    pub id: &'static str,
    /// Its scenarios begin with this: the id, or that of the figure whose runs it draws again.
    pub scenarios: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What the paper says, in our words.
    pub claim: &'static str,
    /// Contenders that take part in it only if they are named: their runs would take longer than
    /// what they tell.
    pub only_if_named: &'static [&'static str],
    plan: fn(&Sizes, &[&About], &mut Plan),
    plots: fn(&[RunResult]) -> Vec<Plot>,
    findings: fn(&[RunResult]) -> Vec<String>,
}

impl Figure {
    /// Adds the figure's jobs for those of `contenders` that keep data on disk.
    pub fn add_jobs(&self, sizes: &Sizes, contenders: &[&About], plan: &mut Plan) {
        let on_disk: Vec<&About> = contenders
            .iter()
            .copied()
            .filter(|c| c.storage == Storage::Disk)
            .collect();
        let before = plan.steps.len();
        (self.plan)(sizes, &on_disk, plan);
        for step in &mut plan.steps[before..] {
            if let Step::Run(job) = step
                && !sizes.settles
            {
                // At the end of a job it is what is measured, not a wait.
                let last = job.phases.len().saturating_sub(1);
                let mut index = 0;
                job.phases.retain(|phase| {
                    index += 1;
                    phase.work != Work::Settle || index > last
                });
            }
        }
    }

    /// Its plots, as far as `results` fill them.
    pub fn plots(&self, results: &[RunResult]) -> Vec<Plot> {
        (self.plots)(&self.of(results))
    }

    /// Measured ratios that speak to the claim.
    pub fn findings(&self, results: &[RunResult]) -> Vec<String> {
        (self.findings)(&self.of(results))
    }

    /// The results of its scenarios.
    pub fn of(&self, results: &[RunResult]) -> Vec<RunResult> {
        let own = |r: &&RunResult| {
            r.scenario
                .strip_prefix(self.scenarios)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        results.iter().filter(own).cloned().collect()
    }
}

/// All figures, in the papers' order.
pub const FIGURES: &[Figure] = &[
    Figure {
        id: "fig3-random",
        scenarios: "fig3-random",
        title: "Figure 3 (a, b): inserts in random order, throughput and memory",
        claim: "Before the limit ART-based pairs insert 2.2 to 3.1 times as fast as a paged B+ \
                tree. After it ART-LSM keeps a throughput more than 30 times that of pairs whose \
                Index Y is a B+ tree, and the memory stays flat at the limit.",
        only_if_named: &[],
        plan: inserts::random,
        plots: inserts::growth_plots,
        findings: inserts::growth_findings,
    },
    Figure {
        id: "fig3-sequential",
        scenarios: "fig3-sequential",
        title: "Figure 3 (c, d): inserts in key order, throughput and memory",
        claim: "In key order the choice of Index Y matters less: no leaf is visited twice.",
        only_if_named: &[],
        plan: inserts::sequential,
        plots: inserts::growth_plots,
        findings: inserts::growth_findings,
    },
    Figure {
        id: "table2",
        scenarios: "table2",
        title: "Table II: random inserts with pages of 4, 8 and 16 KiB",
        claim: "Larger pages slow a paged B+ tree down (44.7 to 27.2 k/s) and speed ART-B+ up (314 \
                to 584 k/s), because pre-cleaning writes neighbouring keys together.",
        only_if_named: &[],
        plan: inserts::page_sizes,
        plots: inserts::page_plots,
        findings: draw::no_findings,
    },
    Figure {
        id: "fig4",
        scenarios: "fig4",
        title: "Figure 4: random inserts by value size",
        claim: "In bytes per second every system gains from larger values; the B+ tree gains most.",
        only_if_named: &[],
        plan: inserts::value_sizes,
        plots: inserts::value_plots,
        findings: inserts::value_findings,
    },
    Figure {
        id: "fig5",
        scenarios: reads::READS,
        title: "Figure 5: reads by size of the working set",
        claim: "A working set that fits as keys but not as pages runs in memory in ART-based \
                pairs, about 7 times as fast as in a paged B+ tree; RocksDB with its row cache \
                lies between.",
        only_if_named: &[],
        plan: reads::working_sets,
        plots: reads::working_set_plots,
        findings: reads::working_set_findings,
    },
    Figure {
        id: "fig6",
        scenarios: reads::READS,
        title: "Figure 6: reads by zipf exponent",
        claim: "From an exponent of 0.7 on, ART-based pairs increasingly hold the hot keys in \
                memory; a cache of pages does not, even at 0.99.",
        only_if_named: &[],
        plan: reads::skews,
        plots: reads::skew_plots,
        findings: reads::skew_findings,
    },
    Figure {
        id: "fig7",
        scenarios: "fig7",
        title: "Figure 7: a working set that shifts",
        claim: "Each time the key space is rotated by a quarter, throughput drops briefly and \
                recovers; with 5 and 10 keys per access it is 4.3 and 7.2 times as high and \
                recovers more slowly.",
        only_if_named: &[],
        plan: reads::shifts,
        plots: reads::shift_plots,
        findings: reads::shift_findings,
    },
    Figure {
        id: "fig8",
        scenarios: "fig8",
        title: "Figure 8: YCSB",
        claim: "ART-based pairs lead in the load (more than 30 times) and in A, B, C, D and F; in \
                E, which scans, ART-LSM falls behind the B+ tree by more than 40 %.",
        only_if_named: &[],
        plan: ycsb::workloads,
        plots: ycsb::plots,
        findings: ycsb::findings,
    },
    Figure {
        id: "fig9-line",
        scenarios: "fig9-line",
        title: "Figure 9: TPC-C (New-Order and Payment) over time, by threads; ORDER-LINE under \
                test",
        claim: "Until the limit is reached all systems are fast and gain from threads. After it \
                ART-LSM is far ahead of ART-B+ and of the B+ tree alone (up to 8.6 times), its \
                throughput fluctuates with compactions, ART-B+ is the steadiest, and more threads \
                hardly help.",
        only_if_named: tpcc::NOT_OVER_THREADS,
        plan: tpcc::threads,
        plots: tpcc::time_plots,
        findings: tpcc::findings,
    },
    Figure {
        id: "fig9-all",
        scenarios: "fig9-all",
        title: "Figure 9, all tables under test",
        claim: "The paper keeps the other tables in memory. Here all of them have the contender's \
                pair and share its budget.",
        only_if_named: tpcc::NOT_OVER_THREADS,
        plan: tpcc::all_tables,
        plots: tpcc::time_plots,
        findings: tpcc::findings,
    },
    Figure {
        id: "fig10",
        scenarios: "fig10",
        title: "Figure 10: TPC-C by page size",
        claim: "Larger pages speed both systems over a B+ tree up: the B+ tree alone from 30 to 60 \
                to 130 thousand transactions per second with pages of 4, 8 and 16 KiB, because a \
                large page is more likely still in memory when its neighbourhood is written to \
                again.",
        only_if_named: tpcc::NOT_BY_PAGES,
        plan: tpcc::page_sizes,
        plots: tpcc::page_plots,
        findings: tpcc::findings,
    },
    Figure {
        id: "fig11",
        scenarios: "fig9-line",
        title: "Figure 11: TPC-C throughput and disk I/O by threads (the runs of Figure 9)",
        claim: "In memory throughput grows with threads; on disk it does not, because the device \
                is the bottleneck. ART-LSM uses it at a higher rate than ART-B+, and that at a \
                higher one than the B+ tree alone, whose throughput grows most.",
        only_if_named: tpcc::NOT_OVER_THREADS,
        plan: tpcc::threads,
        plots: tpcc::thread_plots,
        findings: tpcc::findings,
    },
    Figure {
        id: "ma1",
        scenarios: "ma1",
        title: "Ma 1 (Figure 1): modelled devices, by size of the block",
        claim: "Blocks of 64 KiB cost a disk that turns about what 1 KiB does; flash writes them \
                80 % slower. 3D XPoint is 5.5 to 10 times as fast as flash, NVRAM has four times \
                the latency of DRAM, and on both 64 KiB take up to 20 times as long as 1 KiB.",
        only_if_named: &[],
        plan: cold::devices::jobs,
        plots: cold::devices::plots,
        findings: cold::devices::findings,
    },
    Figure {
        id: "ma2",
        scenarios: "ma2",
        title: "Ma 2 (Figure 2): reads that wait for the device, and reads that are put aside",
        claim: "Abort and restart is best on disks that turn, with large blocks. On flash and 3D \
                XPoint the best of both ways are alike, and on NVRAM synchronous reads win.",
        only_if_named: &[],
        plan: cold::retrieval::jobs,
        plots: cold::retrieval::plots,
        findings: cold::retrieval::findings,
    },
    Figure {
        id: "ma3",
        scenarios: "ma3",
        title: "Ma 3 (Figure 2): by size of what is read and written at once",
        claim: "On disks that turn large blocks are best. On flash they gain nothing, and small \
                ones suit synchronous reads; abort and restart depends less on the size. On NVRAM \
                the smallest blocks are best.",
        only_if_named: &[],
        plan: cold::blocks::jobs,
        plots: cold::blocks::plots,
        findings: cold::blocks::findings,
    },
    Figure {
        id: "ma4",
        scenarios: "ma4",
        title: "Ma 4 (Figures 3 and 4): which values that were read go into memory",
        claim: "On flash, 3D XPoint and NVRAM it is always better to merge selectively: the top \
                5 % make evictions six times as rare. On disks that turn, abort and restart does \
                not go well with it; synchronous reads with it do about as well as abort and \
                restart without. NVRAM loses least while data is evicted.",
        only_if_named: &[],
        plan: cold::admission::jobs,
        plots: cold::admission::plots,
        findings: cold::admission::findings,
    },
    Figure {
        id: "ma5",
        scenarios: "ma5",
        title: "Ma 5 (Figure 5): access to NVRAM by block and by the byte",
        claim: "Reading NVRAM by the byte is faster than by block, most where accesses are least \
                skewed.",
        only_if_named: &[],
        plan: cold::access::jobs,
        plots: cold::access::plots,
        findings: cold::access::findings,
    },
    Figure {
        id: "ma6",
        scenarios: "ma6",
        title: "Ma 6 (Table 1, Figure 6): the preset of a device against a generic policy",
        claim: "Policies that suit the device do 92 to 340 % more than a generic one (blocks of 1 \
                MiB, abort and restart, everything merged). On disks that turn both are alike in \
                YCSB, in Voter everywhere; in TATP the device's policies are always better.",
        only_if_named: &[],
        plan: cold::profiles::jobs,
        plots: cold::profiles::plots,
        findings: cold::profiles::findings,
    },
    Figure {
        id: "radix",
        scenarios: "radix",
        title: "A radix tree before a paged B+ tree (paper 002), by records, draws and values",
        claim: "With geometric draws the radix cache does A, B and C at twice the rate of the B+ \
                tree alone (2.3 to 2.6 M/s against 0.9 to 1.3), E at 1.4 times, X no faster; with \
                uniform draws it gains nothing.",
        only_if_named: &radix::CONTENDERS,
        plan: radix::jobs,
        plots: radix::plots,
        findings: radix::findings,
    },
];

/// The figure named `id`; an id of several (`fig3`) gives all of them.
pub fn find(id: &str) -> Vec<&'static Figure> {
    FIGURES
        .iter()
        .filter(|f| {
            f.id == id
                || f.id
                    .strip_prefix(id)
                    .is_some_and(|rest| rest.starts_with('-'))
        })
        .collect()
}

#[cfg(test)]
mod tests;
