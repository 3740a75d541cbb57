use super::*;
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
