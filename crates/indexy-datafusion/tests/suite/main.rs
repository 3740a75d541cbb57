//! The crate's behaviour, one file each.

mod cli;
mod differential;
mod early_end;
mod large_rows;
mod logic;
mod moments;
mod plans;
mod refusals;
mod support;
