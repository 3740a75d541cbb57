//! Algorithm 1: which regions to release, as a pure function of a snapshot.
//!
//! Source: IndeXY II-C, Algorithm 1. Input is a tree of regions with access counts, keys and
//! bytes; output is a set of disjoint subtrees of low access density whose releasable bytes reach
//! the target. Differs from the printed algorithm, which loops for ever in two cases:
//! - all subtrees together are smaller than the target: everything is selected;
//! - the list overshoots the target and nothing in it can be split: the overshoot is taken.
//!
//! No threads, no I/O. Not here: cutting (`cut.rs`), the table that the snapshot is made of
//! (`regions/table.rs`).

#![forbid(unsafe_code)]

/// Children's densities may differ by this part of the parent's before the parent is
/// split in preference to a larger, even one (the paper's 20 %).
pub(crate) const VARIATION_THRESHOLD: f64 = 0.20;

/// A selection may exceed its target by this part of it (the paper's "small margin").
pub(crate) const MARGIN: f64 = 0.10;

/// A subtree of the region tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    /// Sampled accesses.
    pub accesses: u64,
    /// Keys in X.
    pub keys: u64,
    /// Bytes that releasing it would free.
    pub bytes: u64,
    /// Regions `first..first + len` of the table that it covers, those without a candidate of their
    /// own included.
    pub first: usize,
    pub len: usize,
    /// Empty for a region itself.
    pub children: Vec<Candidate>,
}

impl Candidate {
    /// Accesses per key; 0 for an empty subtree, so that it goes first and costs nothing.
    fn density(&self) -> f64 {
        if self.keys == 0 {
            0.0
        } else {
            self.accesses as f64 / self.keys as f64
        }
    }

    /// 0 for a region; one more for each level of the tree below.
    pub(crate) fn level(&self) -> usize {
        self.children.first().map_or(0, |child| child.level() + 1)
    }

    /// Gap between the highest and the lowest density of the children, as a part of its own.
    fn variation(&self) -> f64 {
        let mut low = f64::INFINITY;
        let mut high = f64::NEG_INFINITY;
        for child in &self.children {
            low = low.min(child.density());
            high = high.max(child.density());
        }
        let own = self.density();
        if self.children.len() < 2 || own == 0.0 {
            0.0
        } else {
            (high - low) / own
        }
    }
}

/// Selects what to release: subtrees in order of increasing density.
///
/// `target_bytes`: what must become free. Cost: O(n^2) in the number of candidates on the list, a
/// few hundred.
pub(crate) fn select(root: Candidate, target_bytes: u64) -> Vec<Candidate> {
    let margin = (target_bytes as f64 * MARGIN) as u64;
    let mut list = vec![root];
    loop {
        let mut total = 0;
        let mut overshoot_at = None;
        for (pos, node) in list.iter().enumerate() {
            total += node.bytes;
            if total >= target_bytes {
                if total <= target_bytes + margin {
                    list.truncate(pos + 1);
                    return list;
                }
                overshoot_at = Some(pos);
                break;
            }
        }
        // Exit 1: everything together is too small.
        let Some(overshoot_at) = overshoot_at else {
            return list;
        };
        // Exit 2: nothing can be split any more.
        let Some(at) = split_position(&list) else {
            list.truncate(overshoot_at + 1);
            return list;
        };
        let node = list.remove(at);
        for child in node.children {
            let pos = list.partition_point(|n| n.density() <= child.density());
            list.insert(pos, child);
        }
    }
}

/// The largest splittable node with uneven children, else the largest splittable one.
fn split_position(list: &[Candidate]) -> Option<usize> {
    let mut by_size: Vec<usize> = (0..list.len())
        .filter(|&i| !list[i].children.is_empty())
        .collect();
    by_size.sort_by_key(|&i| std::cmp::Reverse(list[i].bytes));
    let uneven = by_size
        .iter()
        .copied()
        .find(|&i| list[i].variation() > VARIATION_THRESHOLD);
    uneven.or(by_size.first().copied())
}

/// Fan-out of the tree that [`build`] makes over a flat table.
const FAN_OUT: usize = 16;

