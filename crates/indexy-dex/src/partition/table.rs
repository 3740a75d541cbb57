//! The table of owners, in the pool: 1 KiB in the superblock of memory server 0.
//!
//! | word | field | rule |
//! |---|---|---|
//! | 0 | version | odd: a writer holds it; `lock_word.rs` |
//! | 1 | epoch | grows by one with every change |
//! | 2 | segments | 1 to [`MAX_SEGMENTS`] |
//! | 3.. | lowest key, owner | ascending; the first key is 0; a segment ends before the next |

use crate::{
    address::Address,
    error::{Error, Result},
    lock_word,
    remote::{RemoteMemory, TABLE_OFFSET, read_versioned, take_lock},
};

/// Ranges that a table can tell apart.
pub const MAX_SEGMENTS: usize = 62;
const WORDS: usize = 128;
const SEGMENTS_AT: usize = 3;

const _: () = assert!(SEGMENTS_AT + 2 * MAX_SEGMENTS <= WORDS);

/// Who owns which keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    epoch: u64,
    segments: Vec<(u64, u16)>,
}

fn place() -> Address {
    Address::new(0, TABLE_OFFSET)
}

impl Table {
    /// The first epoch: each owner with its lowest key, ascending from 0.
    pub fn new(segments: Vec<(u64, u16)>) -> Result<Self> {
        let wrong = |what: &str| Err(Error::Options(format!("a table of owners: {what}")));
        match segments.first() {
            Some((0, _)) => {}
            _ => return wrong("the first key is not 0"),
        }
        if segments.len() > MAX_SEGMENTS {
            return wrong("too many ranges");
        }
        if segments.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            return wrong("the keys are not ascending");
        }
        let epoch = 1;
        Ok(Self { epoch, segments })
    }

    /// All keys to owner 0.
    pub fn whole() -> Self {
        Self {
            epoch: 1,
            segments: vec![(0, 0)],
        }
    }

    /// Changes so far, from 1.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Lowest and highest key and owner of each segment.
    pub fn segments(&self) -> impl Iterator<Item = (u64, u64, u16)> {
        let next = self.segments.iter().skip(1).map(|segment| segment.0 - 1);
        let ends = next.chain([u64::MAX]);
        let starts = self.segments.iter();
        starts
            .zip(ends)
            .map(|(&(low, owner), high)| (low, high, owner))
    }

    /// The owner of `key`.
    pub fn owner_of(&self, key: u64) -> u16 {
        let after = self.segments.partition_point(|segment| segment.0 <= key);
        // The first segment starts at 0.
        self.segments[after - 1].1
    }

    /// The next epoch, in which `low..=high` belongs to `to`.
    pub fn moved(&self, low: u64, high: u64, to: u16) -> Result<Self> {
        let mut segments: Vec<(u64, u16)> = Vec::new();
        let mut add = |low: u64, owner: u16| match segments.last_mut() {
            Some(last) if last.1 == owner => {}
            Some(last) if last.0 == low => last.1 = owner,
            _ => segments.push((low, owner)),
        };
        for (start, end, owner) in self.segments() {
            if start < low {
                add(start, owner);
            }
            if start <= high && low <= end {
                add(start.max(low), to);
            }
            if high < end {
                add(start.max(high + 1), owner);
            }
        }
        let mut table = Self::new(segments)?;
        table.epoch = self.epoch + 1;
        Ok(table)
    }

    /// The next epoch, in which all ranges of `from` belong to `to`; `None`: there are none.
    pub(crate) fn all_moved(&self, from: u16, to: u16) -> Result<Option<Self>> {
        let mut next: Option<Self> = None;
        let ranges: Vec<_> = self
            .segments()
            .filter(|segment| segment.2 == from)
            .collect();
        for (low, high, _) in ranges {
            next = Some(next.as_ref().unwrap_or(self).moved(low, high, to)?);
        }
        if let Some(next) = &mut next {
            next.epoch = self.epoch + 1;
        }
        Ok(next)
    }

    fn words(&self, version: u64) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[..SEGMENTS_AT].copy_from_slice(&[version, self.epoch, self.segments.len() as u64]);
        for (i, &(low, owner)) in self.segments.iter().enumerate() {
            words[SEGMENTS_AT + 2 * i] = low;
            words[SEGMENTS_AT + 2 * i + 1] = u64::from(owner);
        }
        words
    }

    fn from_words(words: &[u64; WORDS]) -> Option<Self> {
        let segments = usize::try_from(words[2]).ok()?;
        if segments > MAX_SEGMENTS {
            return None;
        }
        let (pairs, _) = words[SEGMENTS_AT..].as_chunks::<2>();
        let pairs = pairs.iter().take(segments);
        let owners = pairs.map(|&[low, owner]| Some((low, u16::try_from(owner).ok()?)));
        let mut table = Self::new(owners.collect::<Option<_>>()?).ok()?;
        table.epoch = words[1];
        Some(table)
    }

    /// The table of the pool: three reads, more while somebody writes it.
    pub fn load(memory: &impl RemoteMemory) -> Result<Self> {
        let mut words = [0; WORDS];
        read_versioned(memory, place(), &mut words, end_lock)?;
        Self::whole_words(&words)
    }

    fn whole_words(words: &[u64; WORDS]) -> Result<Self> {
        let what = "the table of owners is damaged";
        Self::from_words(words).ok_or(Error::corrupt(place(), what))
    }

    /// Replaces the table of the pool if its epoch is the one before; `false`: it is not.
    pub fn store(&self, memory: &impl RemoteMemory) -> Result<bool> {
        let lock = TableLock::take(memory)?;
        let mut epoch = [0];
        memory.read(place().plus(8), &mut epoch)?;
        let follows = epoch[0] + 1 == self.epoch;
        if follows {
            lock.write(self)?;
        }
        lock.end()?;
        Ok(follows)
    }
}

