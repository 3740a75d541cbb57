//! Which version of a record a read may see, so that a stale read is caught.
//!
//! For one record of [`STRIDE`] it is known which versions were handed out and below which no read
//! may fall any more. Two writes of a record that overlap may be applied in either order, so only a
//! write that met no other raises the floor; both of two that met are above it anyway. A record
//! whose versions are used up is no longer watched.

use std::sync::atomic::{AtomicU64, Ordering};

/// One of so many records is watched: enough to catch a fault that is not a freak, few enough to
/// cost nothing.
const STRIDE: u64 = 64;

/// Layout of a word: `issued (26) | floor (26) | overlapped (1) | writers (11)`. The command line
/// takes at most 1024 threads.
const WRITERS_BITS: u32 = 11;
const VERSION_BITS: u32 = 26;
const OVERLAPPED: u64 = 1 << WRITERS_BITS;
const WRITERS: u64 = OVERLAPPED - 1;
const FLOOR_SHIFT: u32 = WRITERS_BITS + 1;
const ISSUED_SHIFT: u32 = FLOOR_SHIFT + VERSION_BITS;
const VERSION: u64 = (1 << VERSION_BITS) - 1;
const _: () = assert!(ISSUED_SHIFT + VERSION_BITS == u64::BITS);
const _: () = assert!(1024 <= WRITERS);

/// The watched records.
#[derive(Debug, Default)]
pub(super) struct Versions {
    words: Vec<AtomicU64>,
}

impl Versions {
    /// For records `0..records`, all in version 0.
    pub(super) fn new(records: u64) -> Self {
        let words = records.div_ceil(STRIDE) as usize;
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    fn word(&self, record: u64) -> Option<&AtomicU64> {
        if !record.is_multiple_of(STRIDE) {
            return None;
        }
        self.words.get((record / STRIDE) as usize)
    }

    /// A write of `record` begins: its version, if the record is watched.
    /// [`end_write`](Self::end_write) must follow.
    pub(super) fn begin_write(&self, record: u64) -> Option<u32> {
        let before = change(self.word(record)?, |word| {
            let overlapped = if word & WRITERS > 0 { OVERLAPPED } else { 0 };
            (issued(word) < VERSION).then(|| (word + 1 + (1 << ISSUED_SHIFT)) | overlapped)
        })?;
        Some((issued(before) + 1) as u32)
    }

    /// The write that was given `version` is acknowledged.
    pub(super) fn end_write(&self, record: u64, version: u32) {
        let Some(word) = self.word(record) else {
            return;
        };
        change(word, |word| {
            let mut next = word - 1;
            if next & OVERLAPPED == 0 {
                next &= !(VERSION << FLOOR_SHIFT);
                next |= u64::from(version) << FLOOR_SHIFT;
            }
            if next & WRITERS == 0 {
                next &= !OVERLAPPED;
            }
            Some(next)
        });
    }

    /// The least version that a read of `record` that begins now may see.
    pub(super) fn floor(&self, record: u64) -> u32 {
        self.word(record).map_or(0, |word| {
            ((word.load(Ordering::Acquire) >> FLOOR_SHIFT) & VERSION) as u32
        })
    }

    /// Whether a read that began at `floor` and has just ended may have seen `version`.
    pub(super) fn allows(&self, record: u64, floor: u32, version: u32) -> bool {
        self.word(record).is_none_or(|word| {
            let issued = issued(word.load(Ordering::Acquire));
            issued == VERSION || (u64::from(floor)..=issued).contains(&u64::from(version))
        })
    }
}

fn issued(word: u64) -> u64 {
    word >> ISSUED_SHIFT
}

/// Applies `to` atomically; returns the word before, if it was changed. The orderings make a floor
/// that a reader sees stand for a write that is done.
fn change(word: &AtomicU64, to: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    word.fetch_update(Ordering::AcqRel, Ordering::Acquire, to)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_alone_raises_the_floor() {
        let versions = Versions::new(1000);
        let v = versions.begin_write(64).unwrap();
        assert_eq!((v, versions.floor(64)), (1, 0));
        versions.end_write(64, v);
        assert_eq!(versions.floor(64), 1);
        assert!(
            versions.allows(64, 1, 1) && !versions.allows(64, 1, 0) && !versions.allows(64, 1, 2)
        );
    }

    #[test]
    fn writes_that_overlap_do_not_until_one_is_alone_again() {
        let versions = Versions::new(1000);
        let (a, b) = (
            versions.begin_write(0).unwrap(),
            versions.begin_write(0).unwrap(),
        );
        versions.end_write(0, b);
        versions.end_write(0, a);
        assert_eq!(versions.floor(0), 0);
        assert!(versions.allows(0, 0, a) && versions.allows(0, 0, b));
        let c = versions.begin_write(0).unwrap();
        versions.end_write(0, c);
        assert_eq!((c, versions.floor(0)), (3, 3));
    }

    #[test]
    fn as_many_writers_as_there_may_be_threads_are_counted() {
        let versions = Versions::new(1);
        let handed: Vec<u32> = (0..1024)
            .map(|_| versions.begin_write(0).unwrap())
            .collect();
        assert!(handed.iter().copied().eq(1..=1024));
        assert_eq!(versions.floor(0), 0);
        for version in handed {
            versions.end_write(0, version);
        }
        assert_eq!(versions.floor(0), 0);
        assert!(versions.allows(0, 0, 1024) && !versions.allows(0, 0, 1025));
        let alone = versions.begin_write(0).unwrap();
        versions.end_write(0, alone);
        assert_eq!((alone, versions.floor(0)), (1025, 1025));
    }

    #[test]
    fn a_record_whose_versions_are_used_up_allows_everything() {
        let versions = Versions::new(1);
        versions.words[0].store((VERSION - 1) << ISSUED_SHIFT, Ordering::Relaxed);
        let last = versions.begin_write(0).unwrap();
        assert_eq!(u64::from(last), VERSION);
        assert_eq!(versions.begin_write(0), None);
        versions.end_write(0, last);
        assert_eq!(versions.floor(0), last);
        assert!(versions.allows(0, last, 3));
    }

    #[test]
    fn records_that_are_not_watched_allow_everything() {
        let versions = Versions::new(1000);
        assert_eq!(versions.begin_write(65), None);
        versions.end_write(65, 9);
        assert!(versions.allows(65, 0, 12345) && versions.begin_write(64_000).is_none());
    }
}
