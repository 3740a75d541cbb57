//! Tickets as futures, on an executor of a few lines: each task is polled when it was woken.

use indexy::{Db, Fetch, Options, Ticket};
use std::{
    pin::Pin,
    sync::{Arc, mpsc},
    task::{Context, Poll, Wake, Waker},
};

/// Puts its number in line.
struct Turn {
    number: usize,
    line: mpsc::Sender<usize>,
}

impl Wake for Turn {
    fn wake(self: Arc<Self>) {
        let _ = self.line.send(self.number);
    }
}

fn key(n: usize) -> [u8; 4] {
    (n as u32).to_be_bytes()
}

#[test]
fn one_thread_waits_for_many_tickets() {
    const KEYS: usize = 3000;
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), Options::new(8 << 20)).unwrap();
    let tree = db.tree("t").unwrap();
    (0..KEYS).for_each(|n| tree.insert(key(n), key(n)).unwrap());
    tree.release::<&[u8]>(..).unwrap();
    let (line, woken) = mpsc::channel();
    let mut tasks: Vec<Option<Ticket>> = Vec::new();
    for number in 0..KEYS {
        let task = match tree.try_get(key(number)).unwrap() {
            Fetch::Later(ticket) => Some(ticket),
            Fetch::Now(value) => {
                assert_eq!(value.unwrap(), key(number));
                None
            }
        };
        tasks.push(task);
        line.send(number).unwrap();
    }
    let mut left = tasks.iter().flatten().count();
    assert!(left > 100, "{left}");
    while left > 0 {
        let number = woken.recv().unwrap();
        let turn = Arc::new(Turn {
            number,
            line: line.clone(),
        });
        let waker = Waker::from(turn);
        let Some(ticket) = &mut tasks[number] else {
            continue;
        };
        if let Poll::Ready(value) = Pin::new(ticket).poll(&mut Context::from_waker(&waker)) {
            assert_eq!(value.unwrap().unwrap(), key(number));
            tasks[number] = None;
            left -= 1;
        }
    }
    db.close().unwrap();
}
