//! Values that their key determines, so that every read can be checked.
//!
//! A value of 8 bytes and more is `version (4) | check (4) | filler`, the check and the filler
//! being functions of the key and the version: a reader accepts any version that was really written
//! for this key, and nothing else. A shorter value has no room for a version and is a function of
//! the key.

use super::keys::mix;
use std::sync::LazyLock;

const FILLER_BYTES: usize = 64 << 10;
/// Random bytes that every long value takes a slice of.
static FILLER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    (0..FILLER_BYTES as u64 / 8)
        .flat_map(|i| mix(i ^ 0x5bd1_e995_0bad_cafe).to_le_bytes())
        .collect()
});
const HEAD_BYTES: usize = 8;

/// What makes a key's value its own: a hash of the key.
#[inline]
pub fn seed_of(key: &[u8]) -> u64 {
    match <[u8; 8]>::try_from(key) {
        Ok(bytes) => u64::from_le_bytes(bytes),
        Err(_) => xxhash_rust::xxh3::xxh3_64(key),
    }
}

/// A value that was never written for the key it was read for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, read {found}")]
pub struct Mismatch {
    /// What the key's value must look like.
    pub expected: String,
    /// What was read.
    pub found: String,
}

/// Makes and checks values of one length.
#[derive(Debug, Clone, Copy)]
pub struct Values {
    bytes: usize,
}

impl Values {
    /// Values of `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        Self { bytes }
    }

    /// Length of every value, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Fills `out` with version `version` of the value of the key with `seed`.
    #[inline]
    pub fn fill(seed: u64, version: u32, out: &mut [u8]) {
        if out.len() < HEAD_BYTES {
            let short = mix(seed).to_le_bytes();
            let len = out.len();
            out.copy_from_slice(&short[..len]);
            return;
        }
        let hash = hash(seed, version);
        let (head, rest) = out.split_at_mut(HEAD_BYTES);
        head[..4].copy_from_slice(&version.to_le_bytes());
        head[4..].copy_from_slice(&(hash as u32).to_le_bytes());
        if !rest.is_empty() {
            walk_filler(hash, rest.len(), |at, slice| {
                rest[at..at + slice.len()].copy_from_slice(slice);
                true
            });
        }
    }

    /// The version that `value` carries, or why it cannot belong to the key with `seed`.
    #[inline]
    pub fn check(&self, seed: u64, value: &[u8]) -> Result<u32, Mismatch> {
        if value.len() == self.bytes
            && let Some(version) = version_of(seed, value)
        {
            return Ok(version);
        }
        Err(self.mismatch(seed, value))
    }

    #[cold]
    fn mismatch(&self, seed: u64, value: &[u8]) -> Mismatch {
        let mut expected = vec![0; self.bytes];
        Self::fill(seed, 0, &mut expected);
        Mismatch {
            expected: format!("{} bytes like {}", self.bytes, hex(&expected)),
            found: format!("{} bytes {}", value.len(), hex(value)),
        }
    }
}

#[inline]
fn hash(seed: u64, version: u32) -> u64 {
    mix(seed ^ (u64::from(version) << 32 | u64::from(version)))
}

/// The version of `value` if all its bytes are what the key with `seed` gets in that version.
#[inline]
pub(super) fn version_of(seed: u64, value: &[u8]) -> Option<u32> {
    if value.len() < HEAD_BYTES {
        return (mix(seed).to_le_bytes()[..value.len()] == *value).then_some(0);
    }
    let (head, rest) = value.split_at(HEAD_BYTES);
    let version = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let check = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let hash = hash(seed, version);
    if hash as u32 != check {
        return None;
    }
    let same = rest.is_empty()
        || walk_filler(hash, rest.len(), |at, slice| {
            rest[at..at + slice.len()] == *slice
        });
    same.then_some(version)
}

/// Walks `len` bytes of filler from a place that `hash` chooses; ends when `each` says so.
#[inline]
fn walk_filler(hash: u64, len: usize, mut each: impl FnMut(usize, &[u8]) -> bool) -> bool {
    let filler: &[u8] = &FILLER;
    let mut from = (hash >> 32) as usize % filler.len();
    let mut at = 0;
    while at < len {
        let take = (len - at).min(filler.len() - from);
        if !each(at, &filler[from..from + take]) {
            return false;
        }
        at += take;
        from = 0;
    }
    true
}

/// The first bytes of `value`, for messages.
fn hex(value: &[u8]) -> String {
    const SHOWN: usize = 24;
    let mut text: String = value
        .iter()
        .take(SHOWN)
        .map(|b| format!("{b:02x}"))
        .collect();
    if value.len() > SHOWN {
        text.push_str("..");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_survives_its_own_check() {
        for bytes in [0, 1, 7, 8, 9, 16, 100, 1000, 70_000, 200_000] {
            let mut value = vec![0; bytes];
            Values::fill(99, 7, &mut value);
            let version = Values::new(bytes).check(99, &value).unwrap();
            assert_eq!(version, if bytes < 8 { 0 } else { 7 });
        }
    }

    #[test]
    fn another_keys_value_a_flipped_bit_and_a_wrong_length_are_caught() {
        for bytes in [4, 8, 64, 5000] {
            let mut value = vec![0; bytes];
            Values::fill(1, 0, &mut value);
            assert!(Values::new(bytes).check(2, &value).is_err());
            assert!(Values::new(bytes + 1).check(1, &value).is_err());
            for at in [0, bytes / 2, bytes - 1] {
                let mut broken = value.clone();
                broken[at] ^= 0x10;
                assert!(
                    Values::new(bytes).check(1, &broken).is_err(),
                    "byte {at} of {bytes}"
                );
            }
        }
    }

    #[test]
    fn seeds_differ_by_key() {
        assert_ne!(seed_of(b"user1"), seed_of(b"user2"));
        assert_ne!(seed_of(&[0; 8]), seed_of(&[1; 8]));
    }
}
