//! Records in ascending order that wait to be loaded together, in bounded memory and time.

use std::time::{Duration, Instant};

/// Bytes of keys and values that wait, at most, and as a part of the memory budget.
const MOST_BYTES: usize = 8 << 20;
const BUDGET_DIVISOR: usize = 8;
/// Fewer records, of fewer bytes, are not worth a load of their own, which waits for the device.
const FEWEST_RECORDS: usize = 1000;
const FEWEST_BYTES: usize = 1 << 20;
/// How long one waits for more, at most, while more comes.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Records whose keys ascend, one behind the other.
#[derive(Debug, Default)]
pub struct Sorted {
    chunk: Chunk,
    /// Since when the first of them waits.
    since: Option<Instant>,
    most_bytes: usize,
    /// The input is not sorted, or cannot be loaded so.
    pub gives_up: bool,
}

/// What was taken out of a [`Sorted`].
#[derive(Debug, Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    /// Where each key and its value end.
    ends: Vec<(usize, usize)>,
}

impl Sorted {
    pub fn new(budget_bytes: u64) -> Self {
        let part = usize::try_from(budget_bytes).unwrap_or(usize::MAX) / BUDGET_DIVISOR;
        Self {
            most_bytes: MOST_BYTES.min(part),
            ..Self::default()
        }
    }

    /// Whether `key` comes behind those that wait.
    pub fn ascends(&self, key: &[u8]) -> bool {
        self.chunk.last_key().is_none_or(|last| last < key)
    }

    /// Whether `key` comes behind those that wait, and there is room and time.
    pub fn fits(&self, key: &[u8], value: &[u8]) -> bool {
        let late = self
            .since
            .is_some_and(|since| since.elapsed() >= LONGEST_WAIT);
        let bytes = self.chunk.bytes.len() + key.len() + value.len();
        !self.gives_up && self.ascends(key) && (bytes <= self.most_bytes) && !late
    }

    /// Whether those that wait are worth a load.
    pub fn are_many(&self) -> bool {
        let Chunk { bytes, ends } = &self.chunk;
        ends.len() >= FEWEST_RECORDS || bytes.len() >= FEWEST_BYTES
    }

    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.since.get_or_insert_with(Instant::now);
        let Chunk { bytes, ends } = &mut self.chunk;
        bytes.extend_from_slice(key);
        let key_end = bytes.len();
        bytes.extend_from_slice(value);
        ends.push((key_end, bytes.len()));
    }

    pub fn take(&mut self) -> Chunk {
        self.since = None;
        std::mem::take(&mut self.chunk)
    }
}

impl Chunk {
    fn last_key(&self) -> Option<&[u8]> {
        self.iter().next_back().map(|(key, _)| key)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
        (0..self.ends.len()).map(|i| {
            let start = i.checked_sub(1).map_or(0, |before| self.ends[before].1);
            let (key, value) = self.ends[i];
            (&self.bytes[start..key], &self.bytes[key..value])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ascends_fits_as_long_as_there_is_room() {
        let mut sorted = Sorted::new(8 * 10);
        for (key, value) in [("", "1"), ("a", ""), ("b", "22")] {
            assert!(sorted.fits(key.as_bytes(), value.as_bytes()));
            sorted.add(key.as_bytes(), value.as_bytes());
        }
        assert!(!sorted.fits(b"b", b"") && !sorted.fits(b"a", b""));
        assert!(sorted.fits(b"c", b"1234") && !sorted.fits(b"c", b"12345"));
        let chunk = sorted.take();
        let all: Vec<_> = chunk.iter().collect();
        let expected: [(&[u8], &[u8]); 3] = [(b"", b"1"), (b"a", b""), (b"b", b"22")];
        assert_eq!(all, expected);
        assert!(sorted.take().iter().next().is_none());
        sorted.gives_up = true;
        assert!(!sorted.fits(b"z", b""));
    }

    #[test]
    fn many_are_so_many_records_or_bytes() {
        let mut sorted = Sorted::new(u64::MAX);
        for i in 0..FEWEST_RECORDS {
            assert!(!sorted.are_many());
            sorted.add(&i.to_be_bytes(), b"");
        }
        assert!(sorted.are_many());
        sorted.take();
        sorted.add(b"a", &vec![0; FEWEST_BYTES - 2]);
        assert!(!sorted.are_many());
        sorted.add(b"b", b"");
        assert!(sorted.are_many());
    }
}
