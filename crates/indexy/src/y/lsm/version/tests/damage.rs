//! Damage of the version log: found, or harmless.

use super::{disk::*, *};
use crate::storage::sim::Sim;
use std::path::PathBuf;

fn log() -> PathBuf {
    Path::new(DIR).join("versions")
}

/// A disk with a log of several records, closed cleanly or not, and what is in there.
fn sample(clean: bool) -> (Sim, Model) {
    let sim = Sim::default();
    let versions = open(&sim).unwrap();
    for n in 0..6 {
        step(&sim, &versions, n).unwrap();
        versions.commit().unwrap();
    }
    if clean {
        versions.close().unwrap();
    }
    let content = content(&versions.current());
    drop(versions);
    (sim, content)
}

/// What an open of the damaged file says. The tables are whole.
fn look(whole: &Sim, bytes: Vec<u8>, read_only: bool) -> Result<Model> {
    let sim = whole.snapshot();
    sim.tamper(&log(), bytes);
    let versions = open_as(&sim, 7, read_only)?;
    Ok(content(&versions.current()))
}

fn found_or_harmless(sim: &Sim, model: &Model, damaged: Vec<u8>, name: &str) -> bool {
    match look(sim, damaged, true) {
        Ok(content) => {
            assert!(content == *model, "{name}: another state");
            false
        }
        Err(Error::Corrupt { path, .. }) => {
            assert_eq!(path, log(), "{name}");
            true
        }
        Err(e) => panic!("{name}: {e}"),
    }
}

/// Even of the last record of a log that was not closed.
#[test]
fn a_flipped_byte_is_harmless() {
    for clean in [true, false] {
        let (sim, model) = sample(clean);
        let whole = sim.contents()[&log()].clone();
        let pages = whole.len() / 4096;
        let header = (0..pages).flat_map(|page| (0..48).map(move |at| page * 4096 + at));
        for at in header.chain((0..whole.len()).step_by(211)) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            let found = found_or_harmless(&sim, &model, damaged, &format!("byte {at}"));
            assert!(!found, "byte {at}: there is another copy");
        }
    }
}

#[test]
fn a_lost_page_is_harmless_and_two_are_found() {
    for clean in [true, false] {
        let (sim, model) = sample(clean);
        let whole = sim.contents()[&log()].clone();
        let pages = whole.len() / 4096;
        for page in 0..pages {
            let mut damaged = whole.clone();
            damaged[page * 4096..][..4096].fill(0);
            assert!(!found_or_harmless(&sim, &model, damaged.clone(), "one"));
            for other in page + 1..pages {
                let mut damaged = damaged.clone();
                damaged[other * 4096..][..4096].fill(0);
                // Both copies of the last record of a log that was not closed look as if it had
                // never been acknowledged.
                if clean {
                    found_or_harmless(&sim, &model, damaged, &format!("{page} and {other}"));
                } else {
                    let _ = look(&sim, damaged, true);
                }
            }
        }
    }
}

#[test]
fn swapped_pages_are_found_or_harmless() {
    let (sim, model) = sample(true);
    let whole = sim.contents()[&log()].clone();
    let pages = whole.len() / 4096;
    let mut found = 0;
    for one in 0..pages {
        for other in one + 1..pages {
            let mut damaged = whole.clone();
            damaged[one * 4096..][..4096].copy_from_slice(&whole[other * 4096..][..4096]);
            damaged[other * 4096..][..4096].copy_from_slice(&whole[one * 4096..][..4096]);
            let name = format!("{one} and {other}");
            found += usize::from(found_or_harmless(&sim, &model, damaged, &name));
        }
    }
    assert!(found > 10, "{found}");
}

#[test]
fn a_cut_file_is_found() {
    let (sim, model) = sample(true);
    let whole = sim.contents()[&log()].clone();
    let mut found = 0;
    for page in 0..whole.len() / 4096 {
        for cut in [page * 4096, page * 4096 + 700] {
            let name = format!("cut at {cut}");
            found += usize::from(found_or_harmless(
                &sim,
                &model,
                whole[..cut].to_vec(),
                &name,
            ));
        }
    }
    // All but the cuts in the last copy of the last record.
    assert!(found * 10 > whole.len() / 4096 * 2 * 8, "{found}");
}

