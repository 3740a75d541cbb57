//! What a miss brings into X: which of the values that reads find in Y alone are loaded.
//!
//! Asked when a value was found in Y and would be loaded, so never on a hit, for an absent key, for
//! a value that X does not take, or by a scan, which loads nothing. Writes do not ask.
//!
//! - `sketch` counts the misses of keys, one for all trees of a database: its bytes are taken from
//!   the budget once, a small part of it.
//! - `threshold` says, for each tree, which counts are high.
//!
//! Threads: any. What was chosen is replaced as a whole; a read beside that goes by either.
//! Nothing here is stored.

#![forbid(unsafe_code)]

pub(super) mod sketch;
mod threshold;

use super::policies::Admission;
use crate::{
    mem::budget::{Budget, Holder},
    x::Order,
};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use sketch::Sketch;
use std::sync::{Arc, Weak};
use threshold::Threshold;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The counts of misses take this part of the budget,
const BUDGET_DIVISOR: usize = 128;
/// and no more than so many bytes.
const MOST_BYTES: usize = 8 << 20;

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Read,
    /// The key is about to be written, unless its value says otherwise.
    Update,
    /// The key is about to go: nobody asks, and nothing is loaded.
    Removal,
    /// The same of a key that a scan in this order has just found to be the first.
    RemovalOfFirst(Order),
}

impl Purpose {
    pub(crate) fn is_removal(self) -> bool {
        matches!(self, Self::Removal | Self::RemovalOfFirst(_))
    }
}

/// What one tree loads. Begins with [`Admission::Always`].
#[derive(Debug, Default)]
pub(crate) struct Misses {
    chosen: ArcSwap<Chosen>,
}

#[derive(Debug, Default)]
struct Chosen {
    admission: Admission,
    /// With [`Admission::Top`].
    top: Option<Top>,
}

impl Chosen {
    fn without_counts(&self) -> Self {
        Self {
            admission: self.admission,
            top: None,
        }
    }

    fn new(admission: Admission, counts: &MissCounts) -> Self {
        let top = match admission {
            Admission::Top { percent } => Some(Top {
                counts: counts.get(),
                threshold: Threshold::new(percent),
            }),
            Admission::Always | Admission::OnUpdate | Admission::Never => None,
        };
        Self { admission, top }
    }
}

#[derive(Debug)]
struct Top {
    counts: Arc<Counts>,
    threshold: Threshold,
}

impl Misses {
    pub(crate) fn admission(&self) -> Admission {
        self.chosen.load().admission
    }

    /// From now on `admission` says what is loaded. Cost: where counts are needed and no other tree
    /// has them yet, an allocation of their bytes.
    pub(crate) fn choose(&self, admission: Admission, counts: &MissCounts) {
        self.chosen.store(Arc::new(Chosen::new(admission, counts)));
        // The budget may have changed since they were made, and whoever changed it may have looked
        // here before they were stored.
        self.follow_budget(counts);
    }

    /// Nobody reads the tree any more: its counts go, what was chosen stays.
    pub(crate) fn give_back(&self) {
        self.chosen.rcu(|chosen| chosen.without_counts());
    }

    /// Counts as large as they are to be now. What is loaded stays as whoever chooses beside this
    /// says.
    pub(crate) fn follow_budget(&self, counts: &MissCounts) {
        if self.chosen.load().top.is_some() {
            self.chosen.rcu(|chosen| match chosen.top {
                Some(_) => Chosen::new(chosen.admission, counts),
                None => chosen.without_counts(),
            });
        }
    }

    /// Whether `key` of `tree`, which was found in Y alone, is loaded. Cost: nothing to speak of; a
    /// hash and some cache misses with [`Admission::Top`].
    pub(crate) fn admit(&self, tree: u32, key: &[u8], purpose: Purpose) -> bool {
        let chosen = self.chosen.load();
        match chosen.admission {
            Admission::Always => true,
            Admission::OnUpdate => purpose == Purpose::Update,
            Admission::Never => false,
            Admission::Top { .. } => chosen.top.as_ref().is_none_or(|top| {
                let hash = xxh3_64_with_seed(key, tree.into());
                top.threshold.passes(top.counts.sketch.count(hash))
            }),
        }
    }
}

/// The counts of a database. They are there while a tree needs them.
#[derive(Debug)]
pub(crate) struct MissCounts {
    budget: Arc<Budget>,
    counts: Mutex<Weak<Counts>>,
}

/// A sketch whose bytes are taken from the budget.
#[derive(Debug)]
struct Counts {
    budget: Arc<Budget>,
    /// The bytes that the budget allowed.
    asked: usize,
    sketch: Sketch,
}

impl Drop for Counts {
    fn drop(&mut self) {
        self.budget.give(Holder::Transfer, self.sketch.bytes());
    }
}

