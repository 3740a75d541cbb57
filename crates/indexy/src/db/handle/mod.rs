//! What handles of an open database hold: `core` what they share, `ending` how it stops, `closing`
//! which thread stops it, `stripes` the locks of writers, `updating` who is inside an `update`,
//! `pinned` an open snapshot, `turn` who commits transactions, `division` how the budget is
//! divided, `lending` when filters borrow of it, `work` what background work is counted for,
//! `dropped` trees that late writers may still write to.

mod closing;
mod core;
mod division;
mod dropped;
mod ending;
mod lending;
mod pinned;
mod stripes;
mod turn;
pub(super) mod updating;
mod work;

pub(super) use closing::Closing;
pub(super) use core::{Core, Status, TreeCore};
pub(super) use dropped::DroppedTrees;
pub(super) use ending::Handle;
pub(super) use lending::Division;
pub(super) use pinned::Pinned;
pub(super) use stripes::Stripes;
pub(super) use turn::Turn;
pub(super) use work::Work;
