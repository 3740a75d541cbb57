//! A release: chooses regions over all trees together (`order.rs`), and has X cut them.
//!
//! Source: IndeXY II-C. Inside a region the entries referenced since the last cut get a second
//! chance (`docs/decisions/0001-ranges-and-packed-leaves.md`) as long as others suffice. Threads:
//! the releaser, alone. Takes no lock of the framework; a cut recognizes what is in flight (I4).
//! Not here: cleaning. When too little is clean the caller asks the cleaner (`step.rs`).

#![forbid(unsafe_code)]

use super::{
    algorithm1::Candidate,
    order::{self, Aged},
};
use crate::{
    events,
    framework::{
        counters,
        regions::{
            Table, boundaries, sample,
            survey::{Precision, RegionStats},
        },
        shared::Shared,
        tree::Joined,
    },
    x::IndexX,
};
use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

/// Rounds of choosing and cutting; in the last ones referenced entries go too.
const ROUNDS: usize = 4;
const SPARING_ROUNDS: usize = 2;

/// Where so small a part of what is needed is clean, it is cheaper to have more cleaned than to
/// measure all of X to find the rest.
const WORTHWHILE_DIVISOR: u64 = 8;

/// One release waits no longer than this for readers.
const READERS_LIMIT: Duration = Duration::from_secs(1);

/// How much a release does to find something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Stops where what is known of the regions says that nothing is clean.
    Usual,
    /// Measures everything, and chooses regions anew, before it says so. What is clean is found.
    Exhaustive,
}

/// One tree as a release sees it.
struct View<'a> {
    tree: &'a Joined,
    table: Arc<Table>,
    stats: Vec<RegionStats>,
}

/// Frees about `need_bytes` of X; returns what it freed. Stops early when the rest is expensive.
pub(crate) fn release(
    trees: &[Arc<Joined>],
    shared: &Shared,
    need_bytes: u64,
    effort: Effort,
) -> u64 {
    let mut freed = 0;
    let readers_deadline = Instant::now() + READERS_LIMIT;
    for round in 0..ROUNDS {
        // What cost little to know was not enough: all of it, once.
        let precision = match (round, effort) {
            (1, _) | (0, Effort::Exhaustive) => Precision::Exact,
            _ => Precision::Rough,
        };
        let sparing = round < SPARING_ROUNDS;
        if !sparing && freed == 0 {
            // Something is clean, and not where it was counted: see `regions/survey.rs`.
            rechoose(trees);
        }
        let views = survey(trees, shared, precision);
        let regions = candidates(&views);
        if regions.is_empty() {
            match effort {
                Effort::Usual => break,
                Effort::Exhaustive => continue,
            }
        }
        let spare = sparing && shared.policies.second_chance;
        let need = need_bytes - freed;
        freed += cut_chosen(&views, shared, regions, need, spare, readers_deadline);
        if freed > 0 && freed >= need_bytes / WORTHWHILE_DIVISOR {
            break;
        }
    }
    if freed > 0 {
        trees.iter().for_each(|tree| tree.regions.decay());
        counters::add(&shared.counters.releases, 1);
    }
    counters::add(&shared.counters.released_bytes, freed);
    events::released(freed, need_bytes);
    freed
}

