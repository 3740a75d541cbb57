//! What every Index Y must do: one function a behaviour. [`conformance_tests`] makes a `#[test]` of
//! each.
//!
//! An implementer writes a [`Store`] (where one Y lives, across reopens) and calls the macro with
//! an expression that makes a fresh one:
//!
//! ```ignore
//! mod conformance {
//!     use super::*;
//!     indexy::index_y::conformance::conformance_tests!(OnDisk::new());
//! }
//! ```
//!
//! Behaviours panic when the Y under test does not have them. The other functions are for tests of
//! one's own. Compiled for tests and with the cargo feature `testing`.

#![forbid(unsafe_code)]

mod contents;
mod files;
mod loads;
mod locators;
mod runs;
mod store;
#[cfg(test)]
mod tests;

pub use contents::*;
pub use files::*;
pub use loads::*;
pub use locators::*;
pub use runs::*;
pub use store::*;

/// Makes a test of every behaviour, each with a fresh store from `$store`. In a module of its own:
/// the tests have the names of the behaviours.
#[macro_export]
#[doc(hidden)]
macro_rules! index_y_conformance_tests {
    ($store:expr) => {
        $crate::index_y::conformance::conformance_tests!($store;
            starts_empty, an_empty_run_changes_nothing, the_newest_run_wins,
            i2_overwrites_after_reopen_win,
            deletes_hide_and_go_away, empty_and_zero_keys, longest_keys, too_long_a_key_is_refused,
            empty_and_large_values, ranges_of_every_shape, random_runs_match_a_model,
            locators_never_lead_to_an_old_value,
            removed_ranges_are_gone, a_removal_made_ready_is_shown_at_once,
            loads_appear_at_once,
            multi_get_answers_in_order, multi_get_answers_with_long_values,
            i5_before_publish_comes_last_and_before_readers,
            i4_a_failed_source_leaves_what_was, an_open_iterator_outlives_runs_and_maintenance,
            readers_run_beside_a_writer_and_a_maintainer, copies_open_equal, counts_are_near,
            copies_beside_runs_are_of_one_moment, released_files_are_left_alone,
            an_open_iterator_keeps_the_files_or_leaves_them,
            a_drop_ends_all_work,
            a_run_waiting_for_the_log_blocks_nobody, i6_a_killed_process_keeps_what_was_durable,
            read_only_changes_nothing);
    };
    ($store:expr; $($name:ident),+) => {
        $(#[test]
        fn $name() {
            $crate::index_y::conformance::$name(&$store);
        })+
    };
}

#[doc(inline)]
pub use crate::index_y_conformance_tests as conformance_tests;
