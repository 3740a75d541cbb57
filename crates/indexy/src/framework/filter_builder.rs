//! Builds filters: the thread that reads Y to learn which keys it has.
//!
//! A part at a time (`evicted/table.rs`), by chunks of bounded size: between two chunks nothing of
//! Y is held. Whatever fails leaves the part unknown, and is tried again later and later. Threads:
//! one, which begins with the first filter. It waits for the run lock, which nobody holds who waits
//! for it; for reads of Y; and between looks, until it is woken.

#![forbid(unsafe_code)]

use super::{
    back_off::BackOff,
    counters::read,
    evicted::{
        bits::{Bits, bytes_for},
        table::Plan,
    },
    host::Host,
    shared::Shared,
    signal::Stop,
    tree::Joined,
};
use crate::{error::Result, x::Order};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The builder looks around this often without being woken: parts become overfull and stale.
const IDLE: Duration = Duration::from_millis(200);
/// Of Y between two looks at the end of the database.
const CHUNK_KEYS: usize = 1024;
const CHUNK_BYTES: usize = 1 << 20;

/// What became of a part.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Built {
    /// It answers from now on, as does all below `end`.
    Yes,
    /// There is nothing to do, or no room for it.
    Nothing,
    /// The tree is gone, or the database ends.
    Ended,
}

/// See the module header.
pub(super) fn run(shared: &Shared, host: &dyn Host, stop: &Stop) {
    let mut back_off = BackOff::default();
    while !stop.is_set() {
        let trees = host.trees();
        back_off.keep(|id| trees.iter().any(|tree| tree.id == id));
        let mut more = false;
        for tree in &trees {
            more |= !stop.is_set()
                && match shared.filters.is_exceeded() {
                    true => shed(shared, &trees, tree),
                    false => step(shared, tree, stop, &mut back_off),
                };
        }
        drop(trees);
        if !more {
            shared.wake_builder.wait(IDLE);
        }
    }
}

/// There is no room for all filters: gives a part of that of `tree` up, unless what they have left
/// fits. A part that was given up may still take its room, as long as a run notes keys in it.
/// False: nothing was given up.
pub(super) fn shed(shared: &Shared, trees: &[Arc<Joined>], tree: &Joined) -> bool {
    let bytes = |tree: &Arc<Joined>| tree.writer.evicted().bytes();
    let kept: usize = trees.iter().map(bytes).sum();
    kept > shared.filters.limit() && tree.writer.evicted().shed()
}

/// Builds a part of the filter of `tree`, if one is due; whether another one may be.
fn step(shared: &Shared, tree: &Joined, stop: &Stop, back_off: &mut BackOff) -> bool {
    let (now, runs) = (Instant::now(), read(&shared.counters.runs));
    if back_off.holds(tree.id, now, runs).is_some() {
        return false;
    }
    match build(shared, tree, stop) {
        Ok(Built::Yes) => {
            back_off.worked(tree.id);
            true
        }
        Ok(Built::Nothing | Built::Ended) => false,
        Err(error) => {
            back_off.failed(tree.id, error, now, runs);
            false
        }
    }
}

/// Builds the part that is due.
pub(super) fn build(shared: &Shared, tree: &Joined, stop: &Stop) -> Result<Built> {
    let evicted = tree.writer.evicted();
    let Some((plan, bits_per_key)) = evicted.next(tree.y.approximate_len()) else {
        return Ok(Built::Nothing);
    };
    let room = bytes_for(plan.capacity(), bits_per_key);
    let Some(reserved) = shared.filters.reserve(room) else {
        return Ok(Built::Nothing);
    };
    let bits = Arc::new(Bits::new(plan.capacity(), bits_per_key, reserved));
    {
        let _no_run = tree.writer.lock();
        if tree.discarded() || !evicted.begin(&plan, &bits) {
            return Ok(Built::Ended);
        }
    }
    let scanned = scan(tree, &plan, &bits, stop);
    if let Ok(Scanned::Up(end)) = &scanned {
        evicted.finish(&bits, end.as_deref());
        return Ok(Built::Yes);
    }
    evicted.abandon(&bits);
    scanned.map(|_| Built::Ended)
}

/// How far a scan came.
enum Scanned {
    /// Past every key below this one; `None`: past all.
    Up(Option<Vec<u8>>),
    Stopped,
}

/// Sets the bits of the keys that Y has in the range of `plan`, as many as it says.
fn scan(tree: &Joined, plan: &Plan, bits: &Bits, stop: &Stop) -> Result<Scanned> {
    let (mut at, mut keys) = (plan.from.to_vec(), 0);
    loop {
        if stop.is_set() || tree.discarded() {
            return Ok(Scanned::Stopped);
        }
        let mut last = None;
        let (mut taken, mut bytes) = (0, 0);
        for entry in tree.y.range(&at, plan.to.as_deref(), Order::Ascending)? {
            let (key, value) = entry?;
            if keys == plan.keys {
                return Ok(Scanned::Up(Some(key.to_vec())));
            }
            bits.add(Bits::hash_of(&key));
            keys += 1;
            taken += 1;
            bytes += key.len() + value.len();
            last = Some(key);
            if taken == CHUNK_KEYS || bytes >= CHUNK_BYTES {
                break;
            }
        }
        let Some(last) = last else {
            return Ok(Scanned::Up(None));
        };
        // The next key there can be.
        at.clear();
        at.extend_from_slice(&last);
        at.push(0);
    }
}
