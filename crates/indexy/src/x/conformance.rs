//! The conformance suite of Index X: every implementation runs all of it.
//!
//! | file | what |
//! |---|---|
//! | `world` | an Index X, a map that stands for Index Y, and the truth about both |
//! | `sequential` | random histories of one thread, checked after each step |
//! | `protocol` | the invariants I1 to I4 and I8, one by one |
//! | `stress` | many threads with a cleaner, a cutter and one who moves everything |
//! | `interleaved` | few threads, their steps in every order that a scheduler comes upon |

mod interleaved;
mod protocol;
mod sequential;
mod stress;
mod world;

/// Makes an empty X, mounted or complete.
pub(super) type Make<X> = fn(bool) -> X;

/// The suite as tests of the module it stands in.
macro_rules! conformance_suite {
    ($make:expr) => {
        conformance_suite!($make,
            sequential: [
                dense_keys,
                random_keys,
                nested_prefixes,
                long_shared_prefixes,
                huge_keys,
                large_values,
                runs_of_zero_and_ff,
            ],
            protocol: [
                i1_an_entry_wins_and_only_a_mount_asks_y,
                i2_a_write_during_a_run_stays_dirty,
                i2_a_failed_run_is_dirty_again,
                i3_a_reader_does_not_install_what_was_overwritten_and_released,
                i3_a_reader_does_not_install_what_was_deleted,
                i3_ordinary_writes_do_not_starve_a_load,
                i3_a_restamp_refuses_what_was_read_before,
                i3_stamps_survive_splits,
                i4_a_cut_keeps_what_is_dirty_or_in_flight,
                i8_a_refused_commit_changes_nothing,
                removals_leave_tombstones_only_where_y_may_know_the_key,
                evict_makes_y_decide,
                second_chance_spares_what_was_read,
                second_chance_spares_what_was_read_after_it_was_loaded,
                scans_cover_what_they_say,
                dead_stretches_show_nothing,
                clear_drops_everything,
                what_was_cleared_is_taken_apart_beside_writers,
                keys_are_those_that_live_in_memory,
            ],
            stress: [writers_readers_and_a_cutter, i9_a_scan_reads_a_leaf_at_one_moment],
            interleaved: [i4_a_cut_against_writes, i3_loads_against_writes, i2_runs_against_writes],
        );
    };
    ($make:expr, $($group:ident: [$($test:ident),* $(,)?],)*) => {
        $($(
            #[test]
            fn $test() {
                $crate::x::conformance::$group::$test($make);
            }
        )*)*
    };
}
pub(super) use conformance_suite;

mod model {
    use crate::x::model::ModelX;
    super::conformance_suite!(ModelX::new);
}

mod art {
    use crate::{
        mem::{Memory, budget::Budget},
        x::art::Art,
    };
    use std::sync::Arc;

    fn make(mounted: bool) -> Art {
        Art::new(Memory::new(Arc::new(Budget::new(64 << 20))), mounted)
    }
    super::conformance_suite!(make);
}

mod bptree {
    use crate::{
        mem::{Memory, budget::Budget},
        x::bptree::BPlus,
    };
    use std::sync::Arc;

    fn make(mounted: bool) -> BPlus {
        BPlus::new(Memory::new(Arc::new(Budget::new(64 << 20))), mounted)
    }
    super::conformance_suite!(make);
}
