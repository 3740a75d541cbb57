//! Reads of keys that have an operand in X.
//!
//! Keeps: I1 and I3, by the stamp of the range; see the module header of the folder.
//!
//! Threads: any; nothing is held while Y is read, and nothing is waited for. A read resolves the
//! operand on the way where that waits for nothing.

#![forbid(unsafe_code)]

use crate::{
    error::{Error, Result},
    framework::{
        counters,
        merging::Meeting,
        misses::Purpose,
        operators::{Operator, Outcome},
        tree::Joined,
    },
    key::{Key, Value},
    x::{Chunk, IndexX, Stamp, Waiting},
};

impl Joined {
    /// The tree's operator. Errors: `MergeOperatorMissing`.
    pub(crate) fn operator(&self) -> Result<&Operator> {
        let missing = || Error::MergeOperatorMissing {
            tree: format!("number {}", self.id),
        };
        self.merging.operator.get().ok_or_else(missing)
    }

    /// Values that are read at once where operands meet theirs; see [`Joined::have_read`].
    pub(crate) fn reads_at_once(&self) -> usize {
        self.merging.at_once.now()
    }

    /// So many values were read from Y at once; with all that belongs to them they had `largest`
    /// bytes at most.
    pub(crate) fn have_read(&self, values: usize, largest: usize) {
        let limit = self.shared.budget.limit();
        self.merging.at_once.have_read(values, largest, limit);
    }

    /// As many entries of a chunk of a scan as may have operands (I7): their values are read before
    /// anybody knows how large they are. `entries`: how many are wanted.
    pub(in crate::framework) fn entries_at_once(&self, entries: usize) -> usize {
        let waiting = self.merging.operator.get().is_some() && self.x.stats().operands > 0;
        match waiting {
            true => entries.min(self.merging.at_once.now()),
            false => entries,
        }
    }

    /// Longest value that a merge makes.
    pub(super) fn longest_merged(&self) -> usize {
        self.limits.max_value_bytes
    }

    /// As `get_for`, of a key that had an operand when X was searched.
    #[cold]
    #[inline(never)]
    pub(in crate::framework) fn get_merged<R>(
        &self,
        purpose: Purpose,
        key: &[u8],
        found: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let meeting = match purpose.is_removal() {
            true => Meeting::Look,
            false => Meeting::Resolve,
        };
        match self.read_merged(key, meeting)? {
            Some(value) => Ok(value.map(|value| found(&value))),
            None => self.get_for(purpose, key, found),
        }
    }

    /// The value of a key that has an operand; `None`: it has none any more.
    pub(in crate::framework) fn read_merged(
        &self,
        key: &[u8],
        meeting: Meeting,
    ) -> Result<Option<Option<Value>>> {
        loop {
            let Some((_, stamp)) = self.x.operand(key) else {
                return Ok(None);
            };
            counters::add(&self.shared.counters.y_reads, 1);
            let base = self.y.get(key)?;
            self.check_kept()?;
            match self.x.operand(key) {
                // I3: Y has had the same value since the stamp was read.
                Some((operand, now)) if now == stamp => {
                    return self.met(key, base, operand, stamp, meeting).map(Some);
                }
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// The values of `keys`, each of which may have an operand; the reads of Y overlap.
    pub(in crate::framework) fn read_merged_all(
        &self,
        keys: &[&[u8]],
        meeting: Meeting,
    ) -> Result<Vec<Option<Value>>> {
        let stamps: Vec<Option<Stamp>> = keys
            .iter()
            .map(|key| self.x.operand(key).map(|(_, stamp)| stamp))
            .collect();
        let asked = keys.iter().zip(&stamps);
        let asked = asked.filter_map(|(key, stamp)| stamp.map(|_| *key));
        let asked: Vec<&[u8]> = asked.collect();
        counters::add(&self.shared.counters.y_reads, asked.len() as u64);
        let bases = match asked.is_empty() {
            true => Vec::new(),
            false => self.y.multi_get(&asked)?,
        };
        self.check_kept()?;
        let largest = bases.iter().flatten().map(|base| base.len()).max();
        self.have_read(asked.len(), largest.unwrap_or(0));
        let mut bases = bases.into_iter();
        let mut values = Vec::with_capacity(keys.len());
        for (key, stamp) in keys.iter().zip(stamps) {
            let base = stamp.and_then(|_| bases.next()).flatten();
            values.push(match self.x.operand(key) {
                Some((operand, now)) if Some(now) == stamp => {
                    self.met(key, base, operand, now, meeting)?
                }
                // It was written, resolved or cut meanwhile.
                _ => self.get(key, Value::new)?,
            });
        }
        Ok(values)
    }

    /// Gives the operands of a chunk of a scan their values.
    pub(in crate::framework) fn merge_chunk(&self, chunk: &mut Chunk) -> Result<()> {
        let waiting = chunk.entries.iter_mut().filter(|entry| entry.operand);
        let mut waiting: Vec<_> = waiting.collect();
        if waiting.is_empty() {
            return Ok(());
        }
        // I7: X may return more entries than it was asked for.
        let mut rest = &mut waiting[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at_mut(self.reads_at_once().min(rest.len()));
            let keys: Vec<Key> = now.iter().map(|entry| entry.key.clone()).collect();
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            let values = self.read_merged_all(&keys, Meeting::Look)?;
            for (entry, value) in now.iter_mut().zip(values) {
                entry.value = value;
            }
            rest = later;
        }
        Ok(())
    }

    /// What an operand makes of `base`.
    fn met(
        &self,
        key: &[u8],
        base: Option<Value>,
        operand: Value,
        stamp: Stamp,
        meeting: Meeting,
    ) -> Result<Option<Value>> {
        let most = self.longest_merged();
        let outcome = self.operator()?.merge(key, base.as_deref(), &operand, most);
        let made = match outcome {
            Outcome::Value(value) => Some(Value::from(value)),
            Outcome::Same | Outcome::Refused(_) => None,
        };
        if meeting == Meeting::Resolve {
            let key = Key::new(key);
            self.resolve_at_once(
                &Waiting {
                    key,
                    operand,
                    stamp,
                },
                made.as_deref(),
            );
        }
        Ok(made.or(base))
    }
}
