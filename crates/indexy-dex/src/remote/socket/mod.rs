//! Connections to memory servers: frames, authentication, requests, both ends.

pub(super) mod auth;
pub(super) mod client;
pub(super) mod frame;
pub(super) mod request;
pub(super) mod server;
pub(super) mod stream;
