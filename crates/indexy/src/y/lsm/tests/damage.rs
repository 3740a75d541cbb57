//! Damaged files: found, named, never returned as data.

use super::*;
use crate::{
    storage::sim::Fault,
    y::{contract::Maintained, lsm::version::TableFile},
};
use crashes::{content, script};
use std::collections::BTreeMap;

/// A disk with a tree that has layers, and its content.
fn sample() -> (BTreeMap<PathBuf, Vec<u8>>, Model) {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    for n in 0..5 {
        write(&y, &script(n)).unwrap();
        if n == 2 {
            settle(&y);
        }
        y.make_durable().unwrap();
    }
    let content = content(&y).unwrap();
    drop(y);
    (sim.contents(), content)
}

/// Opens a tree with these files; what it says, or where it says it is damaged.
fn look(files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<Model> {
    let sim = Sim::default();
    for (path, bytes) in files {
        sim.tamper(path, bytes.clone());
    }
    let y = open_sim(&sim)?;
    let model = content(&y)?;
    for key in model.keys() {
        assert_eq!(y.get(key)?.as_deref(), model.get(key).map(|v| &v[..]));
    }
    y.verify()?;
    Ok(model)
}

/// Each file with damage of each kind. Returns how much was found.
fn damage_all(step: usize, damage: impl Fn(&mut Vec<u8>, usize)) -> usize {
    let (files, model) = sample();
    let mut found = 0;
    for (path, bytes) in &files {
        for at in (0..bytes.len()).step_by(step) {
            let mut damaged = files.clone();
            damage(damaged.get_mut(path).unwrap(), at);
            if damaged[path] == *bytes {
                continue;
            }
            match look(&damaged) {
                Ok(content) => assert!(content == model, "{} at {at}", path.display()),
                Err(Error::Corrupt { path: said, .. }) => {
                    assert_eq!(said, *path, "at {at}");
                    found += 1;
                }
                Err(Error::FormatVersion { .. }) => found += 1,
                Err(e) => panic!("{} at {at}: {e}", path.display()),
            }
        }
    }
    found
}

#[test]
fn a_flipped_bit_is_found_or_harmless() {
    let found = damage_all(211, |bytes, at| bytes[at] ^= 1 << (at % 8));
    assert!(found > 50, "{found}");
}

#[test]
fn a_zeroed_page_is_found_or_harmless() {
    let found = damage_all(4096, |bytes, at| {
        let end = bytes.len().min(at + 4096);
        bytes[at..end].fill(0);
    });
    assert!(found > 10, "{found}");
}

#[test]
fn swapped_pages_are_found_or_harmless() {
    let found = damage_all(4096, |bytes, at| {
        let other = (at + 3 * 4096) % bytes.len();
        if at + 4096 <= bytes.len() && other + 4096 <= bytes.len() {
            for i in 0..4096 {
                bytes.swap(at + i, other + i);
            }
        }
    });
    assert!(found > 10, "{found}");
}

#[test]
fn a_cut_file_is_found_or_harmless() {
    let found = damage_all(4096, Vec::truncate);
    assert!(found > 10, "{found}");
}

/// A missing table, and one put in the place of another.
#[test]
fn the_wrong_table_is_found() {
    let (files, _) = sample();
    let tables: Vec<&PathBuf> = files
        .keys()
        .filter(|p| p.parent() != Some(Path::new(DIR)))
        .collect();
    assert!(tables.len() > 1);
    for table in &tables {
        let mut damaged = files.clone();
        damaged.remove(*table);
        assert!(matches!(look(&damaged), Err(Error::Corrupt { .. })));
        for other in tables.iter().filter(|other| other != &table) {
            let mut damaged = files.clone();
            damaged.insert((*table).clone(), files[*other].clone());
            assert!(matches!(look(&damaged), Err(Error::Corrupt { .. })));
        }
    }
}

/// So that a tree with few entries is opened as one with many is.
#[test]
fn what_cannot_be_read_is_not_nothing() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    write(&y, &(0..10u8).map(|n| put(&[n], &[n; 40])).collect()).unwrap();
    y.make_durable().unwrap();
    let table = y.versions.current().partitions()[0].base[0].facts().number;
    drop(y);
    let path = Path::new(DIR).join("tables").join(table.to_string());
    let mut bytes = sim.contents()[&path].clone();
    bytes[4096 + 1000] ^= 4;
    sim.tamper(&path, bytes);
    let y = open_sim(&sim).unwrap();
    assert!(matches!(y.get(&[3]), Err(Error::Corrupt { .. })));
    assert!(!y.is_empty().unwrap());
}

