//! Which part of a filter speaks of a key. A value that does not change: a new one replaces it.
//!
//! The parts divide all keys into ranges, in order. A part *knows* its range, or it does not: then
//! it denies nothing. A part may be *built anew* meanwhile, by a scan: what is written to Y goes to
//! both. Pure but for the bits.

use super::bits::Bits;
use std::{ops::Range, sync::Arc};

/// Keys for which a part is built at least, so that removals do not leave many small parts.
const LEAST_KEYS: u64 = 1024;
/// Keys for which a part is made, of those that it was built with.
const SPARE_DIVISOR: u64 = 3;

/// See the module header.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) bits_per_key: u8,
    /// Keys for which a part is built at most; it takes a third more.
    most_keys: u64,
    /// The first begins with the empty key.
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    from: Arc<[u8]>,
    /// `None`: nothing is known of the range.
    known: Option<Arc<Bits>>,
    /// A scan is under way.
    built: Option<Arc<Bits>>,
}

/// A part that is to be built.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::framework) struct Plan {
    /// Its number.
    part: usize,
    pub(in crate::framework) from: Arc<[u8]>,
    pub(in crate::framework) to: Option<Arc<[u8]>>,
    /// How many keys are read at most.
    pub(in crate::framework) keys: u64,
}

impl Plan {
    /// Keys for which its bits are made: there is room for more.
    pub(in crate::framework) fn capacity(&self) -> u64 {
        with_spare(self.keys)
    }
}

pub(super) fn with_spare(keys: u64) -> u64 {
    keys.saturating_add(keys / SPARE_DIVISOR)
}

/// Keys for which the part of `bits` is built anew, where Y has about `keys` keys in all and a part
/// has `most` at most.
fn keys_again(bits: &Bits, keys: u64, most: u64) -> u64 {
    // A little more than were counted: a rest of a few keys would be a part of its own.
    let counted = bits.keys() + bits.keys() / 8;
    match counted {
        // Far too many keys for its bits are counted too low.
        _ if bits.is_saturated() => counted.max(keys),
        // In two halves, so that each has room.
        counted if counted > most => counted / 2,
        counted => counted.max(LEAST_KEYS),
    }
}

impl Table {
    /// Nothing is known of any key.
    pub(super) fn new(bits_per_key: u8, most_keys: u64) -> Self {
        let all = Part {
            from: Arc::default(),
            known: None,
            built: None,
        };
        Self {
            bits_per_key,
            most_keys,
            parts: vec![all],
        }
    }

    fn with(&self, parts: Vec<Part>) -> Self {
        Self {
            parts,
            bits_per_key: self.bits_per_key,
            most_keys: self.most_keys,
        }
    }

    /// What its parts take.
    pub(super) fn bytes(&self) -> usize {
        let bits = |part: &Part| {
            let both = [&part.known, &part.built];
            let bytes = both.into_iter().flatten().map(|bits| bits.bytes());
            bytes.sum::<usize>()
        };
        self.parts.iter().map(bits).sum()
    }

    fn number_of(&self, key: &[u8]) -> usize {
        let after = self.parts.partition_point(|part| *part.from <= *key);
        after.saturating_sub(1)
    }

    fn part_of(&self, key: &[u8]) -> Option<&Part> {
        self.parts.get(self.number_of(key))
    }

    /// `key` is not among the keys that were noted or built in.
    pub(super) fn denies(&self, key: &[u8]) -> bool {
        let known = self.part_of(key).and_then(|part| part.known.as_deref());
        known.is_some_and(|bits| !bits.admits(Bits::hash_of(key)))
    }

    /// Y is about to get `key`, or its removal.
    pub(super) fn note(&self, key: &[u8], removed: bool) {
        let Some(part) = self.part_of(key) else {
            return;
        };
        let hash = Bits::hash_of(key);
        for bits in part.known.iter().chain(&part.built) {
            match removed {
                true => bits.note_removed(hash),
                false => bits.add(hash),
            }
        }
    }

    /// All parts know their ranges, and have no more keys than they were made for.
    pub(super) fn is_whole(&self) -> bool {
        let is_good = |bits: &Arc<Bits>| !bits.is_overfull();
        let mut parts = self.parts.iter();
        parts.all(|part| part.known.as_ref().is_some_and(is_good))
    }

