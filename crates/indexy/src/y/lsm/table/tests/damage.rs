//! Damaged files: an error that says where, or the right answer; never another answer.

use super::*;
use crate::{
    error::Error,
    y::{
        lsm::table::{file::identity, load_together},
        page,
        pool::TABLE_PAGES,
    },
};
use std::ops::Range;

/// Asks for everything that a table is asked for; panics at a wrong answer. Returns the errors.
fn ask_all(storage: &Arc<dyn Storage>, meta: &TableMeta, model: &Model) -> Vec<Error> {
    let mut errors = Vec::new();
    let table = match Table::open(&**storage, dir(), meta.clone(), &pool(POOL_BYTES)) {
        Ok(table) => table,
        Err(e) => return vec![e],
    };
    for (key, value) in model {
        match get(&table, key) {
            Ok(found) => assert_eq!(found.as_ref(), Some(value), "{key:?}"),
            Err(e) => errors.push(e),
        }
    }
    let all = part(model, &[], None);
    match chunked(&table, &[], None, Order::Descending) {
        Ok(found) => assert!(found.iter().rev().eq(&all)),
        Err(e) => errors.push(e),
    }
    match table.stream(&[], None, 64 << 10) {
        Err(e) => errors.push(e),
        Ok(mut stream) => {
            // What comes before the damage is right.
            for expected in &all {
                match next(&mut stream) {
                    Ok(found) => assert_eq!(found.as_ref(), Some(expected)),
                    Err(e) => {
                        errors.push(e);
                        break;
                    }
                }
            }
        }
    }
    let dest = Path::new("copy");
    for copied in [table.verify().map(drop), table.copy_to(&**storage, dest)] {
        errors.extend(copied.err());
    }
    errors
}

fn assert_corrupt(errors: &[Error], what: &str) {
    for error in errors {
        let located = matches!(error, Error::Corrupt { path: at, .. } if *at == path());
        assert!(located, "{what}: {error}");
    }
}

fn samples() -> Vec<(Codec, Model)> {
    let models = |codec| [odd(5, 40), plain(5_000)].map(|model| (codec, model));
    codecs().into_iter().flat_map(models).collect()
}

#[test]
fn a_flipped_byte_is_found_wherever_it_is() {
    for (codec, model) in samples() {
        let (sim, storage) = sim();
        let (meta, _) = write_as(&storage, &model, codec).unwrap();
        let whole = sim.contents().remove(&path()).unwrap();
        let mut found = 0;
        let places: Vec<usize> = (0..whole.len()).step_by(1511).collect();
        for &at in &places {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            sim.tamper(&path(), bytes);
            let errors = ask_all(&storage, &meta, &model);
            assert_corrupt(&errors, &format!("byte {at}"));
            found += usize::from(!errors.is_empty());
            let copied = sim.contents().remove(Path::new("copy/7"));
            if copied.is_some() {
                storage.remove(Path::new("copy/7")).unwrap();
            }
        }
        // But for the zeros behind far bytes, there is no byte that nothing depends on.
        assert!(
            found * 100 >= places.len() * 90,
            "{found} of {}",
            places.len()
        );
    }
}

#[test]
fn a_flipped_byte_in_every_page_of_nodes_and_filters_is_found() {
    let model = plain(5_000);
    let (sim, storage) = sim();
    let (meta, _) = write(&storage, &model).unwrap();
    let whole = sim.contents().remove(&path()).unwrap();
    for page in 0..meta.pages as usize {
        let mut bytes = whole.clone();
        bytes[page * 4096 + 100] ^= 4;
        sim.tamper(&path(), bytes);
        let table = Table::open(&*storage, dir(), meta.clone(), &pool(POOL_BYTES)).unwrap();
        let expected = page as u64 * 4096;
        let copied = table.copy_to(&*storage, Path::new("copy"));
        for error in [table.verify().unwrap_err(), copied.unwrap_err()] {
            assert!(
                matches!(error, Error::Corrupt { offset, .. } if offset == expected),
                "page {page}: {error}"
            );
        }
    }
}