/// Cuts what the policy chooses of `regions`, until `need_bytes` are freed; returns how many were.
fn cut_chosen(
    views: &[View<'_>],
    shared: &Shared,
    regions: Vec<Aged>,
    need_bytes: u64,
    spare: bool,
    readers_deadline: Instant,
) -> u64 {
    let mut freed = 0;
    let seed = RandomState::new().build_hasher().finish();
    let chosen = order::choose(shared.policies.release, regions, need_bytes, seed);
    for at in chosen.passed {
        if let Some((view, i)) = find(views, at) {
            view.table.set_passed(i, sample::now());
        }
    }
    for chosen in chosen.regions {
        let levels = &shared.counters.released_by_level;
        if let Some(level) = levels.get(chosen.level()).or(levels.last()) {
            counters::add(level, 1);
        }
        for at in chosen.first..chosen.first + chosen.len {
            if freed < need_bytes {
                // I7: what is spared or dirty is copied, and what it was copied from may have to
                // wait for readers.
                shared.room.wait_for_readers(readers_deadline);
                freed += cut(views, at, shared, need_bytes - freed, spare);
                shared.room.announce_room();
            }
        }
    }
    freed
}

/// Sizes of all regions, with boundaries chosen (anew) where they do not fit.
fn survey<'a>(trees: &'a [Arc<Joined>], shared: &Shared, precision: Precision) -> Vec<View<'a>> {
    let too_large = boundaries::oversize_bytes(shared.budget.limit()) as u64;
    let mut releasable = 0;
    let mut views = Vec::new();
    for tree in trees {
        if tree.resident {
            continue;
        }
        let mut view = view(tree, precision);
        let oversize = |s: &RegionStats| s.bytes > too_large && s.leaves > 1;
        if !tree.regions.monitored() || view.stats.iter().any(oversize) {
            tree.try_rechoose_regions();
            view = self::view(tree, precision);
        }
        releasable += view.stats.iter().map(|s| s.bytes as usize).sum::<usize>();
        views.push(view);
    }
    let room = &shared.room;
    room.releasable_bytes.store(releasable, Ordering::Relaxed);
    views
}

/// Regions that begin where leaves do, so that each holds what is counted to it.
fn rechoose(trees: &[Arc<Joined>]) {
    for tree in trees.iter().filter(|tree| !tree.resident) {
        tree.try_rechoose_regions();
    }
}

fn view(tree: &Joined, precision: Precision) -> View<'_> {
    let (table, stats) = tree.survey(precision);
    View { tree, table, stats }
}

/// The regions of all trees; a region's number counts through the views. Regions in which no leaf
/// begins go with the one before: its last leaf may reach into them.
fn candidates(views: &[View<'_>]) -> Vec<Aged> {
    let mut first = 0;
    let mut regions: Vec<Aged> = Vec::new();
    for view in views {
        for (i, stats) in view.stats.iter().enumerate() {
            let bytes = stats.clean_bytes();
            if bytes > 0 {
                let region = Candidate {
                    accesses: view.table.accesses(i),
                    keys: stats.keys,
                    bytes,
                    first: first + i,
                    len: 1,
                    children: vec![],
                };
                let times = view.table.times(i);
                regions.push(Aged { region, times });
            } else if stats.keys == 0
                && let Some(Aged { region: before, .. }) = regions.last_mut()
                && before.first >= first
                && before.first + before.len == first + i
            {
                before.len += 1;
            }
        }
        first += view.table.len();
    }
    regions
}

/// The region numbered `at`: the view that it is of, and its index there.
fn find<'v, 't>(views: &'v [View<'t>], mut at: usize) -> Option<(&'v View<'t>, usize)> {
    for view in views {
        if at < view.table.len() {
            return Some((view, at));
        }
        at -= view.table.len();
    }
    None
}

/// Cuts the region numbered `at`.
fn cut(views: &[View<'_>], at: usize, shared: &Shared, enough: u64, spare: bool) -> u64 {
    let Some((view, at)) = find(views, at) else {
        return 0;
    };
    let (from, to) = view.table.bounds(at);
    let enough = usize::try_from(enough).unwrap_or(usize::MAX);
    // I7, as above.
    let spare = spare && shared.room.may_copy();
    let settled = view.tree.settled();
    let cut = view.tree.x.cut(from, to, settled, spare, enough);
    view.table.set_changed(at, true);
    view.table.set_cut(at, sample::now());
    let counters = &shared.counters;
    counters::add(&counters.released_regions, u64::from(cut.dropped > 0));
    counters::add(&counters.released_keys, cut.dropped as u64);
    counters::add(&counters.spared_keys, cut.spared as u64);
    cut.freed_bytes as u64
}
