//! The disk index of a cache: nothing is ever written to it, and nobody reads from it.

#![forbid(unsafe_code)]

use crate::{
    error::{Error, Result},
    key::Value,
    x::Order,
    y::{Capabilities, IndexY, Maintained, RunSource, YIter},
};
use std::path::Path;

/// See the module header.
pub(super) struct Nothing;

fn unsupported<T>() -> Result<T> {
    Err(Error::Unsupported {
        what: "a cache of locators is never written".into(),
    })
}

impl IndexY for Nothing {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_key_bytes: usize::MAX,
            max_value_bytes: usize::MAX,
            preferred_run_bytes: 0,
        }
    }

    fn get(&self, _: &[u8]) -> Result<Option<Value>> {
        Ok(None)
    }

    fn range(&self, _: &[u8], _: Option<&[u8]>, _: Order) -> Result<YIter<'_>> {
        Ok(Box::new(std::iter::empty()))
    }

    /// A sweep over what is clean is an empty run.
    fn write_run(&self, source: &mut dyn RunSource) -> Result<()> {
        source.drain(&mut |_| unsupported())
    }

    fn make_durable(&self) -> Result<()> {
        Ok(())
    }

    fn maintain(&self) -> Result<Maintained> {
        Ok(Maintained::Idle)
    }

    fn congested(&self) -> bool {
        false
    }

    /// The cache stays mounted.
    fn is_empty(&self) -> Result<bool> {
        Ok(false)
    }

    fn approximate_len(&self) -> u64 {
        0
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn disk_bytes(&self) -> u64 {
        0
    }

    fn run_count(&self) -> usize {
        0
    }

    fn verify(&self) -> Result<u64> {
        Ok(0)
    }

    fn copy_to(&self, _: &Path) -> Result<()> {
        unsupported()
    }
}
