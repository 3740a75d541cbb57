//! Many point reads at once: a page that several keys need is read once, and the reads overlap.
//!
//! All keys go on as far as pages are in frames; then the pages that are missing, of whatever
//! table, are read together, and the keys go on; at last the values that lie in no leaf. One
//! version answers all of them. I7: a wave asks for a part of the frames at most.

use super::get::{Asked, tables_for};
use crate::{
    error::Result,
    key::Value,
    y::{
        lsm::{
            filters::AbsentShare,
            stored::Stored,
            table::{Descent, Step, Table, TableFile, hash_of, load_together},
            tree::{FilterUses, LsmY},
            version::{Partition, Version},
        },
        page::{PageNo, node::Far},
        pool::{search::Found, values::fetch_values},
    },
};
use std::sync::Arc;

/// Keys of a wave at most, and the part of the pool's frames that it may ask for.
const WAVE_KEYS: usize = 256;
const WAVE_DIVISOR: usize = 4;
/// Rounds of reads after which a key is looked for alone: where frames are few, what was read may
/// be gone before it is looked at.
const MOST_ROUNDS: usize = 64;

/// A key on its way.
struct Wanted<'v> {
    slot: usize,
    key: &'v [u8],
    hash: u64,
    partition: &'v Partition<Stored>,
    /// The tables that were not begun.
    rest: Box<dyn Iterator<Item = (&'v Stored, Asked)> + 'v>,
    at: Option<(&'v Stored, Descent)>,
    /// The table is of a base.
    in_base: bool,
    in_vain: u64,
}

/// How far a key came.
enum Came<'v> {
    /// It needs this page.
    To(PageNo),
    /// Its value lies in no leaf.
    Far(&'v Table, Far),
    End(Option<Value>),
}

/// What a wave found.
struct Answers<'a, 'v> {
    values: &'a mut [Option<Value>],
    /// Values that lie in no leaf, and their slots.
    far: Vec<(usize, &'v Table, Far)>,
}

impl<'v> Wanted<'v> {
    fn new(
        version: &'v Version<Stored>,
        uses: FilterUses,
        slot: usize,
        key: &'v [u8],
    ) -> Option<Self> {
        let partition: &Arc<_> = version.partition(key)?;
        Some(Self {
            slot,
            key,
            hash: hash_of(key),
            partition,
            rest: Box::new(tables_for(partition, key, uses)),
            at: None,
            in_base: false,
            in_vain: 0,
        })
    }

    /// Goes on as far as pages are in frames.
    fn go_on(&mut self, share: &AbsentShare) -> Result<Came<'v>> {
        loop {
            let (table, mut descent) = match self.at.take() {
                Some(at) => at,
                None => match self.rest.next() {
                    Some((stored, filter)) => {
                        self.in_base = filter.of_base;
                        let descent = stored.table().descent(self.key, self.hash, filter.how);
                        (stored, descent)
                    }
                    None => {
                        self.end();
                        return Ok(Came::End(None));
                    }
                },
            };
            let step = table.table().descend(self.key, &mut descent)?;
            if self.in_base && !matches!(step, Step::Missing(_)) {
                let absent = matches!(step, Step::Denied | Step::Said(Found::Nothing));
                share.note(self.hash, absent);
            }
            match step {
                Step::Missing(page) => {
                    self.at = Some((table, descent));
                    return Ok(Came::To(page));
                }
                Step::Denied => {}
                Step::Said(Found::Nothing) => self.in_vain += 1,
                Step::Said(found) => {
                    self.end();
                    return Ok(match found {
                        Found::Nothing | Found::Deleted => Came::End(None),
                        Found::Near(value) => Came::End(Some(value)),
                        Found::Far(far) => Came::Far(table.table(), far),
                    });
                }
            }
        }
    }

    fn end(&self) {
        if self.in_vain > 0 && !self.partition.layers.is_empty() {
            self.partition.reads().waste(self.in_vain);
        }
    }
}

impl LsmY {
    /// Values of `keys`, in the order asked. Cost: as one read each, overlapped.
    pub(in crate::y::lsm) fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        let mut values = vec![None; keys.len()];
        if let ([key], [value]) = (keys, &mut values[..]) {
            *value = self.get_newest(key)?;
            return Ok(values);
        }
        let version = self.version();
        let uses = self.filter_uses();
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by_key(|slot| keys.get(*slot));
        let wave = (self.pool.frames.limit() / WAVE_DIVISOR).clamp(1, WAVE_KEYS);
        for slots in order.chunks(wave) {
            let wanted = slots.iter().filter_map(|&slot| {
                let key = keys.get(slot)?;
                Wanted::new(&version, uses, slot, key)
            });
            let mut answers = Answers {
                values: &mut values,
                far: Vec::new(),
            };
            self.wave(wanted.collect(), &mut answers)?;
            answers.fetch_far()?;
        }
        Ok(values)
    }

    fn wave<'v>(&self, mut wanted: Vec<Wanted<'v>>, answers: &mut Answers<'_, 'v>) -> Result<()> {
        for _ in 0..MOST_ROUNDS {
            let mut missing: Vec<(&Stored, PageNo)> = Vec::new();
            let mut later = Vec::with_capacity(wanted.len());
            for mut want in wanted {
                match want.go_on(&self.absent)? {
                    Came::End(value) => answers.set(want.slot, value),
                    Came::Far(table, far) => answers.far.push((want.slot, table, far)),
                    Came::To(page) => {
                        missing.extend(want.at.as_ref().map(|(table, _)| (*table, page)));
                        later.push(want);
                    }
                }
            }
            wanted = later;
            if wanted.is_empty() {
                return Ok(());
            }
            missing.sort_unstable_by_key(|(table, page)| (table.table().meta().number, *page));
            missing.dedup_by_key(|(table, page)| (table.table().meta().number, *page));
            let pages = missing.iter().map(|(table, page)| (table.table(), *page));
            load_together(&pages.collect::<Vec<(&Table, PageNo)>>())?;
        }
        for want in wanted {
            answers.set(want.slot, self.get_newest(want.key)?);
        }
        Ok(())
    }
}

impl Answers<'_, '_> {
    fn set(&mut self, slot: usize, value: Option<Value>) {
        if let Some(slot) = self.values.get_mut(slot) {
            *slot = value;
        }
    }

    /// Reads the values that lie in no leaf, in the order of each file.
    fn fetch_far(mut self) -> Result<()> {
        let mut far = std::mem::take(&mut self.far);
        far.sort_unstable_by_key(|(_, table, far)| (table.meta().number, far.first));
        let wanted = far.iter().map(|(_, table, far)| (table.file(), *far));
        let values = fetch_values::<TableFile>(&wanted.collect::<Vec<_>>())?;
        for ((slot, ..), value) in far.into_iter().zip(values) {
            self.set(slot, Some(value));
        }
        Ok(())
    }
}
