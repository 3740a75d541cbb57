//! What the fuzz targets need to see of tables; see `crate::fuzzing`.

use super::{
    Codec, FilterUse, PAGE_BYTES, Step, Table, TableMeta, TableOptions, TableWriter,
    file::identity,
    filter::{self, Segment},
    hash_of, packed, packed_far,
};
use crate::{
    storage::{Storage, sim::Sim},
    x::Order,
    y::{
        page::{self, Header},
        pool::{PageCache, chunk::Span},
    },
};
use std::{path::Path, sync::Arc};

const ID: u64 = 7;
const DIR: &str = "tables";
const FILE: &str = "tables/1";
/// Chunks and entries that are asked for: a file of a few pages can have no more that are right.
const MOST: usize = 10_000;

/// A table with entries of all kinds; a footer; a segment of a filter.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let sim = Sim::default();
    let storage: Arc<dyn Storage> = Arc::new(sim.clone());
    let options = TableOptions::default();
    let Some((file, meta)) = sample(&sim, &storage, options) else {
        return Vec::new();
    };
    let mut encoded = Vec::new();
    meta.encode(&mut encoded);
    let mut pages = vec![0; PAGE_BYTES];
    filter::build(&[1, 2, 3], &mut pages);
    let packed = TableOptions {
        codec: Codec::Lz4,
        ..options
    };
    let _ = storage.remove(Path::new(FILE));
    let packed = sample(&sim, &storage, packed).map(|(file, _)| file);
    let mut form = vec![Codec::Lz4 as u8];
    Codec::Lz4.compress(&[7; PAGE_BYTES], &mut form);
    let mut value = Vec::new();
    packed_far::pack(Codec::Lz4, &[7; 2000], &mut value);
    vec![
        file,
        encoded,
        pages,
        packed.unwrap_or_default(),
        form,
        value,
    ]
}

/// The bytes of a table with entries of all kinds.
fn sample(
    sim: &Sim,
    storage: &Arc<dyn Storage>,
    options: TableOptions,
) -> Option<(Vec<u8>, TableMeta)> {
    let mut writer = TableWriter::new(storage, Path::new(DIR), 1, options).ok()?;
    let long = [5; 700];
    for i in 0..600u32 {
        let key = [
            &i.to_be_bytes()[..],
            long.get(..i as usize % 701).unwrap_or_default(),
        ]
        .concat();
        let value = [7; 1200];
        let value = value.get(..if i % 50 == 0 { 1200 } else { i as usize % 20 });
        let added = writer.add(&key, value.filter(|_| i % 7 != 0));
        debug_assert!(added.is_ok());
    }
    let (meta, _) = writer.finish().ok()??;
    Some((sim.contents().remove(Path::new(FILE))?, meta))
}

/// Reads `bytes` as a footer, as a filter, and as a file: with pages that have good checksums.
pub(crate) fn decode(bytes: &[u8]) {
    if let Ok((meta, taken)) = TableMeta::decode(bytes) {
        let mut again = Vec::new();
        meta.encode(&mut again);
        assert_eq!(Some(&*again), bytes.get(..taken));
    }
    let _ = filter::admits(bytes, bytes.len() / 2, 3);
    if let Some((codec, form)) = bytes.split_first() {
        let mut leaf = vec![0; PAGE_BYTES];
        if packed::unpack(Codec::of(*codec), form, &mut leaf).is_ok_and(|unpacked| unpacked) {
            assert!(Header::read(&leaf).is_some());
        }
    }
    if let Ok(Some(value)) = packed_far::unpack(bytes) {
        assert!(value.len() <= packed_far::MOST_BYTES);
    }
    let id = bytes
        .len()
        .checked_sub(PAGE_BYTES)
        .and_then(|last| page::tree_of(bytes.get(last..)?))
        .unwrap_or(ID);
    let mut file = bytes.to_vec();
    file.resize(bytes.len().next_multiple_of(PAGE_BYTES), 0);
    for (page, number) in file.chunks_mut(PAGE_BYTES).zip(0..) {
        // What is no page may be far bytes.
        if Header::read(page).is_some() {
            page::seal(page, identity(id, number));
        }
    }
    let pages = (file.len() / PAGE_BYTES) as u64;
    let sim = Sim::default();
    sim.tamper(Path::new(FILE), file);
    let Ok(opened) = sim.open(Path::new(FILE), false) else {
        return;
    };
    if let Ok(meta) = TableMeta::read(&opened) {
        assert_eq!((meta.id, meta.pages), (id, pages));
        ask(&sim, meta);
    }
    for (root, height) in [(1, 1), (pages.saturating_sub(2), 2), (2, 3)] {
        let whole = root > 0 && root < pages;
        let segment = Segment::new(Box::default(), 1, 1);
        let meta = TableMeta {
            number: 1,
            id,
            pages,
            entries: 9,
            deletes: 0,
            near_bytes: 0,
            far_bytes: 0,
            root,
            height,
            min: Box::default(),
            max: [0xff; 9].into(),
            segments: vec![segment],
        };
        if whole {
            ask(&sim, meta);
        }
    }
}

/// Asks a table for everything; what it says does not matter, only that it says it.
fn ask(sim: &Sim, meta: TableMeta) {
    let pool = PageCache::new(1 << 20).pool(PAGE_BYTES);
    let Ok(table) = Table::open(sim, Path::new(DIR), meta, &pool) else {
        return;
    };
    for key in [
        &b""[..],
        b"abc",
        &[0, 0, 0, 9],
        &[0, 0, 1, 0, 5, 5],
        &[0xff; 40],
    ] {
        let hash = hash_of(key);
        for filter in [FilterUse::First(u32::MAX), FilterUse::Never] {
            let _ = table.ask(key, hash, filter);
            let mut descent = table.descent(key, hash, filter);
            if let Ok(Step::Missing(page)) = table.descend(key, &mut descent) {
                let _ = super::load_together(&[(&table, page)]);
            }
        }
        let _ = table.estimate(key, Some(&[0xff, 0xff]));
        for order in [Order::Ascending, Order::Descending] {
            let to = None;
            let from = key;
            let _ = table.chunk(Span { from, to, order });
        }
        if let Ok(mut stream) = table.stream(key, Some(&[0xfe]), 0) {
            let mut left = MOST;
            while stream.key().is_some() && left > 0 && stream.advance().is_ok() {
                let _ = stream.load();
                let _ = stream.value();
                left -= 1;
            }
        }
    }
    let _ = table.verify();
    let _ = table.copy_to(sim, Path::new("copy"));
}
