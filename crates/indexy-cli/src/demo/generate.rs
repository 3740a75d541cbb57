//! Records of the demo that can be checked without remembering them.
//!
//! Generated record number `i` has a scattered key and a value that follows from `i` and its
//! version; the record of a path carries a hash over its key and itself. A [`Fingerprint`] sums up
//! a whole tree independently of order. So the demo can check every read in constant memory.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The one tree of the demo.
pub const TREE: &str = "demo";
/// Prefix of the keys of generated records.
pub const RECORD_PREFIX: &[u8] = b"rec/";
/// Prefix of the keys that the killed process writes, in ascending order.
pub const LOG_PREFIX: &[u8] = b"log/";
const PREFIX_BYTES: usize = 4;
const KEY_BYTES: usize = PREFIX_BYTES + 16;
/// A key of a generated record.
pub type RecordKey = [u8; KEY_BYTES];

const MIN_VALUE_BYTES: usize = 80;
const VALUE_BYTES_SPREAD: u64 = 64;
/// Bytes of a generated record, on average.
pub const RECORD_BYTES: u64 = (KEY_BYTES + MIN_VALUE_BYTES) as u64 + VALUE_BYTES_SPREAD / 2;
/// How many generated records have about `bytes` bytes.
pub fn records_in(bytes: u64) -> u64 {
    bytes / RECORD_BYTES
}

/// Distinguishes the values of the killed process from those of generated records of the same
/// number.
const LOG_SALT: u64 = 0x6c6f_6700_0000_0000;