/// Builds the region tree over a flat table in key order: each level joins `FAN_OUT` neighbours.
pub(crate) fn build(regions: Vec<Candidate>) -> Option<Candidate> {
    let mut level = regions;
    if level.is_empty() {
        return None;
    }
    while level.len() > 1 {
        let mut upper = Vec::with_capacity(level.len().div_ceil(FAN_OUT));
        let mut rest = level.into_iter().peekable();
        while rest.peek().is_some() {
            let children: Vec<Candidate> = rest.by_ref().take(FAN_OUT).collect();
            upper.push(join(children));
        }
        level = upper;
    }
    level.pop()
}

fn join(children: Vec<Candidate>) -> Candidate {
    let first = children.first().map_or(0, |c| c.first);
    let end = children.last().map_or(0, |c| c.first + c.len);
    Candidate {
        accesses: children.iter().map(|c| c.accesses).sum(),
        keys: children.iter().map(|c| c.keys).sum(),
        bytes: children.iter().map(|c| c.bytes).sum(),
        first,
        len: end - first,
        children,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(first: usize, accesses: u64, keys: u64, bytes: u64) -> Candidate {
        Candidate {
            accesses,
            keys,
            bytes,
            first,
            len: 1,
            children: vec![],
        }
    }

    fn ids(selected: &[Candidate]) -> Vec<usize> {
        let mut ids: Vec<usize> = selected
            .iter()
            .flat_map(|c| c.first..c.first + c.len)
            .collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn takes_the_coldest_regions() {
        let regions = (0..64)
            .map(|i| region(i, if i < 8 { 1 } else { 1000 }, 100, 1000))
            .collect();
        let selected = select(build(regions).unwrap(), 8000);
        assert_eq!(ids(&selected), (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn prefers_a_large_subtree_of_even_density_over_its_parts() {
        // The first 16 regions are all equally cold: one subtree, not sixteen.
        let regions = (0..32)
            .map(|i| region(i, if i < 16 { 10 } else { 1000 }, 100, 1000))
            .collect();
        let selected = select(build(regions).unwrap(), 16_000);
        assert_eq!(selected.len(), 1);
        assert_eq!((selected[0].first, selected[0].len), (0, 16));
    }

    #[test]
    fn a_large_region_goes_before_a_small_one_with_the_same_accesses() {
        let regions = vec![region(0, 100, 10, 2000), region(1, 100, 1000, 10_000)];
        assert_eq!(ids(&select(build(regions).unwrap(), 9_500)), [1]);
    }

    #[test]
    fn ends_when_everything_is_smaller_than_the_target() {
        let regions = (0..20).map(|i| region(i, i as u64, 10, 10)).collect();
        assert_eq!(ids(&select(build(regions).unwrap(), 1 << 40)).len(), 20);
    }

    #[test]
    fn ends_when_nothing_can_be_split() {
        let selected = select(region(0, 5, 10, 1_000_000), 10);
        assert_eq!(ids(&selected), [0]);
        let two = build(vec![
            region(0, 9, 10, 1_000_000),
            region(1, 5, 10, 1_000_000),
        ])
        .unwrap();
        assert_eq!(ids(&select(two, 10)), [1]);
    }

    #[test]
    fn a_subtree_reaches_from_its_first_region_to_its_last() {
        let regions = (0..20).map(|i| region(3 * i, 1, 10, 10)).collect();
        let root = build(regions).unwrap();
        assert_eq!((root.first, root.len), (0, 3 * 19 + 1));
    }

    #[test]
    fn empty_regions_cost_nothing_and_end() {
        let regions = (0..40).map(|i| region(i, 0, 0, 0)).collect();
        let _ = select(build(regions).unwrap(), 100);
        assert!(build(vec![]).is_none());
    }

    proptest::proptest! {
        #[test]
        fn selection_reaches_the_target_or_takes_all_and_never_overlaps(
            cells in proptest::collection::vec((0u64..1000, 0u64..1000, 0u64..10_000), 1..200),
            target in 1u64..1_000_000,
        ) {
            let n = cells.len();
            let all: u64 = cells.iter().map(|c| c.2).sum();
            let numbered = cells.iter().enumerate();
            let regions = numbered.map(|(i, &(a, k, b))| region(i, a, k, b)).collect();
            let selected = select(build(regions).unwrap(), target);
            let ids = ids(&selected);
            let mut unique = ids.clone();
            unique.dedup();
            proptest::prop_assert_eq!(&ids, &unique);
            let bytes: u64 = ids.iter().map(|&i| cells[i].2).sum();
            proptest::prop_assert!(bytes >= target.min(all));
            proptest::prop_assert!(ids.len() <= n);
        }
    }
}