/// The table, which this compute server alone changes. Dropped: unlocked; what the pool has is
/// the table before or the one after, for a table is one write.
pub(crate) struct TableLock<'a, M: RemoteMemory> {
    memory: &'a M,
    version: u64,
    is_held: bool,
}

impl<'a, M: RemoteMemory> TableLock<'a, M> {
    pub(crate) fn take(memory: &'a M) -> Result<Self> {
        let version = take_lock(memory, place(), 0, end_lock)?;
        Ok(Self {
            memory,
            version,
            is_held: true,
        })
    }

    /// The table as it stands.
    pub(crate) fn read(&self) -> Result<Table> {
        let mut words = [0; WORDS];
        self.memory.read(place(), &mut words)?;
        Table::whole_words(&words)
    }

    /// Writes the table; others see it when the lock ends.
    pub(crate) fn write(&self, table: &Table) -> Result<()> {
        let locked = lock_word::locked(self.version, self.memory.session());
        self.memory.write(place(), &table.words(locked))
    }

    pub(crate) fn end(mut self) -> Result<()> {
        self.is_held = false;
        let next = lock_word::next(self.version);
        self.memory.write(place(), &[next])
    }
}

impl<M: RemoteMemory> Drop for TableLock<'_, M> {
    fn drop(&mut self) {
        let next = lock_word::next(self.version);
        if self.is_held && self.memory.write(place(), &[next]).is_err() {
            // Others end the lock when our lease lapsed.
            self.memory.abandon();
        }
    }
}

/// The lock of a compute server that was fenced ends: the table is whole, old or new.
fn end_lock(memory: &impl RemoteMemory, word: u64) -> Result<()> {
    memory.cas(place(), word, lock_word::next(word)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::{Latency, Model, Region};
    use std::sync::Arc;

    fn pool() -> Model {
        let region = Arc::new(Region::create(8192).unwrap());
        Model::new(vec![region], |_, _| Vec::new(), Latency::rdma())
    }

    #[test]
    fn ranges_move_and_the_rest_stays() {
        let table = Table::new(vec![(0, 1), (10, 2), (30, 3)]).unwrap();
        let segments = |table: &Table| table.segments.clone();
        let part = table.moved(15, 19, 1).unwrap();
        assert_eq!(
            segments(&part),
            [(0, 1), (10, 2), (15, 1), (20, 2), (30, 3)]
        );
        assert_eq!(part.epoch(), 2);
        assert_eq!(
            segments(&table.moved(10, 29, 1).unwrap()),
            [(0, 1), (30, 3)]
        );
        assert_eq!(
            segments(&table.moved(5, u64::MAX, 3).unwrap()),
            [(0, 1), (5, 3)]
        );
        assert_eq!(segments(&table.moved(0, 9, 2).unwrap()), [(0, 2), (30, 3)]);
        assert_eq!(segments(&table.moved(0, u64::MAX, 7).unwrap()), [(0, 7)]);
        for key in [0, 9, 10, 14, 15, 19, 20, 29, 30, u64::MAX] {
            let expected = if (15..20).contains(&key) {
                1
            } else {
                table.owner_of(key)
            };
            assert_eq!(part.owner_of(key), expected, "{key}");
        }
    }

    #[test]
    fn a_table_is_stored_by_epoch() {
        let memory = pool();
        assert!(matches!(Table::load(&memory), Err(Error::Corrupt { .. })));
        let first = Table::new(vec![(0, 1), (10, 2)]).unwrap();
        assert!(first.store(&memory).unwrap());
        assert_eq!(Table::load(&memory).unwrap(), first);
        let (one, other) = (
            first.moved(0, 4, 2).unwrap(),
            first.moved(20, 30, 1).unwrap(),
        );
        assert!(one.store(&memory).unwrap());
        assert!(!other.store(&memory).unwrap(), "its epoch was taken");
        assert_eq!(Table::load(&memory).unwrap(), one);
    }

    #[test]
    fn tables_that_make_no_sense_are_refused() {
        for segments in [vec![], vec![(1, 0)], vec![(0, 1), (5, 2), (5, 3)]] {
            assert!(Table::new(segments).is_err());
        }
        let memory = pool();
        let mut words = Table::whole().words(0);
        words[2] = 63;
        memory.write(place(), &words).unwrap();
        assert!(matches!(Table::load(&memory), Err(Error::Corrupt { .. })));
    }
}
