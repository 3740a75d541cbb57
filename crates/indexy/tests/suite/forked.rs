//! A forked child has a copy of the handles and none of the threads: dropping them does nothing to
//! the parent's files and lock, and ends.

use crate::{
    gated_y::{Call, Gate, Gated, OpenAtDrop},
    places::fast_dir,
    support::{MIB, assert_sound, child, child_argument, open, wait},
};
use indexy::{Db, Durability, Error, Fetch, IndexYKind, Options, Ticket};
use std::{sync::Arc, time::Duration};

/// A child that hangs is ended by its alarm, which is no exit.
const ALARM_S: u32 = 20;

/// In a process of its own, so that no other test's thread holds a lock when it forks.
#[test]
fn a_forked_child_leaves_the_database_to_its_parent() {
    for y in ["lsm", "bplus"] {
        let started = child("forked::forking_process", y).spawn().unwrap();
        assert!(wait(started, Duration::from_secs(120)), "{y}");
    }
}

#[test]
fn forking_process() {
    let Some(y) = child_argument() else {
        return;
    };
    let y = match y.as_str() {
        "lsm" => IndexYKind::Lsm,
        _ => IndexYKind::BPlus { page_bytes: 4096 },
    };
    for durability in [Durability::default(), Durability::None, Durability::Sync] {
        let options = Options::new(4 * MIB).index_y(y).durability(durability);
        let dir = fast_dir();
        let db = open(dir.path(), &options);
        let (tree, gone) = (db.tree("t").unwrap(), db.tree("gone").unwrap());
        for i in 0u32..3000 {
            tree.insert(i.to_be_bytes(), [1; 100]).unwrap();
            gone.insert(i.to_be_bytes(), [1; 100]).unwrap();
        }
        db.flush().unwrap();
        tree.insert(b"late", b"1").unwrap();
        db.drop_tree("gone").unwrap();
        let mut batch = db.batch();
        batch.insert(&tree, b"k", b"v");
        let mut range = tree.iter();
        range.next().unwrap().unwrap();
        // SAFETY: the child uses what it inherits, and nothing that another thread may have locked.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            // SAFETY: sets a timer.
            unsafe { libc::alarm(ALARM_S) };
            let refused =
                |result: indexy::Result<()>| matches!(result, Err(Error::Unsupported { .. }));
            let good = refused(db.flush())
                // What it logs never reaches the parent's file.
                && (durability != Durability::Sync || refused(tree.insert(b"child", b"1")))
                // Nobody empties the buffers of the log.
                && (durability == Durability::None
                    || (0u32..3000)
                        .find_map(|i| tree.insert(i.to_be_bytes(), [3; 100]).err())
                        .is_some_and(|error| refused(Err(error))))
                && refused(db.close())
                && refused(db.drop_tree("t"))
                && matches!(
                    Db::open(dir.path(), options.clone()),
                    Err(Error::Locked {
                        this_process: false,
                        ..
                    })
                );
            drop((range, batch, gone, tree, db));
            // SAFETY: ends the child at once, without what the test's process does at its end.
            unsafe { libc::_exit(if good { 7 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: `status` is written to.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status), "the child hangs");
        assert_eq!(libc::WEXITSTATUS(status), 7);
        // The lock is still the parent's, and so is all else.
        assert!(matches!(
            Db::open(dir.path(), options.clone()),
            Err(Error::Locked {
                this_process: true,
                ..
            })
        ));
        for i in 0u32..3000 {
            tree.insert(i.to_be_bytes(), [2; 100]).unwrap();
        }
        batch.commit().unwrap();
        assert_sound(&db);
        db.close().unwrap();
        drop((range, gone, tree, db));
        let db = open(dir.path(), &options);
        assert_sound(&db);
        assert_eq!(db.tree("t").unwrap().len().unwrap(), 3002);
    }
}

/// Who reads for tickets are threads, and the child has none.
#[test]
fn a_ticket_in_a_forked_child_does_not_wait() {
    let started = child("forked::forking_process_with_tickets", "here")
        .spawn()
        .unwrap();
    assert!(wait(started, Duration::from_secs(120)));
}

#[test]
fn forking_process_with_tickets() {
    if child_argument().is_none() {
        return;
    }
    let dir = fast_dir();
    let gate: Arc<Gate> = Arc::default();
    let options = Options::new(4 * MIB)
        .index_y(IndexYKind::custom("gated").unwrap())
        .register_index_y("gated", Arc::new(Gated(gate.clone())))
        .unwrap();
    let db = open(dir.path(), &options);
    let tree = db.tree("t").unwrap();
    for n in 0..10u8 {
        tree.insert([n], [n]).unwrap();
    }
    tree.release::<&[u8]>(..).unwrap();
    let later = |n: u8| match tree.try_get([n]).unwrap() {
        Fetch::Later(ticket) => ticket,
        Fetch::Now(_) => panic!("it was released"),
    };
    let answered = later(0);
    while !answered.is_ready() {
        std::thread::yield_now();
    }
    let _opened = OpenAtDrop(&gate);
    gate.close(Call::Get);
    let [waited_for, polled, dropped] = [1, 2, 3].map(later);
    gate.wait_until_reached();
    // SAFETY: the child uses what it inherits, and nothing that another thread may have locked.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        // SAFETY: sets a timer.
        unsafe { libc::alarm(ALARM_S) };
        let good = matches!(answered.wait(), Ok(Some(value)) if value == [0])
            && waited_for.is_ready()
            && matches!(waited_for.wait(), Err(Error::Unsupported { .. }))
            && is_refused_when_polled(polled);
        drop((dropped, tree, db));
        // SAFETY: ends the child at once, without what the test's process does at its end.
        unsafe { libc::_exit(if good { 7 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` is written to.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "the child hangs");
    assert_eq!(libc::WEXITSTATUS(status), 7);
    // The parent's tickets are answered.
    gate.open();
    for (n, ticket) in [(0, answered), (1, waited_for), (2, polled), (3, dropped)] {
        assert_eq!(ticket.wait().unwrap().unwrap(), [n]);
    }
}

#[cfg(feature = "async")]
fn is_refused_when_polled(mut ticket: Ticket) -> bool {
    use std::task::{Context, Poll, Waker};
    let mut context = Context::from_waker(Waker::noop());
    let polled = std::pin::Pin::new(&mut ticket).poll(&mut context);
    matches!(polled, Poll::Ready(Err(Error::Unsupported { .. })))
}

#[cfg(not(feature = "async"))]
fn is_refused_when_polled(ticket: Ticket) -> bool {
    matches!(ticket.wait(), Err(Error::Unsupported { .. }))
}
