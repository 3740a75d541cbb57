//! The catalogue: a tree of the database that says which tables there are.
//!
//! | key | value |
//! |---|---|
//! | `format` | version of the catalogue, 4 bytes |
//! | `next` | the next number of a table, an index or a generation, 8 bytes |
//! | `t`, name | definition of a table, JSON |
//! | `g`, number of the table, 8 bytes big-endian | generation of its definition, 8 bytes |
//! | `d`, number of a table, 8 bytes big-endian | nothing: it was dropped, its trees are to go |
//!
//! Numbers are little-endian where nothing else is said. A definition and its generation change in
//! one transaction. Whoever writes to a table reads the generation *for update* in the same
//! transaction: a change of the table conflicts with every write that began before it and is not
//! yet committed. So nobody waits for older transactions, and nobody writes by an old definition.

use crate::{
    definition::Definition,
    error::{Error, Result},
};
use indexy::{Snapshot, Transaction, Tree};
use std::collections::BTreeSet;

/// Name of its tree.
pub(crate) const TREE: &str = "indexy.tables";
/// Version of what is in it.
pub(crate) const FORMAT: u32 = 1;

const FORMAT_KEY: &[u8] = b"format";
const NEXT_KEY: &[u8] = b"next";
const DEFINITION: u8 = b't';
const GENERATION: u8 = b'g';
const DROPPED: u8 = b'd';

pub(crate) fn definition_key(table: &str) -> Vec<u8> {
    [&[DEFINITION], table.as_bytes()].concat()
}

pub(crate) fn generation_key(id: u64) -> [u8; 9] {
    number_key(GENERATION, id)
}

fn number_key(kind: u8, id: u64) -> [u8; 9] {
    let mut key = [kind; 9];
    key[1..].copy_from_slice(&id.to_be_bytes());
    key
}

fn damaged(what: impl Into<String>) -> Error {
    Error::corrupt(TREE, what)
}

pub(crate) fn generation(bytes: &[u8]) -> Result<u64> {
    let bytes = bytes.try_into().map_err(|_| damaged("a generation"))?;
    Ok(u64::from_le_bytes(bytes))
}

/// A definition, checked.
pub(crate) fn definition(table: &str, bytes: &[u8]) -> Result<Definition> {
    let read: Result<Definition, _> = serde_json::from_slice(bytes);
    let definition = read.map_err(|error| damaged(format!("table {table}: {error}")))?;
    definition
        .check()
        .map_err(|what| damaged(format!("table {table}: {what}")))?;
    Ok(definition)
}

/// Checks the version of the catalogue; whether it is empty, and has none yet.
pub(crate) fn check_format(tree: &Tree) -> Result<bool> {
    let Some(found) = tree.get(FORMAT_KEY)? else {
        return match tree.first()? {
            Some(_) => Err(damaged("no version")),
            None => Ok(true),
        };
    };
    let found = found[..].try_into().map_err(|_| damaged("its version"))?;
    match u32::from_le_bytes(found) {
        FORMAT => Ok(false),
        found => Err(Error::CatalogueVersion {
            found,
            supported: FORMAT,
        }),
    }
}

/// Writes the version into an empty catalogue.
pub(crate) fn write_format(tree: &Tree) -> Result<()> {
    Ok(tree.insert(FORMAT_KEY, FORMAT.to_le_bytes())?)
}

/// All tables at one moment: name and definition.
pub(crate) fn tables(now: &Snapshot, tree: &Tree) -> Result<Vec<(String, Definition)>> {
    let mut found: Vec<(String, Definition)> = Vec::new();
    for entry in now.prefix(tree, [DEFINITION]) {
        let (key, value) = entry?;
        let name = std::str::from_utf8(&key[1..]).map_err(|_| damaged("name of a table"))?;
        let definition = definition(name, &value)?;
        let stored = now.get(tree, generation_key(definition.id))?;
        let stored = stored.ok_or_else(|| damaged(format!("table {name} has no generation")))?;
        if generation(&stored)? != definition.generation {
            return Err(damaged(format!("table {name} has two generations")));
        }
        if found.iter().any(|(_, other)| other.id == definition.id) {
            return Err(damaged(format!(
                "table {name} has the trees of another one"
            )));
        }
        found.push((name.into(), definition));
    }
    Ok(found)
}

