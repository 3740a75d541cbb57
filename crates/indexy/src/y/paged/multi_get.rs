//! Many point reads at once, their reads of the device overlapped.
//!
//! All keys go down as far as pages are in frames; the pages that are missing are read together, in the order of the
//! file, by a few threads that live for one such round; then the keys go on. One version answers all of them.
//!
//! Threads and not an asynchronous interface of the system: a round of reads takes longer than its threads cost, and this works
//! wherever the library does. Where the system gives no thread the caller reads alone.
//! I7: a thread holds one page, in a frame or its own; a wave asks for a part of the frames at most.

use super::{
    PagedY,
    page::PageNo,
    search::{At, Found, ToKey},
    version::Version,
};
use crate::{error::Result, key::Value};
use parking_lot::Mutex;
use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

/// Keys of a wave at most, and the part of the pool's frames that it may ask for.
const WAVE_KEYS: usize = 256;
const WAVE_PART: usize = 4;
/// Reads that are worth a thread, and the most threads of a round.
const READS_PER_THREAD: usize = 3;
const MAX_THREADS: usize = 16;

/// A key on its way down.
struct Wanted<'k> {
    slot: usize,
    key: &'k [u8],
    at: At,
}

impl PagedY {
    /// Values of `keys` in `version`, in the order asked. Cost: a round of overlapped reads for each level that is not in memory.
    pub(super) fn multi_get_in(
        &self,
        version: &Version,
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Value>>> {
        let mut values = vec![None; keys.len()];
        let Some(root) = At::root(version) else {
            return Ok(values);
        };
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by_key(|slot| keys.get(*slot));
        let wave = (self.pool.frames.limit() / WAVE_PART).clamp(1, WAVE_KEYS);
        for slots in order.chunks(wave) {
            let wanted = slots.iter().filter_map(|slot| {
                let (slot, key, at) = (*slot, *keys.get(*slot)?, root);
                Some(Wanted { slot, key, at })
            });
            self.wave(version, wanted.collect(), &mut values)?;
        }
        Ok(values)
    }

    fn wave(
        &self,
        version: &Version,
        mut wanted: Vec<Wanted<'_>>,
        values: &mut [Option<Value>],
    ) -> Result<()> {
        for _ in 0..version.height {
            let mut missing = Vec::new();
            let mut later = Vec::new();
            for mut want in wanted {
                match self.as_far_as_in_frames(version, &mut want)? {
                    Some(found) => self.answer(found, want.slot, values)?,
                    None => {
                        missing.push(want.at.page());
                        later.push(want);
                    }
                }
            }
            wanted = later;
            missing.sort_unstable();
            missing.dedup();
            if missing.len() < 2 {
                break;
            }
            self.load_all(&missing)?;
        }
        // Those whose pages did not stay until they were looked at, and single ones.
        for want in wanted {
            if let Some(value) = values.get_mut(want.slot) {
                *value = self.get_in(version, want.key)?;
            }
        }
        Ok(())
    }

    fn as_far_as_in_frames(
        &self,
        version: &Version,
        want: &mut Wanted<'_>,
    ) -> Result<Option<Found>> {
        let key = want.key;
        let mut route = ToKey { y: self, key };
        self.in_frames(version, &mut want.at, &mut route, &|leaf| {
            self.value_in(leaf, key)
        })
    }

    fn answer(&self, found: Found, slot: usize, values: &mut [Option<Value>]) -> Result<()> {
        if let Some(value) = values.get_mut(slot) {
            *value = self.value_of(found)?;
        }
        Ok(())
    }

    /// Reads pages of the caller's version into frames, several at a time.
    fn load_all(&self, pages: &[PageNo]) -> Result<()> {
        let next = AtomicUsize::new(0);
        let outcome = Mutex::new(Ok(()));
        let work = || {
            while let Some(page) = pages.get(next.fetch_add(1, Relaxed)) {
                let loaded = self.pool.load(&self.file, *page);
                match loaded {
                    Ok(loaded) => self.pool.keep(self.tag(*page), loaded),
                    Err(error) => {
                        *outcome.lock() = Err(error);
                        break;
                    }
                }
            }
        };
        let others = (pages.len() / READS_PER_THREAD).min(MAX_THREADS - 1);
        thread::scope(|scope| {
            for _ in 0..others {
                // Refused: those that are there do the work.
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
        outcome.into_inner()
    }
}
