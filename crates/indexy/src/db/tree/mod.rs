//! Trees: `reads` and `writes` are the two halves of [`Tree`], `range` its scans, `batch` writes to
//! several keys and trees as one, `reference` what all of these hold on to.

mod batch;
mod bounds;
mod load_sorted;
mod range;
mod ranges;
mod reads;
mod reference;
mod space;
mod writes;

pub use batch::{Batch, Rejected};
pub use range::Range;
pub use reads::Tree;
pub use space::{Compacted, TreeStats};
