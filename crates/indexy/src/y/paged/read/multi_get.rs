//! Many point reads at once: a page that several keys need is read once, and the reads overlap.
//!
//! All keys go down as far as pages are in frames; then the pages that are missing are read
//! together (`storage/ring.rs`), and the keys go on. One version answers all of them. I7: a wave
//! asks for a part of the frames at most.

use crate::y::pool::search::At;
use crate::y::pool::search::Found;
use crate::y::pool::search::ToKey;
use crate::{
    error::Result,
    key::Value,
    y::paged::{tree::PagedY, version::Version},
};

/// Keys of a wave at most, and the part of the pool's frames that it may ask for.
const WAVE_KEYS: usize = 256;
const WAVE_DIVISOR: usize = 4;

/// A key on its way down.
struct Wanted<'k> {
    slot: usize,
    key: &'k [u8],
    at: At,
}

impl PagedY {
    /// Values of `keys` in `version`, in the order asked. Cost: a read of the device for each page
    /// that is not in memory.
    pub(crate) fn multi_get_in(
        &self,
        version: &Version,
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Value>>> {
        let mut values = vec![None; keys.len()];
        let Some(root) = At::root(&version.root) else {
            return Ok(values);
        };
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by_key(|slot| keys.get(*slot));
        let wave = (self.pages.pool.frames.limit() / WAVE_DIVISOR).clamp(1, WAVE_KEYS);
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
        for _ in 0..version.root.height {
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
            self.pages.load_all(&missing)?;
        }
        // Those whose pages did not stay until they were looked at, and single ones.
        for want in wanted {
            if let Some(value) = values.get_mut(want.slot) {
                *value = self.pages.get(&version.root, want.key)?;
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
        let mut route = ToKey {
            file: &self.pages.file,
            key,
        };
        self.pages
            .in_frames(&version.root, &mut want.at, &mut route, &|leaf| {
                self.pages.value_in(leaf, key)
            })
    }

    fn answer(&self, found: Found, slot: usize, values: &mut [Option<Value>]) -> Result<()> {
        if let Some(value) = values.get_mut(slot) {
            *value = self.pages.value_of(found)?;
        }
        Ok(())
    }
}
