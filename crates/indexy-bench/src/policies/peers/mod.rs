//! Caches of others, over numbers: each entry has the same size, and there is room for so many.
//!
//! Written here where no crate counts the same each time: they are queues over arrays (`queue.rs`),
//! and each has a test that was worked by hand. `quick_cache` is the crate itself.

mod belady;
mod clock;
mod lru;
mod queue;
mod quick;
mod s3fifo;
mod sieve;
mod tinylfu;

pub(super) use belady::Belady;
pub(super) use clock::Clock;
pub(super) use lru::Lru;
pub(super) use quick::QuickCache;
pub(super) use s3fifo::S3Fifo;
pub(super) use sieve::Sieve;
pub(super) use tinylfu::TinyLfu;

/// Which of `keys` hit, as a string of `+` and `-`.
#[cfg(test)]
fn hits(cache: &mut dyn super::Cache, keys: &[u32]) -> String {
    let access = |key: &u32| cache.access(*key, super::Access::Read);
    keys.iter()
        .map(access)
        .map(|hit| if hit { '+' } else { '-' })
        .collect()
}
