//! What a compute server can choose.

use crate::{
    error::{Error, Result},
    offload::Offloading,
};

/// Fewest pages of a cache: two a level for the highest tree, and some for another thread.
const MIN_CACHE_PAGES: usize = 8;
const MAX_CACHE_PAGES: usize = u32::MAX as usize - 1;

/// Options of a [`Tree`](super::Tree).
#[derive(Debug, Clone)]
pub struct Options {
    pub(super) owner: u16,
    pub(super) cache_pages: usize,
    pub(super) leaf_admission: f64,
    /// Of leaves that are changed; `None`: as of others.
    pub(super) write_admission: Option<f64>,
    pub(super) offloading: Offloading,
    pub(super) samples_load: bool,
    pub(super) seed: u64,
}

impl Options {
    /// Compute server `owner`, with a cache of 1 KiB pages. A tree needs two pages a level for
    /// each thread.
    pub fn new(owner: u16, cache_pages: usize) -> Self {
        Self {
            owner,
            cache_pages,
            leaf_admission: 0.1,
            write_admission: None,
            offloading: Offloading::Measured,
            samples_load: false,
            seed: 1,
        }
    }

    /// How likely a leaf is admitted to the cache when it is read: 0.1 unless told, as in the
    /// paper.
    pub fn leaf_admission(mut self, probability: f64) -> Self {
        self.leaf_admission = probability;
        self
    }

    /// How likely a leaf is admitted when it is read to be changed: as [`Options::leaf_admission`]
    /// says unless told. Certain, it makes a run of ascending keys cost one read and one write a
    /// leaf, instead of one of each a key.
    pub fn write_admission(mut self, probability: f64) -> Self {
        self.write_admission = Some(probability);
        self
    }

    /// Whether memory servers are asked to finish operations: [`Offloading::Measured`] unless
    /// told.
    pub fn offloading(mut self, offloading: Offloading) -> Self {
        self.offloading = offloading;
        self
    }

    /// Whether operations are counted and keys sampled for the controller: not unless told.
    pub fn samples_load(mut self, samples: bool) -> Self {
        self.samples_load = samples;
        self
    }

    /// Repeats the random choices of a single thread.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        if !(MIN_CACHE_PAGES..=MAX_CACHE_PAGES).contains(&self.cache_pages) {
            let pages = self.cache_pages;
            let what = format!("a cache of {pages} pages; at least {MIN_CACHE_PAGES}");
            return Err(Error::Options(what));
        }
        for probability in [Some(self.leaf_admission), self.write_admission] {
            if probability.is_some_and(|probability| !(0.0..=1.0).contains(&probability)) {
                let what = format!("a probability of {probability:?}");
                return Err(Error::Options(what));
            }
        }
        Ok(())
    }
}