/// What a crash left behind the end is cut off, and does not come back.
#[test]
fn a_torn_tail_is_cut_off_for_good() {
    let (sim, model) = sample(true);
    let whole = sim.contents()[&log()].clone();
    for more in [1, 700, 4096, 40_000] {
        let mut grown = whole.clone();
        grown.extend((0..more).map(|i| (i * 7) as u8));
        let sim = sim.snapshot();
        sim.tamper(&log(), grown);
        assert!(content(&open(&sim).unwrap().current()) == model);
        assert_eq!(sim.crash(1).contents()[&log()], whole);
    }
}

/// Whatever is damaged while the tree is open, `verify` finds it before the next open does.
#[test]
fn verify_finds_damage_of_either_copy() {
    let (sim, _) = sample(true);
    let versions = open(&sim).unwrap();
    versions.verify().unwrap();
    let whole = sim.contents()[&log()].clone();
    let file = sim.open(&log(), true).unwrap();
    // Superblocks and records.
    let mut missed = 0;
    for page in (0..whole.len() / 4096).filter(|page| *page == 0 || *page == 2 || *page >= 4) {
        let at = page * 4096;
        let mut damaged = whole[at..at + 4096].to_vec();
        damaged[if page < 4 { 20 } else { 45 }] ^= 1;
        file.write_at(&damaged, at as u64).unwrap();
        match versions.verify() {
            Err(Error::Corrupt { offset, .. }) => assert!(offset as usize <= at),
            Ok(()) => {
                assert!(page >= 4, "the superblock in page {page}");
                missed += 1;
            }
            Err(e) => panic!("{e}"),
        }
        file.write_at(&whole[at..at + 4096], at as u64).unwrap();
        versions.verify().unwrap();
    }
    // Zeros behind the last bytes of records.
    assert!(missed <= 2 * 6, "{missed}");
}

/// A power loss in a commit may tear the second copy of a record. An open for writing makes it
/// whole; one that only reads takes the other one.
#[test]
fn a_torn_copy_of_a_record_that_nobody_acknowledged_is_no_damage() {
    let (sim, model) = sample(false);
    let mut torn = sim.contents()[&log()].clone();
    let at = torn.iter().rposition(|byte| *byte != 0).unwrap();
    torn[at] = 0;
    sim.tamper(&log(), torn.clone());
    let reader = open_as(&sim, 7, true).unwrap();
    reader.verify().unwrap();
    assert!(content(&reader.current()) == model);
    drop(reader);
    let versions = open(&sim).unwrap();
    versions.verify().unwrap();
    versions.close().unwrap();
    drop(versions);
    // From here on it is.
    let mut damaged = sim.contents()[&log()].clone();
    damaged[at] ^= 1;
    sim.tamper(&log(), damaged);
    let reader = open_as(&sim, 7, true).unwrap();
    assert!(matches!(reader.verify(), Err(Error::Corrupt { .. })));
}

/// Where the newer superblock is, or the other one.
fn superblock(log: &[u8], newer: bool) -> usize {
    let second_is_newer = log[8192 + 32..8192 + 40] > log[32..40];
    if second_is_newer == newer { 8192 } else { 0 }
}

/// The superblock that does not count: a clean log has a whole one in either place. One that is
/// opened for writing has it again.
#[test]
fn a_damaged_superblock_is_found_or_mended() {
    for (newer, clean) in [(false, true), (true, true), (false, false), (true, false)] {
        let (sim, model) = sample(clean);
        let mut damaged = sim.contents()[&log()].clone();
        let place = superblock(&damaged, newer);
        damaged[place + 20] ^= 1;
        sim.tamper(&log(), damaged);
        let reader = open_as(&sim, 7, true).unwrap();
        // A crash at the close or in a commit tears the newer one.
        assert_eq!(reader.verify().is_err(), clean && !newer);
        drop(reader);
        let versions = open(&sim).unwrap();
        assert!(content(&versions.current()) == model);
        versions.verify().unwrap();
        let whole = sim.crash(1).contents()[&log()].clone();
        for copy in [0, 8192] {
            let sum = xxh3_64(&whole[copy..copy + 64]).to_le_bytes();
            assert_eq!(whole[copy + 64..copy + 72], sum);
        }
    }
}

