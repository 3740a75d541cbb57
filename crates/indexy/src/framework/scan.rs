//! One chunk of a scan: X and its mounts first, then Y over the mounted parts; X wins.
//!
//! Source: IndeXY II-D. Keeps I9: a key that exists all the while is either an entry that X showed,
//! or lies in a mounted part, where Y has it for as long as it exists. A key that is absent all the
//! while is in neither, or hidden by a tombstone that X showed. Each leaf is read atomically;
//! nothing is pinned between chunks. Bounded by bytes, entries and tombstones in X and in Y. Scans
//! do not fill X. A stretch that was found dead is passed at once (`dead_stretches/`). Whoever
//! asks for one entry is answered out of what was read ahead (`ends.rs`).

#![forbid(unsafe_code)]

use super::{dead_stretches::Passed, ends::Reading, expiry, regions::sample, tree::Joined};
use crate::{
    error::Result,
    key::{Key, Value, successor},
    versions::time::Millis,
    x::{Chunk, ChunkEntry, IndexX, MAX_TOMBSTONES, Order, ScanLimits},
};
use std::{iter::Peekable, ops::ControlFlow, vec::IntoIter};

/// How much one chunk may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergeLimits {
    /// Key and value bytes; one entry may exceed it.
    pub bytes: usize,
    pub entries: usize,
    /// With what Y has at hand after `entries`: taken now, it need not be looked for again.
    pub at_hand: usize,
}

/// Empty ranges and leaves that one chunk passes, so that a chunk over nothing ends too.
pub(super) const MAX_LEAVES: usize = 4096;
/// The same for who wants one entry, where Y is asked: it is most likely there.
pub(super) const LEAVES_OF_ONE: usize = 16;

/// A stretch is remembered when this was passed: a second look at it pays soon.
const WORTH_REMEMBERING: usize = 16;
/// A leaf that was passed by its header counts for so much.
const LEAF_PASSED: usize = 2;

/// A chunk of a count over mounted parts.
const COUNTED: MergeLimits = MergeLimits {
    bytes: 64 << 10,
    entries: 1024,
    at_hand: 1024,
};

/// A merged chunk.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// In scan order.
    pub entries: Vec<(Key, Value)>,
    /// Where the scan goes on: ascending a new `from`, descending a new `to`; `None` at its end.
    pub resume: Option<Vec<u8>>,
    /// Key and value bytes.
    pub bytes: usize,
    /// What was passed before the first entry: tombstones, what has died, and dead leaves for
    /// several of them.
    passed: usize,
    /// Entries that have expired by then are dead, and are passed as tombstones are.
    dead_at: Option<Millis>,
}

impl Merged {
    /// It begins with a stretch that the next scan would be glad to pass.
    fn is_worth_remembering(&self) -> bool {
        let nothing_yet = self.entries.is_empty() && self.resume.is_some();
        nothing_yet || self.passed >= WORTH_REMEMBERING
    }

    fn passing(dead_at: Option<Millis>) -> Self {
        Self {
            dead_at,
            ..Self::default()
        }
    }

    /// Appends a live entry; a tombstone (`None`) only hid Y's.
    pub(super) fn push(&mut self, key: Key, value: Option<Value>) {
        let lives = |value: &Value| !self.dead_at.is_some_and(|at| expiry::is_over(value, at));
        match value.filter(lives) {
            Some(value) => {
                self.bytes += key.len() + value.len();
                self.entries.push((key, value));
            }
            None if self.entries.is_empty() => self.passed += 1,
            None => {}
        }
    }

    /// Keeps the first entries, of up to `bytes` together and one at least, and leaves the others
    /// to the next chunk.
    pub(crate) fn keep(&mut self, bytes: usize, order: Order) {
        let (mut all, mut kept) = (0, 0);
        for (key, value) in &self.entries {
            all += key.len() + value.len();
            if kept > 0 && all > bytes {
                self.resume = Some(resume_after(&self.entries[kept - 1].0, order));
                self.bytes = all - key.len() - value.len();
                self.entries.truncate(kept);
                return;
            }
            kept += 1;
        }
    }
}

