//! The store of one tree, by itself.

#![forbid(unsafe_code)]

use super::*;
use crate::{key::Key, x::Order};

fn versions(limit: usize) -> Versions {
    let versions = Versions::new(Arc::new(Budget::new(64 << 20)));
    versions.set_limit(limit);
    versions
}

/// As a writer does.
fn leave(versions: &Versions, store: &Arc<Store>, key: &[u8], image: &Image) {
    let watch = versions.watch();
    // One holds a latch, where that works.
    if !versions.try_push(store, key, watch, image.borrowed()) {
        versions.push(store, key, watch, image);
    }
    versions.keep_limit();
}

fn value(n: u64) -> Image {
    Image::Value(n.to_le_bytes().as_slice().into())
}

#[test]
fn without_a_snapshot_nothing_is_watched() {
    let versions = versions(1 << 20);
    assert_eq!(versions.watch(), 0);
    let pin = versions.begin();
    let watch = versions.watch();
    assert!(watch > pin.epoch() && versions.has_risen(0) && !versions.has_risen(watch));
    versions.end(&pin);
    assert_eq!((versions.watch(), versions.oldest()), (0, pin.epoch() + 1));
}

#[test]
fn each_snapshot_sees_what_was_there_when_it_began() {
    let versions = versions(1 << 20);
    let store = versions.new_store();
    let mut pins = Vec::new();
    for n in 0..50 {
        let pin = versions.begin();
        // A write: what was there before is n.
        leave(&versions, &store, b"key", &value(n));
        pins.push((pin, n));
        // In some order, some end.
        if n % 3 == 2 {
            let (pin, _) = pins.remove(n as usize / 3);
            versions.end(&pin);
        }
        for (pin, n) in &pins {
            assert_eq!(store.at(b"key", pin.epoch()).unwrap(), Some(value(*n)));
        }
    }
    let next = versions.begin();
    assert_eq!(store.at(b"key", next.epoch()).unwrap(), None);
    assert_eq!(store.at(b"other", pins[0].0.epoch()).unwrap(), None);
}

#[test]
fn a_second_write_under_the_same_watch_leaves_nothing() {
    let versions = versions(1 << 20);
    let store = versions.new_store();
    let pin = versions.begin();
    leave(&versions, &store, b"key", &value(1));
    leave(&versions, &store, b"key", &value(2));
    assert_eq!(store.at(b"key", pin.epoch()).unwrap(), Some(value(1)));
}

#[test]
fn images_go_when_no_snapshot_needs_them() {
    let versions = versions(1 << 20);
    let store = versions.new_store();
    let pin = versions.begin();
    for n in 0..2000u32 {
        leave(&versions, &store, &n.to_be_bytes(), &value(0));
    }
    assert!(store.arena_bytes() > 0 && versions.space.bytes() > 32_000);
    versions.end(&pin);
    assert_eq!((store.arena_bytes(), versions.space.bytes()), (0, 0));
    assert!(versions.stores.lock().is_empty());
    // And it takes new ones.
    let pin = versions.begin();
    leave(&versions, &store, b"key", &value(7));
    assert_eq!(store.at(b"key", pin.epoch()).unwrap(), Some(value(7)));
    assert_eq!(versions.stores.lock().len(), 1);
}

#[test]
fn memory_comes_back_though_there_is_always_a_snapshot_open() {
    let versions = versions(4 << 20);
    let store = versions.new_store();
    let mut pin = versions.begin();
    for round in 0..200u32 {
        for n in 0..500u32 {
            let key = (round * 500 + n).to_be_bytes();
            leave(&versions, &store, &key, &value(u64::from(n)));
        }
        let next = versions.begin();
        versions.end(&pin);
        pin = next;
        assert!(!pin.is_expired());
    }
    assert!(versions.space.bytes() < 1 << 20);
}

#[test]
fn past_the_limit_the_oldest_snapshots_are_given_up() {
    let versions = versions(256 << 10);
    let store = versions.new_store();
    let old = versions.begin();
    for n in 0..100_000u32 {
        leave(&versions, &store, &n.to_be_bytes(), &value(0));
        assert!(versions.space.bytes() <= (256 << 10) + 4096);
        if versions.watch() == 0 {
            break;
        }
    }
    assert!(old.is_expired());
    let young = versions.begin();
    assert!(!young.is_expired());
    versions.end(&old);
    assert_eq!(versions.oldest(), young.epoch());
}

