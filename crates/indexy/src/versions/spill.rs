//! How images of a tree go to disk, and how their files are merged.
//!
//! A spill freezes the current generation, writes all frozen ones to one file, and shows the file
//! in their place: a reader finds an image in memory or in the file. What nobody sees is left out,
//! and markers are replaced by what Y has.
//!
//! Threads: one spill and one merge of a store at a time. Whoever spills holds the run lock if
//! there are markers, from before they are read until the file is shown: so Y does not change
//! (I12), and a run that comes later finds no marker or the same value. A merge reads files alone.
//! Neither holds a lock that a push or a read waits for while it does I/O.
//!
//! Keeps: I10 and I13 (a file is shown in the moment in which what it replaces goes).

#![forbid(unsafe_code)]

use super::{
    chain::{self, Image},
    clock::Epoch,
    disk::Disk,
    generation::{Frozen, Generation},
    spilled::Spilled,
    store::Store,
    tiers,
};
use crate::{
    error::{Error, Result},
    key::Key,
    x::Order,
    y::lsm::{Scratch, ScratchRun, ScratchWriter},
};
use std::{collections::BTreeMap, sync::Arc};

/// What a merge reads of a file at a time.
const READ_BYTES: usize = 64 << 10;
/// A merge looks at what else there is to do once in so many keys.
const KEYS_PER_LOOK: usize = 256;

/// Reads what markers stand for.
pub(crate) trait Cold {
    /// So many keys are asked for together at most.
    fn at_once(&self) -> usize;
    /// What Y has of each key.
    fn read(&mut self, keys: &[&[u8]]) -> Result<Vec<Image>>;
}

impl Store {
    /// Writes `frozen` to disk. `open`: the open epochs. The caller holds the run lock if there are
    /// markers. After an error nothing has changed.
    pub(crate) fn spill(
        &self,
        frozen: &Frozen,
        disk: &Disk,
        open: &[Epoch],
        cold: &mut dyn Cold,
    ) -> Result<()> {
        let _one = self.spilling.lock();
        // Others may have spilled them, or nobody needs them any more.
        let generations = self.still_frozen(frozen);
        if generations.is_empty() {
            return Ok(());
        }
        let mut writer = disk.scratch().writer()?;
        let mut from = Some(Vec::new());
        while let Some(at) = from {
            let (entries, resume) = gathered(&generations, &at, open);
            write(&mut writer, &entries, cold)?;
            from = resume;
        }
        let newest = generations.iter().map(|g| g.newest()).max();
        let file = self.file_of(writer.finish()?, newest.unwrap_or(0));
        self.show_spilled(&generations, file);
        Ok(())
    }

    /// Merges files, if there are some to merge, which take up to `room` bytes together: so much
    /// may be written. `open` tells the open epochs. It is asked when the files are known: whatever
    /// snapshot begins after that sees what is in none of them. `between` is called now and then,
    /// and ends the merge by false. True if something was merged. After an error it is tried again
    /// when there are twice as many files.
    pub(crate) fn merge(
        &self,
        disk: &Disk,
        open: impl FnOnce() -> Vec<Epoch>,
        room: u64,
        between: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let mut failed = self.merging.lock();
        let files = self.files();
        let sizes: Vec<u64> = files.iter().map(|file| file.bytes()).collect();
        let group = tiers::to_merge(&sizes).filter(|_| files.len() >= 2 * *failed);
        let fits = |group: &&[Arc<Spilled>]| group.iter().map(|f| f.bytes()).sum::<u64>() <= room;
        let Some(group) = group.and_then(|group| files.get(group)).filter(fits) else {
            return Ok(false);
        };
        *failed = files.len();
        let Some(run) = merged(group, disk.scratch(), &open(), between)? else {
            *failed = 0;
            return Ok(false);
        };
        *failed = 0;
        let newest = group.iter().map(|file| file.newest()).max();
        let file = self.file_of(run, newest.unwrap_or(0));
        self.show_merged(group, file);
        Ok(true)
    }