/// A tree of several partitions with layers over one of whose base tables a page is damaged; also
/// the keys of that page.
fn with_a_damaged_base() -> (Sim, LsmY, Model, Vec<Vec<u8>>) {
    let sim = Sim::default();
    let entry = |key: u64, n: u8| put(&key.to_be_bytes(), &[n; 40]);
    let y = open_sim(&sim).unwrap();
    let mut model = Model::new();
    write_both(
        &y,
        &mut model,
        &(0..4000).map(|key| entry(key, 0)).collect(),
    );
    settle(&y);
    y.make_durable().unwrap();
    let table = y.versions.current().partitions()[1].base[0].facts().number;
    drop(y);
    let path = Path::new(DIR).join("tables").join(table.to_string());
    let mut bytes = sim.contents()[&path].clone();
    bytes[2 * 4096 + 1000] ^= 4;
    sim.tamper(&path, bytes);
    let y = open_sim(&sim).unwrap();
    let keys = model.keys().filter(|key| y.get(key).is_err());
    let keys: Vec<Vec<u8>> = keys.cloned().collect();
    assert!(!keys.is_empty() && keys.len() < 200, "{}", keys.len());
    (sim, y, model, keys)
}

/// Maintains until nothing is due, and not for ever.
fn rest(y: &LsmY) {
    let steps = (0..300).take_while(|_| y.maintain().unwrap() == Maintained::More);
    assert!(steps.count() < 300, "it goes round in circles");
}

#[test]
fn i4_a_merge_leaves_a_damaged_page_alone_and_the_rest_goes_on() {
    let (sim, y, mut model, lost) = with_a_damaged_base();
    assert_eq!(y.damaged(), 0, "nobody has met it");
    for n in 1..40u8 {
        let run = (0..4000u64).skip(usize::from(n) % 7).step_by(7);
        let run: Entries = run.map(|key| put(&key.to_be_bytes(), &[n; 40])).collect();
        write_both(&y, &mut model, &run);
        rest(&y);
        assert!(y.run_count() < 8, "{} runs", y.run_count());
        assert!(!y.congested());
    }
    assert_eq!(y.damaged(), 1);
    let mut unread = 0;
    for (key, value) in &model {
        match y.get(key) {
            Ok(found) => assert_eq!(found.as_deref(), Some(&value[..])),
            Err(Error::Corrupt { .. }) => unread += 1,
            Err(other) => panic!("{other}"),
        }
    }
    // All of them were overwritten, and stand above the damage.
    assert_eq!(unread, 0);
    let mut found = 0;
    y.damage(&mut |_| found += 1);
    assert_eq!(found, 1);
    assert!(matches!(y.verify(), Err(Error::Corrupt { .. })));
    y.make_durable().unwrap();
    // What is asked for is done, and what could not be is told, each time.
    for _ in 0..2 {
        let compacted = loop {
            match y.compact(b"", None) {
                Ok(Maintained::More) => {}
                end => break end,
            }
        };
        assert!(matches!(compacted, Err(Error::Corrupt { .. })));
    }
    let layers = y.versions.current().totals().layers;
    assert_eq!(layers, 1, "those over the damage are one");
    assert!(y.compact(&3900u64.to_be_bytes(), None).is_ok());
    // A range that reaches over all of the page takes the damage away.
    let next = |key: &Vec<u8>| model.range(key.clone()..).nth(1).unwrap().0.clone();
    let before = |key: &Vec<u8>| model.range(..key.clone()).next_back().unwrap().0.clone();
    let (first, end) = (before(&lost[0]), next(&lost[lost.len() - 1]));
    y.remove_range(&first, Some(&end)).unwrap();
    model.retain(|key, _| *key < first || *key >= end);
    rest(&y);
    assert_eq!(y.damaged(), 0, "the rest was merged");
    check(&y, &model);
    drop(y);
    check(&open_sim(&sim).unwrap(), &model);
}

/// The damaged page is in a layer, between others.
#[test]
fn layers_beside_a_damaged_one_are_merged() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    let run = |n: u8| -> Entries {
        let keys = (0..300u64).skip(usize::from(n) % 3).step_by(3);
        keys.map(|key| put(&key.to_be_bytes(), &[n; 40])).collect()
    };
    let mut model = Model::new();
    write_both(
        &y,
        &mut model,
        &(0..600u64)
            .map(|k| put(&k.to_be_bytes(), &[0; 40]))
            .collect(),
    );
    for n in 1..4 {
        write_both(&y, &mut model, &run(n));
    }
    y.make_durable().unwrap();
    let table = y.versions.current().partitions()[0].layers[1]
        .facts()
        .number;
    drop(y);
    let path = Path::new(DIR).join("tables").join(table.to_string());
    let mut bytes = sim.contents()[&path].clone();
    bytes[4096 + 1000] ^= 4;
    sim.tamper(&path, bytes);
    let y = open_sim(&sim).unwrap();
    for n in 4..60 {
        write_both(&y, &mut model, &run(n));
        rest(&y);
        assert!(y.run_count() < 12, "{} runs", y.run_count());
    }
    // The page reaches over the end of a partition.
    assert!((1..=2).contains(&y.damaged()), "{}", y.damaged());
    assert!(model.iter().all(|(key, value)| {
        let found = y.get(key);
        found.is_err() || found.unwrap().as_deref() == Some(&value[..])
    }));
    assert!(y.make_durable().is_ok());
}

