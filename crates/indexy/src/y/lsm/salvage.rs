//! Reading what is left of a damaged run store.
//!
//! With the version log it is known which table is newer than which: an entry is doubtful where a
//! newer table has a hole over its key. Without it nothing says which tables count, and in which
//! order: a merge gives its output the highest number, however old its entries are, and keys of
//! removed ranges are still in tables. Then every entry is doubtful.
//! Memory: a leaf of each table, and two values: that of a key, and an older one of the same key,
//! which is read to find out whether it is lost. Threads: one. Nothing is written.

use super::{
    table::{TableFile, TableMeta},
    version::{Facts, Placement, TABLES, VERSIONS, read_placement},
};
use crate::{
    error::{Error, Result},
    key::successor,
    storage::Storage,
    y::{
        salvaged::{Salvaged, Visit},
        tolerant::{Found, Hole, Tolerant},
    },
};
use std::{collections::BTreeMap, iter::Peekable, path::Path};

/// A table that can be read, or the error that keeps it from that.
type Opened = std::result::Result<TableFile, Error>;

/// What a table has, in order.
type Source<'t> = Box<dyn Iterator<Item = Found<'t, TableFile>> + 't>;

/// Reads the tree in `dir`. `owner`: see [`LsmY::open`](super::LsmY); `None`: not known, which
/// costs the version log. Errors: those of `visit`.
pub(crate) fn salvage(
    storage: &dyn Storage,
    dir: &Path,
    owner: Option<u64>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let placement = match owner {
        Some(owner) => read_placement(storage, dir, owner),
        None => {
            let what = "whose version log it is cannot be known";
            Err(Error::corrupt(dir.join(VERSIONS), 0, what))
        }
    };
    match damage(placement)? {
        Ok(placement) => by_versions(storage, dir, &placement, visit),
        Err(error) => {
            visit(lost(&[], None, error))?;
            by_footers(storage, dir, visit)
        }
    }
}

fn lost(from: &[u8], to: Option<&[u8]>, error: Error) -> Salvaged {
    Salvaged::Lost(Hole {
        from: from.to_vec(),
        to: to.map(<[u8]>::to_vec),
        error,
    })
}

/// What is no damage ends it: want of descriptors loses nothing, and neither does a newer format.
fn damage<T>(read: Result<T>) -> Result<Result<T>> {
    match read {
        Err(error) if error.is_no_damage() => Err(error),
        read => Ok(read),
    }
}

fn by_versions(
    storage: &dyn Storage,
    dir: &Path,
    placement: &Placement,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let tables = dir.join(TABLES);
    let mut opened: BTreeMap<u64, Opened> = BTreeMap::new();
    for (number, facts) in &placement.tables {
        let name = (facts.number, facts.id, facts.pages);
        let table = damage(TableFile::open(storage, &tables, name))?;
        if let Ok(table) = &table {
            table.check_format(facts.number)?;
        }
        opened.insert(*number, table);
    }
    for (i, partition) in placement.partitions.iter().enumerate() {
        let next = placement.partitions.get(i + 1);
        let (from, to) = (&*partition.from, next.map(|next| &*next.from));
        let numbers = partition.layers.iter().chain(&partition.base);
        let facts = |number: &u64| placement.tables.get(number).zip(opened.get(number));
        let found: Vec<_> = numbers.filter_map(facts).collect();
        let sources = found
            .iter()
            .map(|(facts, opened)| source(facts, opened, from, to));
        merge(sources.collect(), false, visit)?;
    }
    Ok(())
}

/// What a table has of `[from, to)`: where it cannot be opened, a hole.
fn source<'t>(facts: &Facts, opened: &'t Opened, from: &[u8], to: Option<&[u8]>) -> Source<'t> {
    match opened {
        Ok(table) => Box::new(Tolerant::new(table, facts.root, facts.height, from, to)),
        Err(error) => {
            let behind = successor(&facts.max);
            let to = to.map_or(behind.clone(), |to| behind.min(to.to_vec()));
            let hole = Hole {
                from: from.max(&facts.min).to_vec(),
                to: Some(to),
                error: error.clone(),
            };
            Box::new(std::iter::once(Found::Hole(hole)))
        }
    }
}

