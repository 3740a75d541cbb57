//! Which regions to release, by the policy that was chosen: a pure function of a snapshot.
//!
//! Each policy names regions whose releasable bytes reach the target, or all of them. Not here:
//! Algorithm 1 (`algorithm1.rs`), cutting (`cut.rs`).

#![forbid(unsafe_code)]

use super::algorithm1::{self, Candidate};
use crate::framework::{policies::Release, regions::Times};

/// A region, and when things happened to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Aged {
    pub region: Candidate,
    pub times: Times,
}

/// What a policy chose.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Chosen {
    /// In the order in which to cut them.
    pub regions: Vec<Candidate>,
    /// The first region of each that the hand of [`Release::Clock`] went over, and spared.
    pub passed: Vec<usize>,
}

/// Chooses what to release of `regions` (in the order of keys). `seed`: for [`Release::Random`].
/// Cost: of Algorithm 1, or a sort.
pub(crate) fn choose(policy: Release, regions: Vec<Aged>, target_bytes: u64, seed: u64) -> Chosen {
    let by = |key: &dyn Fn(&Aged) -> (u64, u64)| {
        let mut sorted = regions.clone();
        // Stable: of equals in the order of keys.
        sorted.sort_by_key(key);
        let sorted = sorted.into_iter().map(|aged| aged.region);
        Chosen {
            regions: until(sorted, target_bytes),
            passed: Vec::new(),
        }
    };
    match policy {
        Release::AccessDensity => {
            let regions = regions.into_iter().map(|aged| aged.region).collect();
            let tree = algorithm1::build(regions);
            Chosen {
                regions: tree.map_or_else(Vec::new, |t| algorithm1::select(t, target_bytes)),
                passed: Vec::new(),
            }
        }
        Release::Coldest => by(&|aged| (density(&aged.region), 0)),
        Release::Lru => by(&|aged| (aged.times.used, 0)),
        Release::Fifo => by(&|aged| (aged.times.cut, 0)),
        Release::Random => by(&|aged| (mixed(seed ^ aged.region.first as u64), 0)),
        Release::Clock => clock(regions, target_bytes),
    }
}

/// The hand goes from the region that it passed longest ago on. What was accessed since is passed,
/// the rest is taken; what is passed is taken in a second round, if the rest is not enough.
fn clock(mut regions: Vec<Aged>, target_bytes: u64) -> Chosen {
    regions.sort_by_key(|aged| aged.times.passed);
    let (mut taken, mut passed) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for aged in regions {
        if bytes >= target_bytes {
            break;
        }
        if aged.times.used > aged.times.passed {
            passed.push(aged.region);
        } else {
            bytes += aged.region.bytes;
            taken.push(aged.region);
        }
    }
    let over = passed.iter().map(|region| region.first).collect();
    let rest = until(passed.into_iter(), target_bytes.saturating_sub(bytes));
    taken.extend(rest);
    Chosen {
        regions: taken,
        passed: over,
    }
}

/// The first of `regions` until they reach the target.
fn until(regions: impl Iterator<Item = Candidate>, target_bytes: u64) -> Vec<Candidate> {
    let mut bytes = 0;
    regions
        .take_while(|region| {
            let more = bytes < target_bytes;
            bytes += region.bytes;
            more
        })
        .collect()
}

/// Accesses for 2^16 keys.
fn density(region: &Candidate) -> u64 {
    (region.accesses << 16)
        .checked_div(region.keys)
        .unwrap_or(0)
}