/// Numbers of tables that have a generation.
pub(crate) fn with_generation(now: &Snapshot, tree: &Tree) -> Result<BTreeSet<u64>> {
    numbers(now, tree, GENERATION)
}

/// Numbers of tables that were dropped, some of whose trees may be there.
pub(crate) fn dropped(now: &Snapshot, tree: &Tree) -> Result<BTreeSet<u64>> {
    numbers(now, tree, DROPPED)
}

fn numbers(now: &Snapshot, tree: &Tree, kind: u8) -> Result<BTreeSet<u64>> {
    let numbers = now.prefix(tree, [kind]).map(|entry| {
        let (key, _) = entry?;
        let number = key[1..].try_into();
        Ok(u64::from_be_bytes(
            number.map_err(|_| damaged("number of a table"))?,
        ))
    });
    numbers.collect()
}

/// Names of all tables.
pub(crate) fn names(now: &Snapshot, tree: &Tree) -> Result<Vec<String>> {
    let names = now.prefix(tree, [DEFINITION]).map(|entry| {
        let (key, _) = entry?;
        let name = std::str::from_utf8(&key[1..]);
        Ok(name.map_err(|_| damaged("name of a table"))?.into())
    });
    names.collect()
}

fn next_number(tx: &Transaction, tree: &Tree) -> Result<u64> {
    let Some(bytes) = tx.get_for_update(tree, NEXT_KEY)? else {
        return Ok(1);
    };
    let bytes = bytes[..].try_into();
    let bytes = bytes.map_err(|_| damaged("the next number"))?;
    Ok(u64::from_le_bytes(bytes))
}

/// The next number is greater than `greatest` from now on.
pub(crate) fn skip_numbers(tx: &mut Transaction, tree: &Tree, greatest: u64) -> Result<()> {
    if next_number(tx, tree)? <= greatest {
        let next = greatest.checked_add(1);
        let next = next.ok_or_else(|| damaged("the next number"))?;
        tx.insert(tree, NEXT_KEY, next.to_le_bytes())?;
    }
    Ok(())
}

/// Takes `count` numbers that nobody had; returns the first.
pub(crate) fn take_numbers(tx: &mut Transaction, tree: &Tree, count: u64) -> Result<u64> {
    let next = next_number(tx, tree)?;
    let after = next
        .checked_add(count)
        .ok_or_else(|| damaged("the next number"))?;
    tx.insert(tree, NEXT_KEY, after.to_le_bytes())?;
    Ok(next)
}

/// The definition of a table, read for update.
pub(crate) fn read(tx: &Transaction, tree: &Tree, table: &str) -> Result<Option<Definition>> {
    let found = tx.get_for_update(tree, definition_key(table))?;
    found.map(|bytes| definition(table, &bytes)).transpose()
}

/// Writes a definition under a new generation.
pub(crate) fn write(
    tx: &mut Transaction,
    tree: &Tree,
    table: &str,
    definition: &mut Definition,
) -> Result<()> {
    definition.generation = take_numbers(tx, tree, 1)?;
    let bytes = serde_json::to_vec(&definition).map_err(|error| damaged(error.to_string()))?;
    tx.insert(tree, definition_key(table), bytes)?;
    let generation = definition.generation.to_le_bytes();
    tx.insert(tree, generation_key(definition.id), generation)?;
    Ok(())
}

/// Removes a table, and says that its trees are to go.
pub(crate) fn remove(
    tx: &mut Transaction,
    tree: &Tree,
    table: &str,
    definition: &Definition,
) -> Result<()> {
    tx.remove(tree, definition_key(table))?;
    tx.remove(tree, generation_key(definition.id))?;
    tx.insert(tree, number_key(DROPPED, definition.id), "")?;
    Ok(())
}

/// The trees of the table that had the number `id` are gone.
pub(crate) fn forget(tree: &Tree, id: u64) -> Result<()> {
    Ok(tree.remove(number_key(DROPPED, id))?)
}
