use super::{seen::SLOTS, slots::MAX_END_BYTES, *};
use Order::{Ascending, Descending};

fn up_to(at: &[u8]) -> Passed {
    Passed::UpTo(at.to_vec())
}

/// Stretches with `[from, to)` settled in `order`.
fn with(from: &[u8], to: Option<&[u8]>, order: Order) -> DeadStretches {
    let stretches = DeadStretches::default();
    stretches.arm(from, to, order).unwrap().settle(None);
    stretches
}

#[test]
fn a_settled_stretch_is_passed_from_both_ends() {
    let stretches = with(b"b", Some(b"d"), Ascending);
    let pass = |from: &[u8], to: Option<&[u8]>, order| stretches.pass(from, to, order);
    assert_eq!(pass(b"b", None, Ascending), up_to(b"d"));
    assert_eq!(pass(b"c", Some(b"x"), Ascending), up_to(b"d"));
    assert_eq!(pass(b"a", None, Ascending), Passed::Nothing);
    assert_eq!(pass(b"d", None, Ascending), Passed::Nothing);
    assert_eq!(pass(b"b", Some(b"d"), Ascending), Passed::All);
    assert_eq!(pass(b"c", Some(b"cc"), Descending), Passed::All);
    assert_eq!(pass(b"", Some(b"d"), Descending), up_to(b"b"));
    assert_eq!(pass(b"", Some(b"c"), Descending), up_to(b"b"));
    assert_eq!(pass(b"", Some(b"b"), Descending), Passed::Nothing);
    assert_eq!(pass(b"", None, Descending), Passed::Nothing);
}

#[test]
fn a_stretch_to_the_end_of_the_key_space_is_passed() {
    let stretches = with(b"b", None, Descending);
    assert_eq!(stretches.pass(b"", None, Descending), up_to(b"b"));
    assert_eq!(stretches.pass(b"c", None, Ascending), Passed::All);
    assert_eq!(stretches.pass(b"a", None, Ascending), Passed::Nothing);
}

#[test]
fn stretches_that_touch_become_one() {
    let stretches = with(b"b", Some(b"d"), Ascending);
    let armed = stretches.arm(b"d", None, Ascending).unwrap();
    armed.settle(Some(b"f"));
    assert_eq!(stretches.slots.lock().settled().count(), 1);
    assert_eq!(stretches.pass(b"b", None, Ascending), up_to(b"f"));
    let armed = stretches.arm(b"", Some(b"b"), Descending).unwrap();
    armed.settle(Some(b"a"));
    assert_eq!(stretches.slots.lock().settled().count(), 1);
    assert_eq!(stretches.pass(b"", Some(b"f"), Descending), up_to(b"a"));
}

#[test]
fn i9_a_value_in_a_stretch_divides_it() {
    let stretches = with(b"b", Some(b"f"), Ascending);
    stretches.revive(b"a");
    stretches.revive(b"f");
    assert_eq!(stretches.pass(b"b", None, Ascending), up_to(b"f"));
    stretches.revive(b"d");
    assert_eq!(stretches.pass(b"b", None, Ascending), up_to(b"d"));
    assert_eq!(stretches.pass(b"d", None, Ascending), Passed::Nothing);
    assert_eq!(stretches.pass(b"d\0", None, Ascending), up_to(b"f"));
    assert_eq!(stretches.pass(b"", Some(b"f"), Descending), up_to(b"d\0"));
}

/// A writer between the arming and the end of the scan, which does not see the value.
#[test]
fn i9_a_value_that_a_scan_missed_ends_the_stretch() {
    let stretches = DeadStretches::default();
    let armed = stretches.arm(b"b", None, Ascending).unwrap();
    stretches.revive(b"d");
    assert_eq!(
        stretches.pass(b"b", None, Ascending),
        Passed::Nothing,
        "not settled yet"
    );
    armed.settle(Some(b"x"));
    assert_eq!(stretches.pass(b"b", None, Ascending), up_to(b"d"));
    assert_eq!(stretches.pass(b"e", None, Ascending), Passed::Nothing);

    let armed = stretches.arm(b"n", Some(b"z"), Descending).unwrap();
    stretches.revive(b"p");
    armed.settle(None);
    assert_eq!(stretches.pass(b"n", Some(b"z"), Descending), up_to(b"p\0"));
    assert_eq!(stretches.pass(b"n", None, Ascending), Passed::Nothing);
}

