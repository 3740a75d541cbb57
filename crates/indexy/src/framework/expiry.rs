//! Entries that expire: how they are stored, and which are dead.
//!
//! In a tree with expiry X, Y, the log and the images of snapshots have each value with eight bytes
//! before it: when it expires, in milliseconds since 1970, the larger byte first; all bits set:
//! never. This is the only place that knows.
//!
//! **Expired and dead.** An entry is *expired* for a reader from its moment on: `db/` leaves it out
//! by the reader's time, that of now or of its snapshot. It is *dead* when it is expired for
//! everybody who reads now or later: at the *horizon*, which is the time of the oldest open
//! snapshot, or of now. What is dead may be dropped. The horizon never goes back
//! (`versions/pins.rs`).
//!
//! What is dead is dropped in four places: scans pass it (`scan.rs`), a run takes a delete in its
//! place, or nothing where Y has no version of the key (`clean/run.rs`), a sweep removes it from Y
//! (`sweep.rs`), and a release cuts it as any clean entry.
//!
//! Keeps: I2, in these words: a clean entry equals what Y returns, or is dead and Y has nothing.
//! Both say that the key is absent, to everybody.

#![forbid(unsafe_code)]

use crate::{
    key::Value,
    versions::time::{Millis, millis_up},
};
use std::time::Duration;

/// What a value takes more in a tree with expiry.
pub(crate) const EXPIRY_BYTES: usize = size_of::<Millis>();
/// It does not expire.
pub(crate) const NEVER: Millis = Millis::MAX;
/// Values with their expiry are put together on the stack up to so many bytes.
const ON_STACK_BYTES: usize = 512;

/// When what is written `now` and lives for `ttl` expires.
pub(crate) fn after(now: Millis, ttl: Millis) -> Millis {
    now.saturating_add(ttl)
}

/// The same for a duration, which counts as a millisecond at least.
pub(crate) fn after_duration(now: Millis, ttl: Duration) -> Millis {
    after(now, millis_up(ttl).max(1))
}

/// When `stored` expires, and its value; `None`: it is too short to say.
#[inline]
pub(crate) fn split(stored: &[u8]) -> Option<(Millis, &[u8])> {
    let (expires, value) = stored.split_first_chunk()?;
    Some((Millis::from_be_bytes(*expires), value))
}

/// Whether `stored` is expired at `now`. What is too short to say is not: a reader finds it to be
/// corrupt.
#[inline]
pub(crate) fn is_over(stored: &[u8], now: Millis) -> bool {
    split(stored).is_some_and(|(expires, _)| expires <= now && expires != NEVER)
}

/// `value` as it is stored.
pub(crate) fn stored(expires: Millis, value: &[u8]) -> Value {
    Value::build(EXPIRY_BYTES + value.len(), |bytes| {
        put_together(expires, value, bytes);
    })
}

/// Hands `value` as it is stored to `take`. Cost: a copy; for long values an allocation.
#[inline]
pub(crate) fn with_stored<R>(expires: Millis, value: &[u8], take: impl FnOnce(&[u8]) -> R) -> R {
    let len = EXPIRY_BYTES + value.len();
    if len <= ON_STACK_BYTES {
        let mut bytes = [0; ON_STACK_BYTES];
        put_together(expires, value, &mut bytes[..len]);
        return take(&bytes[..len]);
    }
    take(&[&expires.to_be_bytes()[..], value].concat())
}

fn put_together(expires: Millis, value: &[u8], bytes: &mut [u8]) {
    let (head, tail) = bytes.split_at_mut(EXPIRY_BYTES);
    head.copy_from_slice(&expires.to_be_bytes());
    tail.copy_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_comes_back() {
        for len in [0, 1, 12, 13, 60, 504, 505, 5000] {
            let value: Vec<u8> = (0..len).map(|i| i as u8).collect();
            for expires in [0, 1, 1 << 40, NEVER] {
                let stored = stored(expires, &value);
                assert_eq!(split(&stored), Some((expires, &value[..])));
                with_stored(expires, &value, |bytes| assert_eq!(stored, *bytes));
            }
        }
    }

    #[test]
    fn an_entry_is_over_from_its_moment_on_and_never_if_it_says_so() {
        assert!(!is_over(&stored(7, b"v"), 6));
        assert!(is_over(&stored(7, b"v"), 7));
        assert!(!is_over(&stored(NEVER, b"v"), NEVER));
        assert!(!is_over(b"short", NEVER));
    }

    #[test]
    fn what_lives_too_long_to_count_lives_for_ever() {
        assert_eq!(after_duration(5, Duration::MAX), NEVER);
        assert_eq!(after_duration(5, Duration::from_nanos(1)), 6);
        assert_eq!(after(5, NEVER), NEVER);
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..40),
            now in proptest::num::u64::ANY,
        ) {
            assert_eq!(split(&bytes).is_some(), bytes.len() >= EXPIRY_BYTES);
            let _ = is_over(&bytes, now);
        }
    }
}
