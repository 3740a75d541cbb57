//! Reads. Each uses one version from its beginning to its end.

mod get;
mod multi_get;
pub(crate) mod range;