#[test]
fn nothing_is_armed_while_a_value_goes_past_x() {
    let stretches = with(b"b", Some(b"f"), Ascending);
    let held = stretches.hold_off(b"d");
    assert_eq!(stretches.pass(b"b", None, Ascending), up_to(b"d"));
    assert!(stretches.arm(b"b", None, Ascending).is_none());
    drop(held);
    assert!(stretches.arm(b"b", None, Ascending).is_some());
}

#[test]
fn an_armed_slot_that_is_not_settled_says_nothing() {
    let stretches = DeadStretches::default();
    drop(stretches.arm(b"b", None, Ascending));
    assert_eq!(stretches.pass(b"b", None, Ascending), Passed::Nothing);
    assert_eq!(stretches.seen.used.load(Relaxed), 0);
}

#[test]
fn long_ends_are_not_remembered() {
    let long = vec![7; MAX_END_BYTES + 1];
    let stretches = DeadStretches::default();
    assert!(stretches.arm(&long, None, Ascending).is_none());
    stretches
        .arm(b"b", None, Ascending)
        .unwrap()
        .settle(Some(&long));
    assert_eq!(stretches.pass(b"b", None, Ascending), Passed::Nothing);
    let stretches = with(b"", None, Ascending);
    stretches.revive(&long);
    let slots = stretches.slots.lock();
    assert!(slots.settled().all(|keys| !is_long(keys)));
}

#[test]
fn the_oldest_slot_goes_when_there_are_too_many() {
    let stretches = DeadStretches::default();
    for n in 0..=SLOTS as u8 {
        let (from, to) = ([2 * n], [2 * n + 1]);
        stretches
            .arm(&from, Some(&to), Ascending)
            .unwrap()
            .settle(None);
    }
    assert_eq!(stretches.pass(&[0], None, Ascending), Passed::Nothing);
    for n in 1..=SLOTS as u8 {
        assert_eq!(
            stretches.pass(&[2 * n], None, Ascending),
            up_to(&[2 * n + 1])
        );
    }
}

/// A front that was read to have `keys`, which are in `order`.
fn front_of(stretches: &DeadStretches, order: Order, keys: &[&[u8]]) -> Option<First> {
    let armed = match (stretches.pass(b"", None, order), order) {
        (Passed::UpTo(at), Ascending) => stretches.arm(&at, None, order),
        (Passed::UpTo(at), Descending) => stretches.arm(b"", Some(&at), order),
        _ => stretches.arm(b"", None, order),
    };
    armed?.settle_front(keys.iter().copied())
}

fn key_of(first: Option<First>) -> Option<Vec<u8>> {
    first.map(|first| first.key)
}

#[test]
fn a_front_is_used_up_and_leaves_a_dead_stretch() {
    for (order, keys) in [
        (Ascending, [&b"b"[..], b"d", b"f", b"h"]),
        (Descending, [&b"h"[..], b"f", b"d", b"b"]),
    ] {
        let stretches = DeadStretches::default();
        for two in keys.chunks(2) {
            let first = front_of(&stretches, order, two);
            assert_eq!(first, stretches.first(order));
            for key in two {
                let first = stretches.first(order).unwrap();
                assert_eq!(first.key, *key);
                stretches.pass_first(&first);
                stretches.pass_first(&first);
            }
            assert_eq!(stretches.first(order), None);
            let edge = match order {
                Ascending => [two[1], b"\0"].concat(),
                Descending => two[1].to_vec(),
            };
            assert_eq!(stretches.pass(b"", None, order), up_to(&edge));
        }
        assert_eq!(stretches.slots.lock().settled().count(), 1);
    }
}

