//! What each key may hold, for many threads to check against: a key has one writer at a time, its writes are
//! numbered, and a reader knows which numbers were acknowledged before it looked and begun before it was done.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Bounds of the newest write to one key.
#[derive(Default)]
struct Bounds {
    /// Begun writes; counted before the write.
    started: AtomicU64,
    /// Acknowledged writes; raised after it.
    acknowledged: AtomicU64,
}

/// Histories of the keys `0..len`. Write number 0 is the absence before the first.
pub struct History {
    keys: Vec<Bounds>,
    /// Longest value.
    value_bytes: u64,
}

/// A look at one key: what was acknowledged before it.
pub struct Look {
    key: u64,
    acknowledged: u64,
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

    /// Before a read.
    pub fn look(&self, key: u64) -> Look {
        let acknowledged = self.keys[key as usize].acknowledged.load(SeqCst);
        Look { key, acknowledged }
    }

    /// After the read: `found` is what one of the possible writes left. Panics if not.
    pub fn check(&self, look: &Look, found: Option<&[u8]>) {
        let Look { key, acknowledged } = *look;
        let started = self.keys[key as usize].started.load(SeqCst);
        let range = format!("key {key}, writes {acknowledged}..={started}");
        let Some(found) = found else {
            let removed = (acknowledged..=started).any(|w| self.value(key, w).is_none());
            assert!(removed, "{range}: found nothing");
            return;
        };
        let (of, write) = parse(found);
        assert!(of == key, "{range}: found a value of key {of}");
        assert!(
            (acknowledged..=started).contains(&write),
            "{range}: found write {write}"
        );
        assert!(
            self.value(key, write).as_deref() == Some(found),
            "{range}: the value of write {write} is damaged"
        );
    }

    /// True if the key was there with no write under way since `look`.
    pub fn certainly_there(&self, look: &Look) -> bool {
        self.newest(look.key) == look.acknowledged
            && self.value(look.key, look.acknowledged).is_some()
    }
}

/// Key number and write number of a value.
pub fn parse(value: &[u8]) -> (u64, u64) {
    let word = |at: usize| u64::from_be_bytes(value[at..at + 8].try_into().unwrap());
    (word(0), word(8))
}
