//! Truncation of the log that meets writers between append and apply, new trees and batches (I6).

use super::*;
use crate::{wal::BatchEncoder, y::memory::Point};
use std::sync::{
    atomic::{AtomicBool, Ordering::SeqCst},
    mpsc,
};

#[test]
fn i6_what_is_flushed_survives_without_its_log() {
    Rig::each(|rig, tree, y| {
        for n in 0..100u8 {
            put(tree, &[n], &[n; 100]);
        }
        rig.flush().unwrap();
        assert!(rig.log().start() > Lsn(0), "segments are gone");
        assert_eq!(y.durable_contents().len(), 100);
        put(tree, b"later", b"1");
        rig.log().sync().unwrap();
        rig.crash_and(|tree| {
            for n in 0..100u8 {
                assert_eq!(get(tree, &[n]), some(&[n; 100]));
            }
            assert_eq!(get(tree, b"later"), some(b"1"));
        });
    });
}

#[test]
fn i6_a_writer_between_append_and_apply_holds_the_log() {
    Rig::each(|rig, tree, _| {
        // A leaf with room and nothing dirty in it: the sweep has no other reason to look inside.
        put(tree, b"a", b"1");
        clean(tree);
        let (appended, wait) = mpsc::channel();
        let swept = AtomicBool::new(false);
        std::thread::scope(|s| {
            let swept = &swept;
            s.spawn(move || {
                let record = RecordRef::Put {
                    tree: TREE,
                    key: b"b",
                    value: b"2",
                };
                tree.x
                    .put(b"b", Some(b"2"), || {
                        rig.log().append(record)?;
                        appended.send(()).unwrap();
                        let start = std::time::Instant::now();
                        while !swept.load(SeqCst) && start.elapsed() < A_WHILE {
                            std::thread::yield_now();
                        }
                        Ok::<(), crate::Error>(())
                    })
                    .unwrap();
            });
            wait.recv().unwrap();
            clean(tree);
            swept.store(true, SeqCst);
        });
        rig.truncate();
        rig.log().sync().unwrap();
        rig.crash_and(|tree| assert_eq!(get(tree, b"b"), some(b"2")));
    });
}

/// A checkpoint overtakes a batch at every step between its log record and the end of its writes.
#[test]
fn i6_a_batch_across_a_sweep_holds_the_log() {
    for checkpoints in 1..8u8 {
        Rig::each(|rig, tree, _| {
            put(tree, b"a", b"1");
            let keys: [&[u8]; 2] = [b"b", b"c"];
            let mut step = 0;
            let writes = keys.map(|key| (&**tree, key, some_value(b"2")));
            // Before the first write, before the second, and after it.
            let mut writes = writes.into_iter();
            let interrupted = std::iter::from_fn(|| {
                rig.log().sync().unwrap();
                if checkpoints >> step & 1 == 1 {
                    rig.flush().unwrap();
                }
                step += 1;
                let write = writes.next();
                if write.is_none() {
                    // The lights go out before it is known to be applied.
                    rig.crash_and(|tree| {
                        assert_eq!(get(tree, b"a"), some(b"1"));
                        assert_eq!(get(tree, b"b"), some(b"2"));
                        assert_eq!(get(tree, b"c"), some(b"2"));
                    });
                }
                write
            });
            let batch = encoded(&keys.map(|key| (key, Some(&b"2"[..]))));
            commit(rig, &batch, interrupted);
        });
    }
}

/// The lights go out while a part of a batch is in Y and durable there: the log has the rest.
#[test]
fn i8_a_half_applied_batch_that_was_checkpointed_is_whole_after_a_crash() {
    Rig::each(|rig, tree, y| {
        let mut writes = [&b"b"[..], b"c"]
            .map(|key| (&**tree, key, some_value(b"2")))
            .into_iter();
        let mut step = 0;
        let interrupted = std::iter::from_fn(|| {
            if step == 1 {
                rig.flush().unwrap();
                assert_eq!(y.durable_contents().len(), 1);
                rig.crash_and(|tree| {
                    assert_eq!(get(tree, b"b"), some(b"2"));
                    assert_eq!(get(tree, b"c"), some(b"2"));
                });
            }
            step += 1;
            writes.next()
        });
        let batch = encoded(&[(b"b", Some(b"2")), (b"c", Some(b"2"))]);
        commit(rig, &batch, interrupted);
    });
}

#[test]
fn i6_a_batch_that_is_applied_lets_the_log_go() {
    Rig::each(|rig, tree, _| {
        let batch = encoded(&[(b"x", None)]);
        let writes = [(&**tree, &b"x"[..], None)].into_iter();
        let end = commit(rig, &batch, writes);
        rig.flush().unwrap();
        assert!(Some(rig.manifest.lock().start) >= end);
    });
}

