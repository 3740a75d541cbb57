//! Releases by hand: the range and nothing else, whatever happens meanwhile.

use super::*;
use crate::{
    error::Error,
    framework::release::by_hand::release_range,
    y::memory::{Op, Point},
};

/// As the API does it.
fn release(tree: &Joined, from: &[u8], to: Option<&[u8]>) -> Result<u64> {
    tree.write_back_range(from, to)?;
    Ok(release_range(tree, (from, to)))
}

#[test]
fn the_range_goes_and_nothing_else_is_written_or_dropped() {
    Rig::each(|_, tree, y| {
        let key = |n: u16| n.to_be_bytes();
        for regions in [false, true] {
            for n in 0..2000 {
                put(tree, &key(n), &[regions.into(); 100]);
            }
            if regions {
                tree.choose_regions_of(16 << 10);
                assert!(tree.regions.table().len() > 8);
            }
            let before = tree.x.stats().bytes;
            let freed = release(tree, &key(700), Some(&key(1300))).unwrap();
            assert!(freed > 600 * 100 && before > tree.x.stats().bytes);
            for n in 0..2000 {
                let inside = (700..1300).contains(&n);
                assert_eq!(tree.has_in_x(&key(n)), !inside, "{n}");
                let written = in_y(y, &key(n)) == some(&[regions.into(); 100]);
                assert_eq!(written, inside, "{n}");
                assert_eq!(get(tree, &key(n)), some(&[regions.into(); 100]), "{n}");
            }
            assert_clean_means_equal(tree);
            assert!(release(tree, &[], None).unwrap() > 0);
            assert_eq!(tree.x.stats().keys, 0);
        }
    });
}

#[test]
fn i6_a_region_that_is_released_in_part_holds_the_log() {
    Rig::each(|rig, tree, _| {
        put(tree, b"a", b"1");
        put(tree, b"m", b"1");
        rig.log().sync().unwrap();
        release(tree, b"m", Some(b"n")).unwrap();
        for n in 0..50u8 {
            put(tree, &[b'm', n], &[n; 200]);
            release(tree, b"m", Some(b"n")).unwrap();
            rig.truncate();
        }
        rig.crash_and(|tree| assert_eq!(get(tree, b"a"), some(b"1")));
        release(tree, &[], None).unwrap();
        rig.truncate();
        assert!(rig.log().start() > Lsn(0));
        rig.crash_and(|tree| assert_eq!(get(tree, b"a"), some(b"1")));
    });
}

#[test]
fn i4_what_is_written_while_a_range_is_released_stays() {
    for point in [Point::RunStart, Point::RunDrained, Point::RunPublish] {
        Rig::each(|_, tree, y| {
            put(tree, b"a", b"1");
            put(tree, b"b", b"1");
            let pause = y.pause(point);
            std::thread::scope(|s| {
                let releaser = s.spawn(|| release(tree, b"a", Some(b"c")).unwrap());
                pause.wait_reached();
                put(tree, b"a", b"2");
                pause.resume();
                assert!(releaser.join().unwrap() > 0);
            });
            assert!(!tree.has_in_x(b"b"));
            assert_eq!(get(tree, b"a"), some(b"2"));
            assert_clean_means_equal(tree);
            release(tree, b"a", Some(b"c")).unwrap();
            assert_eq!(in_y(y, b"a"), some(b"2"));
            assert_eq!(get(tree, b"a"), some(b"2"));
        });
    }
}

/// A run of the cleaner is in flight while a release cuts.
#[test]
fn i4_a_release_leaves_what_another_run_carries() {
    Rig::each(|_, tree, y| {
        put(tree, b"a", b"1");
        let pause = y.pause(Point::RunPublish);
        std::thread::scope(|s| {
            s.spawn(|| clean(tree));
            pause.wait_reached();
            assert_eq!(release_range(tree, (b"a", None)), 0);
            assert_eq!(get(tree, b"a"), some(b"1"));
            pause.resume();
        });
        assert!(release_range(tree, (b"a", None)) > 0);
        assert_eq!(get(tree, b"a"), some(b"1"));
    });
}

#[test]
fn i3_a_read_across_a_release_does_not_bring_back_what_was_overwritten() {
    Rig::each(|_, tree, y| {
        put_away(tree, b"k", b"v1");
        let pause = y.pause(Point::GetEnd);
        std::thread::scope(|s| {
            let reader = s.spawn(|| get(tree, b"k"));
            pause.wait_reached();
            put(tree, b"k", b"v2");
            release(tree, b"k", None).unwrap();
            assert!(!tree.has_in_x(b"k"));
            pause.resume();
            assert_eq!(reader.join().unwrap(), some(b"v1"));
        });
        assert_eq!(get(tree, b"k"), some(b"v2"));
        assert_clean_means_equal(tree);
    });
}

#[test]
fn i4_a_y_that_fails_leaves_everything_as_it_was() {
    Rig::each(|rig, tree, y| {
        put(tree, b"a", b"1");
        put(tree, b"b", b"1");
        let full = Error::OutOfSpace { path: "y".into() };
        y.fail(Op::WriteRun, 0, 1, full);
        let failed = release(tree, &[], None);
        assert!(matches!(failed, Err(Error::OutOfSpace { .. })));
        assert_eq!(tree.x.stats().dirty, 2);
        assert!(release(tree, &[], None).unwrap() > 0);
        rig.flush().unwrap();
        rig.crash_and(|tree| assert_eq!(get(tree, b"b"), some(b"1")));
    });
}
