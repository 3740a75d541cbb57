//! Trees: `reads` and `writes` are the two halves of [`Tree`], `fetch` reads that do not wait,
//! `range` its scans, `batch` writes to several keys and trees as one, `merge` writes of values
//! that need not be known, made of `ops` and applied by `commit`; `reference` what all of these
//! hold on to.

mod batch;
pub(super) mod bounds;
mod commit;
mod expiring;
mod fetch;
mod images;
mod load_sorted;
pub(super) mod merge;
mod merge_batch;
mod ops;
mod range;
mod ranges;
mod reads;
mod reference;
mod space;
mod writes;

pub use batch::{Batch, Rejected};
pub(super) use commit::Condition;
pub use expiring::Expires;
pub(super) use expiring::Life;
pub use fetch::{Fetch, Ticket};
pub use range::Range;
pub use reads::Tree;
pub(super) use reference::{Soonest, View};
pub use space::{Compacted, TreeStats};
