//! What a database says about itself: figures, and what a walk over everything finds.

mod stats;
mod verify;

pub use stats::Stats;
pub(super) use verify::verify;
pub use verify::{TreeReport, VerifyReport};
