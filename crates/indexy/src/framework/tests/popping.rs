//! Entries taken from the ends of a tree while Y changes: what was read ahead says what Y says (I1,
//! I9).

use super::*;
use crate::{
    framework::{misses::Purpose, scan::MergeLimits},
    mem::budget::Holder,
    x::Order,
    y::memory::Point,
};

const ORDERS: [Order; 2] = [Order::Ascending, Order::Descending];
const ONE: MergeLimits = MergeLimits {
    bytes: 2 << 10,
    entries: 1,
    at_hand: 1,
};

/// The first entry in `order`.
fn end(tree: &Joined, order: Order) -> Option<(Vec<u8>, Vec<u8>)> {
    let (mut from, mut to) = (Vec::new(), None);
    loop {
        let chunk = tree
            .scan_chunk(&from, to.as_deref(), order, ONE)
            .expect("a scan");
        if let Some((key, value)) = chunk.entries.first() {
            return Some((key.to_vec(), value.to_vec()));
        }
        match (chunk.resume?, order) {
            (at, Order::Ascending) => from = at,
            (at, Order::Descending) => to = Some(at),
        }
    }
}

/// The value that a pop gives out with `key`.
fn taken(tree: &Joined, key: &[u8], order: Order) -> Option<Vec<u8>> {
    tree.get_for(Purpose::RemovalOfFirst(order), key, <[u8]>::to_vec)
        .unwrap()
}

fn pop(tree: &Joined, order: Order) -> Option<(Vec<u8>, Vec<u8>)> {
    let (key, _) = end(tree, order)?;
    let value = taken(tree, &key, order)?;
    remove(tree, &key);
    Some((key, value))
}

/// Keys 10, 12, ... 48 in Y alone.
fn fill(tree: &Joined) {
    for n in (10..50u8).step_by(2) {
        put(tree, &[n], b"old");
    }
    clean(tree);
    cut(tree);
}

fn read_ahead(tree: &Joined) -> bool {
    tree.shared.budget.held(Holder::Ends) > 0
}

#[test]
fn pops_from_both_ends_give_out_every_entry_once() {
    Rig::each(|_, tree, y| {
        fill(tree);
        let (mut popped, mut n) = (Vec::new(), 0);
        while let Some((key, _)) = pop(tree, ORDERS[n % 2]) {
            popped.push(key[0]);
            n += 1;
            // Y hears of some of it on the way.
            if n % 7 == 0 {
                clean(tree);
                cut(tree);
            }
        }
        popped.sort_unstable();
        let all: Vec<_> = (10..50u8).step_by(2).collect();
        assert_eq!(popped, all);
        clean(tree);
        assert!(y.contents().is_empty());
    });
}

#[test]
fn pops_read_y_once_for_many_entries() {
    Rig::each(|_, tree, y| {
        fill(tree);
        let before = y.reads();
        for n in (10..40u8).step_by(2) {
            assert_eq!(
                pop(tree, Order::Ascending),
                Some((vec![n], b"old".to_vec()))
            );
        }
        assert!(y.reads() - before <= 2, "{} reads", y.reads() - before);
    });
}

#[test]
fn i9_an_end_that_y_was_given_meanwhile_is_seen() {
    for order in ORDERS {
        Rig::each(|_, tree, _| {
            fill(tree);
            pop(tree, order);
            assert!(read_ahead(tree));
            // Before and within what was read ahead, and instead of it.
            for n in [1, 60, 13, 47] {
                put_away(tree, &[n], b"new");
            }
            put_away(tree, &[12], b"new");
            put_away(tree, &[46], b"new");
            let (first, second) = match order {
                Order::Ascending => (1, 12),
                Order::Descending => (60, 47),
            };
            assert_eq!(pop(tree, order), Some((vec![first], b"new".to_vec())));
            assert_eq!(pop(tree, order), Some((vec![second], b"new".to_vec())));
        });
    }
}

#[test]
fn i9_an_end_that_y_was_given_beside_a_reader_is_seen() {
    for point in [Point::RangeStart, Point::RangeEnd] {
        Rig::each(|_, tree, y| {
            fill(tree);
            let pause = y.pause(point);
            std::thread::scope(|s| {
                let reader = s.spawn(|| end(tree, Order::Ascending));
                pause.wait_reached();
                put_away(tree, &[1], b"new");
                put_away(tree, &[10], b"new");
                drop(pause);
                reader.join().unwrap();
            });
            let first = Some((vec![1], b"new".to_vec()));
            assert_eq!(pop(tree, Order::Ascending), first);
            assert_eq!(taken(tree, &[10], Order::Ascending), some(b"new"));
        });
    }
}

/// A value past X is seen as soon as Y shows it: before the call of Y returns.
#[test]
fn i9_what_y_shows_while_it_writes_is_seen_by_all() {
    for kind in X_KINDS {
        let rig = Rig::with_budget(kind, 4 << 20);
        let (tree, y) = rig.tree(TREE);
        fill(&tree);
        let large = vec![7; 1 << 20];
        assert!(tree.route(large.len()) == Route::PastX);
        end(&tree, Order::Ascending);
        assert!(read_ahead(&tree));
        let (publishes, visible) = (y.pause(Point::RunPublish), y.pause(Point::RunVisible));
        std::thread::scope(|s| {
            let writer = s.spawn(|| put_as_routed(&tree, &[10], Some(&large)).unwrap());
            publishes.wait_reached();
            // Too late to be kept.
            let old = Some((vec![10], b"old".to_vec()));
            assert_eq!(end(&tree, Order::Ascending), old);
            drop(publishes);
            visible.wait_reached();
            assert!(get(&tree, &[10]).as_ref() == Some(&large));
            assert!(taken(&tree, &[10], Order::Ascending).as_ref() == Some(&large));
            assert!(end(&tree, Order::Ascending).is_some_and(|(_, value)| value == large));
            drop(visible);
            writer.join().unwrap();
        });
    }
}

#[test]
fn what_is_read_ahead_is_given_back() {
    let rig = Rig::new(XKind::BPlus);
    let (tree, _) = rig.tree(TREE);
    fill(&tree);
    end(&tree, Order::Ascending);
    end(&tree, Order::Descending);
    assert!(read_ahead(&tree));
    rig.trees.write().clear();
    drop(tree);
    assert_eq!(rig.shared.budget.held(Holder::Ends), 0);
}
