//! The thread that reads for callers that do not wait.
//!
//! Source: 001 (retrieval). Started by the first miss that is left to it, or when more than a batch
//! waits for those that run; it lives until the database ends. Keeps: I1 and I3, because a fetch is
//! a miss like any other (`tree.rs`): X is searched, then Y, then X takes the load unless its stamp
//! has changed. The answer was the newest value at some moment between the caller's own search and
//! the answer.
//!
//! Threads: holds no lock while Y is read, and none while it answers, for a waker may run anything:
//! even drop the last handle of the database, which ends this very thread
//! (`worker.rs`, [`Background::stop`](crate::framework::worker::Background::stop)).

#![forbid(unsafe_code)]

use super::queue::{Fetches, Request};

/// A fetcher's life: until the queue is closed.
pub(crate) fn run(fetches: &Fetches) {
    let present = fetches.enter();
    while let Some(batch) = present.next() {
        serve(batch);
    }
}

/// For a caller that was to start a fetcher and could not: serves all that waits.
pub(crate) fn stand_in(fetches: &Fetches) {
    let mut present = fetches.enter();
    while let Some(batch) = present.next_or_leave() {
        serve(batch);
    }
}

/// Requests that are being served. Where that panics, the database is poisoned before their callers
/// are told that nobody serves them.
struct Serving {
    batch: Vec<Request>,
    done: bool,
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let (false, Some(request)) = (self.done, self.batch.first()) {
            let poison = &request.tree.shared.poison;
            poison.set(&"a read for callers that do not wait panicked");
        }
    }
}

/// Answers every request.
fn serve(batch: Vec<Request>) {
    let mut serving = Serving { batch, done: false };
    answer_all(&mut serving.batch);
    serving.done = true;
}

fn answer_all(batch: &mut [Request]) {
    batch.sort_by(|a, b| (a.tree.id, &a.key).cmp(&(b.tree.id, &b.key)));
    for of_one_tree in batch.chunk_by(|a, b| a.tree.id == b.tree.id) {
        let of_one_key: Vec<&[Request]> = of_one_tree.chunk_by(|a, b| a.key == b.key).collect();
        let keys: Vec<&[u8]> = of_one_key.iter().map(|same| &*same[0].key).collect();
        let tree = &of_one_tree[0].tree;
        match tree.fetch_living(&keys) {
            Ok(values) => {
                for (same, value) in of_one_key.iter().zip(values) {
                    same.iter().for_each(|r| r.answer(Ok(value.clone())));
                }
            }
            // One key that cannot be read fails nobody else's.
            Err(_) => of_one_tree.iter().for_each(|request| {
                let value = tree.fetch_living(&[&request.key]);
                request.answer(value.map(|mut values| values.pop().flatten()));
            }),
        }
    }
}
