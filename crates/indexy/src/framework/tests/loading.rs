//! Reads of Y that meet a write, a clean and a cut (I3).

use super::*;
use crate::y::memory::Point;

/// A reader has taken what Y has of `k` and not returned yet; meanwhile things happen.
fn while_loading(tree: &Joined, y: &MemoryY, meanwhile: impl FnOnce()) -> Option<Vec<u8>> {
    let pause = y.pause(Point::GetEnd);
    std::thread::scope(|s| {
        let reader = s.spawn(|| get(tree, b"k"));
        pause.wait_reached();
        meanwhile();
        pause.resume();
        reader.join().unwrap()
    })
}

#[test]
fn i3_reader_does_not_resurrect_overwritten_value() {
    Rig::each(|_, tree, y| {
        put_away(tree, b"k", b"v1");
        while_loading(tree, y, || {
            put(tree, b"k", b"v2");
            clean(tree);
            cut(tree);
        });
        assert_eq!(get(tree, b"k"), some(b"v2"));
        assert_clean_means_equal(tree);
    });
}

#[test]
fn i3_reader_does_not_hide_a_value_that_is_dirty() {
    Rig::each(|_, tree, y| {
        put_away(tree, b"k", b"v1");
        while_loading(tree, y, || {
            put(tree, b"k", b"v2");
        });
        assert_eq!(get(tree, b"k"), some(b"v2"));
        clean(tree);
        cut(tree);
        assert_eq!(get(tree, b"k"), some(b"v2"));
    });
}

#[test]
fn i3_reader_does_not_resurrect_a_removed_value() {
    Rig::each(|_, tree, y| {
        put_away(tree, b"k", b"v1");
        put_away(tree, b"other", b"v1");
        while_loading(tree, y, || {
            remove(tree, b"k");
            // The delete is in Y and its tombstone is purged.
            clean(tree);
        });
        assert_eq!(get(tree, b"k"), None);
        assert_clean_means_equal(tree);
    });
}

#[test]
fn i3_reader_does_not_resurrect_what_a_large_value_replaced() {
    let large = vec![7; BUDGET / 8 + 1];
    Rig::each(|_, tree, y| {
        put_away(tree, b"k", b"v1");
        while_loading(tree, y, || {
            put(tree, b"k", &large);
        });
        assert!(get(tree, b"k").as_deref() == Some(&large[..]));
    });
}

#[test]
fn i3_multi_get_does_not_resurrect_overwritten_values() {
    Rig::each(|_, tree, y| {
        put_away(tree, b"k", b"v1");
        put_away(tree, b"l", b"v1");
        let pause = y.pause(Point::GetEnd);
        std::thread::scope(|s| {
            s.spawn(|| tree.multi_get(&[b"k", b"l"]).unwrap());
            pause.wait_reached();
            put(tree, b"k", b"v2");
            remove(tree, b"l");
            clean(tree);
            cut(tree);
            pause.resume();
        });
        assert_eq!(get(tree, b"k"), some(b"v2"));
        assert_eq!(get(tree, b"l"), None);
        assert_clean_means_equal(tree);
    });
}

#[test]
fn i3_writes_next_to_a_load_do_not_keep_it_out() {
    Rig::each(|_, tree, y| {
        put_away(tree, b"k", b"v1");
        let read = while_loading(tree, y, || {
            put(tree, b"ka", b"v2");
            put(tree, b"j", b"v2");
        });
        assert_eq!(read, some(b"v1"));
        let reads = y.reads();
        assert_eq!(get(tree, b"k"), some(b"v1"));
        assert_eq!(y.reads(), reads, "it was loaded");
    });
}

#[test]
fn a_miss_loads_the_key_and_an_absent_key_stays_y_s_to_answer() {
    Rig::each(|_, tree, y| {
        put_away(tree, b"k", b"v1");
        assert_eq!(get(tree, b"k"), some(b"v1"));
        let reads = y.reads();
        assert_eq!(get(tree, b"k"), some(b"v1"));
        assert_eq!(y.reads(), reads);
        assert_eq!(get(tree, b"absent"), None);
        assert_eq!(y.reads(), reads + 1);
    });
}

/// Y shows what X is not yet asked to forget: who was told of the new state is not told of the old
/// one later.
#[test]
fn i3_a_late_load_does_not_bring_back_what_y_does_not_show_any_more() {
    let large = vec![7; BUDGET / 8 + 1];
    for removal in [false, true] {
        Rig::each(|_, tree, y| {
            put_away(tree, b"k", b"v1");
            let change = || match removal {
                true => {
                    let mut runs = tree.writer.lock();
                    tree.remove_range(&mut runs, b"a", Some(b"z")).unwrap();
                }
                false => {
                    put(tree, b"k", &large);
                }
            };
            let new = (!removal).then(|| large.clone());
            std::thread::scope(|s| {
                let old = y.pause(Point::GetEnd);
                let reader = s.spawn(|| get(tree, b"k"));
                old.wait_reached();
                let shown = y.pause(Point::RunVisible);
                let writer = s.spawn(change);
                shown.wait_reached();
                assert!(get(tree, b"k") == new);
                old.resume();
                assert_eq!(reader.join().unwrap(), some(b"v1"));
                assert!(get(tree, b"k") == new, "{removal}");
                shown.resume();
                writer.join().unwrap();
            });
            assert!(get(tree, b"k") == new);
        });
    }
}

/// As above, with a read that begins when the key has its fresh stamp, and Y still shows the old
/// value.
#[test]
fn i3_no_load_while_a_value_goes_past_x() {
    let large = vec![7; BUDGET / 8 + 1];
    Rig::each(|_, tree, y| {
        put_away(tree, b"k", b"v1");
        std::thread::scope(|s| {
            let begun = y.pause(Point::RunPublish);
            let writer = s.spawn(|| {
                put(tree, b"k", &large);
            });
            begun.wait_reached();
            let old = y.pause(Point::GetEnd);
            let reader = s.spawn(|| get(tree, b"k"));
            old.wait_reached();
            let shown = y.pause(Point::RunVisible);
            begun.resume();
            shown.wait_reached();
            assert!(get(tree, b"k").as_deref() == Some(&large[..]));
            old.resume();
            assert_eq!(reader.join().unwrap(), some(b"v1"));
            assert!(get(tree, b"k").as_deref() == Some(&large[..]));
            shown.resume();
            writer.join().unwrap();
        });
    });
}
