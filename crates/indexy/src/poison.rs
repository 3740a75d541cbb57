//! The first fatal failure of a database, kept for every later caller.
//!
//! Threads: any; the first call of [`Poison::set`] wins. Reads go on after a
//! poisoning, writes fail with the first cause.

#![forbid(unsafe_code)]

use crate::{
    error::{Error, Result},
    events,
};
use std::{
    fmt::Display,
    sync::{Arc, OnceLock},
};

/// A write-once cell for the first cause.
#[derive(Default)]
pub(crate) struct Poison(OnceLock<Arc<str>>);

impl Poison {
    /// Records `cause` unless an earlier one is there; returns the error that writers get from now
    /// on.
    pub(crate) fn set(&self, cause: &dyn Display) -> Error {
        Error::Poisoned {
            cause: self
                .0
                .get_or_init(|| {
                    events::poisoned(cause);
                    cause.to_string().into()
                })
                .clone(),
        }
    }

    /// `Err(Poisoned)` once poisoned. Cost: one acquire load.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(cause) => Err(Error::Poisoned {
                cause: cause.clone(),
            }),
        }
    }
}