/// In the part that was used up, before and behind the first key, and the first key itself.
#[test]
fn i9_a_value_in_a_front_ends_it() {
    for (order, keys) in [
        (Ascending, [&b"b"[..], b"d", b"f"]),
        (Descending, [&b"f"[..], b"d", b"b"]),
    ] {
        for (written, ascending, descending) in [
            (b"a", up_to(b"a"), None),
            (b"c", up_to(b"c"), Some(up_to(b"d\0"))),
            (b"d", up_to(b"d"), Some(up_to(b"d\0"))),
            (b"e", up_to(b"d"), Some(up_to(b"e\0"))),
            (b"g", up_to(b"d"), Some(up_to(b"g\0"))),
        ] {
            let stretches = DeadStretches::default();
            let first = front_of(&stretches, order, &keys).unwrap();
            stretches.pass_first(&first);
            stretches.revive(written);
            let outside = match order {
                Ascending => written[0] > keys[2][0],
                Descending => written[0] < keys[2][0],
            };
            let expected = outside.then(|| b"d".to_vec());
            assert_eq!(key_of(stretches.first(order)), expected, "{written:?}");
            let dead = match (order, outside) {
                (_, true) => Passed::Nothing,
                (Ascending, _) => ascending,
                (Descending, _) => descending.unwrap(),
            };
            assert_eq!(
                stretches.pass(b"", None, order),
                dead,
                "{order:?} {written:?}"
            );
            stretches.pass_first(&First {
                key: b"d".to_vec(),
                ..first
            });
            assert_eq!(stretches.pass(b"", None, order), dead, "it has ended");
        }
    }
}

/// A writer between the arming and the end of the scan, which does not see the value.
#[test]
fn i9_a_front_ends_before_a_value_that_its_scan_missed() {
    let stretches = DeadStretches::default();
    let armed = stretches.arm(b"", None, Ascending).unwrap();
    stretches.revive(b"c");
    let first = armed.settle_front([&b"b"[..], b"d"].into_iter()).unwrap();
    stretches.pass_first(&first);
    assert_eq!(stretches.first(Ascending), None);
    assert_eq!(stretches.pass(b"", None, Ascending), up_to(b"c"));

    let stretches = DeadStretches::default();
    let armed = stretches.arm(b"", None, Descending).unwrap();
    stretches.revive(b"e");
    assert_eq!(armed.settle_front([&b"d"[..]].into_iter()), None);
    assert_eq!(stretches.pass(b"", None, Descending), up_to(b"e\0"));
}

/// Something lives before it.
#[test]
fn i9_a_front_behind_a_value_is_not_asked() {
    let stretches = with(b"", Some(b"m"), Ascending);
    assert_eq!(
        key_of(front_of(&stretches, Ascending, &[b"n"])),
        Some(b"n".to_vec())
    );
    stretches.revive(b"c");
    assert_eq!(stretches.first(Ascending), None);
    let stretches = with(b"m", None, Descending);
    assert_eq!(
        key_of(front_of(&stretches, Descending, &[b"l"])),
        Some(b"l".to_vec())
    );
    stretches.revive(b"x");
    assert_eq!(stretches.first(Descending), None);
}

#[test]
fn a_front_has_no_more_keys_than_bytes() {
    let stretches = DeadStretches::default();
    let long = vec![7; MAX_END_BYTES - 1];
    let first = front_of(&stretches, Ascending, &[b"\x01", &long, b"\x08"]).unwrap();
    stretches.pass_first(&first);
    let first = stretches.first(Ascending).unwrap();
    assert_eq!(first.key, long);
    stretches.pass_first(&first);
    assert_eq!(stretches.first(Ascending), None);
    assert_eq!(
        front_of(
            &DeadStretches::default(),
            Ascending,
            &[&vec![7; 2 * MAX_END_BYTES]]
        ),
        None
    );
    // One that is too long for it says nothing about what lives.
    let stretches = DeadStretches::default();
    let longer = vec![7; 2 * MAX_END_BYTES];
    assert_eq!(front_of(&stretches, Ascending, &[&longer]), None);
    for order in [Ascending, Descending] {
        assert_eq!(stretches.pass(b"", None, order), Passed::Nothing);
    }
}