impl Joined {
    /// Reads the first chunk of `[from, to)` in `order`. Cost: X only where nothing is mounted,
    /// else reads of Y; nothing for a stretch that is known to be dead.
    pub(crate) fn scan_chunk(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        limits: MergeLimits,
    ) -> Result<Merged> {
        let passed = self.dead.pass(from, to, order);
        let (from, to) = match (&passed, order) {
            (Passed::Nothing, _) => (from, to),
            (Passed::UpTo(at), Order::Ascending) => (&at[..], to),
            (Passed::UpTo(at), Order::Descending) => (from, Some(&at[..])),
            (Passed::All, _) => return Ok(Merged::default()),
        };
        // I9: no snapshot sees what has died, however long the answer is remembered.
        let dead_at = self.dead_at();
        let merged = self.read_chunk(from, to, order, limits, dead_at)?;
        if !merged.is_worth_remembering() {
            return Ok(merged);
        }
        // I9: again, so that whoever writes meanwhile is heard of.
        let Some(armed) = self.dead.arm(from, to, order) else {
            return Ok(merged);
        };
        let merged = self.read_chunk(from, to, order, limits, dead_at)?;
        match (merged.entries.first(), order) {
            (None, _) => armed.settle(merged.resume.as_deref()),
            (Some((key, _)), Order::Ascending) => armed.settle(Some(key)),
            (Some((key, _)), Order::Descending) => armed.settle(Some(&successor(key))),
        }
        Ok(merged)
    }

    /// As `scan_chunk`, of all that is there.
    fn read_chunk(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        limits: MergeLimits,
        dead_at: Option<Millis>,
    ) -> Result<Merged> {
        let mut chunk = Chunk::default();
        let x_limits = ScanLimits {
            bytes: limits.bytes,
            entries: self.entries_at_once(limits.entries),
            leaves: MAX_LEAVES,
            leaves_if_mounted: match limits.entries {
                1 => LEAVES_OF_ONE,
                _ => MAX_LEAVES,
            },
        };
        self.x.scan(from, to, order, x_limits, &mut chunk);
        self.merge_chunk(&mut chunk)?;
        // Those that were found, not those that were looked for: they are in memory.
        let sampled = sample::due_of(chunk.entries.len());
        if let Some(first) = chunk.entries.first().filter(|_| sampled > 0) {
            self.regions.note_accesses(&first.key, sampled);
        }
        if chunk.mounted.is_empty() {
            return Ok(only_x(chunk, dead_at));
        }
        let merged = self.merge(chunk, order, limits, dead_at)?;
        self.check_kept()?;
        Ok(merged)
    }

    /// Counts all entries, those of complete parts without building them. `go_on` is asked between
    /// two steps.
    pub(crate) fn count(&self, mut go_on: impl FnMut() -> Result<()>) -> Result<u64> {
        let (mut counted, mut at) = (0, Some(Vec::new()));
        while let Some(from) = at {
            go_on()?;
            let (live, mounted) = self.x.count(&from, None);
            counted += live as u64;
            let Some(from) = mounted else { break };
            let merged = self.scan_chunk(&from, None, Order::Ascending, COUNTED)?;
            counted += merged.entries.len() as u64;
            at = merged.resume;
        }
        Ok(counted)
    }

    /// Reads the mounted parts of `chunk` from Y, until the limits, and merges both.
    fn merge(
        &self,
        chunk: Chunk,
        order: Order,
        limits: MergeLimits,
        dead_at: Option<Millis>,
    ) -> Result<Merged> {
        let mut merging = Merging {
            merged: Merged::passing(dead_at),
            xs: chunk.entries.into_iter().peekable(),
            order,
            limits,
            hidden: 0,
        };
        for (from, to) in &chunk.mounted {
            let part = (&from[..], to.as_deref());
            let merged = match limits.entries {
                1 => self.merge_end(&mut merging, part)?,
                _ => self.merge_part(&mut merging, part)?,
            };
            if merged.is_break() {
                return Ok(merging.merged);
            }
        }
        for x in merging.xs.by_ref() {
            merging.merged.push(x.key, x.value);
        }
        merging.merged.resume = chunk.resume;
        Ok(merging.merged)
    }