impl MissCounts {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self {
            budget,
            counts: Mutex::default(),
        }
    }

    /// The most that counts take of a budget of `limit` bytes.
    pub(crate) fn most_bytes(limit: usize) -> usize {
        (limit / BUDGET_DIVISOR).min(MOST_BYTES)
    }

    /// What they take now.
    pub(crate) fn bytes(&self) -> usize {
        let counts = self.counts.lock().upgrade();
        counts.map_or(0, |counts| counts.sketch.bytes())
    }

    /// The counts, made anew where nobody has them, or where the budget has changed.
    fn get(&self) -> Arc<Counts> {
        let most = Self::most_bytes(self.budget.limit());
        let mut known = self.counts.lock();
        let fitting = known.upgrade().filter(|counts| counts.asked == most);
        fitting.unwrap_or_else(|| {
            let sketch = Sketch::new(most);
            self.budget.take(Holder::Transfer, sketch.bytes());
            let counts = Arc::new(Counts {
                budget: Arc::clone(&self.budget),
                asked: most,
                sketch,
            });
            *known = Arc::downgrade(&counts);
            counts
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    const LIMIT: usize = 8 << 20;

    fn counts() -> (Arc<Budget>, MissCounts) {
        let budget = Arc::new(Budget::new(LIMIT));
        (budget.clone(), MissCounts::new(budget))
    }

    fn admitted(misses: &Misses, purpose: Purpose) -> bool {
        misses.admit(1, b"key", purpose)
    }

    /// What was chosen stays chosen, whoever changes the budget at the same time.
    #[test]
    fn a_change_of_the_budget_takes_no_choice_back() {
        let (misses, (_, counts)) = (Misses::default(), counts());
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                while !done.load(Relaxed) {
                    misses.follow_budget(&counts);
                }
            });
            let kinds = [
                Admission::Never,
                Admission::Always,
                Admission::Top { percent: 5 },
                Admission::OnUpdate,
            ];
            let as_chosen = |n: &usize| {
                let admission = kinds[n % 4];
                misses.choose(admission, &counts);
                misses.admission() == admission
            };
            let all = (0..200_000).filter(as_chosen).count();
            done.store(true, Relaxed);
            assert_eq!(all, 200_000);
        });
    }

    #[test]
    fn reads_and_updates_by_policy() {
        let (_, counts) = counts();
        let misses = Misses::default();
        assert_eq!(misses.admission(), Admission::Always);
        for (admission, read, update) in [
            (Admission::Always, true, true),
            (Admission::Top { percent: 100 }, true, true),
            (Admission::OnUpdate, false, true),
            (Admission::Never, false, false),
        ] {
            misses.choose(admission, &counts);
            assert_eq!(misses.admission(), admission);
            assert_eq!(admitted(&misses, Purpose::Read), read, "{admission:?}");
            assert_eq!(admitted(&misses, Purpose::Update), update, "{admission:?}");
        }
    }

    #[test]
    fn a_key_that_is_missed_again_and_again_is_admitted() {
        let (_, counts) = counts();
        let misses = Misses::default();
        misses.choose(Admission::Top { percent: 5 }, &counts);
        let mut first = 0;
        for n in 0..20_000u32 {
            first += u32::from(misses.admit(1, &n.to_be_bytes(), Purpose::Read));
            if n % 100 == 0 {
                misses.admit(1, b"again", Purpose::Read);
            }
        }
        assert!(misses.admit(1, b"again", Purpose::Read));
        assert!((500..1500).contains(&first), "{first} of 20,000");
        // Of other trees it is another key.
        let others = (2..102).filter(|&tree| misses.admit(tree, b"again", Purpose::Read));
        assert!(others.count() < 20);
    }

    #[test]
    fn all_trees_share_one_sketch_and_the_budget_knows_it() {
        let (budget, counts) = counts();
        let held = || budget.held(Holder::Transfer);
        let trees: Vec<Misses> = (0..10).map(|_| Misses::default()).collect();
        assert_eq!((held(), counts.bytes()), (0, 0));
        for (tree, percent) in trees.iter().zip(1..) {
            tree.choose(Admission::Top { percent }, &counts);
        }
        assert_eq!(held(), counts.bytes());
        assert!(held() > LIMIT / 256 && held() <= LIMIT / 128, "{}", held());
        // With another budget they are made anew.
        budget.set_limit(LIMIT / 4);
        for tree in &trees {
            tree.choose(tree.admission(), &counts);
        }
        assert_eq!(held(), counts.bytes());
        assert!(held() <= LIMIT / 512);
        trees[0].choose(Admission::Never, &counts);
        assert!(held() > 0);
        drop(trees);
        assert_eq!((held(), counts.bytes()), (0, 0));
        assert_eq!(MissCounts::most_bytes(1 << 40), MOST_BYTES);
    }

    /// A handle of a tree that was dropped holds nothing of the budget.
    #[test]
    fn what_a_tree_gave_back_no_change_of_the_budget_brings_again() {
        let (budget, counts) = counts();
        let misses = Misses::default();
        let top = Admission::Top { percent: 5 };
        misses.choose(top, &counts);
        assert!(budget.held(Holder::Transfer) > 0);
        misses.give_back();
        budget.set_limit(LIMIT * 2);
        misses.follow_budget(&counts);
        assert_eq!((budget.held(Holder::Transfer), counts.bytes()), (0, 0));
        assert_eq!(misses.admission(), top);
        assert!(admitted(&misses, Purpose::Read));
    }
}
