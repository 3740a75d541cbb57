//! The first word of a shared node and of the table of owners: a version, and who changes it.
//!
//! | bits | field | rule |
//! |---|---|---|
//! | 0 to 39 | version | even: nobody changes it; odd: somebody does |
//! | 40 to 63 | session | of the holder while the version is odd; 0: a holder without a session |

const VERSION_BITS: u32 = 40;
const VERSION_MASK: u64 = (1 << VERSION_BITS) - 1;
/// Largest number of a session.
pub(crate) const MAX_SESSION: u64 = (1 << (64 - VERSION_BITS)) - 1;

/// Somebody changes what the word stands for.
#[inline]
pub(crate) fn is_locked(word: u64) -> bool {
    word & 1 == 1
}

/// The version before the change that is under way, or the one that stands.
#[inline]
pub(crate) fn version(word: u64) -> u64 {
    word & VERSION_MASK & !1
}

/// The session that holds a locked word.
pub(crate) fn holder(word: u64) -> u64 {
    word >> VERSION_BITS
}

/// The word while `session` changes what was at `version`.
pub(crate) fn locked(version: u64, session: u64) -> u64 {
    debug_assert!(session <= MAX_SESSION);
    session << VERSION_BITS | self::version(version) | 1
}

/// The version after a change.
#[inline]
pub(crate) fn next(word: u64) -> u64 {
    (version(word) + 2) & VERSION_MASK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_keeps_its_version_and_its_holder() {
        let word = locked(6, MAX_SESSION);
        assert!(is_locked(word) && !is_locked(6));
        assert_eq!((version(word), holder(word)), (6, MAX_SESSION));
        assert_eq!((next(word), next(6), next(VERSION_MASK - 1)), (8, 8, 0));
    }
}