    /// Adds what Y has of `[from, to)`. `Break`: that is enough.
    fn merge_part(
        &self,
        merging: &mut Merging,
        (from, to): (&[u8], Option<&[u8]>),
    ) -> Result<ControlFlow<()>> {
        let mut range = self.y.range(from, to, merging.order)?;
        while let Some(entry) = range.next() {
            let (key, value) = entry?;
            if merging.add(key, value, range.size_hint().0).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The same for who asks for one entry, out of what was read ahead if that tells. What comes
    /// after that entry is read ahead.
    fn merge_end(
        &self,
        merging: &mut Merging,
        (from, to): (&[u8], Option<&[u8]>),
    ) -> Result<ControlFlow<()>> {
        let (shown, order) = (self.writer.shown(), merging.order);
        let start = match order {
            Order::Ascending => Some(from),
            Order::Descending => to,
        };
        let mut ended = false;
        let fed = self.ends.feed(shown, start, order, |key, value| {
            ended = is_past(key, (from, to), order);
            match ended {
                true => ControlFlow::Break(()),
                false => merging.add(key.clone(), value.clone(), 0),
            }
        });
        let last = match fed {
            Some(ControlFlow::Break(())) if ended => return Ok(ControlFlow::Continue(())),
            Some(ControlFlow::Break(())) => return Ok(ControlFlow::Break(())),
            Some(ControlFlow::Continue(last)) => Some(last),
            None => None,
        };
        let next = last.map(|last| resume_after(&last, order));
        let start = next.as_deref().or(start);
        let Some(reading) = self.ends.begin(shown, start, order) else {
            return match order {
                Order::Ascending => self.merge_part(merging, (start.unwrap_or_default(), to)),
                Order::Descending => self.merge_part(merging, (from, start)),
            };
        };
        self.merge_ahead(merging, (from, to), start, reading)
    }

    /// Adds what Y has of `part` from `start` on, and reads ahead.
    fn merge_ahead(
        &self,
        merging: &mut Merging,
        part: (&[u8], Option<&[u8]>),
        start: Option<&[u8]>,
        mut reading: Reading,
    ) -> Result<ControlFlow<()>> {
        let order = merging.order;
        let mut range = match order {
            Order::Ascending => self.y.range(start.unwrap_or_default(), None, order)?,
            Order::Descending => self.y.range(&[], start, order)?,
        };
        let mut merged = None;
        while let Some(entry) = range.next() {
            let (key, value) = match (entry, merged) {
                (Ok(entry), _) => entry,
                (Err(error), None) => return Err(error),
                // Nobody has asked for it.
                (Err(_), Some(_)) => break,
            };
            let at_hand = range.size_hint().0;
            let kept = reading.keep(&key, &value, at_hand);
            if merged.is_none() {
                merged = if is_past(&key, part, order) {
                    Some(ControlFlow::Continue(()))
                } else {
                    let added = merging.add(key, value, 0);
                    added.is_break().then_some(added)
                };
            }
            if !kept && merged.is_some() {
                break;
            }
        }
        drop(range);
        self.ends.end(self.writer.shown(), reading);
        Ok(merged.unwrap_or(ControlFlow::Continue(())))
    }
}

/// `key` comes after the last key of the part.
fn is_past(key: &[u8], (from, to): (&[u8], Option<&[u8]>), order: Order) -> bool {
    match order {
        Order::Ascending => to.is_some_and(|to| key >= to),
        Order::Descending => key < from,
    }
}

/// Where a scan goes on after `key`: ascending a new `from`, descending a new `to`.
fn resume_after(key: &[u8], order: Order) -> Vec<u8> {
    match order {
        Order::Ascending => successor(key),
        Order::Descending => key.to_vec(),
    }
}

/// Y's entries on their way into those of X.
struct Merging {
    merged: Merged,
    xs: Peekable<IntoIter<ChunkEntry>>,
    order: Order,
    limits: MergeLimits,
    /// Entries of Y that X hid, or that are dead.
    hidden: usize,
}

impl Merging {
    /// Adds what X has up to the key of the next entry of Y, and that; after it `at_hand` more are
    /// at hand. `Break`: it is enough, and what comes after that key is left to the next chunk.
    fn add(&mut self, key: Key, value: Value, at_hand: usize) -> ControlFlow<()> {
        let order = self.order;
        let before = |x: &ChunkEntry| match order {
            Order::Ascending => x.key < key,
            Order::Descending => x.key > key,
        };
        while let Some(x) = self.xs.next_if(before) {
            self.merged.push(x.key, x.value);
        }
        // I1: an entry in X wins.
        let value = match self.xs.next_if(|x| x.key == key) {
            Some(x) => x.value,
            None => Some(value),
        };
        let before = self.merged.entries.len();
        self.merged.push(key.clone(), value);
        let (live, limits) = (self.merged.entries.len(), self.limits);
        self.hidden += usize::from(live == before);
        let enough = live >= limits.entries && (live >= limits.at_hand || at_hand == 0);
        if self.merged.bytes >= limits.bytes || enough || self.hidden >= MAX_TOMBSTONES {
            self.merged.resume = Some(resume_after(&key, order));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

fn only_x(chunk: Chunk, dead_at: Option<Millis>) -> Merged {
    let mut merged = Merged {
        resume: chunk.resume,
        entries: Vec::with_capacity(chunk.entries.len()),
        bytes: 0,
        passed: chunk.passed * LEAF_PASSED,
        dead_at,
    };
    for entry in chunk.entries {
        merged.push(entry.key, entry.value);
    }
    merged
}
