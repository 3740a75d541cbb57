//! Presets, names, and jobs that figures share.

use super::*;
use crate::harness::{Job, Turnover};

#[test]
fn phases_are_capped_and_smoke_does_not_wait() {
    let registry = crate::registry::Registry::with_own();
    let all: Vec<&About> = registry.iter().filter(|a| a.name == "indexy").collect();
    let jobs = |preset: Preset| -> Vec<crate::harness::Job> {
        let (sizes, mut plan) = (preset.sizes(1), Plan::default());
        FIGURES
            .iter()
            .for_each(|f| f.add_jobs(&sizes, &all, &mut plan));
        plan.jobs().cloned().collect()
    };
    let seconds = |jobs: &[crate::harness::Job]| -> f64 {
        let phases = jobs.iter().flat_map(|job| &job.phases);
        let uncapped = [Work::Settle, Work::Reopen];
        phases
            .filter(|p| !uncapped.contains(&p.work) && p.name != "check")
            .map(|p| {
                assert!(p.max_seconds > 0.0, "{} is not capped", p.name);
                p.most_seconds()
            })
            .sum()
    };
    let smoke = jobs(Preset::Smoke);
    let waits = |job: &crate::harness::Job| {
        let settles = job.phases.iter().map(|p| p.work == Work::Settle);
        settles.rev().skip(1).any(|settle| settle)
    };
    assert!(!smoke.iter().any(waits));
    // Three of ours in two minutes; loads end long before their cap.
    let most = seconds(&smoke);
    assert!(3.0 * most < 180.0, "{most} s");
    let minutes = |preset| seconds(&jobs(preset)) / 60.0;
    let most = minutes(Preset::Laptop);
    assert!(most < 15.0, "{most} minutes for one contender");
    let most = minutes(Preset::Evening);
    assert!(most < 120.0, "{most} minutes for one contender");
}

#[test]
fn figures_of_one_load_share_a_job() {
    let registry = crate::registry::Registry::with_own();
    let all: Vec<&About> = registry.iter().filter(|a| a.name == "indexy").collect();
    let sizes = Preset::Laptop.sizes(1);
    let jobs = |ids: &[&str]| {
        let mut plan = Plan::default();
        for figure in ids.iter().flat_map(|id| find(id)) {
            figure.add_jobs(&sizes, &all, &mut plan);
        }
        plan.jobs().map(|job| job.phases.len()).collect::<Vec<_>>()
    };
    let (five, six, both) = (jobs(&["fig5"]), jobs(&["fig6"]), jobs(&["fig5", "fig6"]));
    assert_eq!((five.len(), six.len(), both.len()), (1, 1, 1));
    // Both begin with the load and its settling.
    assert_eq!(both[0], five[0] + six[0] - 2);
}

#[test]
fn figures_are_found_by_their_whole_name_or_their_number() {
    assert_eq!(find("fig3").len(), 2);
    assert_eq!(find("fig5").len(), 1);
    assert!(find("fig").is_empty() && find("fig12").is_empty());
}

/// Those of two contenders.
fn evening(ids: &[&str]) -> Vec<Job> {
    let registry = crate::registry::Registry::with_own();
    let named = |about: &&About| ["indexy", "bplus-alone"].contains(&about.name);
    let all: Vec<&About> = registry.iter().filter(named).collect();
    let (sizes, mut plan) = (Preset::Evening.sizes(1), Plan::default());
    for figure in ids.iter().flat_map(|id| find(id)) {
        figure.add_jobs(&sizes, &all, &mut plan);
    }
    plan.jobs().cloned().collect()
}

/// What was in memory at the start is gone, or the phase has taken twelve times its time.
#[test]
fn what_an_evening_measures_goes_on_for_twenty_releases() {
    let mut measured = 0;
    for job in evening(&["fig5", "fig6", "fig7", "fig8"]) {
        for phase in &job.phases {
            let is_run = matches!(phase.work, Work::YcsbRun { .. });
            let wanted = (is_run || phase.x.is_some()).then_some(Turnover {
                releases: 20,
                most_seconds: 12.0 * phase.max_seconds,
            });
            assert_eq!(phase.turnover, wanted, "{} {}", job.scenario, phase.name);
            measured += usize::from(wanted.is_some());
        }
    }
    assert!(measured > 60, "{measured}");
}

#[test]
fn a_working_set_of_an_evening_is_touched_before_it_is_measured() {
    for job in evening(&["fig5"]) {
        let pairs = job.phases.windows(2);
        let sets: Vec<_> = pairs.filter(|p| p[1].x.is_some()).collect();
        assert!(sets.len() > 4, "{}", job.contender);
        for pair in sets {
            match (&pair[0].work, &pair[1].work) {
                (Work::Touch { pick: touched }, Work::Read { pick, .. }) => {
                    assert_eq!(touched, pick);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Upwards, and downwards from a load of its own; before each exponent keys are drawn by it.
#[test]
fn exponents_of_an_evening_are_read_in_both_orders() {
    let jobs = evening(&["fig6"]);
    for who in ["indexy", "bplus-alone"] {
        let exponents = |scenario: &str| -> Vec<f64> {
            let own = |job: &&Job| job.contender == who && job.scenario == scenario;
            let job = jobs.iter().find(own).unwrap();
            let (load, reads) = job.phases.split_at(2);
            assert!(load.iter().all(|phase| phase.is_load()));
            assert!(!reads.iter().any(|phase| phase.is_load()));
            let pairs = reads.windows(2);
            let measured = pairs.filter(|pair| pair[1].name.starts_with("get-zipf-"));
            measured
                .map(|pair| {
                    assert_eq!((&pair[0].work, pair[0].x), (&pair[1].work, None));
                    pair[1].x.unwrap()
                })
                .collect()
        };
        let (up, mut down) = (exponents("reads"), exponents("reads-down"));
        assert!(up.len() > 4 && up.is_sorted(), "{up:?}");
        down.reverse();
        assert_eq!(up, down);
    }
}
