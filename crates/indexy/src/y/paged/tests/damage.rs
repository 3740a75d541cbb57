//! Damaged files: found, named, never returned as data.

use super::crash::open_sim;
use super::*;
use crate::y::paged::file::extent;
use crate::{
    storage::sim::Sim,
    y::{
        conformance::{Model, write},
        crashes::{content, script},
    },
};

use std::ops::Range;

const FILE: &str = "/tree/pages";

/// A disk with a tree whose versions are durable, and its content.
fn sample() -> (Sim, Model) {
    let sim = Sim::default();
    let y = open_sim(&sim, 4096).unwrap();
    for n in 0..4 {
        write(&y, &script(n)).unwrap();
        y.make_durable().unwrap();
    }
    let content = content(&y).unwrap();
    drop(y);
    (sim, content)
}

fn bytes(sim: &Sim) -> Vec<u8> {
    sim.contents()[Path::new(FILE)].clone()
}

/// Pages that somebody needs: of the tree, of the stored map, and those of the superblocks.
fn needed(sim: &Sim) -> Vec<u64> {
    let y = open_sim(sim, 4096).unwrap();
    let mut pages: Vec<u64> = superblock::COPIES.iter().map(|at| at / 4096).collect();
    pages.extend(y.space.lock().current().pages());
    pages.extend(y.committed.lock().map.pages());
    pages
}

/// For each page the one that damage of it is found at: the first one of its extent, or itself.
fn found_at(whole: &[u8], needed: &[u64]) -> impl Fn(u64) -> u64 + use<> {
    let first_of = |page: u64| whole.get(page as usize * 4096..).and_then(extent::begins);
    let extents: Vec<Range<u64>> = needed
        .iter()
        .filter_map(|page| {
            let pages = extent::pages_for(first_of(*page)?, 4096) as u64;
            Some(*page..*page + pages)
        })
        .collect();
    assert!(extents.iter().any(|pages| pages.end - pages.start > 1));
    move |page| {
        let extent = extents.iter().find(|pages| pages.contains(&page));
        extent.map_or(page, |pages| pages.start)
    }
}

/// Opens the file with other bytes; what it says, or where it says it is damaged.
fn look(bytes: Vec<u8>) -> Result<Model> {
    let sim = Sim::default();
    sim.tamper(Path::new(FILE), bytes);
    let y = open_sim(&sim, 4096)?;
    let model = content(&y);
    if model.is_ok() {
        y.verify()?;
    }
    model
}

/// Damages the file at every so many bytes, each in turn. Returns how much was found.
fn damage_all(step: usize, damage: impl Fn(&mut Vec<u8>, usize)) -> usize {
    let (sim, model) = sample();
    let whole = bytes(&sim);
    let needed = needed(&sim);
    let found_at = found_at(&whole, &needed);
    let mut found = 0;
    for at in (0..whole.len()).step_by(step) {
        let page = at as u64 / 4096;
        let mut damaged = whole.clone();
        damage(&mut damaged, at);
        if damaged == whole {
            continue;
        }
        match look(damaged) {
            Ok(content) => {
                assert!(content == model, "byte {at}");
                // A superblock is replaced by its copy at open.
                let replaced = page < PAGES_START / 4096;
                assert!(replaced || !needed.contains(&page), "byte {at}: unseen");
            }
            Err(Error::Corrupt { path, offset, .. }) => {
                assert_eq!(path, Path::new(FILE));
                assert_eq!(offset / 4096, found_at(page), "byte {at}");
                found += 1;
            }
            Err(e) => panic!("byte {at}: {e}"),
        }
    }
    found
}

#[test]
fn a_flipped_bit_is_found_or_harmless() {
    let found = damage_all(101, |bytes, at| bytes[at] ^= 1 << (at % 8));
    assert!(found > 50, "{found}");
}

/// As a device leaves it that lost what was written, or never wrote it.
#[test]
fn a_zeroed_page_is_found_or_harmless() {
    let found = damage_all(4096, |bytes, at| bytes[at..at + 4096].fill(0));
    assert!(found > 10, "{found}");
}

#[test]
fn either_superblock_alone_is_enough() {
    let (sim, model) = sample();
    for copy in superblock::COPIES {
        let mut damaged = bytes(&sim);
        damaged[copy as usize + 30] ^= 4;
        assert!(look(damaged).unwrap() == model);
    }
    let mut damaged = bytes(&sim);
    damaged[30] ^= 4;
    damaged[superblock::COPIES[1] as usize + 30] ^= 4;
    assert!(matches!(
        look(damaged),
        Err(Error::Corrupt { offset: 0, .. })
    ));
    // Zeros are no empty tree.
    let mut damaged = bytes(&sim);
    damaged[..PAGES_START as usize].fill(0);
    assert!(matches!(
        look(damaged),
        Err(Error::Corrupt { offset: 0, .. })
    ));
}

