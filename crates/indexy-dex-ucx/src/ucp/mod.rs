//! UCP behind functions that need no promise from their caller: all `unsafe` of this crate.
//!
//! # Threads
//! Contexts are shared by all threads (`mt_workers_shared`). A worker is used by one thread at a
//! time and may move (`UCS_THREAD_MODE_SERIALIZED`); nothing here locks. Whatever belongs to a
//! worker holds it by `Rc`, so it cannot be shared; who moves a worker moves all of them
//! together.
//!
//! # Rules
//! - U1: UCX reads and writes only memory that a [`Pending`] owns, or that its worker owns. A
//!   `Pending` that is dropped before UCX is done leaks its memory.
//! - U2: a worker is destroyed after its endpoints, a context after its workers and
//!   memory: each holds the other by `Rc` or `Arc`.
//! - U3: no panic crosses into C: callbacks catch them.
//! - U4: an endpoint's error flag, which UCX may write as long as the endpoint is open, is leaked
//!   unless closing ended.

mod context;
mod endpoint;
mod status;
mod worker;

pub(crate) use context::{Context, Memory, Use};
pub(crate) use endpoint::{Endpoint, Pending, wait_for};
pub(crate) use status::{Result, Status};
pub(crate) use worker::{Header, Message, Worker};