    /// `None`: nothing is left.
    fn file_of(&self, run: ScratchRun, newest: Epoch) -> Option<Arc<Spilled>> {
        let file = Spilled::new(run, newest);
        (file.bytes() > 0).then(|| Arc::new(file))
    }
}

/// Keys with their chains, ascending.
type Chains = Vec<(Key, Vec<u8>)>;

/// What open snapshots see of `generations` (oldest first) from `from` on, a bounded part, and
/// where the rest begins.
fn gathered(
    generations: &[Arc<Generation>],
    from: &[u8],
    open: &[Epoch],
) -> (Chains, Option<Vec<u8>>) {
    let parts = generations.iter().rev();
    let parts: Vec<_> = parts
        .map(|g| g.scan(from, None, Order::Ascending))
        .collect();
    // As far as all of them went.
    let resume = parts.iter().filter_map(|part| part.resume.as_ref()).min();
    let mut chains: BTreeMap<&Key, Vec<&[u8]>> = BTreeMap::new();
    for (key, chain) in parts.iter().flat_map(|part| &part.entries) {
        if resume.is_none_or(|end| **key < **end) {
            chains.entry(key).or_default().push(chain);
        }
    }
    let entries = chains.into_iter().map(|(key, chains)| {
        let chain = chain::joined(chains.into_iter(), open);
        (key.clone(), chain)
    });
    let entries = entries.filter(|(_, chain)| !chain.is_empty()).collect();
    (entries, resume.cloned())
}

/// Writes `entries` with their markers replaced.
fn write(
    writer: &mut ScratchWriter,
    entries: &[(Key, Vec<u8>)],
    cold: &mut dyn Cold,
) -> Result<()> {
    let marked = |chain: &[u8]| chain::has_marker(chain, 0);
    let mut rest = entries;
    while !rest.is_empty() {
        // As far as so many markers.
        let (most, mut asked, mut end) = (cold.at_once().max(1), Vec::new(), 0);
        for (key, chain) in rest {
            if marked(chain) {
                if asked.len() == most {
                    break;
                }
                asked.push(&**key);
            }
            end += 1;
        }
        let images = match asked.is_empty() {
            true => Vec::new(),
            false => cold.read(&asked)?,
        };
        let mut images = images.into_iter();
        let (now, later) = rest.split_at(end);
        for (key, chain) in now {
            if marked(chain) {
                let image = images.next().ok_or_else(|| Error::Unsupported {
                    what: "an Index Y that answers for fewer keys than it was asked for".into(),
                })?;
                writer.add(key, &chain::resolved(chain, image.borrowed()).0)?;
            } else {
                writer.add(key, chain)?;
            }
        }
        rest = later;
    }
    Ok(())
}

/// One run in place of those of `files` (oldest first). `None`: `between` has ended it.
fn merged(
    files: &[Arc<Spilled>],
    scratch: &Arc<Scratch>,
    open: &[Epoch],
    between: &mut dyn FnMut() -> bool,
) -> Result<Option<ScratchRun>> {
    let mut writer = scratch.writer()?;
    // The newest one first, as in a chain.
    let streams = files.iter().rev();
    let streams = streams.map(|file| Ok((file, file.run().stream(READ_BYTES)?)));
    let mut streams = streams.collect::<Result<Vec<_>>>()?;
    let mut keys = 0;
    loop {
        let first = streams.iter().filter_map(|(_, stream)| stream.key()).min();
        let Some(key) = first.map(<[u8]>::to_vec) else {
            break;
        };
        let mut chains: Vec<Vec<u8>> = Vec::new();
        for (file, stream) in &mut streams {
            if stream.key() == Some(&key) {
                chains.push(file.checked(stream.value()?)?.to_vec());
                stream.advance()?;
            }
        }
        let chain = chain::joined(chains.iter().map(|chain| &chain[..]), open);
        if !chain.is_empty() {
            writer.add(&key, &chain)?;
        }
        keys += 1;
        if keys % KEYS_PER_LOOK == 0 && !between() {
            return Ok(None);
        }
    }
    drop(streams);
    writer.finish().map(Some)
}

#[cfg(test)]
mod tests;