/// So many damaged layers that reads would look at all of them: writing ends, with the cause.
#[test]
fn too_many_damaged_layers_are_an_error() {
    let sim = Sim::default();
    let y = open_sim(&sim).unwrap();
    for n in 0..26u8 {
        let keys = (0..90u64).map(|key| put(&key.to_be_bytes(), &[n; 40]));
        write(&y, &keys.collect()).unwrap();
    }
    y.make_durable().unwrap();
    drop(y);
    let tables = sim.contents();
    let tables = tables
        .into_iter()
        .filter(|(path, _)| path.starts_with("/tree/tables"));
    for (path, mut bytes) in tables {
        bytes[4096 + 1000] ^= 4;
        sim.tamper(&path, bytes);
    }
    let y = open_sim(&sim).unwrap();
    assert!(y.congested());
    let end = (0..300).find_map(|_| match y.maintain() {
        Ok(Maintained::More) => None,
        end => Some(end),
    });
    assert!(matches!(end, Some(Err(Error::Corrupt { .. }))), "{end:?}");
}

/// Runs wait for a merge of one partition, which a close interrupts. Damage of another partition
/// has no part in that.
#[test]
fn an_interrupted_merge_is_no_damage() {
    let (_sim, y, _, _) = with_a_damaged_base();
    let over = (0..4000u64).step_by(7);
    let over = over.map(|key| put(&key.to_be_bytes(), &[1; 40]));
    write(&y, &over.collect()).unwrap();
    let met = (0..300).find_map(|_| y.compact(b"", None).err());
    assert!(matches!(met, Some(Error::Corrupt { .. })), "{met:?}");
    assert!(y.damaged() > 0);
    for n in 0..26 {
        write(&y, &vec![put(&0u64.to_be_bytes(), &[n; 40])]).unwrap();
    }
    assert!(y.congested());
    y.interrupt();
    // What is too much for a step is cut first.
    let done = (0..9).find_map(|_| match y.do_what_is_due(&mut y.maintaining.lock()) {
        Ok(true) => None,
        done => Some(done),
    });
    assert!(matches!(done, Some(Ok(false))), "{done:?}");
}

/// A table that a newer build has written: nothing is changed beside it.
#[test]
fn a_table_of_an_unknown_format_is_refused_when_the_tree_is_opened() {
    use crate::y::page;
    let (mut files, _) = sample();
    let tables = files.keys().filter_map(|path| {
        let number: u64 = path.file_name()?.to_str()?.parse().ok()?;
        Some((number, path.clone()))
    });
    let (_, newest) = tables.max().unwrap();
    let head = &mut files.get_mut(&newest).unwrap()[..4096];
    let version = page::HEADER_BYTES + 8;
    assert!((1..9).contains(&head[version]));
    head[version] = 77;
    let sum = xxhash_rust::xxh3::xxh3_64(page::summed(head, true));
    page::put_sum(head, sum);
    let sim = Sim::default();
    for (path, bytes) in &files {
        sim.tamper(path, bytes.clone());
    }
    assert!(matches!(
        open_sim(&sim).map(drop),
        Err(Error::FormatVersion { found: 77, .. })
    ));
    assert!(sim.contents() == files);
}

/// A disk that fails to read a page of the table to cut at: the merge meets what stays so.
#[test]
fn a_page_that_cannot_be_read_is_no_place_to_cut() {
    let failing = |at: u64| {
        let sim = Sim::default();
        let table_bytes = 1 << 20;
        let y = open_busy(
            &sim,
            Sizes {
                table_bytes,
                ..TINY
            },
        );
        let mut model = Model::new();
        for n in 0..9u64 {
            let keys = (n..800 * 9).step_by(9 * 15);
            let run = keys.map(|key| put(&key.to_be_bytes(), &[n as u8; 1500]));
            write_both(&y, &mut model, &run.collect());
        }
        y.make_durable().unwrap();
        let parts = || y.version().partitions().len();
        let before = (sim.ios(), parts());
        if at > 0 {
            sim.fail_at(before.0 + at, Fault::Eio, false);
        }
        assert_eq!(y.maintain().unwrap(), Maintained::More, "read {at}");
        assert_eq!(sim.faults(), u64::from(at > 0));
        let reads = sim.ios() - before.0;
        assert!(at > 0 || parts() > before.1, "nothing was cut");
        assert_eq!(content(&y).unwrap(), model);
        reads
    };
    let reads = failing(0);
    assert!((1..50).contains(&reads), "{reads}");
    for at in 1..=reads {
        failing(at);
    }
}
