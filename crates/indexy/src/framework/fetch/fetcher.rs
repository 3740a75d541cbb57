//! The thread that reads for callers that do not wait.
//!
//! Source: 001 (retrieval). Started by the first miss that is left to it, or when more than a batch
//! waits for those that run; it lives until the database ends. Keeps: I1 and I3, because a fetch is
//! a miss like any other (`tree.rs`): X is searched, then Y, then X takes the load unless its stamp
//! has changed. The answer was the newest value at some moment between the caller's own search and
//! the answer.
//!
//! I7: values are read at once as [`AtOnce`](crate::framework::at_once::AtOnce) has it, for nobody
//! knows how large they are.
//!
//! Threads: holds no lock while Y is read, and none while it wakes, for a waker may run anything:
//! even drop the last handle of the database, which ends this very thread
//! (`worker.rs`, [`Background::stop`](crate::framework::worker::Background::stop)).

#![forbid(unsafe_code)]

use super::{
    queue::{Fetches, Request, refuse},
    slot::wake,
};
use crate::{framework::tree::Joined, key::Value};
use std::{mem::take, sync::Arc, task::Waker};

/// A fetcher's life: until the queue is closed.
pub(crate) fn run(fetches: &Fetches) {
    let present = fetches.enter();
    while let Some(batch) = present.next() {
        serve(batch);
    }
}

/// For a caller that was to start a fetcher and could not: serves what waits, until others are
/// there, nothing waits, or `start` has started a fetcher after all.
pub(crate) fn stand_in(fetches: &Fetches, start: impl Fn() -> bool) {
    let mut present = fetches.enter();
    if present.leave_to_others() {
        return;
    }
    while let Some(batch) = present.next_or_leave() {
        serve(batch);
        if start() {
            return present.hand_over();
        }
    }
}

/// Requests that are being served, and the wakers of those that were. Where that panics, the
/// database is poisoned before the callers of the others are told that nobody serves them.
struct Serving {
    batch: Vec<Request>,
    wakers: Vec<Waker>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(request) = self.batch.first() {
            let poison = &request.tree.shared.poison;
            poison.set(&"a read for callers that do not wait panicked");
        }
        refuse(take(&mut self.batch));
        take(&mut self.wakers).into_iter().for_each(wake);
    }
}

/// Answers every request, and then calls the wakers: one that waits for something may wait for
/// whoever waits for another answer of the batch.
fn serve(mut batch: Vec<Request>) {
    batch.sort_by(|a, b| (a.tree.id, &a.key).cmp(&(b.tree.id, &b.key)));
    let mut serving = Serving {
        batch,
        wakers: Vec::new(),
    };
    while let Some(last) = serving.batch.last() {
        let tree = Arc::clone(&last.tree);
        let from = last_keys(&serving.batch, tree.fetching.now());
        answer(&tree, &serving.batch[from..], &mut serving.wakers);
        // Answers that nobody waits for any more go here.
        serving.batch.truncate(from);
    }
}

/// Where in `batch` the last `keys` keys begin that are of the same tree as the last one.
fn last_keys(batch: &[Request], keys: usize) -> usize {
    let same_key = |a: &Request, b: &Request| a.tree.id == b.tree.id && a.key == b.key;
    let of_one_key = batch.chunk_by(same_key).rev();
    let of_one_tree = of_one_key.take_while(|same| same.first().map(id) == batch.last().map(id));
    batch.len() - of_one_tree.take(keys).map(<[_]>::len).sum::<usize>()
}

fn id(request: &Request) -> u32 {
    request.tree.id
}

/// Answers `requests`, which are of `tree`, by one read.
fn answer(tree: &Joined, requests: &[Request], wakers: &mut Vec<Waker>) {
    let of_one_key: Vec<&[Request]> = requests.chunk_by(|a, b| a.key == b.key).collect();
    let keys: Vec<&[u8]> = of_one_key.iter().map(|same| &*same[0].key).collect();
    match tree.fetch_living(&keys) {
        Ok(values) => {
            let bytes = |value: &Option<Value>| value.as_ref().map_or(0, |value| value.len());
            let largest = values.iter().map(bytes).max().unwrap_or(0);
            let limit = tree.shared.budget.limit();
            tree.fetching.have_read(keys.len(), largest, limit);
            for (same, value) in of_one_key.iter().zip(values) {
                wakers.extend(same.iter().filter_map(|r| r.answer(Ok(value.clone()))));
            }
        }
        // One key that cannot be read fails nobody else's.
        Err(_) => wakers.extend(requests.iter().filter_map(|request| {
            let value = tree.fetch_living(&[&request.key]);
            request.answer(value.map(|mut values| values.pop().flatten()))
        })),
    }
}
