//! Keys that are warmed while they are written, removed and dropped (I3), and how much of them
//! (I7).

use super::*;
use crate::{framework::hot::Warmed, y::memory::Point};

fn warm(tree: &Joined, keys: &[&[u8]]) -> Warmed {
    tree.warm(keys).unwrap()
}

/// Y has been asked for `k`, and what it said has not come back yet; meanwhile things happen.
fn while_warming(tree: &Joined, y: &MemoryY, meanwhile: impl FnOnce()) -> Warmed {
    let pause = y.pause(Point::GetEnd);
    std::thread::scope(|s| {
        let warmer = s.spawn(|| warm(tree, &[b"k"]));
        pause.wait_reached();
        meanwhile();
        pause.resume();
        warmer.join().unwrap()
    })
}

#[test]
fn what_is_in_y_alone_is_brought_into_x() {
    Rig::each(|rig, tree, y| {
        put_away(tree, b"a", b"1");
        put_away(tree, b"c", b"3");
        put(tree, b"b", b"dirty");
        let reads = y.reads();
        let warmed = warm(tree, &[b"a", b"absent", b"b", b"c"]);
        assert_eq!((warmed.keys, warmed.full), (2, false), "{warmed:?}");
        let counters = &rig.shared.counters;
        let counted = counters.hits() + super::super::counters::read(&counters.misses);
        assert_eq!(counted, 0, "nobody has read");
        let warm_reads = y.reads();
        assert!(warm_reads >= reads + 2);
        for (key, value) in [(b"a", &b"1"[..]), (b"b", b"dirty"), (b"c", b"3")] {
            assert_eq!(get(tree, key), some(value));
        }
        assert_eq!(y.reads(), warm_reads, "all of them were hits");
        assert_eq!(warm(tree, &[b"a", b"c"]).keys, 0);
        assert_clean_means_equal(tree);
    });
}

#[test]
fn i3_warming_does_not_resurrect_what_was_overwritten_or_removed() {
    type Act = fn(&Joined);
    let acts: [(Act, Option<&[u8]>); 4] = [
        (|tree| put_away(tree, b"k", b"v2"), Some(b"v2")),
        (
            |tree| {
                put(tree, b"k", b"v2");
            },
            Some(b"v2"),
        ),
        (
            |tree| {
                remove(tree, b"k");
                clean(tree);
            },
            None,
        ),
        (|tree| remove(tree, b"k"), None),
    ];
    for (act, expected) in acts {
        Rig::each(|_, tree, y| {
            put_away(tree, b"k", b"v1");
            put_away(tree, b"other", b"v1");
            while_warming(tree, y, || act(tree));
            assert_eq!(get(tree, b"k"), expected.map(<[u8]>::to_vec));
            clean(tree);
            cut(tree);
            assert_eq!(get(tree, b"k"), expected.map(<[u8]>::to_vec));
            assert_clean_means_equal(tree);
        });
    }
}

#[test]
fn i7_warming_ends_at_the_low_mark() {
    const KEYS: u32 = 4000;
    for kind in X_KINDS {
        let rig = Rig::with_budget(kind, 4 << 20);
        let (tree, _) = rig.tree(TREE);
        let keys: Vec<_> = (0..KEYS).map(u32::to_be_bytes).collect();
        for keys in keys.chunks(500) {
            for key in keys {
                put(&tree, key, &[7; 2000]);
            }
            clean(&tree);
            cut(&tree);
        }
        rig.memory.collect();
        let mut full = false;
        for keys in keys.chunks(100) {
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            full |= warm(&tree, &keys).full;
        }
        let (low, used) = (rig.shared.room.watermarks().low, rig.shared.budget.used());
        // A model takes nothing of the budget.
        assert_eq!(full, kind != XKind::Model, "{kind:?}");
        // Memory is taken by the slab.
        assert!(used < low + (128 << 10), "{kind:?}: {used} of {low}");
        assert!(!full || used > low / 4 * 3, "{kind:?}: {used} of {low}");
    }
}

#[test]
fn a_tree_that_was_dropped_is_not_warmed() {
    Rig::each(|_, tree, y| {
        put_away(tree, b"k", b"v1");
        while_warming(tree, y, || tree.discard());
        assert_eq!(tree.x.stats().keys, 0);
        assert_eq!(warm(tree, &[b"k"]), Warmed::default());
        assert!(tree.hot_ranges().is_empty());
    });
}

/// Keys that were read often are told from those that were not, and the budget knows the counts.
#[test]
fn keys_go_by_sampled_reads() {
    let budget = Arc::new(Budget::new(BUDGET));
    let shared = Shared::new(budget.clone(), Arc::default());
    let before = budget.used();
    let shared = Arc::new(shared.with_heat());
    assert!(budget.used() > before && budget.used() <= before + BUDGET / 256);
    let x = AnyX::Art(Art::new(Memory::new(budget.clone()), false));
    let y = Arc::new(MemoryY::new());
    let tree = Joined::new(TREE, x, y, false, Lsn(0), shared.clone());
    for key in [b"cold", b"warm", b"hot "] {
        tree.apply(key, Some(b"value"));
    }
    for n in 0..20_000 {
        get(&tree, b"hot ");
        if n % 8 == 0 {
            get(&tree, b"warm");
        }
    }
    let mut tiers = BTreeMap::new();
    for range in tree.hot_ranges() {
        let _ = tree.hot_keys(&range, 100, &mut |key| {
            tiers.insert(key.key.to_vec(), key.tier);
            std::ops::ControlFlow::Continue(())
        });
    }
    // Without a release, what was not sampled counts as referenced.
    assert_eq!((tiers[&b"hot "[..]], tiers[&b"cold"[..]]), (0, 3));
    let held = budget.used();
    drop((tree, shared));
    assert!(budget.used() < held);
}