/// A bijection that scatters (the finalizer of splitmix64).
pub fn scatter(i: u64) -> u64 {
    let z = (i ^ (i >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The inverse of [`scatter`].
fn gather(z: u64) -> u64 {
    let z = (z ^ (z >> 31) ^ (z >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    let z = (z ^ (z >> 27) ^ (z >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    z ^ (z >> 30) ^ (z >> 60)
}

fn numbered_key(prefix: &[u8], n: u64) -> RecordKey {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut key = [0; KEY_BYTES];
    key[..PREFIX_BYTES].copy_from_slice(prefix);
    for (place, digit) in key[PREFIX_BYTES..].iter_mut().enumerate() {
        *digit = DIGITS[(n >> (60 - 4 * place) & 15) as usize];
    }
    key
}

fn number_of_key(prefix: &[u8], key: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(key.strip_prefix(prefix)?).ok()?;
    let n = u64::from_str_radix(digits, 16).ok()?;
    (numbered_key(prefix, n) == key).then_some(n)
}

/// Key of generated record `i`.
pub fn record_key(i: u64) -> RecordKey {
    numbered_key(RECORD_PREFIX, scatter(i))
}

/// Number of the generated record with this key.
pub fn record_number(key: &[u8]) -> Option<u64> {
    number_of_key(RECORD_PREFIX, key).map(gather)
}

/// Key of the `i`-th record of the killed process.
pub fn log_key(i: u64) -> RecordKey {
    numbered_key(LOG_PREFIX, i)
}

/// Number of the killed process's record with this key.
pub fn log_number(key: &[u8]) -> Option<u64> {
    number_of_key(LOG_PREFIX, key)
}

/// The value of generated record `i` in this version, into `out`.
pub fn record_value(i: u64, version: u64, out: &mut Vec<u8>) {
    let mut word = scatter(i.wrapping_add(1) ^ version.rotate_left(40));
    let len = MIN_VALUE_BYTES + (word % VALUE_BYTES_SPREAD) as usize;
    out.clear();
    out.extend_from_slice(&version.to_le_bytes());
    while out.len() < len {
        word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.truncate(len);
}

/// The value of the `i`-th record of the killed process, into `out`.
pub fn log_value(i: u64, out: &mut Vec<u8>) {
    record_value(i ^ LOG_SALT, 0, out);
}

/// Bytes of the value of a path.
pub const PATH_VALUE_BYTES: usize = 24;

/// Size and modification time of a file, and a hash over them and the path.
pub fn path_value(path: &[u8], size: u64, mtime: i64) -> [u8; PATH_VALUE_BYTES] {
    let mut value = [0; PATH_VALUE_BYTES];
    value[..8].copy_from_slice(&size.to_le_bytes());
    value[8..16].copy_from_slice(&mtime.to_le_bytes());
    let seal = sealed(path, &value[..16]);
    value[16..].copy_from_slice(&seal.to_le_bytes());
    value
}

/// True if `value` is what [`path_value`] gave for this path at some time.
pub fn is_path_value(path: &[u8], value: &[u8]) -> bool {
    value.len() == PATH_VALUE_BYTES && sealed(path, &value[..16]).to_le_bytes() == value[16..]
}

fn sealed(path: &[u8], fields: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(path);
    hash.update(fields);
    hash.digest()
}

/// Number and sum of the hashes of a set of records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// Records.
    pub records: u64,
    sum: u64,
}

impl Fingerprint {
    /// Adds a record.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.records += 1;
        self.sum = self.sum.wrapping_add(hash(key, value));
    }

    /// Replaces the value of a record.
    pub fn replace(&mut self, key: &[u8], old: &[u8], new: &[u8]) {
        self.sum = self
            .sum
            .wrapping_sub(hash(key, old))
            .wrapping_add(hash(key, new));
    }

    /// Adds a disjoint set.
    pub fn join(&mut self, other: Self) {
        self.records += other.records;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

fn hash(key: &[u8], value: &[u8]) -> u64 {
    // Multiplied, so that two records that swapped their values are noticed.
    xxh3_64(key).wrapping_mul(xxh3_64(value) | 1)
}

/// One in this many generated records is updated.
const UPDATED_ONE_IN: u64 = 16;
/// Which of them.
const UPDATED_REMAINDER: u64 = 3;

/// Which version each generated record has while one writer updates them in a fixed order.
#[derive(Debug)]
pub struct Versions {
    updated_records: u64,
    started: AtomicU64,
    done: AtomicU64,
}

impl Versions {
    /// Nothing of `records` is updated yet.
    pub fn new(records: u64) -> Self {
        Self {
            updated_records: records
                .saturating_sub(UPDATED_REMAINDER)
                .div_ceil(UPDATED_ONE_IN),
            started: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }

    /// The record to update next, and the version that it has. The one writer calls
    /// [`Self::finish_update`] after it.
    pub fn start_update(&self) -> Option<(u64, u64)> {
        let n = self.done.load(SeqCst);
        let turn = n.checked_rem(self.updated_records)?;
        self.started.store(n + 1, SeqCst);
        Some((
            turn * UPDATED_ONE_IN + UPDATED_REMAINDER,
            n / self.updated_records,
        ))
    }

    /// The update is acknowledged.
    pub fn finish_update(&self) {
        self.done.store(self.started.load(SeqCst), SeqCst);
    }

    /// Updates acknowledged so far.
    pub fn updates(&self) -> u64 {
        self.done.load(SeqCst)
    }

    /// The oldest version of `i` that a read which begins now may return.
    pub fn at_least(&self, i: u64) -> u64 {
        self.after(self.done.load(SeqCst), i)
    }

    /// The newest version of `i` that a read which has ended may have returned.
    pub fn at_most(&self, i: u64) -> u64 {
        self.after(self.started.load(SeqCst), i)
    }

    fn after(&self, updates: u64, i: u64) -> u64 {
        if i % UPDATED_ONE_IN != UPDATED_REMAINDER || self.updated_records == 0 {
            return 0;
        }
        let turn = i / UPDATED_ONE_IN;
        updates / self.updated_records + u64::from(turn < updates % self.updated_records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_numbers() {
        for i in [0, 1, 77, u64::MAX, 1 << 63, 123_456_789] {
            assert_eq!(gather(scatter(i)), i);
            assert_eq!(record_number(&record_key(i)), Some(i));
            assert_eq!(log_number(&log_key(i)), Some(i));
        }
        assert_eq!(record_number(b"rec/+00000000000000f"), None);
        assert_eq!(record_number(b"/etc/passwd"), None);
        assert!(log_key(255) < log_key(256));
    }

    #[test]
    fn values_tell_records_and_versions_apart() {
        let value = |i, version| {
            let mut out = Vec::new();
            record_value(i, version, &mut out);
            out
        };
        assert_eq!(value(5, 0), value(5, 0));
        assert_ne!(value(5, 0), value(5, 1));
        assert_ne!(value(5, 0), value(6, 0));
        let path = path_value(b"/etc", 1, -1);
        assert!(is_path_value(b"/etc", &path));
        assert!(!is_path_value(b"/etd", &path));
        assert!(!is_path_value(b"/etc", &path[..23]));
    }

    #[test]
    fn fingerprints_notice_what_changed() {
        let of = |records: &[(&[u8], &[u8])]| {
            let mut f = Fingerprint::default();
            records.iter().for_each(|(k, v)| f.add(k, v));
            f
        };
        let base = of(&[(b"a", b"1"), (b"b", b"2")]);
        assert_eq!(base, of(&[(b"b", b"2"), (b"a", b"1")]));
        assert_ne!(base, of(&[(b"a", b"2"), (b"b", b"1")]));
        assert_ne!(base, of(&[(b"a", b"1")]));
        let mut replaced = of(&[(b"a", b"1"), (b"b", b"3")]);
        replaced.replace(b"b", b"3", b"2");
        assert_eq!(base, replaced);
    }

    #[test]
    fn versions_bracket_every_read() {
        let versions = Versions::new(40);
        let mut model = [0_u64; 40];
        for _ in 0..10 {
            let (i, version) = versions.start_update().unwrap();
            assert_eq!(model[i as usize], version);
            assert_eq!(
                (versions.at_least(i), versions.at_most(i)),
                (version, version + 1)
            );
            model[i as usize] = version + 1;
            versions.finish_update();
            for (i, version) in model.iter().enumerate() {
                let i = i as u64;
                assert_eq!(
                    (versions.at_least(i), versions.at_most(i)),
                    (*version, *version),
                    "{i}"
                );
            }
        }
        assert_eq!(versions.updates(), 10);
        assert!(Versions::new(2).start_update().is_none());
    }
}