    /// What is to be built next, if anything; Y has about `keys` keys in all.
    pub(super) fn next(&self, keys: u64) -> Option<Plan> {
        let is_unknown = |part: &Part| part.known.is_none() && part.built.is_none();
        if let Some(part) = self.parts.iter().position(is_unknown) {
            // Half more: it is an estimate, and a part that is too small is followed by another.
            return self.plan(part, keys.saturating_add(keys / 2));
        }
        let (part, bits) = self.parts.iter().enumerate().find_map(|(number, part)| {
            let bits = part.known.as_ref().filter(|_| part.built.is_none())?;
            (bits.is_overfull() || bits.is_stale()).then_some((number, bits))
        })?;
        self.plan(part, keys_again(bits, keys, self.most_keys))
    }

    fn plan(&self, part: usize, keys: u64) -> Option<Plan> {
        Some(Plan {
            part,
            from: Arc::clone(&self.parts.get(part)?.from),
            to: self.parts.get(part + 1).map(|next| Arc::clone(&next.from)),
            keys: keys.clamp(LEAST_KEYS, self.most_keys),
        })
    }

    /// The table while `bits` are built for `plan`; `None` if that part is another one by now.
    pub(super) fn building(&self, plan: &Plan, bits: &Arc<Bits>) -> Option<Self> {
        let same = self.plan(plan.part, plan.keys)?;
        let mut parts = self.parts.clone();
        let part = parts.get_mut(plan.part).filter(|_| same == *plan)?;
        part.built = Some(Arc::clone(bits));
        Some(self.with(parts))
    }

    /// The table when `bits` have every key of their part that is below `end` (`None`: every key);
    /// `None` if the part was forgotten meanwhile.
    pub(super) fn built(&self, bits: &Arc<Bits>, end: Option<&[u8]>) -> Option<Self> {
        let number = self.number_of_built(bits)?;
        let mut parts = self.parts.clone();
        let part = parts.get_mut(number)?;
        part.built = None;
        let before = part.known.replace(Arc::clone(bits));
        if let Some(end) = end {
            // What was known of the rest still is.
            let rest = Part {
                from: end.into(),
                known: before,
                built: None,
            };
            parts.insert(number + 1, rest);
        }
        Some(self.with(parts))
    }

    /// The table when the scan for `bits` was given up.
    pub(super) fn abandoned(&self, bits: &Arc<Bits>) -> Option<Self> {
        let number = self.number_of_built(bits)?;
        let mut parts = self.parts.clone();
        parts.get_mut(number)?.built = None;
        Some(self.with(parts))
    }

    fn number_of_built(&self, bits: &Arc<Bits>) -> Option<usize> {
        let is_theirs = |part: &Part| part.built.as_ref().is_some_and(|b| Arc::ptr_eq(b, bits));
        self.parts.iter().position(is_theirs)
    }

    /// The table when nothing is known any more of the parts that overlap `[from, to)`: one part in
    /// their place.
    pub(super) fn forgotten(&self, from: &[u8], to: Option<&[u8]>) -> Self {
        let end = match to {
            Some(to) => self.parts.partition_point(|part| *part.from < *to),
            None => self.parts.len(),
        };
        self.joined(self.number_of(from)..end)
    }

    /// The same of the parts that lie wholly in `[from, to)`; `None` if there are none.
    pub(super) fn without(&self, from: &[u8], to: Option<&[u8]>) -> Option<Self> {
        let first = self.parts.partition_point(|part| *part.from < *from);
        let end = match to {
            // The last one that begins before `to` ends behind it.
            Some(to) => self.number_of(to),
            None => self.parts.len(),
        };
        (first < end).then(|| self.joined(first..end))
    }

    /// One part of which nothing is known in the place of those of `numbers`.
    fn joined(&self, numbers: Range<usize>) -> Self {
        let mut parts = self.parts.clone();
        if let Some(part) = parts.get(numbers.start).filter(|_| !numbers.is_empty()) {
            let unknown = Part {
                from: Arc::clone(&part.from),
                known: None,
                built: None,
            };
            drop(parts.splice(numbers, [unknown]));
        }
        self.with(parts)
    }

    /// The table without what it knows of its last part that is known; `None` if there is none.
    pub(super) fn smaller(&self) -> Option<Self> {
        let mut parts = self.parts.clone();
        parts.iter_mut().rev().find_map(|part| part.known.take())?;
        Some(self.with(parts))
    }
}
