//! Damaged files: found, named, never returned as data.

use super::*;
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
