//! Many point reads at once: a page that several keys need is read once, and the reads overlap.
//!
//! All keys go down as far as pages are in frames; then the pages that are missing are read
//! together (`storage/ring.rs`), and the keys go on; at last the values that lie in no leaf. One
//! version answers all of them. I7: a wave asks for a part of the frames at most.

use crate::{
    error::Result,
    key::Value,
    y::{
        page::node::Far,
        paged::{tree::PagedY, version::Version},
        pool::{
            search::{At, Found, ToKey},
            values::fetch_values,
        },
    },
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

/// What a wave found.
struct Answers<'a> {
    values: &'a mut [Option<Value>],
    /// Values that lie in no leaf, and their slots.
    far: Vec<(usize, Far)>,
}

impl PagedY {
    /// Values of `keys` in `version`, in the order asked. Cost: a read of the device for each page
    /// that is not in memory, and for each value that lies in no leaf; they overlap.
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
            let mut answers = Answers {
                values: &mut values,
                far: Vec::new(),
            };
            self.wave(version, wanted.collect(), &mut answers)?;
            self.fetch_far(answers)?;
        }
        Ok(values)
    }

    fn wave(
        &self,
        version: &Version,
        mut wanted: Vec<Wanted<'_>>,
        answers: &mut Answers<'_>,
    ) -> Result<()> {
        for _ in 0..version.root.height {
            let mut missing = Vec::new();
            let mut later = Vec::new();
            for mut want in wanted {
                match self.without_reading(version, &mut want)? {
                    Some(found) => answers.take(found, want.slot),
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
            let found = self.pages.look_up(&version.root, want.key)?;
            answers.take(found, want.slot);
        }
        Ok(())
    }

    /// Reads the values that lie in no leaf, in the order of the file.
    fn fetch_far(&self, mut answers: Answers<'_>) -> Result<()> {
        answers.far.sort_unstable_by_key(|(_, far)| far.first);
        let wanted = answers.far.iter().map(|(_, far)| (&self.pages.file, *far));
        let values = fetch_values(&wanted.collect::<Vec<_>>())?;
        for ((slot, _), value) in answers.far.into_iter().zip(values) {
            if let Some(slot) = answers.values.get_mut(slot) {
                *slot = Some(value);
            }
        }
        Ok(())
    }

    fn without_reading(&self, version: &Version, want: &mut Wanted<'_>) -> Result<Option<Found>> {
        let key = want.key;
        let mut route = ToKey {
            file: &self.pages.file,
            key,
        };
        self.pages
            .without_reading(&version.root, &mut want.at, &mut route, &|leaf| {
                self.pages.value_in(leaf, key)
            })
    }
}

impl Answers<'_> {
    fn take(&mut self, found: Found, slot: usize) {
        match (found, self.values.get_mut(slot)) {
            (Found::Near(value), Some(slot)) => *slot = Some(value),
            (Found::Far(far), _) => self.far.push((slot, far)),
            _ => {}
        }
    }
}
