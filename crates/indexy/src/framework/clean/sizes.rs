//! How large a run is, and when the next check-back pass is due. Pure.

#![forbid(unsafe_code)]

/// What is in flight is at most this part of the budget, so that it never holds up the release of
/// the rest.
const RUN_DIVISOR: usize = 4;
/// Where X is a mere write buffer: about half of what that holds, so that the other half takes
/// writes meanwhile.
const BUFFER_RUN_DIVISOR: usize = 16;
const MIN_RUN_BYTES: usize = 16 << 10;

/// Payload bytes of one run: as many as Y prefers, within the budget's part.
pub(in crate::framework) fn run_bytes(budget: usize, preferred: usize, buffer_only: bool) -> usize {
    let divisor = if buffer_only {
        BUFFER_RUN_DIVISOR
    } else {
        RUN_DIVISOR
    };
    preferred.min(budget / divisor).max(MIN_RUN_BYTES)
}

/// Payload bytes of one run of many, where everything is written.
pub(super) fn least_stretch(budget: usize) -> usize {
    budget / BUFFER_RUN_DIVISOR
}

/// A check-back pass is due when this part of the budget was written in new keys since the last
/// one...
const TIMER_DIVISOR: u64 = 16;
/// ...at as many bytes a key as X has on average, and at least so many...
const LEAST_ENTRY_BYTES: u64 = 32;
/// ...and not before so many keys.
const MIN_TIMER_KEYS: u64 = 64;

/// Keys whose insertion makes a check-back pass due, where X has `keys` keys in `bytes` bytes.
pub(in crate::framework) fn timer_keys(budget: usize, keys: u64, bytes: u64) -> u64 {
    let entry = bytes.checked_div(keys).unwrap_or(0).max(LEAST_ENTRY_BYTES);
    (budget as u64 / TIMER_DIVISOR / entry).max(MIN_TIMER_KEYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cleaning keeps ahead whatever the size of values: a pass comes with each sixteenth of the
    /// budget.
    #[test]
    fn the_timer_counts_bytes_in_keys() {
        let budget = 128 << 20;
        for entry in [32, 300, 4000, 100_000] {
            let keys = timer_keys(budget, 1000, 1000 * entry);
            assert!(keys * entry <= 8 << 20 && keys * entry > 7 << 20, "{entry}");
        }
        assert_eq!(timer_keys(budget, 0, 0), timer_keys(budget, 1000, 8000));
        assert_eq!(timer_keys(2 << 20, 1, 1 << 20), MIN_TIMER_KEYS);
    }

    #[test]
    fn a_run_leaves_room_for_the_rest() {
        let budget = 8 << 20;
        assert_eq!(run_bytes(budget, 64 << 20, false), budget / 4);
        assert_eq!(run_bytes(budget, 64 << 20, true), budget / 16);
        assert_eq!(run_bytes(budget, 1 << 20, false), 1 << 20);
        assert_eq!(run_bytes(budget, 0, false), MIN_RUN_BYTES);
    }
}