#[test]
fn ranges_of_images_from_both_ends() {
    let versions = versions(32 << 20);
    let store = versions.new_store();
    let first = versions.begin();
    for n in 0..5000u32 {
        leave(&versions, &store, &n.to_be_bytes(), &value(1));
    }
    let second = versions.begin();
    for n in (0..5000u32).step_by(2) {
        leave(&versions, &store, &n.to_be_bytes(), &value(2));
    }
    for (epoch, expected, of_even) in [(first.epoch(), 5000, 1), (second.epoch(), 2500, 2)] {
        for order in [Order::Ascending, Order::Descending] {
            let (mut from, mut to, mut keys) = (Vec::new(), None, Vec::new());
            loop {
                let seen = store.range_at(&from, to.as_deref(), order, epoch).unwrap();
                keys.extend(seen.images.iter().map(|(key, _)| key.clone()));
                assert!(
                    seen.images
                        .iter()
                        .all(|(_, image)| *image == value(of_even))
                );
                match (seen.resume, order) {
                    (None, _) => break,
                    (Some(at), Order::Ascending) => from = at,
                    (Some(at), Order::Descending) => to = Some(at),
                }
            }
            if order == Order::Descending {
                keys.reverse();
            }
            assert!(keys.is_sorted() && keys.len() == expected);
        }
    }
    assert_eq!(
        store
            .written_in(&[], None, second.epoch(), |key| key < &[0, 0, 1][..])
            .unwrap(),
        Some(256u32.to_be_bytes().as_slice().into())
    );
    let odd = 7u32.to_be_bytes();
    let after = 8u32.to_be_bytes();
    assert_eq!(
        store
            .written_in(&odd, Some(&after), second.epoch(), |_| false)
            .unwrap(),
        None
    );
}

#[test]
fn markers_are_found_until_they_are_resolved() {
    let versions = versions(1 << 20);
    let store = versions.new_store();
    let pin = versions.begin();
    for key in [b"a", b"b", b"c"] {
        leave(&versions, &store, key, &Image::InY);
    }
    let keys = store.markers(b"b", None, versions.oldest());
    assert_eq!(keys, [*b"b", *b"c"]);
    let images = [value(1), Image::Absent];
    versions.resolve(&store, 8, keys.iter().zip(images));
    assert_eq!(store.at(b"a", pin.epoch()).unwrap(), Some(Image::InY));
    assert_eq!(store.at(b"b", pin.epoch()).unwrap(), Some(value(1)));
    assert_eq!(store.at(b"c", pin.epoch()).unwrap(), Some(Image::Absent));
    assert_eq!(store.markers(b"", None, versions.oldest()), [*b"a"]);
    versions.end(&pin);
    // Nobody needs it any more.
    assert!(store.markers(b"", None, versions.oldest()).is_empty());
}

/// Writers use up the room that a run has found for them.
#[test]
fn markers_that_are_resolved_past_the_limit_give_no_snapshot_up() {
    for spills in [true, false] {
        let versions = versions(1 << 20);
        if spills {
            versions.set_disk(Disk::new(u64::MAX, || unreachable!("nothing is spilled")));
        }
        let store = versions.new_store();
        let pin = versions.begin();
        leave(&versions, &store, b"a", &Image::InY);
        assert!(versions.has_room_for(900 << 10));
        let large = Image::Value(vec![0; 900 << 10].as_slice().into());
        leave(&versions, &store, b"b", &large);
        versions.resolve(&store, 900 << 10, [(&Key::new(b"a"), large)].into_iter());
        assert_eq!(pin.is_expired(), !spills);
    }
}

/// Each of two batches would keep what images may take.
#[test]
fn batches_do_not_pass_together_what_each_keeps() {
    let versions = versions(1 << 20);
    assert!(versions.promise(1).is_none(), "there is no disk");
    versions.set_disk(Disk::new(u64::MAX, || unreachable!("nothing is spilled")));
    let most = versions.most();
    let promise = versions.promise(most / 2 + 1);
    assert!(promise.is_some() && versions.promise(most / 2).is_none());
    drop(promise);
    assert!(versions.promise(most).is_some() && versions.promise(most + 1).is_none());
    assert!(
        versions.promise(most).is_some(),
        "what was refused is given back"
    );
}

/// A begin between the look at what is open and the drop of the images.
#[test]
fn a_snapshot_that_begins_while_images_are_dropped_keeps_its_own() {
    let versions = versions(1 << 20);
    let store = versions.new_store();
    let first = versions.begin();
    leave(&versions, &store, b"key", &value(1));
    versions.end(&first);
    let oldest = versions.oldest();
    let second = versions.begin();
    leave(&versions, &store, b"key", &value(2));
    store.collect(oldest);
    assert_eq!(store.at(b"key", second.epoch()).unwrap(), Some(value(2)));
    assert_eq!(store.newest_in_memory(b"key", 0), second.epoch() + 1);
}

/// The values of a hot key grow and shrink while an old snapshot is open.
#[test]
fn what_is_trimmed_is_no_longer_counted() {
    let versions = versions(64 << 10);
    let store = versions.new_store();
    let old = versions.begin();
    for n in 0..1000 {
        let young = versions.begin();
        let bytes = vec![0u8; if n % 2 == 0 { 10 } else { 2000 }];
        let image = Image::Value(bytes.as_slice().into());
        leave(&versions, &store, b"key", &image);
        versions.end(&young);
        assert!(versions.space.bytes() < 8000);
    }
    assert!(!old.is_expired());
}

