//! `indexy-dex` over UCX: the same code over shared memory, TCP, and RDMA where a card is.
//!
//! [`UcxServer`] is a memory server; [`Ucx`] is a compute server's end of a pool, one of the
//! transports of [`indexy_dex::remote::RemoteMemory`]. Reads are one-sided; writes, swaps and calls
//! are messages, which the memory server's thread does and fences (`server.rs`).
//!
//! All `unsafe` is in `ucp/`, but for the line that lets a lane move between threads
//! (`lane.rs`).

#![deny(unsafe_code)]

mod client;
mod desk;
mod lane;
mod server;
#[allow(unsafe_code, reason = "calls C")]
mod ucp;
mod wire;

pub use client::Ucx;
pub use server::UcxServer;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
