//! One chunk of a scan: X and its mounts first, then Y over the mounted parts; X wins.
//!
//! Source: IndeXY II-D. Keeps I9: a key that exists all the while is either an entry that X showed,
//! or lies in a mounted part, where Y has it for as long as it exists. A key that is absent all the
//! while is in neither, or hidden by a tombstone that X showed. Each leaf is read atomically;
//! nothing is pinned between chunks. Bounded by bytes and entries in X and in Y. Scans do not fill
//! X.

#![forbid(unsafe_code)]

use super::tree::Joined;
use crate::{
    error::Result,
    key::{Key, Value, successor},
    x::{Chunk, IndexX, Order, ScanLimits},
};

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
const MAX_LEAVES: usize = 4096;

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
}

impl Merged {
    /// Appends a live entry; `None`: the key has no value.
    pub(super) fn push(&mut self, key: Key, value: Option<Value>) {
        if let Some(value) = value {
            self.bytes += key.len() + value.len();
            self.entries.push((key, value));
        }
    }

    /// Leaves all but the first entry to the next chunk.
    pub(crate) fn keep_first(&mut self, order: Order) {
        if self.entries.len() > 1 {
            let (key, _) = &self.entries[0];
            self.resume = Some(match order {
                Order::Ascending => successor(key),
                Order::Descending => key.to_vec(),
            });
            self.entries.truncate(1);
        }
    }
}

/// What Y contributed, and where its limit ended the chunk.
struct FromY {
    entries: Vec<(Key, Value)>,
    resume: Option<Vec<u8>>,
}

impl Joined {
    /// Reads the first chunk of `[from, to)` in `order`. Cost: X only where nothing is mounted,
    /// else reads of Y.
    pub(crate) fn scan_chunk(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        limits: MergeLimits,
    ) -> Result<Merged> {
        let mut chunk = Chunk::default();
        let x_limits = ScanLimits {
            bytes: limits.bytes,
            entries: limits.entries,
            leaves: MAX_LEAVES,
        };
        self.x.scan(from, to, order, x_limits, &mut chunk);
        if chunk.mounted.is_empty() {
            return Ok(only_x(chunk));
        }
        let from_y = self.read_mounted(&chunk, order, limits)?;
        self.check_kept()?;
        Ok(merge(chunk, from_y, order))
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

    /// Reads the mounted parts of `chunk` from Y, until the limits.
    fn read_mounted(&self, chunk: &Chunk, order: Order, limits: MergeLimits) -> Result<FromY> {
        let mut entries: Vec<(Key, Value)> = Vec::new();
        let mut bytes = 0;
        for (from, to) in &chunk.mounted {
            let mut range = self.y.range(from, to.as_deref(), order)?;
            while let Some(entry) = range.next() {
                let (key, value) = entry?;
                bytes += key.len() + value.len();
                entries.push((key, value));
                let enough = entries.len() >= limits.entries
                    && (entries.len() >= limits.at_hand || range.size_hint().0 == 0);
                if bytes >= limits.bytes || enough {
                    // What comes after the last key of Y is left to the next chunk.
                    let resume = entries.last().map(|(key, _)| match order {
                        Order::Ascending => successor(key),
                        Order::Descending => key.to_vec(),
                    });
                    return Ok(FromY { entries, resume });
                }
            }
        }
        Ok(FromY {
            entries,
            resume: None,
        })
    }
}

fn only_x(chunk: Chunk) -> Merged {
    let mut merged = Merged {
        resume: chunk.resume,
        entries: Vec::with_capacity(chunk.entries.len()),
        bytes: 0,
    };
    for entry in chunk.entries {
        merged.push(entry.key, entry.value);
    }
    merged
}

fn merge(chunk: Chunk, from_y: FromY, order: Order) -> Merged {
    let before = |a: &[u8], b: &[u8]| match order {
        Order::Ascending => a < b,
        Order::Descending => a > b,
    };
    // Y's limit may end the chunk earlier than X's did. Ascending, `resume` is just after the
    // last covered key; descending, it is that key.
    let covered = |key: &[u8]| match (&from_y.resume, order) {
        (None, _) => true,
        (Some(resume), Order::Ascending) => key < &resume[..],
        (Some(resume), Order::Descending) => key >= &resume[..],
    };
    let mut merged = Merged::default();
    let mut xs = chunk
        .entries
        .into_iter()
        .take_while(|e| covered(&e.key))
        .peekable();
    for (key, value) in from_y.entries {
        while let Some(x) = xs.next_if(|x| before(&x.key, &key)) {
            merged.push(x.key, x.value);
        }
        // I1: an entry in X wins.
        match xs.next_if(|x| x.key == key) {
            Some(x) => merged.push(key, x.value),
            None => merged.push(key, Some(value)),
        }
    }
    for x in xs {
        merged.push(x.key, x.value);
    }
    merged.resume = from_y.resume.or(chunk.resume);
    merged
}
