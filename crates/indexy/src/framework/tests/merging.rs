//! Operands on their way to values: readers and runs that are overtaken, reads that fail, and
//! replays that start again (`merge/mod.rs`).

use super::{scanning::scan_of, *};
use crate::{
    error::Error,
    framework::{
        merge::writes::{Merged, NewOperand},
        operators::Outcome,
    },
    wal::BatchEncoder,
    x::Order,
    y::memory::{Op, Point},
};
use std::time::{Duration, Instant};

/// Values are strings, to which merges append.
fn each(test: impl Fn(&Arc<Rig>, &Arc<Joined>, &MemoryY)) {
    let manifest = Manifest {
        merges: true,
        ..Manifest::default()
    };
    Rig::each_as(manifest, test);
}

/// As the API merges. The caller is the only writer of the key.
fn merge(tree: &Joined, key: &[u8], part: &[u8]) {
    let waiting = tree.operator().unwrap().waiting(key, part).unwrap();
    match tree.merged(key, &waiting).unwrap() {
        Merged::Known(Outcome::Value(value)) => {
            put(tree, key, &value);
        }
        Merged::Known(Outcome::Same | Outcome::Refused(_)) => {}
        Merged::Waits { over, waiting } => {
            let new = NewOperand {
                operand: part,
                waiting: &waiting,
                over: over.as_deref(),
            };
            match tree.put_operand(key, &new, 0).unwrap() {
                Written::Done(_) => {}
                // A reader that goes on has resolved it.
                Written::Changed => merge(tree, key, part),
                Written::NeedsImage => panic!("no snapshot is open"),
            }
        }
        Merged::TooLong => panic!("too long"),
    }
}

fn operands(tree: &Joined) -> usize {
    tree.x.stats().operands
}

fn io() -> Error {
    Error::io("read", "y", std::io::Error::other("it"))
}

/// Reads `k` in a thread that is stopped with what Y said in hand, does `meanwhile`, and returns
/// what the reader found.
fn while_read(tree: &Joined, y: &MemoryY, meanwhile: impl FnOnce()) -> Option<Vec<u8>> {
    let pause = y.pause(Point::GetEnd);
    std::thread::scope(|s| {
        let reader = s.spawn(|| get(tree, b"k"));
        pause.wait_reached();
        meanwhile();
        pause.resume();
        reader.join().unwrap()
    })
}

/// Another operand stands there again, over another value; or one of the same bytes.
#[test]
fn i3_a_reader_does_not_resolve_what_was_overwritten_and_released() {
    for part in [b"+", b"*"] {
        each(|_, tree, y| {
            let newest = [b"2", &part[..]].concat();
            put_away(tree, b"k", b"1");
            merge(tree, b"k", b"+");
            let found = while_read(tree, y, || {
                put_away(tree, b"k", b"2");
                merge(tree, b"k", part);
                assert_eq!(operands(tree), 1);
            });
            assert!([some(b"1+"), some(b"2"), some(&newest)].contains(&found));
            assert_eq!(get(tree, b"k"), some(&newest));
            clean(tree);
            assert_eq!(in_y(y, b"k"), some(&newest));
        });
    }
}

/// The same of whoever resolves beside runs, because operands take too much memory.
#[test]
fn i3_what_is_resolved_beside_runs_was_not_overwritten_and_released() {
    each(|_, tree, y| {
        put_away(tree, b"k", b"1");
        merge(tree, b"k", b"+");
        let pause = y.pause(Point::GetEnd);
        std::thread::scope(|s| {
            s.spawn(|| {
                let stopped = tree.resolve_range((b"", None), &mut tree.allowance());
                assert_eq!(stopped.unwrap(), None);
            });
            pause.wait_reached();
            put_away(tree, b"k", b"2");
            merge(tree, b"k", b"+");
            pause.resume();
        });
        assert_eq!((get(tree, b"k"), operands(tree)), (some(b"2+"), 0));
    });
}

#[test]
fn i3_a_reader_does_not_resolve_what_a_range_took() {
    each(|_, tree, y| {
        put_away(tree, b"k", b"1");
        put_away(tree, b"l", b"1");
        merge(tree, b"k", b"+");
        let found = while_read(tree, y, || {
            let mut runs = tree.writer.lock();
            tree.remove_range(&mut runs, b"k", Some(b"k1")).unwrap();
            drop(runs);
            assert_eq!(operands(tree), 0);
            merge(tree, b"k", b"+");
        });
        assert!([some(b"1+"), None, some(b"+")].contains(&found));
        assert_eq!(get(tree, b"k"), some(b"+"));
        clean(tree);
        cut(tree);
        assert_eq!((get(tree, b"k"), get(tree, b"l")), (some(b"+"), some(b"1")));
    });
}