/// After a front that a writer has ended, the next one comes late; who uses them up gets longer
/// ones.
#[test]
fn fronts_grow_and_pause() {
    let stretches = DeadStretches::default();
    assert_eq!(stretches.ahead(Ascending), None, "it may be the only one");
    for (n, ahead) in [2, 4, 8, 16, 16].into_iter().enumerate() {
        assert_eq!(stretches.ahead(Ascending), Some(ahead));
        let first = front_of(&stretches, Ascending, &[&[n as u8]]).unwrap();
        stretches.pass_first(&first);
    }
    front_of(&stretches, Ascending, &[b"b", b"c"]).unwrap();
    stretches.revive(b"bb");
    let pauses = std::iter::from_fn(|| stretches.ahead(Ascending).is_none().then_some(()));
    assert_eq!(pauses.count(), 64);
    assert_eq!(stretches.ahead(Ascending), Some(2));
    assert_eq!(stretches.ahead(Descending), None);
}

/// Another scan knows part of a front to be dead.
#[test]
fn i9_what_is_left_of_a_front_takes_no_key_from_another_stretch() {
    for dead_first in [true, false] {
        let stretches = DeadStretches::default();
        let front = stretches.arm(b"", None, Ascending).unwrap();
        let dead = stretches.arm(b"", None, Ascending).unwrap();
        let keys = || [&b"m"[..], b"o"].into_iter();
        if dead_first {
            dead.settle(Some(b"m"));
            front.settle_front(keys()).unwrap();
        } else {
            front.settle_front(keys()).unwrap();
            dead.settle(Some(b"m"));
        }
        stretches.revive(b"c");
        assert_eq!(stretches.first(Ascending), None);
        assert_eq!(stretches.pass(b"", None, Ascending), up_to(b"c"));
        assert_eq!(stretches.pass(b"c", None, Ascending), Passed::Nothing);
    }
}

/// Keys that are written behind the back of a scan, before what it has found.
#[test]
fn a_scan_is_overtaken_by_what_is_written_before_its_key() {
    for (order, before, behind) in [(Ascending, b"a", b"z"), (Descending, b"z", b"a")] {
        let stretches = DeadStretches::default();
        let armed = stretches.arm(b"", None, order).unwrap();
        stretches.revive(behind);
        stretches.revive(b"m");
        assert!(!armed.was_overtaken(Some(b"m")), "{order:?}");
        stretches.revive(before);
        assert!(armed.was_overtaken(Some(b"m")), "{order:?}");
    }
}

/// Whatever else is written meanwhile: keys too long to be remembered, and the empty one.
#[test]
fn a_scan_is_overtaken_behind_any_other_key() {
    let long = vec![0xFF; 2 * MAX_END_BYTES];
    for order in [Ascending, Descending] {
        for (keys, found) in [(&[&long[..], b"a"], b"m"), (&[&long[..], b""], b"m")] {
            let mut keys = keys.to_vec();
            if order == Descending {
                keys.reverse();
            }
            let stretches = DeadStretches::default();
            let armed = stretches.arm(b"", None, order).unwrap();
            keys.iter().for_each(|key| stretches.revive(key));
            assert!(armed.was_overtaken(Some(found)), "{order:?}, {keys:?}");
            assert!(armed.was_overtaken(None), "{order:?}, {keys:?}");
            drop(armed);
            assert_eq!(stretches.slots.lock().slots.iter().flatten().count(), 0);
        }
    }
}

/// Nothing was found, though something lived at each moment.
#[test]
fn a_scan_that_finds_nothing_is_overtaken_by_any_key() {
    for order in [Ascending, Descending] {
        let stretches = DeadStretches::default();
        let armed = stretches.arm(b"", None, order).unwrap();
        assert!(!armed.was_overtaken(None), "{order:?}");
        stretches.revive(b"k");
        assert!(armed.was_overtaken(None), "{order:?}");
    }
}