#[test]
fn a_truncated_file_is_found() {
    let (sim, model) = sample();
    let whole = bytes(&sim);
    for pages in 0..whole.len() / 4096 {
        for cut in [pages * 4096, pages * 4096 + 700] {
            match look(whole[..cut].to_vec()) {
                Ok(content) => assert!(content == model),
                Err(e) => assert!(matches!(e, Error::Corrupt { .. }), "{e}"),
            }
        }
    }
}

/// Whatever is damaged while the tree is open, `verify` finds it before the next open does.
#[test]
fn damage_of_what_the_next_open_reads_is_found_now() {
    let (sim, _) = sample();
    let y = open_sim(&sim, 4096).unwrap();
    let whole = bytes(&sim);
    let needed = needed(&sim);
    let found_at = found_at(&whole, &needed);
    for page in needed {
        let at = page as usize * 4096;
        let mut damaged = whole[at..at + 4096].to_vec();
        damaged[27] ^= 1;
        y.pages.file.storage.write_at(&damaged, at as u64).unwrap();
        match y.verify() {
            Err(Error::Corrupt { offset, .. }) => assert_eq!(offset / 4096, found_at(page)),
            other => panic!("page {page}: {other:?}"),
        }
        let right = &whole[at..at + 4096];
        y.pages.file.storage.write_at(right, at as u64).unwrap();
        y.verify().unwrap();
    }
}

/// A crash may leave pages behind the end that the superblock knows; they are nobody's.
#[test]
fn what_lies_behind_the_end_is_harmless() {
    let (sim, model) = sample();
    for more in [1, 700, 4096, 40_000] {
        let mut grown = bytes(&sim);
        grown.extend((0..more).map(|i| (i * 7) as u8));
        sim.tamper(Path::new(FILE), grown);
        let y = open_sim(&sim, 4096).unwrap();
        assert!(content(&y).unwrap() == model);
        write(&y, &script(5)).unwrap();
        y.make_durable().unwrap();
        y.verify().unwrap();
        let now = content(&y).unwrap();
        drop(y);
        assert!(content(&open_sim(&sim, 4096).unwrap()).unwrap() == now);
        let (fresh, _) = sample();
        sim.tamper(Path::new(FILE), bytes(&fresh));
    }
}

#[test]
fn misplaced_pages_and_those_of_another_tree_are_found() {
    let (sim, model) = sample();
    let whole = bytes(&sim);
    let other = bytes(&sample().0);
    let found_at = found_at(&whole, &needed(&sim));
    let page = |n: usize| n * 4096..(n + 1) * 4096;
    let mut found = 0;
    for n in 4..whole.len() / 4096 {
        for from in [
            &whole[page(if n == 4 { 5 } else { n - 1 })],
            &other[page(n)],
        ] {
            let mut damaged = whole.clone();
            damaged[page(n)].copy_from_slice(from);
            match look(damaged) {
                Ok(content) => assert!(content == model),
                Err(Error::Corrupt { offset, .. }) => {
                    assert_eq!(offset / 4096, found_at(n as u64));
                    found += 1;
                }
                Err(e) => panic!("{e}"),
            }
        }
    }
    assert!(found > 20, "{found}");
}

#[test]
fn another_page_size_is_refused() {
    let (sim, _) = sample();
    assert!(matches!(open_sim(&sim, 8192), Err(Error::Corrupt { .. })));
    assert!(matches!(
        open_sim(&sim, 5000),
        Err(Error::InvalidOption { .. })
    ));
}

#[test]
fn the_file_of_another_owner_is_refused() {
    let (sim, _) = sample();
    let storage: Arc<dyn Storage> = Arc::new(sim);
    let shared = PageCache::new(0);
    let open = |owner| PagedY::open(&storage, Path::new("/tree"), 4096, &shared, owner, false);
    assert!(matches!(open(2), Err(Error::Corrupt { .. })));
    assert!(open(1).is_ok());
}

#[test]
fn read_only_needs_a_tree_and_refuses_writes() {
    let (sim, model) = sample();
    let storage: Arc<dyn Storage> = Arc::new(sim.clone());
    let shared = PageCache::new(0);
    let open = |dir: &str| PagedY::open(&storage, Path::new(dir), 4096, &shared, 1, true);
    assert!(matches!(open("/none"), Err(Error::NoDatabase { .. })));
    let before = sim.contents();
    let y = open("/tree").unwrap();
    assert!(content(&y).unwrap() == model);
    assert!(matches!(write(&y, &script(1)), Err(Error::ReadOnly)));
    y.make_durable().unwrap();
    drop(y);
    assert!(before == sim.contents());
}
