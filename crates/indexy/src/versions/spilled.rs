//! Images on disk: a scratch run from keys to chains, which have no markers.
//!
//! Nothing changes in it. It is dropped whole, with its files, when no open snapshot needs any of
//! its images. Several that are neighbours in time may be replaced by one.

#![forbid(unsafe_code)]

use super::{
    chain,
    clock::Epoch,
    generation::{Part, SCAN},
};
use crate::{
    error::{Error, Result},
    key::Value,
    x::Order,
    y::lsm::ScratchRun,
};

/// See the module header.
pub(super) struct Spilled {
    run: ScratchRun,
    /// No image has a larger `until`.
    newest: Epoch,
    bytes: u64,
}

impl Spilled {
    pub(super) fn new(run: ScratchRun, newest: Epoch) -> Self {
        let bytes = run.bytes();
        Self { run, newest, bytes }
    }

    pub(super) fn newest(&self) -> Epoch {
        self.newest
    }

    /// Bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.run.memory_bytes()
    }

    pub(super) fn run(&self) -> &ScratchRun {
        &self.run
    }

    /// The chain of `key`; `None`: it has no images. Cost: [`ScratchRun::get`].
    pub(super) fn chain(&self, key: &[u8]) -> Result<Option<Value>> {
        let chain = self.run.get(key)?;
        chain.map(|chain| self.checked(chain)).transpose()
    }

    /// `chain`, which was read, if it is one.
    pub(super) fn checked<C: AsRef<[u8]>>(&self, chain: C) -> Result<C> {
        match chain::is_sound(chain.as_ref()) {
            true => Ok(chain),
            false => Err(Error::corrupt(
                self.run.dir(),
                0,
                "an image on disk is no chain",
            )),
        }
    }

    /// Keys and chains of `[from, to)`, a bounded part of them.
    pub(super) fn scan(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<Part> {
        let (mut from, mut to) = (from.to_vec(), to.map(<[u8]>::to_vec));
        let (mut part, mut bytes) = (Part::default(), 0);
        loop {
            let stretch = self.run.stretch(&from, to.as_deref(), order)?;
            for (key, chain) in stretch.entries {
                bytes += key.len() + chain.len();
                part.entries.push((key, self.checked(chain)?));
            }
            let enough = bytes >= SCAN.bytes || part.entries.len() >= SCAN.entries;
            match (stretch.resume, order) {
                (None, _) => return Ok(part),
                (resume, _) if enough => {
                    part.resume = resume;
                    return Ok(part);
                }
                (Some(at), Order::Ascending) => from = at,
                (Some(at), Order::Descending) => to = Some(at),
            }
        }
    }
}
