//! Tables against what went into them. One behaviour a file.

mod contents;
mod damage;
mod faults;
mod files;
mod packed;
mod sizes;

use super::{
    Codec, FilterUse, Table, TableMeta, TableOptions, TableStream, TableWriter, file::file_name,
    hash_of,
};
use crate::{
    error::Result,
    storage::{Storage, StorageFile, sim::Sim},
    x::Order,
    y::{
        Compression,
        page::{
            PageSource,
            build::{Bound, Content},
        },
        pool::{PageCache, Pool, chunk::Span},
    },
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{collections::BTreeMap, path::Path, sync::Arc};

const NUMBER: u64 = 7;
/// Frames enough for most tables here; some tests take fewer.
const POOL_BYTES: usize = 4 << 20;

/// A key, and its value or a delete.
type Entry = (Vec<u8>, Option<Vec<u8>>);
/// Entries of a table.
type Model = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

fn sim() -> (Sim, Arc<dyn Storage>) {
    let sim = Sim::default();
    (sim.clone(), Arc::new(sim))
}

fn dir() -> &'static Path {
    Path::new("tables")
}

fn path() -> std::path::PathBuf {
    dir().join(file_name(NUMBER))
}

/// Every codec of this build.
pub(super) fn codecs() -> Vec<Codec> {
    let all = [Compression::None, Compression::Lz4, Compression::Zstd];
    let codecs = all.iter().filter_map(|c| Codec::for_writing(*c).ok());
    codecs.collect()
}

fn write(storage: &Arc<dyn Storage>, model: &Model) -> Result<(TableMeta, Arc<dyn StorageFile>)> {
    write_as(storage, model, Codec::Stored)
}

fn write_as(
    storage: &Arc<dyn Storage>,
    model: &Model,
    codec: Codec,
) -> Result<(TableMeta, Arc<dyn StorageFile>)> {
    let options = TableOptions {
        codec,
        ..TableOptions::default()
    };
    let mut writer = TableWriter::new(storage, dir(), NUMBER, options)?;
    for (key, value) in model {
        writer.add(key, value.as_deref())?;
    }
    assert_eq!(writer.entries(), model.len() as u64);
    let bytes = writer.bytes();
    let (meta, file) = writer.finish()?.expect("entries");
    assert!(bytes <= meta.file_bytes(), "{bytes}: {meta:?}");
    Ok((meta, file))
}

fn pool(bytes: usize) -> Arc<Pool> {
    PageCache::new(bytes).pool(4096)
}

fn table(storage: &Arc<dyn Storage>, model: &Model) -> Table {
    table_as(storage, model, Codec::Stored)
}

fn table_as(storage: &Arc<dyn Storage>, model: &Model, codec: Codec) -> Table {
    let (meta, file) = write_as(storage, model, codec).unwrap();
    Table::of_file(file, meta, &pool(POOL_BYTES)).unwrap()
}

fn get(table: &Table, key: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
    let found = table.get(key, hash_of(key), FilterUse::First(u32::MAX))?;
    Ok(found.map(|value| value.map(|v| v.to_vec())))
}

fn next(stream: &mut TableStream) -> Result<Option<Entry>> {
    let Some(key) = stream.key() else {
        assert!(stream.value().is_none());
        return Ok(None);
    };
    let key = key.to_vec();
    stream.load()?;
    let entry = (key, stream.value().map(<[u8]>::to_vec));
    stream.advance()?;
    Ok(Some(entry))
}

fn streamed(
    table: &Table,
    from: &[u8],
    to: Option<&[u8]>,
    read_bytes: usize,
) -> Result<Vec<Entry>> {
    let mut stream = table.stream(from, to, read_bytes)?;
    let mut entries = Vec::new();
    while let Some(entry) = next(&mut stream)? {
        entries.push(entry);
    }
    Ok(entries)
}

/// The entries of a range by chunks, in the order asked.
fn chunked(table: &Table, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<Vec<Entry>> {
    let (mut from, mut to) = (from.to_vec(), to.map(<[u8]>::to_vec));
    let fetch = |far| table.file().fetch(far);
    let mut entries = Vec::new();
    loop {
        let chunk = table.chunk(Span {
            from: &from,
            to: to.as_deref(),
            order,
        })?;
        for entry in chunk.entries {
            let key = Bound::whole(&entry.key, &fetch)?;
            let value = match entry.value {
                Content::Near(value) => Some(value.to_vec()),
                Content::Far(far) => Some(fetch(far)?),
                Content::Deleted => None,
            };
            entries.push((key, value));
        }
        match (chunk.rest, order) {
            (None, _) => return Ok(entries),
            (Some(rest), Order::Ascending) if to.as_ref().is_none_or(|to| rest < *to) => {
                from = rest;
            }
            (Some(rest), Order::Descending) if rest > from => to = Some(rest),
            _ => return Ok(entries),
        }
    }
}

fn part(model: &Model, from: &[u8], to: Option<&[u8]>) -> Vec<Entry> {
    model
        .iter()
        .filter(|(key, _)| ***key >= *from && to.is_none_or(|to| ***key < *to))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn random(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

fn bytes(random: &mut StdRng, len: usize) -> Vec<u8> {
    (0..len).map(|_| random.random()).collect()
}

/// Keys and values of odd shapes, `count` or a few less.
/// `len` bytes that become smaller.
fn text(seed: u64, len: usize) -> Vec<u8> {
    let words = (seed..).map(|i| format!("word {} of {seed}; ", i % 100));
    words.flat_map(String::into_bytes).take(len).collect()
}

fn odd(seed: u64, count: usize) -> Model {
    let mut random = random(seed);
    let long = bytes(&mut random, 700);
    let mut model = Model::new();
    for i in 0..count {
        let tail = bytes(&mut random, 8);
        let key = match random.random_range(0..12) {
            0 => Vec::new(),
            // They share more than a page holds of a key, and all of it but the end.
            1 | 2 => [&long[..], &tail[..i % 3]].concat(),
            3 => [&long[..511], &tail[..2]].concat(),
            4 if i % 16 == 0 => bytes(&mut random, 65_534),
            // Equal heads behind a short prefix.
            4..6 => [b"same head, other tail", &tail[..]].concat(),
            6 => vec![0; random.random_range(0..20)],
            7 => vec![0xff; random.random_range(0..600)],
            8 => bytes(&mut random, i % 1024),
            _ => tail,
        };
        let value = match random.random_range(0..16) {
            0 | 1 => None,
            2 => Some(Vec::new()),
            3 => Some(bytes(&mut random, 1012 + i % 24)),
            4 => Some(bytes(&mut random, 4096 * (1 + i % 4) - 8)),
            7 if i % 2 == 0 => Some(text(i as u64, 1100 * (1 + i % 40))),
            5 if i % 32 == 0 => Some(bytes(&mut random, 1 << 20)),
            6 if i % 8 == 0 => Some(bytes(&mut random, 70_000)),
            n => Some(bytes(&mut random, n)),
        };
        model.insert(key, value);
    }
    model
}

/// `count` entries of eight bytes each.
fn plain(count: u64) -> Model {
    (0..count)
        .map(|i| {
            let key = (i * 3).to_be_bytes().to_vec();
            (key, Some(i.to_le_bytes().to_vec()))
        })
        .collect()
}