#[test]
fn a_cut_file_is_found_when_it_is_opened() {
    for (codec, model) in samples() {
        let (sim, storage) = sim();
        let (meta, _) = write_as(&storage, &model, codec).unwrap();
        let whole = sim.contents().remove(&path()).unwrap();
        let cuts = (0..whole.len()).step_by(1024).chain([whole.len() - 1]);
        for len in cuts {
            sim.tamper(&path(), whole[..len].to_vec());
            let opened = Table::open(&*storage, dir(), meta.clone(), &pool(POOL_BYTES));
            assert_corrupt(&[opened.err().unwrap()], &format!("{len} bytes"));
            // Without the version log, the footer is looked for.
            let file = storage.open(&path(), false).unwrap();
            assert_corrupt(&[TableMeta::read(&file).unwrap_err()], "footer");
        }
        // Longer is wrong, too.
        sim.tamper(&path(), [&whole[..], &[0; 4096]].concat());
        let opened = Table::open(&*storage, dir(), meta, &pool(POOL_BYTES));
        assert_corrupt(&[opened.err().unwrap()], "longer");
    }
}

#[test]
fn zeroed_swapped_and_foreign_pages_are_found() {
    for (codec, model) in samples() {
        let (sim, storage) = sim();
        let (meta, _) = write_as(&storage, &model, codec).unwrap();
        let whole = sim.contents().remove(&path()).unwrap();
        // The same entries under another id: every page has a good checksum.
        storage.remove(&path()).unwrap();
        let (other, _) = write_as(&storage, &model, codec).unwrap();
        let foreign = sim.contents().remove(&path()).unwrap();
        assert_eq!((foreign.len(), other.pages), (whole.len(), meta.pages));
        sim.tamper(&path(), foreign.clone());
        let errors = ask_all(&storage, &meta, &model);
        assert_corrupt(&errors, "another table");
        assert!(errors.len() >= model.len(), "another table's file passed");
        let pages = meta.pages as usize;
        for page in 0..pages {
            let at = page * 4096..(page + 1) * 4096;
            let next = (page + 1) % pages * 4096;
            for kind in 0..3 {
                let mut bytes = whole.clone();
                match kind {
                    0 => bytes[at.clone()].fill(0),
                    1 => bytes[at.clone()].copy_from_slice(&foreign[at.clone()]),
                    _ => bytes[at.clone()].copy_from_slice(&whole[next..next + 4096]),
                }
                if bytes == whole {
                    continue;
                }
                sim.tamper(&path(), bytes);
                let errors = ask_all(&storage, &meta, &model);
                assert_corrupt(&errors, &format!("page {page}, {kind}"));
                assert!(!errors.is_empty(), "page {page}, {kind}: not found");
                let _ = storage.remove(Path::new("copy/7"));
            }
        }
    }
}

/// Two values that each take a page, seal included, in each other's place.
#[test]
fn far_bytes_of_another_place_are_found() {
    let (sim, storage) = sim();
    let values = [vec![1; 4088], vec![2; 4088]];
    let model: Model = values
        .iter()
        .map(|value| (value[..1].to_vec(), Some(value.clone())))
        .collect();
    let (meta, _) = write(&storage, &model).unwrap();
    let mut bytes = sim.contents().remove(&path()).unwrap();
    let (first, second) = bytes[4096..3 * 4096].split_at_mut(4096);
    assert_eq!((first[8], second[8]), (1, 2));
    first.swap_with_slice(second);
    sim.tamper(&path(), bytes);
    let errors = ask_all(&storage, &meta, &model);
    assert_corrupt(&errors, "swapped");
    assert!(errors.len() >= 3, "{errors:?}");
}