/// Every table that says itself what it is, the one with the highest number first.
fn by_footers(storage: &dyn Storage, dir: &Path, visit: &mut Visit<'_>) -> Result<()> {
    let tables = dir.join(TABLES);
    let names = damage(storage.list(&tables))?.unwrap_or_default();
    let mut opened: Vec<(TableMeta, TableFile)> = Vec::new();
    for name in names {
        let read = storage
            .open(&tables.join(&name), false)
            .and_then(|file| TableMeta::alone(&file));
        match damage(read)? {
            Ok((meta, table)) => {
                table.check_format(meta.number)?;
                opened.push((meta, table));
            }
            Err(error) => visit(lost(&[], None, error))?,
        }
    }
    opened.sort_by_key(|(meta, _)| std::cmp::Reverse(meta.number));
    let sources = opened.iter().map(|(meta, table)| -> Source<'_> {
        Box::new(Tolerant::new(table, meta.root, meta.height, &[], None))
    });
    merge(sources.collect(), true, visit)
}

/// One table of a merge, newer than those behind it.
struct Input<'t> {
    found: Peekable<Source<'t>>,
    /// Holes that were passed and have not ended.
    holes: Vec<Hole>,
}

impl Input<'_> {
    /// Whether it may have had `key` where nothing could be read.
    fn may_have_had(&mut self, key: &[u8]) -> bool {
        let open = |hole: &Hole| hole.to.as_deref().is_none_or(|to| key < to);
        self.holes.retain(open);
        self.holes.iter().any(|hole| *hole.from <= *key)
    }

    /// Passes a hole. Errors: those of `visit`, and what is no damage.
    fn pass(&mut self, hole: Hole, visit: &mut Visit<'_>) -> Result<()> {
        if hole.error.is_no_damage() {
            return Err(hole.error);
        }
        visit(Salvaged::Lost(hole.clone()))?;
        self.holes.push(hole);
        Ok(())
    }
}

/// Of each key the entry of the first input that has it.
fn merge(sources: Vec<Source<'_>>, all_doubtful: bool, visit: &mut Visit<'_>) -> Result<()> {
    let sources = sources.into_iter().map(|found| Input {
        found: found.peekable(),
        holes: Vec::new(),
    });
    let mut inputs: Vec<Input<'_>> = sources.collect();
    loop {
        // Holes first, so that those over a key are known before the key is judged.
        let place = |(i, input): (usize, &mut Input<'_>)| {
            let found = input.found.peek()?;
            Some((found.from().to_vec(), matches!(found, Found::Entry(..)), i))
        };
        let least = inputs.iter_mut().enumerate().filter_map(place).min();
        let Some((key, is_entry, first)) = least else {
            return Ok(());
        };
        if !is_entry {
            if let Some(input) = inputs.get_mut(first)
                && let Some(Found::Hole(hole)) = input.found.next()
            {
                input.pass(hole, visit)?;
            }
            continue;
        }
        let mut newest: Option<Option<Vec<u8>>> = None;
        let mut doubtful = all_doubtful;
        for input in &mut inputs {
            let same = |found: &Found<'_, _>| matches!(found, Found::Entry(e) if e.key == key);
            let read = input.found.next_if(same).map(Found::read).transpose();
            let value = match read {
                Ok(entry) => entry.map(|(_, value)| value),
                Err(hole) => {
                    input.pass(hole, visit)?;
                    None
                }
            };
            if newest.is_none() {
                doubtful |= input.may_have_had(&key);
                newest = value;
            }
        }
        if let Some(Some(value)) = newest {
            visit(Salvaged::Entry {
                key,
                value,
                doubtful,
            })?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        storage::sim::Sim,
        y::{large_values, lsm::LsmY, pool::PageCache},
    };
    use std::sync::Arc;

    #[test]
    fn large_values_are_read_one_at_a_time() {
        let (dir, number) = (Path::new("/tree"), 1);
        let open = |sim: &Sim| {
            let storage: Arc<dyn Storage> = Arc::new(sim.clone());
            LsmY::open(&storage, dir, &PageCache::new(0), number, false)
        };
        for owner in [Some(number), None] {
            large_values::are_read_one_at_a_time(open, |sim, visit| {
                salvage(sim, dir, owner, visit)
            });
        }
    }
}
