//! What handles of an open database hold: `core` what they share, `ending` how it stops, `stripes`
//! the locks of writers, `updating` who is inside an `update`, `division` how the budget is
//! divided.

mod core;
mod division;
mod ending;
mod stripes;
pub(super) mod updating;

pub(super) use core::{Core, Status, TreeCore};
pub(super) use ending::Handle;
pub(super) use stripes::Stripes;
