//! What snapshots and commits ask the images of a tree.
//!
//! Threads: readers hold nothing. They take the generations as they are after they have read the
//! newest value, so that they find the image of whatever write they saw (I10). Files come first,
//! then memory, the oldest first: an older image of the same key is the right one, because one that
//! was left later may have been left without a look at the disk. Ranges that were absent
//! (`spans.rs`) speak last.

#![forbid(unsafe_code)]

use super::{
    chain::{self, Image},
    clock::Epoch,
    generation::{Generation, Part},
    generations::Generations,
    spans::Spans,
    store::Store,
};
use crate::{error::Result, key::Key, x::Order};
use std::collections::BTreeMap;

/// Images of a range, as one snapshot sees them.
pub(crate) struct Seen {
    /// In the order of the scan.
    pub(crate) images: Vec<(Key, Image)>,
    /// Where the rest begins, or, descending, ends; `None`: this is all.
    pub(crate) resume: Option<Vec<u8>>,
    absent: Spans,
    epoch: Epoch,
}

impl Seen {
    /// Whether `key`, of which there is no image, was absent.
    pub(crate) fn was_absent(&self, key: &[u8]) -> bool {
        self.absent.at(key, self.epoch).is_some()
    }
}

impl Store {
    /// What snapshot `epoch` sees under `key`; `None`: what is there now. To be called after the
    /// newest value was read. Cost: a search in memory, and a look at each file that is newer.
    pub(crate) fn at(&self, key: &[u8], epoch: Epoch) -> Result<Option<Image>> {
        if self.is_unchanged_since(epoch) {
            return Ok(None);
        }
        let generations = self.generations.load();
        let Some(generations) = &*generations else {
            return Ok(None);
        };
        if generations.written.is_unchanged_since(key, epoch) {
            return Ok(None);
        }
        match generations.all_in_current() {
            Some(current) => Ok(current.at(key, epoch).map(|(_, image)| image)),
            None => at_any(generations, key, epoch),
        }
    }

    /// The same for the keys of `[from, to)`, a bounded part of them.
    pub(crate) fn range_at(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        epoch: Epoch,
    ) -> Result<Seen> {
        let mut seen = Seen {
            images: Vec::new(),
            resume: None,
            absent: Spans::default(),
            epoch,
        };
        if self.is_unchanged_since(epoch) {
            return Ok(seen);
        }
        let generations = self.generations.load_full();
        let Some(generations) = generations else {
            return Ok(seen);
        };
        seen.absent = generations.spans.clone();
        let mut parts: Vec<Part> = Vec::new();
        for file in generations.files.iter().filter(|f| f.newest() > epoch) {
            parts.push(file.scan(from, to, order)?);
        }
        let in_memory = generations.in_memory_since(epoch);
        parts.extend(in_memory.map(|generation| generation.scan(from, to, order)));
        // As far as all of them went.
        let ends = parts.iter().filter_map(|part| part.resume.as_ref());
        seen.resume = match order {
            Order::Ascending => ends.min().cloned(),
            Order::Descending => ends.max().cloned(),
        };
        let covered = |key: &[u8]| match (&seen.resume, order) {
            (None, _) => true,
            (Some(end), Order::Ascending) => key < &end[..],
            (Some(end), Order::Descending) => key >= &end[..],
        };
        let mut images = BTreeMap::new();
        // The oldest one first.
        for (key, chain) in parts.iter().flat_map(|part| &part.entries) {
            if covered(key)
                && let Some(found) = chain::at(chain, epoch)
            {
                images.entry(key.clone()).or_insert(found);
            }
        }
        let images = images.into_iter().map(|(key, (until, image))| {
            let span = seen.absent.at(&key, epoch);
            match span.is_some_and(|span| span < until) {
                true => (key, Image::Absent),
                false => (key, image),
            }
        });
        seen.images = match order {
            Order::Ascending => images.collect(),
            Order::Descending => images.rev().collect(),
        };
        Ok(seen)
    }

