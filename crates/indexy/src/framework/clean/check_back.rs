//! The check-back pass: which regions to clean now.
//!
//! Source: IndeXY II-B, Fig. 2. `D=1,C=0` becomes `D=0,C=1`; `D=1,C=1` becomes `D=0,C=1` and is
//! skipped (it is being written); `D=0,C=1` is selected. A pass that selects nothing while memory
//! is released takes those that were cleaned longest ago, or uniform inserts would starve it for
//! ever. Differs: neighbours that are due are joined until the run is as large as Y prefers. Pure
//! but for the bits of the table. Not here: the copying (`run.rs`), the timer (`cleaner.rs`).

#![forbid(unsafe_code)]

use crate::framework::regions::Table;

/// One pass of the check-back scan over `table` from region `cursor`, once around at most.
///
/// `dirty_bytes[i]`: what cleaning region `i` would write, roughly. Ends when the selected ones
/// reach `run_bytes`. Returns the selected regions in ascending order and where the next pass
/// starts.
pub(crate) fn check_back(
    table: &Table,
    dirty_bytes: &[u64],
    cursor: usize,
    run_bytes: u64,
) -> (Vec<usize>, usize) {
    let n = table.len();
    let mut selected = Vec::new();
    let mut bytes = 0;
    let mut next = cursor % n;
    for step in 0..n {
        let i = (cursor + step) % n;
        next = (i + 1) % n;
        match (table.dirty(i), table.candidate(i)) {
            (true, _) => {
                table.set_dirty(i, false);
                table.set_candidate(i, true);
            }
            (false, true) => {
                table.set_candidate(i, false);
                if dirty_bytes[i] > 0 {
                    selected.push(i);
                    bytes += dirty_bytes[i];
                    if bytes >= run_bytes {
                        break;
                    }
                }
            }
            (false, false) => {}
        }
    }
    selected.sort_unstable();
    (selected, next)
}

/// Dirty regions from the one that was cleaned longest ago on, in key order, until they make up
/// `run_bytes`; ascending.
///
/// One stretch of keys, so that runs go round the key space one behind the other: runs that do not
/// overlap are merged less by Y.
pub(crate) fn oldest(table: &Table, dirty_bytes: &[u64], run_bytes: u64) -> Vec<usize> {
    let dirty = |i: &usize| dirty_bytes[*i] > 0;
    let first = (0..table.len())
        .filter(dirty)
        .min_by_key(|&i| (table.cleaned(i), i));
    let mut bytes = 0;
    (first.unwrap_or(table.len())..table.len())
        .filter(dirty)
        .take_while(|&i| {
            let more = bytes < run_bytes;
            bytes += dirty_bytes[i];
            more
        })
        .collect()
}

/// The `wanted` regions from `first` on until they make up `run_bytes`, ascending, and the region
/// to go on with; `None`: that was the last one.
///
/// Sizes may be stale, so every wanted region is in some stretch, whatever it seems to hold.
pub(crate) fn stretch(
    dirty_bytes: &[u64],
    first: usize,
    run_bytes: u64,
    wanted: &dyn Fn(usize) -> bool,
) -> (Vec<usize>, Option<usize>) {
    let mut bytes = 0;
    let mut selected = Vec::new();
    for (i, dirty) in dirty_bytes.iter().enumerate().skip(first) {
        if bytes >= run_bytes {
            return (selected, Some(i));
        }
        if wanted(i) {
            selected.push(i);
            bytes += dirty;
        }
    }
    (selected, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{framework::regions::Regions, wal::Lsn};

    fn four() -> std::sync::Arc<Table> {
        let regions = Regions::new(Lsn(0));
        regions.rebound(
            [&b""[..], b"b", b"c", b"d"]
                .iter()
                .map(|s| Box::from(*s))
                .collect(),
        );
        let table = regions.table();
        (0..4).for_each(|i| table.set_dirty(i, false));
        table
    }

    #[test]
    fn a_region_is_cleaned_on_the_pass_after_it_went_quiet() {
        let table = four();
        let dirty = [9; 4];
        table.set_dirty(2, true);
        assert_eq!(
            check_back(&table, &dirty, 0, 1).0,
            [] as [usize; 0],
            "10 becomes 01"
        );
        table.set_dirty(2, true);
        assert_eq!(
            check_back(&table, &dirty, 0, 1).0,
            [] as [usize; 0],
            "11 is skipped"
        );
        assert_eq!(check_back(&table, &dirty, 0, 1).0, [2], "01 is selected");
        assert_eq!(
            check_back(&table, &dirty, 0, 1).0,
            [] as [usize; 0],
            "00 is not"
        );
    }

    #[test]
    fn quiet_regions_are_joined_up_to_the_size_of_a_run() {
        let table = four();
        (0..4).for_each(|i| table.set_dirty(i, true));
        let dirty = [10, 10, 10, 10];
        let (none, cursor) = check_back(&table, &dirty, 1, 25);
        assert_eq!((none.len(), cursor), (0, 1), "one pass, once around");
        assert_eq!(check_back(&table, &dirty, cursor, 25), (vec![1, 2, 3], 0));
        assert_eq!(check_back(&table, &dirty, 0, 25).0, [0]);
    }

    #[test]
    fn the_oldest_goes_first_when_nothing_is_quiet() {
        let table = four();
        for (i, run) in [30, 10, 20, 40].into_iter().enumerate() {
            table.set_cleaned(i, run);
        }
        assert_eq!(oldest(&table, &[5, 5, 5, 5], 8), [1, 2]);
        assert_eq!(oldest(&table, &[5, 0, 0, 5], 1), [0]);
        assert_eq!(
            oldest(&table, &[5, 0, 5, 5], 100),
            [2, 3],
            "on to the end, not round it"
        );
        assert_eq!(oldest(&table, &[0; 4], 1), [] as [usize; 0]);
    }

    #[test]
    fn stretches_together_are_everything_that_is_wanted() {
        let dirty = [5, 0, 9, 5, 0];
        let all = |first| stretch(&dirty, first, 8, &|_| true);
        assert_eq!(all(0), (vec![0, 1, 2], Some(3)));
        assert_eq!(all(3), (vec![3, 4], None));
        let odd = |first| stretch(&dirty, first, 5, &|i| i % 2 == 1);
        assert_eq!(
            odd(0),
            (vec![1, 3], Some(4)),
            "empty by the count, and still written"
        );
        assert_eq!(odd(4), (vec![], None));
    }

    #[test]
    fn runs_of_the_oldest_go_round_the_keys() {
        let table = four();
        let starts: Vec<usize> = (1..=6)
            .map(|run| {
                let selected = oldest(&table, &[5; 4], 10);
                selected.iter().for_each(|&i| table.set_cleaned(i, run));
                selected[0]
            })
            .collect();
        assert_eq!(starts, [0, 2, 0, 2, 0, 2]);
    }
}
