//! Opportunistic offloading: a memory server finishes an operation below a missing inner node.
//! Source: DEX section 6.
//!
//! The handler takes no lock. The compute server holds the I/O mark of the missing node and a pin
//! on its parent, so no other thread works below, and everything below is complete in the pool
//! (C3, C4 of the cache). A subtree that is offloaded belongs to one partition and one server.

mod handler;
mod policy;
mod request;

pub use handler::serve;
pub use policy::{Offloading, Policy};
pub(crate) use request::{Answer, Request};
