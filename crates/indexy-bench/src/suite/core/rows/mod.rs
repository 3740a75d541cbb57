//! The rows of the core's table: what was measured, against whom, and whether the goal was met.
//!
//! Ratios are medians over the repetitions of one run; a number that was not measured leaves its
//! row open, and one of a phase that an interrupt cut short counts as not measured.

mod larger;
mod latency;
mod memory;
mod queue;
mod row;

pub use row::{Row, Verdict};

use crate::measure::RunResult;
use row::Numbers;

/// The whole table, as far as `results` fill it.
pub fn core_rows(results: &[RunResult]) -> Vec<Row> {
    let n = Numbers { results };
    let mut rows = memory::memory_rows(&n);
    rows.extend(memory::durability_rows(&n));
    rows.extend(larger::larger_rows(&n));
    rows.extend(latency::latency_rows(&n));
    rows.extend(latency::replay_rows(&n));
    rows.extend(queue::queue_rows(&n));
    rows.retain(|row| row.ours != "-");
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Outcome, PhaseResult};

    fn run(scenario: &str, contender: &str, phase: &str, done: u64, seconds: f64) -> RunResult {
        RunResult {
            scenario: scenario.to_owned(),
            contender: contender.to_owned(),
            repeat: 0,
            budget: 0,
            memory_limit: None,
            durability: String::new(),
            page_cache: String::new(),
            seed: 0,
            outcome: Outcome::Finished,
            phases: vec![PhaseResult {
                name: phase.to_owned(),
                done,
                seconds,
                ..PhaseResult::default()
            }],
            parameters: Default::default(),
        }
    }

    fn verdict(rows: &[Row], work: &str, peer: &str) -> Verdict {
        rows.iter()
            .find(|r| r.work == work && r.against.starts_with(peer))
            .unwrap()
            .verdict
    }

    #[test]
    fn a_ratio_below_its_goal_is_missed_and_one_without_a_peer_is_open() {
        let results = vec![
            run("memory-1t", "indexy", "get", 100, 1.0),
            run("memory-1t", "congee", "get", 120, 1.0),
            run("memory-1t", "btreemap", "get", 99, 1.0),
        ];
        let rows = core_rows(&results);
        assert_eq!(verdict(&rows, "get, 1 thread", "congee"), Verdict::Met);
        assert_eq!(verdict(&rows, "get, 1 thread", "btreemap"), Verdict::Missed);
        assert_eq!(verdict(&rows, "get, 1 thread", "skiplist"), Verdict::Open);
    }

    #[test]
    fn a_phase_that_an_interrupt_cut_short_does_not_count_and_one_that_its_cap_ended_does() {
        let mut results = vec![
            run("memory-1t", "indexy", "get", 100, 1.0),
            run("memory-1t", "indexy", "get", 2, 1.0),
            run("memory-1t", "congee", "get", 100, 1.0),
        ];
        let row = |results: &[RunResult]| {
            let rows = core_rows(results);
            let get = rows.into_iter().find(|r| r.work == "get, 1 thread");
            get.map(|r| (r.measured, r.verdict))
        };
        results[1].phases[0].partial = true;
        let both = row(&results).unwrap();
        assert_eq!(both, ("0.51 x".to_owned(), Verdict::Missed));
        results[1].phases[0].interrupted = true;
        let first = row(&results).unwrap();
        assert_eq!(first, ("1.00 x".to_owned(), Verdict::Met));
        results[0].phases[0].interrupted = true;
        assert_eq!(row(&results), None);
    }

    #[test]
    fn repetitions_count_by_their_median() {
        let mut results: Vec<_> = [1.0, 10.0, 2.0]
            .map(|s| run("memory-1t", "indexy", "get", 100, s))
            .into();
        results.push(run("memory-1t", "congee", "get", 100, 2.0));
        let rows = core_rows(&results);
        let row = rows.iter().find(|r| r.work == "get, 1 thread").unwrap();
        assert_eq!(row.measured, "1.00 x");
    }
}
