//! Presets, names, and jobs that figures share.

use super::*;

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
                p.max_seconds
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
    assert!(most < 60.0, "{most} minutes for one contender");
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
