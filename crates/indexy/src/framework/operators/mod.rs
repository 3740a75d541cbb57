//! Merge operators: what a tree makes of a value and of what is merged into it.
//!
//! An operator is three total functions: whether an operand is one, what two operands are together,
//! and what a value and an operand make. The second is associative with the third: to merge two
//! operands one after the other is to merge what they are together. So nobody can tell when an
//! operand met its value. Where each operand fits a value or does not by itself, what two are
//! together is both, one behind the other.
//!
//! - `named.rs`: what a tree remembers. `own.rs`: an operator of the program. `registered.rs`: from
//!   the first to what can be run. `run.rs`: what can be run.
//!
//! Pure; no threads, no I/O. Not here: when operands meet values (`merge/`).

#![forbid(unsafe_code)]

mod named;
mod own;
mod registered;
mod run;

pub(crate) use named::MAX_MERGED_BYTES;
pub use named::MergeOperator;
pub use own::Merge;
pub(crate) use registered::Registered;
pub(crate) use run::{Operator, Outcome};