/// A device without room for it does not keep the log closed.
#[test]
fn a_superblock_that_cannot_be_mended_stays_damaged() {
    let (sim, model) = sample(true);
    let mut damaged = sim.contents()[&log()].clone();
    let place = superblock(&damaged, false);
    damaged[place + 20] ^= 1;
    sim.tamper(&log(), damaged);
    sim.fail_at(sim.ios() + 1, crate::storage::sim::Fault::Full, true);
    let versions = open(&sim).unwrap();
    assert!(content(&versions.current()) == model);
    assert!(matches!(versions.verify(), Err(Error::Corrupt { .. })));
}

#[test]
fn the_log_of_another_owner_or_version_is_refused() {
    let (sim, _) = sample(true);
    assert!(matches!(
        open_as(&sim, 8, false),
        Err(Error::Corrupt { .. })
    ));
    let mut other = sim.contents()[&log()].clone();
    for copy in [0, 8192] {
        other[copy + 8] = 9;
        let sum = xxh3_64(&other[copy..copy + 64]).to_le_bytes();
        other[copy + 64..copy + 72].copy_from_slice(&sum);
    }
    assert!(matches!(
        look(&sim, other, false),
        Err(Error::FormatVersion { found: 9, .. })
    ));
}

/// Whoever wrote one newer superblock knows of more than the other one says.
#[test]
fn one_superblock_of_a_newer_format_is_refused_and_nothing_is_cut_off() {
    for (copy, clean) in [(0, true), (8192, true), (0, false), (8192, false)] {
        let (sim, _) = sample(clean);
        let mut newer = sim.contents()[&log()].clone();
        newer[copy + 8] = 2;
        let sum = xxh3_64(&newer[copy..copy + 64]).to_le_bytes();
        newer[copy + 64..copy + 72].copy_from_slice(&sum);
        // Behind the last record that this build knows of.
        newer.extend([7; 8192]);
        sim.tamper(&log(), newer);
        let before = sim.contents();
        for read_only in [true, false] {
            let opened = open_as(&sim, 7, read_only);
            assert!(matches!(opened, Err(Error::FormatVersion { found: 2, .. })));
        }
        assert!(sim.contents() == before);
    }
}

/// A log that is gone is not replaced by an empty one, over tables.
#[test]
fn tables_without_a_log_are_not_removed() {
    let (sim, _) = sample(true);
    let before = files(&sim);
    sim.remove(&log()).unwrap();
    assert!(matches!(open(&sim), Err(Error::Corrupt { .. })));
    assert_eq!(files(&sim), before);
}

#[test]
fn a_missing_table_is_named() {
    let (sim, _) = sample(true);
    let gone = table_path(Path::new(DIR), files(&sim)[0]);
    sim.remove(&gone).unwrap();
    match open(&sim) {
        Err(Error::Corrupt { path, .. }) => assert_eq!(path, gone),
        _ => panic!("it is missing"),
    }
}

/// Past the system's cache every offset and length must be that of pages.
#[test]
fn it_works_on_real_files_past_the_page_cache() {
    let dir = tempfile::TempDir::new().unwrap();
    let place = dir.path().join("tree");
    let storage: Arc<dyn Storage> = Arc::new(crate::storage::Direct);
    let open = || -> Versions<Fake> {
        let opened = Versions::open(Opening {
            storage: &storage,
            dir: &place,
            owner: 7,
            read_only: false,
            partition_bytes: 4096,
            open_table: &mut |_| Err(Error::Closed),
        });
        opened.unwrap()
    };
    let mut partitions = 1;
    for round in 0..4 {
        let versions = open();
        assert_eq!(versions.current().partitions().len(), partitions);
        for n in 0..20u8 {
            // Long keys, so that the log is written anew now and then.
            versions.update(|v| Some(v.cut(&[&[round, n][..], &[1; 6000]].concat())));
            versions.commit().unwrap();
            partitions += 1;
        }
        versions.verify().unwrap();
        if round % 2 == 0 {
            versions.close().unwrap();
        }
    }
    assert_eq!(open().current().partitions().len(), partitions);
}