/// A transaction that commits is spared, and may be the oldest of all.
#[test]
fn give_ups_go_on_behind_a_snapshot_that_is_spared() {
    let versions = versions(1 << 20);
    let pins: Vec<_> = (0..4).map(|_| versions.begin()).collect();
    let spared = versions.spare(&pins[0]).unwrap();
    assert!(versions.give_up_oldest(), "there was one");
    let expired = || pins.iter().map(|pin| pin.is_expired()).collect::<Vec<_>>();
    assert_eq!(expired(), [false, true, false, false]);
    assert!(versions.give_up_all());
    assert_eq!(expired(), [false, true, true, true]);
    drop(spared);
    assert!(versions.give_up_oldest() && pins[0].is_expired());
    assert!(!versions.give_up_oldest(), "there is none");
}

/// Of many keys that share few places of the table, in several generations and spans: what was
/// written is found, and what was not is not.
#[test]
fn what_was_written_since_is_found_whatever_shares_its_place() {
    const KEYS: u16 = 500;
    let versions = Versions::new(Arc::new(Budget::new(256 << 10)));
    versions.set_limit(128 << 10);
    let store = versions.new_store();
    let held = versions.begin();
    let mut pins = Vec::new();
    let mut last = vec![0; usize::from(KEYS)];
    for round in 0..40u16 {
        pins.push(versions.begin());
        let watch = versions.watch();
        for n in (round..KEYS).step_by(37) {
            leave(&versions, &store, &n.to_be_bytes(), &value(round.into()));
            last[usize::from(n)] = watch;
        }
        if round % 10 == 9 {
            store.freeze();
            let (from, to) = (KEYS - 5, KEYS - 2);
            versions.push_span(&store, &from.to_be_bytes(), &to.to_be_bytes());
            last[usize::from(from)..usize::from(to)].fill(watch);
        }
        for pin in &pins {
            for n in 0..KEYS {
                let written = store.is_written_since(&n.to_be_bytes(), pin.epoch());
                let expected = last[usize::from(n)] > pin.epoch();
                assert_eq!(written.unwrap(), expected, "{n} since {}", pin.epoch());
            }
        }
    }
    let table = versions.budget.held(crate::mem::budget::Holder::Transfer);
    assert_eq!(table - versions.span_bytes(), 512, "the smallest table");
    pins.iter().for_each(|pin| versions.end(pin));
    versions.end(&held);
    versions.collect();
    let after = versions.budget.held(crate::mem::budget::Holder::Transfer);
    assert_eq!((after, store.bytes()), (0, 0));
}

/// A snapshot for each of many sorted loads.
#[test]
fn spans_that_no_snapshot_needs_go_with_the_next_one() {
    let versions = versions(1 << 20);
    let store = versions.new_store();
    for n in 0..1000u16 {
        let pin = versions.begin();
        versions.push_span(&store, &n.to_be_bytes(), &(n + 1).to_be_bytes());
        assert!(
            store
                .is_written_since(&n.to_be_bytes(), pin.epoch())
                .unwrap()
        );
        versions.end(&pin);
        assert!(store.spans() <= 1, "{n}: {}", store.spans());
    }
}

/// I7: what nothing spills is in the budget, and has a limit.
#[test]
fn spans_of_long_keys_give_snapshots_up() {
    let versions = versions(1 << 20);
    let store = versions.new_store();
    let pin = versions.begin();
    let held = || versions.budget.held(crate::mem::budget::Holder::Transfer);
    let (mut largest, mut loads) = (0, 0);
    while !pin.is_expired() {
        let [from, to] = [0, 1].map(|end| {
            let mut key = vec![7; 20_000];
            key[..4].copy_from_slice(&(3 * loads + end as u32).to_be_bytes());
            key
        });
        versions.push_span(&store, &from, &to);
        assert_eq!(store.spans(), versions.span_bytes() / 40_000);
        assert!(held() >= versions.span_bytes());
        largest = largest.max(versions.span_bytes());
        loads += 1;
        assert!(loads < 100);
    }
    assert!(
        loads > 5 && largest <= (1 << 20) / SPANS_DIVISOR,
        "{loads} {largest}"
    );
    assert_eq!(versions.span_bytes(), 0);
}

/// As with short transactions: there is always one open, and none of them for long.
#[test]
fn images_that_no_snapshot_needs_make_room_for_those_of_their_key() {
    let versions = versions(1 << 20);
    let store = versions.new_store();
    let mut open = versions.begin();
    let mut bytes = 0;
    for n in 0..100 {
        let next = versions.begin();
        versions.end(&open);
        open = next;
        leave(&versions, &store, b"key", &value(n));
        assert_eq!(store.at(b"key", open.epoch()).unwrap(), Some(value(n)));
        bytes = bytes.max(versions.space.bytes());
        assert_eq!(versions.space.bytes(), store.bytes());
    }
    assert!(bytes < 100, "{bytes}");
    // The one that is open needs its image beside the next one.
    let next = versions.begin();
    leave(&versions, &store, b"key", &value(100));
    assert_eq!(store.at(b"key", open.epoch()).unwrap(), Some(value(99)));
    assert_eq!(store.at(b"key", next.epoch()).unwrap(), Some(value(100)));
}