/// The run has read Y when its operand gets company, and when it is overwritten.
#[test]
fn i2_a_run_takes_what_came_while_it_resolved() {
    each(|_, tree, y| {
        for overwritten in [false, true] {
            put_away(tree, b"k", b"1");
            merge(tree, b"k", b"a");
            let pause = y.pause(Point::GetEnd);
            std::thread::scope(|s| {
                s.spawn(|| clean(tree));
                pause.wait_reached();
                if overwritten {
                    put(tree, b"k", b"2");
                }
                merge(tree, b"k", b"b");
                pause.resume();
            });
            let expected: &[u8] = match overwritten {
                true => b"2b",
                false => b"1ab",
            };
            assert_eq!((get(tree, b"k"), operands(tree)), (some(expected), 0));
            clean(tree);
            assert_eq!(in_y(y, b"k"), some(expected));
            assert_clean_means_equal(tree);
        }
    });
}

/// Nothing was written yet: the run waits and reads again, and gives up in the end. Then nothing is
/// lost.
#[test]
fn a_read_that_fails_before_a_run_is_tried_again() {
    each(|rig, tree, y| {
        for n in 0..10u8 {
            put_away(tree, &[n], b"1");
        }
        (0..10u8).for_each(|n| merge(tree, &[n], b"a"));
        put(tree, b"other", b"v");
        (0..2).for_each(|_| y.fail(Op::Get, 0, 0, io()));
        clean(tree);
        assert_eq!(
            (in_y(y, &[9]), in_y(y, b"other")),
            (some(b"1a"), some(b"v"))
        );
        cut(tree);
        (0..10u8).for_each(|n| merge(tree, &[n], b"b"));
        (0..4).for_each(|_| y.fail(Op::Get, 0, 0, io()));
        assert!(matches!(tree.write_back(Pick::All), Err(Error::Io { .. })));
        assert_eq!(operands(tree), 10);
        // It is for the cleaner to say what follows from that.
        rig.shared.poison.check().unwrap();
        let damage = || Error::corrupt("/y", 0, "it");
        y.fail(Op::Get, 0, 0, damage());
        assert!(matches!(
            tree.write_back(Pick::All),
            Err(Error::Corrupt { .. })
        ));
        clean(tree);
        assert_eq!((in_y(y, &[3]), operands(tree)), (some(b"1ab"), 0));
    });
}

/// Crashes after crashes: nothing is cut from the log, and what replays made is in Y already.
#[test]
fn i8_a_merge_counts_once_however_often_it_is_replayed() {
    for flushed in [false, true] {
        each(|rig, tree, _| {
            put(tree, b"j", b"1");
            put_away(tree, b"k", b"1");
            if flushed {
                rig.flush().unwrap();
            }
            merge(tree, b"j", b"a");
            merge(tree, b"k", b"a");
            assert_eq!(operands(tree), 2);
            rig.log().sync().unwrap();
            let mut rig = rig.clone();
            for seed in 0..6 {
                rig = rig.crash(seed);
                let tree = rig.trees.read()[&TREE].clone();
                let found = (get(&tree, b"j"), get(&tree, b"k"));
                assert_eq!(found, (some(b"1a"), some(b"1a")), "{seed}");
                if seed % 2 == 1 {
                    clean(&tree);
                    tree.writer.make_durable().unwrap();
                    cut(&tree);
                }
                if seed == 3 {
                    rig.truncate();
                }
            }
        });
    }
}

/// A batch is logged and not yet applied when a run and a reader come to an operand that it is
/// about to overwrite: what they make of the operand must not count for more after a crash.
#[test]
fn i8_nothing_is_resolved_between_the_record_of_a_batch_and_its_apply() {
    for value in [Some(&b"2"[..]), None] {
        each(|rig, tree, _| {
            put_away(tree, b"k", b"1");
            merge(tree, b"k", b"a");
            let (mut batch, id, key) = (BatchEncoder::default(), tree.id, &b"k"[..]);
            let record = match value {
                Some(value) => RecordRef::Put {
                    tree: id,
                    key,
                    value,
                },
                None => RecordRef::Remove { tree: id, key },
            };
            batch.push(record).unwrap();
            std::thread::scope(|s| {
                let apply = || {
                    assert_eq!(get(tree, b"k"), some(b"1a"), "it waits for nobody");
                    let run = s.spawn(|| tree.resolve_range((b"", None), &mut tree.allowance()));
                    let began = Instant::now();
                    while !run.is_finished() && began.elapsed() < Duration::from_millis(50) {
                        std::thread::yield_now();
                    }
                    tree.apply(b"k", value);
                };
                rig.shared.log.commit_batch(batch.record(), apply).unwrap();
            });
            let left = value.map(<[u8]>::to_vec);
            assert_eq!((get(tree, b"k"), operands(tree)), (left.clone(), 0));
            rig.log().sync().unwrap();
            rig.crash_and(|tree| assert_eq!(get(tree, b"k"), left));
        });
    }
}

