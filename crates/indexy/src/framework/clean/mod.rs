//! Cleaning: writes what is dirty in X to Index Y ahead of need, so that a release finds it clean.
//!
//! Source: IndeXY II-B. [`run`] writes one sorted run, `check_back` chooses its regions, `cleaner`
//! is the thread that says when, [`truncate`] cuts the log behind it.

pub(super) mod check_back;
pub(crate) mod cleaner;
pub(crate) mod run;
pub(super) mod sizes;
pub(crate) mod truncate;
