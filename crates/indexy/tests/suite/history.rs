//! What each key may hold, for many threads to check against: a key has one writer at a time, its
//! writes are numbered, and a reader knows which numbers were acknowledged or seen by somebody
//! before it looked, and which were begun before it was done.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Bounds of the newest write to one key.
#[derive(Default)]
struct Bounds {
    /// Begun writes; counted before the write.
    started: AtomicU64,
    /// Acknowledged writes; raised after it.
    acknowledged: AtomicU64,
    /// The newest write that a reader is known to have seen, acknowledged or not; raised after the
    /// read.
    observed: AtomicU64,
}

/// Histories of the keys `0..len`. Write number 0 is the absence before the first.
pub struct History {
    keys: Vec<Bounds>,
    /// Longest value.
    value_bytes: u64,
}

/// A look at one key: what it may not be older than. Somebody may see a newer write while it goes
/// on: that does not count.
pub struct Look {
    key: u64,
    oldest: u64,
}

impl History {
    pub fn new(keys: u64, value_bytes: u64) -> Self {
        let keys = (0..keys).map(|_| Bounds::default()).collect();
        Self { keys, value_bytes }
    }

    pub fn len(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Keys of several shapes, in no order.
    pub fn key(&self, n: u64) -> Vec<u8> {
        let scattered = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        match n % 4 {
            0 => format!("user/{:04}/item/{n}", n % 97).into_bytes(),
            1 => [&n.to_be_bytes()[5..], &b"suffix"[..]].concat(),
            _ => [&scattered.to_be_bytes()[..], &n.to_be_bytes()].concat(),
        }
    }

    /// The value that write number `write` gives to key `n`; `None` for a removal.
    pub fn value(&self, n: u64, write: u64) -> Option<Vec<u8>> {
        let mix = (n * 31 + write).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 20;
        if write == 0 || mix.is_multiple_of(8) {
            return None;
        }
        let len = match mix % 500 {
            1 => self.value_bytes,
            2..=9 => self.value_bytes / 16,
            _ => mix % 120,
        };
        let mut value = [n.to_be_bytes(), write.to_be_bytes()].concat();
        value.extend((0..len).map(|i| (n + write + i) as u8));
        Some(value)
    }

    /// Begins the next write of key `n`; returns its number. One thread at a time per key.
    pub fn begin(&self, n: u64) -> u64 {
        self.keys[n as usize].started.fetch_add(1, SeqCst) + 1
    }

    pub fn acknowledge(&self, n: u64, write: u64) {
        self.keys[n as usize].acknowledged.store(write, SeqCst);
    }

    /// The newest write of key `n`, for its writer.
    pub fn newest(&self, n: u64) -> u64 {
        self.keys[n as usize].started.load(SeqCst)
    }

    /// The database was opened again, perhaps after a failure: what was seen and never acknowledged
    /// may be gone.
    pub fn reopened(&self) {
        for key in &self.keys {
            key.observed.store(0, SeqCst);
        }
    }

    /// Before a read.
    pub fn look(&self, key: u64) -> Look {
        let bounds = &self.keys[key as usize];
        let acknowledged = bounds.acknowledged.load(SeqCst);
        let oldest = acknowledged.max(bounds.observed.load(SeqCst));
        Look { key, oldest }
    }

    /// After the read: `found` is what one of the possible writes left. Panics if not.
    pub fn check(&self, look: &Look, found: Option<&[u8]>) {
        let Look { key, oldest } = *look;
        let bounds = &self.keys[key as usize];
        let started = bounds.started.load(SeqCst);
        let range = format!("key {key}, writes {oldest}..={started}");
        let Some(found) = found else {
            // Of several removals it may have been the first.
            let removal = (oldest..=started).find(|&w| self.value(key, w).is_none());
            let removal = removal.unwrap_or_else(|| panic!("{range}: found nothing"));
            bounds.observed.fetch_max(removal, SeqCst);
            return;
        };
        let (of, write) = parse(found);
        assert!(of == key, "{range}: found a value of key {of}");
        assert!(
            (oldest..=started).contains(&write),
            "{range}: found write {write}"
        );
        assert!(
            self.value(key, write).as_deref() == Some(found),
            "{range}: the value of write {write} is damaged"
        );
        bounds.observed.fetch_max(write, SeqCst);
    }

    /// True if the key was there with no write under way since `look`.
    pub fn certainly_there(&self, look: &Look) -> bool {
        self.newest(look.key) == look.oldest && self.value(look.key, look.oldest).is_some()
    }
}

/// Key number and write number of a value.
pub fn parse(value: &[u8]) -> (u64, u64) {
    let word = |at: usize| u64::from_be_bytes(value[at..at + 8].try_into().unwrap());
    (word(0), word(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history of one key whose writes 1 and 2 are values.
    fn history() -> (History, u64) {
        let history = History::new(100, 100);
        let two_values = |&n: &u64| (1..3).all(|w| history.value(n, w).is_some());
        let key = (0..100).find(two_values).unwrap();
        (history, key)
    }

    #[test]
    #[should_panic(expected = "found write 1")]
    fn who_looks_after_a_write_was_seen_does_not_see_an_older_one() {
        let (history, key) = history();
        let first = history.begin(key);
        history.acknowledge(key, first);
        history.begin(key);
        let look = history.look(key);
        history.check(&look, history.value(key, 2).as_deref());
        let later = history.look(key);
        history.check(&later, history.value(key, 1).as_deref());
    }

    #[test]
    fn who_looked_before_may_see_the_older_one() {
        let (history, key) = history();
        let first = history.begin(key);
        history.acknowledge(key, first);
        history.begin(key);
        let (look, beside) = (history.look(key), history.look(key));
        history.check(&look, history.value(key, 2).as_deref());
        history.check(&beside, history.value(key, 1).as_deref());
    }
}