/// Y is empty when the log is replayed, has what replay made of the merge when it is replayed
/// again, and lost it when it is replayed a third time.
#[test]
fn i8_a_merge_counts_once_over_a_disk_index_that_was_empty() {
    each(|rig, tree, y| {
        put_away(tree, b"other", b"1");
        rig.flush().unwrap();
        merge(tree, b"k", b"a");
        assert_eq!(operands(tree), 1);
        let mut runs = tree.writer.lock();
        tree.remove_range(&mut runs, b"other", None).unwrap();
        drop(runs);
        tree.writer.make_durable().unwrap();
        assert!(y.contents().is_empty());
        rig.log().sync().unwrap();
        let mut rig = rig.clone();
        for seed in 0..4 {
            rig = rig.crash(seed);
            let tree = rig.trees.read()[&TREE].clone();
            tree.clear_mounts_if_y_is_empty().unwrap();
            assert_eq!(get(&tree, b"k"), some(b"a"), "{seed}");
            clean(&tree);
            tree.writer.make_durable().unwrap();
        }
    });
}

/// Runs beside replay leave operands alone: the log has no record of what they would make.
#[test]
fn i8_what_is_replayed_is_not_resolved() {
    each(|rig, tree, y| {
        put_away(tree, b"k", b"1");
        rig.flush().unwrap();
        merge(tree, b"k", b"a");
        rig.log().sync().unwrap();
        rig.manifest.lock().cleans_in_replay = true;
        let mut rig = rig.clone();
        for seed in 0..3 {
            rig = rig.crash(seed);
            let tree = rig.trees.read()[&TREE].clone();
            assert_eq!((in_y(y, b"k"), operands(&tree)), (some(b"1"), 1));
            tree.writer.make_durable().unwrap();
        }
        let tree = rig.trees.read()[&TREE].clone();
        assert_eq!(get(&tree, b"k"), some(b"1a"));
    });
}

/// A run during replay has written what a first record says, and its floor lies before the merge
/// that follows. What replay makes of both is in Y, and no record says so: both stay in the log, or
/// both go.
#[test]
fn i6_a_log_that_was_replayed_with_operands_is_cut_at_its_end_or_not_at_all() {
    each(|rig, tree, _| {
        put_away(tree, b"k", &[b'x'; 20]);
        put(tree, b"k", b"1");
        clean(tree);
        cut(tree);
        // Segments end between the records.
        for n in 0..40u32 {
            put(tree, &n.to_be_bytes(), &[0; 400]);
        }
        merge(tree, b"k", b"a");
        assert_eq!(operands(tree), 1);
        rig.log().sync().unwrap();
        let start = rig.log().start();
        rig.manifest.lock().cleans_in_replay = true;
        let rig = rig.crash(1);
        let tree = rig.trees.read()[&TREE].clone();
        assert_eq!(get(&tree, b"k"), some(b"1a"));
        assert!(tree.regions.table().min_floor() > start);
        rig.truncate();
        assert_eq!(rig.log().start(), start);
        clean(&tree);
        tree.writer.make_durable().unwrap();
        let again = rig.crash(2);
        let tree = again.trees.read()[&TREE].clone();
        assert_eq!(get(&tree, b"k"), some(b"1a"));
        clean(&tree);
        again.truncate();
        assert!(again.log().start() > start);
        again.crash_and(|tree| assert_eq!(get(tree, b"k"), some(b"1a")));
    });
}

/// Index X returns more entries of a mounted leaf than a scan asks for: values that are too large
/// to be read together are not.
#[test]
fn i7_a_scan_reads_large_values_under_operands_one_by_one() {
    const KEYS: u32 = 8;
    each(|_, tree, y| {
        let keys: Vec<[u8; 4]> = (0..KEYS).map(u32::to_be_bytes).collect();
        for key in &keys {
            put_away(tree, key, &vec![b'v'; BUDGET / 50]);
        }
        keys.iter().for_each(|key| merge(tree, key, b"+"));
        assert_eq!(operands(tree), keys.len());
        let (calls, reads) = (y.calls(), y.reads());
        let found = scan_of(tree, b"", None, Order::Ascending);
        assert_eq!(found, keys);
        assert_eq!(y.calls() - calls, y.reads() - reads);
        assert!(y.reads() - reads >= u64::from(KEYS));
    });
}
