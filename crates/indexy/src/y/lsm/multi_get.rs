//! Many point reads at once, their device reads overlapped by one thread.
//!
//! First the blocks are located (indexes are mostly cached) and the system is asked to read them, which does not
//! wait; then they are read. Keys are taken in order, so that neighbours share a block. A key that is not in its
//! block goes on to an older run in the next wave.

#![forbid(unsafe_code)]

use super::{
    keys,
    snapshot::{Search, Snapshot, look_up},
    table::{Place, TableReader},
};
use crate::{error::Result, key::Value};
use std::sync::Arc;

/// Blocks asked for at once, at most: more than a device takes in parallel, and less than a megabyte.
const WAVE_BLOCKS: usize = 128;

/// A key still looked for.
struct Wanted<'a> {
    /// Its number in the order asked.
    slot: usize,
    key: std::borrow::Cow<'a, [u8]>,
    search: Search,
}

/// Values of `keys` in the order asked. All are read from one snapshot.
pub(super) fn multi_get(snapshot: &Snapshot, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
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

/// Looks for each key in the next block that may hold it; returns those that are to be looked for further.
fn wave<'k>(
    snapshot: &Snapshot,
    wanted: Vec<Wanted<'k>>,
    values: &mut [Option<Value>],
) -> Result<Vec<Wanted<'k>>> {
    let mut located: Vec<(Wanted<'k>, &Arc<TableReader>, Place)> = Vec::with_capacity(wanted.len());
    for mut want in wanted {
        let Some((table, place)) = snapshot.next_place(&mut want.search, &want.key)? else {
            continue;
        };
        let asked = located
            .last()
            .is_some_and(|(_, t, p)| Arc::ptr_eq(t, table) && *p == place);
        if !asked && !table.is_cached(place) {
            table.prefetch(place.offset, place.size.into())?;
        }
        located.push((want, table, place));
    }
    let mut again = Vec::new();
    for (want, table, place) in located {
        match look_up(table, place, &want.key)? {
            None => again.push(want),
            Some(value) => {
                if let Some(slot) = values.get_mut(want.slot) {
                    *slot = value;
                }
            }
        }
    }
    Ok(again)
}