    /// Whether `key` was written since `epoch`. Cost: [`Store::at`].
    pub(crate) fn is_written_since(&self, key: &[u8], epoch: Epoch) -> Result<bool> {
        if self.is_unchanged_since(epoch) {
            return Ok(false);
        }
        let generations = self.generations.load();
        let Some(generations) = generations.as_ref() else {
            return Ok(false);
        };
        if generations.written.is_unchanged_since(key, epoch) {
            return Ok(false);
        }
        if generations.newest_in_memory(key, epoch) > epoch {
            return Ok(true);
        }
        for file in generations.files.iter().filter(|f| f.newest() > epoch) {
            if file.chain(key)?.is_some_and(|c| chain::newest(&c) > epoch) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The first key found in `[from, to)` that was written since `epoch` and is not one of those
    /// to `skip`.
    pub(crate) fn written_in(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        epoch: Epoch,
        skip: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Key>> {
        if self.is_unchanged_since(epoch) {
            return Ok(None);
        }
        let Some(generations) = self.generations.load_full() else {
            return Ok(None);
        };
        if let Some(key) = generations.spans.written_in(from, to, epoch) {
            return Ok(Some(Key::new(key)));
        }
        let written = |key: &Key, chain: &[u8]| {
            (chain::newest(chain) > epoch && !skip(key)).then(|| key.clone())
        };
        for generation in generations.in_memory_since(epoch) {
            let scan = |from: &[u8]| Ok(generation.scan(from, to, Order::Ascending));
            if let Some(key) = walk(from, scan, written)? {
                return Ok(Some(key));
            }
        }
        for file in generations.files.iter().filter(|f| f.newest() > epoch) {
            let scan = |from: &[u8]| file.scan(from, to, Order::Ascending);
            if let Some(key) = walk(from, scan, written)? {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Keys of `[from, to)` with a marker that a snapshot after `oldest` may need. Cost: a few
    /// loads where there is none at all; else a walk over the images of the range in memory. Files
    /// have none.
    pub(crate) fn markers(&self, from: &[u8], to: Option<&[u8]>, oldest: Epoch) -> Vec<Key> {
        let mut keys = Vec::new();
        if let Some(generations) = self.generations.load_full() {
            let marked = |g: &&std::sync::Arc<Generation>| g.has_markers();
            for generation in generations.in_memory().filter(marked) {
                let scan = |from: &[u8]| Ok(generation.scan(from, to, Order::Ascending));
                let _ = walk(from, scan, |key, chain| {
                    if chain::has_marker(chain, oldest) {
                        keys.push(key.clone());
                    }
                    None::<()>
                });
            }
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// See [`Store::at`].
#[inline(never)]
fn at_any(generations: &Generations, key: &[u8], epoch: Epoch) -> Result<Option<Image>> {
    let found = found(generations, key, epoch)?;
    let span = generations.spans.at(key, epoch);
    Ok(match (found, span) {
        (Some((until, image)), span) if span.is_none_or(|span| until <= span) => Some(image),
        (_, Some(_)) => Some(Image::Absent),
        (_, None) => None,
    })
}

/// The image of `key` that `epoch` sees, and up to which epoch it holds.
fn found(generations: &Generations, key: &[u8], epoch: Epoch) -> Result<Option<(Epoch, Image)>> {
    for file in generations.files.iter().filter(|f| f.newest() > epoch) {
        if let Some(chain) = file.chain(key)?
            && let Some(found) = chain::at(&chain, epoch)
        {
            return Ok(Some(found));
        }
    }
    Ok(generations
        .in_memory_since(epoch)
        .find_map(|generation| generation.at(key, epoch)))
}

/// Hands the keys and chains that `scan` gives from `from` on to `visit`, until it returns
/// something.
fn walk<R>(
    from: &[u8],
    scan: impl Fn(&[u8]) -> Result<Part>,
    mut visit: impl FnMut(&Key, &[u8]) -> Option<R>,
) -> Result<Option<R>> {
    let mut at = Some(from.to_vec());
    while let Some(from) = at {
        let part = scan(&from)?;
        for (key, chain) in &part.entries {
            if let Some(found) = visit(key, chain) {
                return Ok(Some(found));
            }
        }
        at = part.resume;
    }
    Ok(None)
}
