//! Memory of one database: how much is in use, who waits for more, and when X has to shrink.
//!
//! Keeps I7. [`Room`] is the object; `admission` is how a writer gets into it, `queue` the order of
//! those who wait, `watermarks` and `live_cap` the limits, as pure functions.
//! Not here: what to release (`release/`).

mod admission;
pub(crate) mod live_cap;
mod queue;
mod room;
mod watermarks;

pub(crate) use admission::Admitted;
pub(crate) use room::{Holdings, Room, WaitLimits};
pub(crate) use watermarks::Watermarks;

#[cfg(test)]
mod tests;
