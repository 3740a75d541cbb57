//! Release: frees memory by cutting off the regions of X with the lowest access density.
//!
//! Source: IndeXY II-C. [`algorithm1`] chooses regions, or another policy of `order`; `cut` cuts
//! them, `step` decides what is to be done next, and `releaser` is the thread that does it;
//! [`by_hand`] is what a user asks for.

pub(super) mod algorithm1;
pub(crate) mod by_hand;
pub(crate) mod cut;
pub(super) mod order;
pub(crate) mod releaser;
mod step;