/// Commits the batch `record`, whose writes are `writes`.
fn commit<'a>(
    rig: &Rig,
    record: &BatchEncoder,
    writes: impl Iterator<Item = (&'a Joined, &'a [u8], Option<&'a [u8]>)>,
) -> Option<Lsn> {
    let apply = || writes.for_each(|(tree, key, value)| tree.apply(key, value));
    rig.shared
        .log
        .commit_batch(record.record(), apply)
        .unwrap()
        .0
}

fn encoded(writes: &[(&[u8], Option<&[u8]>)]) -> BatchEncoder {
    let mut batch = BatchEncoder::default();
    for &(key, value) in writes {
        let tree = TREE;
        let record = match value {
            Some(value) => RecordRef::Put { tree, key, value },
            None => RecordRef::Remove { tree, key },
        };
        batch.push(record).unwrap();
    }
    batch
}

fn some_value(bytes: &'static [u8]) -> Option<&'static [u8]> {
    Some(bytes)
}

/// The tree [`TREE`] is made and written to at the n-th time that a flush has listed the trees.
#[test]
fn i6_a_tree_made_during_a_flush_keeps_its_records() {
    for kind in X_KINDS {
        for listing in 0..2 {
            let rig = Rig::new(kind);
            let (first, _) = rig.tree(2);
            put(&first, b"a", b"1");
            *rig.after_listing.lock() = Some(Box::new(move |rig: &Rig| make_after(rig, listing)));
            rig.flush().unwrap();
            rig.crash_and(|tree| assert_eq!(get(tree, b"b"), some(b"2")));
        }
    }
}

fn make_after(rig: &Rig, listings: u32) {
    if listings > 0 {
        *rig.after_listing.lock() = Some(Box::new(move |rig: &Rig| make_after(rig, listings - 1)));
        return;
    }
    let (tree, _) = rig.tree(TREE);
    put(&tree, b"b", b"2");
    rig.log().sync().unwrap();
    // The first tree is swept beyond that record.
    clean(&rig.trees.read()[&2]);
}

#[test]
fn i6_the_start_of_the_log_is_durable() {
    for kind in X_KINDS {
        let rig = Rig::new(kind);
        let (tree, _) = rig.tree(2);
        put(&tree, b"a", b"1");
        // Dropped: nothing is dirty any more, and nobody waited for the record.
        rig.trees.write().clear();
        rig.ys.lock().clear();
        rig.truncate();
        for seed in 0..8 {
            rig.crash(seed);
        }
    }
}

#[test]
fn i6_runs_acknowledged_after_the_floor_was_taken_do_not_count() {
    Rig::each(|rig, tree, y| {
        put(tree, b"a", b"1");
        clean(tree);
        let pause = y.pause(Point::DurableEnd);
        std::thread::scope(|s| {
            s.spawn(|| rig.truncate());
            pause.wait_reached();
            // Y made what it had durable; this run comes after.
            put(tree, b"b", b"2");
            clean(tree);
            pause.resume();
        });
        rig.crash_and(|tree| {
            assert_eq!(get(tree, b"a"), some(b"1"));
            assert_eq!(get(tree, b"b"), some(b"2"));
        });
    });
}

#[test]
fn i5_what_recovery_replays_is_durable_already() {
    let rig = Rig::new(XKind::Model);
    let (tree, _) = rig.tree(TREE);
    for n in 0..100u8 {
        put(&tree, &[n], &[n; 100]);
    }
    rig.log().sync().unwrap();
    // The process died and the system did not: the newest segment is in its cache and not durable.
    let files = rig.sim.contents();
    let newest = files.keys().next_back();
    let sim = Sim::default();
    for (path, content) in &files {
        let file = sim.create(path).unwrap();
        file.write_at(content, 0).unwrap();
        if Some(path) != newest {
            file.sync().unwrap();
        }
    }
    sim.sync_dir(Path::new(LOG_DIR)).unwrap();
    let mut replayed = 0;
    open_log(
        &sim,
        Manifest::default(),
        &Shared::new(Arc::new(Budget::new(BUDGET)), Arc::default()),
        &mut |_, _| {
            // Whatever is replayed may be cleaned at once.
            if replayed == 0 {
                (0..16).for_each(|seed| assert!(sim.crash(seed).contents() == files));
            }
            replayed += 1;
        },
    );
    assert_eq!(replayed, 100);
}

#[test]
fn i6_what_is_written_during_a_sweep_stays_in_the_log() {
    for point in [Point::RunDrained, Point::RunPublish, Point::RunVisible] {
        Rig::each(|rig, tree, y| {
            put(tree, b"k", b"v1");
            let pause = y.pause(point);
            std::thread::scope(|s| {
                s.spawn(|| clean(tree));
                pause.wait_reached();
                put(tree, b"k", b"v2");
                put(tree, b"new", b"1");
                rig.log().sync().unwrap();
                pause.resume();
            });
            rig.truncate();
            rig.crash_and(|tree| {
                assert_eq!(get(tree, b"k"), some(b"v2"));
                assert_eq!(get(tree, b"new"), some(b"1"));
            });
        });
    }
}
