//! The crate's behaviour, one file each.

mod plans;
mod support;
