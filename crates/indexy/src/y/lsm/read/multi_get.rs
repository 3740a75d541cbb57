//! Many point reads at once, their device reads overlapped by one thread.
//!
//! First the blocks are located (indexes are mostly cached); then they are read at once, past the
//! page cache, or where they are read through it the system is asked for all before the first is
//! read. Keys are taken in order, so that neighbours share a block. A key that is not in its block
//! goes on to an older run in the next wave.

#![forbid(unsafe_code)]

use crate::{
    error::Result,
    key::Value,
    y::lsm::{
        keys,
        read::snapshot::{Search, Snapshot, look_up},
        table::{Place, TableReader, load_together},
    },
};

/// Blocks located before the first is read, at most: about what a device takes in parallel.
/// `buffers.rs` bounds the memory.
const WAVE_BLOCKS: usize = 64;

/// A key still looked for.
struct Wanted<'a> {
    /// Its number in the order asked.
    slot: usize,
    key: std::borrow::Cow<'a, [u8]>,
    search: Search,
}

/// Values of `keys` in the order asked. All are read from one snapshot.
pub(crate) fn multi_get(snapshot: &Snapshot, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
    let mut values = vec![None; keys.len()];
    if let ([key], [value]) = (keys, &mut values[..]) {
        *value = snapshot.get(&keys::stored(key))?;
        return Ok(values);
    }
    let mut wanted: Vec<Wanted<'_>> = keys
        .iter()
        .enumerate()
        .map(|(slot, key)| {
            let key = keys::stored(key);
            let search = Search::new(&key);
            Wanted { slot, key, search }
        })
        .collect();
    wanted.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    while !wanted.is_empty() {
        let rest = wanted.split_off(wanted.len().min(WAVE_BLOCKS));
        let again = wave(snapshot, wanted, &mut values)?;
        wanted = rest;
        wanted.extend(again);
    }
    Ok(values)
}

/// Looks for each key in the next block that may hold it; returns those that are to be looked for
/// further.
fn wave<'k>(
    snapshot: &Snapshot,
    wanted: Vec<Wanted<'k>>,
    values: &mut [Option<Value>],
) -> Result<Vec<Wanted<'k>>> {
    let mut wants = Vec::with_capacity(wanted.len());
    let mut places: Vec<(&TableReader, Place)> = Vec::with_capacity(wanted.len());
    for mut want in wanted {
        if let Some((table, place)) = snapshot.next_place(&mut want.search, &want.key)? {
            wants.push(want);
            places.push((table, place));
        }
    }
    let mut further = vec![false; wants.len()];
    load_together(&places, |slot, payload| {
        let ((table, place), want) = (places[slot], &wants[slot]);
        match look_up(table, place, payload, &want.key)? {
            None => further[slot] = true,
            Some(value) => {
                if let Some(slot) = values.get_mut(want.slot) {
                    *slot = value;
                }
            }
        }
        Ok(())
    })?;
    let again = wants.into_iter().zip(further);
    Ok(again
        .filter(|(_, further)| *further)
        .map(|(want, _)| want)
        .collect())
}