#[test]
fn a_page_read_with_others_is_checked() {
    let model = plain(5_000);
    let (sim, storage) = sim();
    let (meta, _) = write(&storage, &model).unwrap();
    let whole = sim.contents().remove(&path()).unwrap();
    let cache = pool(POOL_BYTES);
    for page in [1, meta.root as usize] {
        let mut bytes = whole.clone();
        bytes[page * 4096 + 300] ^= 1;
        sim.tamper(&path(), bytes);
        let table = Table::open(&*storage, dir(), meta.clone(), &cache).unwrap();
        let wanted = [(&table, 2), (&table, page as u64), (&table, 3)];
        assert_corrupt(&[load_together(&wanted).unwrap_err()], "together");
        // None of them is shown.
        assert!((1..4).all(|page| !cache.contains(table.pages.tag(page))));
        load_together(&[(&table, 2), (&table, 3)]).unwrap();
        assert!((2..4).all(|page| cache.contains(table.pages.tag(page))));
    }
}

/// Changes page `number` of `bytes`, whose checksum is then right.
fn crafted(bytes: &mut [u8], meta: &TableMeta, number: u64, change: impl FnOnce(&mut [u8])) {
    let at = number as usize * 4096;
    let page = &mut bytes[at..at + 4096];
    change(page);
    page::seal(page, identity(meta.id, number));
}

/// Where reference `i` of an inner page is in it.
fn reference(page: &[u8], i: usize) -> Range<usize> {
    let count = usize::from(u16::from_le_bytes([page[34], page[35]]));
    let at = page.len() - (count - i) * 8;
    at..at + 8
}

/// A number that no table has is another table's page in the pool that they share.
#[test]
fn a_child_beyond_the_file_is_not_looked_for_in_another_table() {
    let cache = pool(POOL_BYTES);
    let model = plain(5_000);
    let (sim, storage) = sim();
    let (meta, _) = write(&storage, &model).unwrap();
    let mut bytes = sim.contents().remove(&path()).unwrap();
    crafted(&mut bytes, &meta, meta.root, |root| {
        let first = reference(root, 0);
        let other = TABLE_PAGES + u64::from_le_bytes(root[first.clone()].try_into().unwrap());
        root[first].copy_from_slice(&other.to_le_bytes());
    });
    sim.tamper(&path(), bytes);
    // The numbers of two tables differ in the bit that the child's number has too much.
    let open = || Table::open(&*storage, dir(), meta.clone(), &cache).unwrap();
    let (_, table) = (open(), open());
    let (_, beside) = super::sim();
    let mut others = model.clone();
    others
        .values_mut()
        .for_each(|value| *value = Some(vec![9; 8]));
    let (meta, file) = write(&beside, &others).unwrap();
    let other = Table::of_file(file, meta, &cache).unwrap();
    let (key, value) = others.first_key_value().unwrap();
    assert_eq!(get(&other, key).unwrap().unwrap(), *value);
    let mut errors = vec![get(&table, key).unwrap_err(), table.verify().unwrap_err()];
    errors.extend(chunked(&table, &[], None, Order::Ascending).err());
    errors.extend(streamed(&table, &[], None, 64 << 10).err());
    assert_eq!(errors.len(), 4);
    assert_corrupt(&errors, "beyond the file");
}

#[test]
fn packed_leaves_that_do_not_ascend_in_the_file_are_found() {
    for codec in codecs().into_iter().filter(|codec| *codec != Codec::Stored) {
        let (sim, storage) = sim();
        let (meta, _) = write_as(&storage, &plain(50_000), codec).unwrap();
        let mut bytes = sim.contents().remove(&path()).unwrap();
        crafted(&mut bytes, &meta, meta.root, |root| {
            let (first, later) = (reference(root, 0), reference(root, 40));
            for i in 0..8 {
                root.swap(first.start + i, later.start + i);
            }
        });
        sim.tamper(&path(), bytes);
        let table = Table::open(&*storage, dir(), meta, &pool(POOL_BYTES)).unwrap();
        let _ = streamed(&table, &[], None, 64 << 10);
        assert_corrupt(&[table.verify().unwrap_err()], "swapped");
    }
}
