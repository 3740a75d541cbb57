//! Many point reads at once: a page that several keys need is read once, and the reads overlap.
//!
//! All keys go on as far as pages are in frames; then the pages that are missing, of whatever
//! table, are read together, and the keys go on. One version answers all of them. I7: a wave asks
//! for a part of the frames at most.

use super::get::{Asked, tables_for};
use crate::{
    error::Result,
    key::Value,
    y::{
        lsm::{
            filters::AbsentShare,
            stored::Stored,
            table::{Descent, Step, Table, hash_of, load_together},
            tree::{FilterUses, LsmY},
            version::{Partition, Version},
        },
        page::PageNo,
        pool::search::Found,
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
enum Came {
    /// It needs this page.
    To(PageNo),
    End(Option<Value>),
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
    fn go_on(&mut self, share: &AbsentShare) -> Result<Came> {
        loop {
            let (table, mut descent) = match self.at.take() {
                Some(at) => at,
                None => match self.rest.next() {
                    Some((stored, filter)) => {
                        self.in_base = filter.of_base;
                        let descent = stored.table().descent(self.key, self.hash, filter.how);
                        (stored, descent)
                    }
                    None => return Ok(self.end(None)),
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
                    let value = table.table().value_of(found)?.flatten();
                    return Ok(self.end(value));
                }
            }
        }
    }

    fn end(&self, value: Option<Value>) -> Came {
        if self.in_vain > 0 && !self.partition.layers.is_empty() {
            self.partition.reads().waste(self.in_vain);
        }
        Came::End(value)
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
            self.wave(wanted.collect(), &mut values)?;
        }
        Ok(values)
    }

    fn wave(&self, mut wanted: Vec<Wanted<'_>>, values: &mut [Option<Value>]) -> Result<()> {
        for _ in 0..MOST_ROUNDS {
            let mut missing: Vec<(&Stored, PageNo)> = Vec::new();
            let mut later = Vec::with_capacity(wanted.len());
            for mut want in wanted {
                match want.go_on(&self.absent)? {
                    Came::End(value) => {
                        if let Some(slot) = values.get_mut(want.slot) {
                            *slot = value;
                        }
                    }
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
            if let Some(value) = values.get_mut(want.slot) {
                *value = self.get_newest(want.key)?;
            }
        }
        Ok(())
    }
}