/// The finalizer of SplitMix64.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Release; 6] = [
        Release::AccessDensity,
        Release::Coldest,
        Release::Clock,
        Release::Lru,
        Release::Fifo,
        Release::Random,
    ];

    fn region(first: usize, accesses: u64, keys: u64, bytes: u64, times: Times) -> Aged {
        let region = Candidate {
            accesses,
            keys,
            bytes,
            first,
            len: 1,
            children: vec![],
        };
        Aged { region, times }
    }

    fn at(used: u64, passed: u64, cut: u64) -> Times {
        Times { used, passed, cut }
    }

    fn ids(chosen: &Chosen) -> Vec<usize> {
        let regions = chosen.regions.iter();
        regions.flat_map(|c| c.first..c.first + c.len).collect()
    }

    /// Four regions of 100 bytes that each policy takes in another order. The first is read most,
    /// the third was used longest ago, the last was cut longest ago; the hand passed the first
    /// longest ago, and that and the last were used since.
    fn four() -> Vec<Aged> {
        vec![
            region(0, 90, 10, 100, at(50, 10, 30)),
            region(1, 10, 10, 100, at(60, 70, 40)),
            region(2, 40, 10, 100, at(20, 80, 20)),
            region(3, 20, 10, 100, at(40, 30, 10)),
        ]
    }

    #[test]
    fn each_policy_has_an_order_of_its_own() {
        let orders = [
            (Release::Coldest, [1, 3, 2, 0]),
            (Release::Lru, [2, 3, 0, 1]),
            (Release::Fifo, [3, 2, 0, 1]),
            (Release::Clock, [1, 2, 0, 3]),
            (Release::Random, [2, 0, 3, 1]),
        ];
        for (policy, order) in orders {
            assert_eq!(ids(&choose(policy, four(), 400, 1)), order, "{policy:?}");
            assert_eq!(ids(&choose(policy, four(), 101, 1)), order[..2]);
            assert_eq!(ids(&choose(policy, four(), 100, 1)), order[..1]);
        }
        // As one subtree.
        let density = choose(Release::AccessDensity, four(), 400, 1);
        assert_eq!(
            (density.regions.len(), ids(&density)),
            (1, vec![0, 1, 2, 3])
        );
        let random = |seed| ids(&choose(Release::Random, four(), 100, seed));
        assert_eq!(random(5), random(5));
        assert!((0..50).any(|seed| random(seed) != random(5)));
    }

    #[test]
    fn the_hand_spares_what_was_used_since_and_goes_round() {
        let regions = |passed: [u64; 3]| {
            let used = [50, 5, 50];
            (0..3)
                .map(|i| region(i, 1, 1, 100, at(used[i], passed[i], 0)))
                .collect::<Vec<_>>()
        };
        let first = choose(Release::Clock, regions([10; 3]), 100, 0);
        assert_eq!((ids(&first), first.passed), (vec![1], vec![0]));
        // It goes on behind what it passed.
        let second = choose(Release::Clock, regions([60, 10, 10]), 200, 0);
        assert_eq!((ids(&second), second.passed), (vec![1, 0], vec![2]));
        // Everything is in use: the first that were passed.
        let third = choose(Release::Clock, regions([4; 3]), 200, 0);
        assert_eq!((ids(&third), third.passed), (vec![0, 1], vec![0, 1, 2]));
    }

    #[test]
    fn nothing_is_chosen_of_nothing() {
        for policy in ALL {
            assert_eq!(
                choose(policy, vec![], 10, 0),
                Chosen::default(),
                "{policy:?}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn every_policy_reaches_the_target_or_takes_all_and_nothing_twice(
            cells in proptest::collection::vec(
                (0u64..1000, 0u64..1000, 0u64..10_000, 0u64..50, 0u64..50, 0u64..50),
                0..150,
            ),
            target in 1u64..500_000,
            seed in 0u64..100,
        ) {
            let all: u64 = cells.iter().map(|c| c.2).sum();
            for policy in ALL {
                let numbered = cells.iter().enumerate();
                let regions = numbered
                    .map(|(i, &(a, k, b, u, p, c))| region(i, a, k, b, at(u, p, c)))
                    .collect();
                let mut chosen = ids(&choose(policy, regions, target, seed));
                let bytes: u64 = chosen.iter().map(|&i| cells[i].2).sum();
                proptest::prop_assert!(bytes >= target.min(all), "{policy:?}");
                let n = chosen.len();
                chosen.sort_unstable();
                chosen.dedup();
                proptest::prop_assert_eq!(chosen.len(), n, "{:?}", policy);
            }
        }
    }
}
