//! Damaged, missing, foreign and stale bytes: detected or harmless, never wrong data.

use super::*;
use salvage::{Known, Piece};
use std::path::PathBuf;

/// A log of several segments with its content; `close`: whether it was closed properly.
fn built(close: bool) -> (Sim, Seen, Lsn) {
    let sim = Sim::default();
    let (log, _) = open_sim(&sim, Lsn(0), Lsn(0), false).unwrap();
    let mut content = Vec::new();
    for i in 0..30 {
        let (start, end) = append(&log, &record(i)).unwrap();
        content.push((start, record(i)));
        if i % 4 == 0 {
            log.wait_durable(end).unwrap();
        }
    }
    log.sync().unwrap();
    let end = log.end();
    if !close {
        let sim = sim.snapshot();
        return (sim, content, end);
    }
    log.close().unwrap();
    (sim.snapshot(), content, end)
}

fn segments(sim: &Sim) -> Vec<(PathBuf, Vec<u8>)> {
    sim.contents().into_iter().collect()
}

#[track_caller]
fn assert_detected(opened: Result<(Log, Seen)>) {
    match opened {
        Err(Error::Corrupt { .. } | Error::FormatVersion { .. }) => {}
        Err(e) => panic!("another error: {e}"),
        Ok((_, seen)) => panic!("opened, with {} records", seen.len()),
    }
}

/// Flips, one at a time, every bit of the headers and one bit of every byte (of every seventh,
/// where that repeats what was seen).
#[test]
fn every_flipped_byte_is_detected_or_harmless() {
    for (close, hinted) in [(true, false), (true, true), (false, true), (false, false)] {
        let (sim, content, end) = built(close);
        let hint = if hinted { end } else { Lsn(0) };
        let files = segments(&sim);
        assert!(files.len() > 5);
        let mut detected = 0;
        for (path, bytes) in &files {
            for at in (0..bytes.len()).filter(|at| (close && !hinted) || *at < 256 || at % 17 == 0)
            {
                let bits = if at < 96 { 0..8 } else { at % 8..at % 8 + 1 };
                for bit in bits {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= 1 << bit;
                    sim.tamper(path, damaged);
                    match open_sim(&sim, Lsn(0), hint, true) {
                        Ok((_, seen)) if close || hinted => {
                            assert!(seen == content, "{path:?} byte {at}: wrong data")
                        }
                        Ok((_, seen)) => {
                            assert!(content.starts_with(&seen), "{path:?} byte {at}: no prefix")
                        }
                        Err(Error::Corrupt { .. } | Error::FormatVersion { .. }) => detected += 1,
                        Err(e) => panic!("{path:?} byte {at}: {e}"),
                    }
                }
            }
            sim.tamper(path, bytes.clone());
        }
        assert!(detected > 1000);
    }
}

#[test]
fn damage_in_the_middle_names_file_and_offset() {
    let (sim, _, _) = built(true);
    let files = segments(&sim);
    for (path, bytes) in &files[..files.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[96] ^= 0x40;
        sim.tamper(path, damaged);
        match open_sim(&sim, Lsn(0), Lsn(0), false) {
            Err(Error::Corrupt {
                path: named,
                offset,
                ..
            }) => {
                assert_eq!(&named, path);
                assert!((64..=96).contains(&offset));
            }
            other => panic!("{:?}", other.map(|o| o.1.len())),
        }
        // Nothing was cut off.
        assert_eq!(sim.contents()[path].len(), bytes.len());
        sim.tamper(path, bytes.clone());
    }
}

#[test]
fn a_later_group_proves_what_was_durable() {
    // One segment, records synced one by one, no close mark.
    let sim = Sim::default();
    let (log, _) = open_sim(&sim, Lsn(0), Lsn(0), false).unwrap();
    for i in 0..10u64 {
        let end = put(&log, i, b"value");
        log.wait_durable(end).unwrap();
    }
    let sim = sim.snapshot();
    let (path, bytes) = segments(&sim).pop().unwrap();
    let group = 32 + 24;
    for i in 0..10 {
        let mut damaged = bytes.clone();
        damaged[64 + i * group + 40] ^= 1;
        sim.tamper(&path, damaged);
        let opened = open_sim(&sim, Lsn(0), Lsn(0), true);
        if i < 9 {
            assert_detected(opened);
        } else {
            // Nothing follows the last one: without a hint it may be torn, with one it may not.
            assert_eq!(opened.unwrap().1.len(), 9);
            assert_detected(open_sim(&sim, Lsn(0), log.durable(), true));
        }
    }
}

/// The newest segment cut at any length behind its header, its tail zeroed or overwritten: a
/// prefix, or refused for the hint. Without a header it is damaged: no crash leaves that.
#[test]
fn any_torn_tail_is_a_prefix() {
    let (sim, content, end) = built(false);
    let (path, bytes) = segments(&sim).pop().unwrap();
    let mut lengths = std::collections::BTreeSet::new();
    for cut in 0..bytes.len() {
        let fillers = [None, Some(0u8), Some(0xA5)];
        // All of them where headers are, and then in turn.
        let chosen = if cut < 256 {
            0..3
        } else {
            cut % 3..cut % 3 + 1
        };
        for &filler in &fillers[chosen] {
            let mut torn = bytes[..cut].to_vec();
            if let Some(filler) = filler {
                torn.resize(bytes.len() + 100, filler);
            }
            let changed = torn[..cut.min(torn.len())] != bytes[..]
                && torn.get(..bytes.len()) != Some(&bytes[..]);
            sim.tamper(&path, torn.clone());
            // The last bytes of a header may be what it is filled with.
            if cut < 64 && torn.get(..64) != bytes.get(..64) {
                assert_detected(open_sim(&sim, Lsn(0), Lsn(0), false));
                assert_eq!(sim.contents()[&path], torn, "it was changed");
                sim.tamper(&path, bytes.clone());
                continue;
            }
            match open_sim(&sim, Lsn(0), Lsn(0), false) {
                Ok((log, seen)) => {
                    assert!(content.starts_with(&seen));
                    lengths.insert(seen.len());
                    // It goes on, and what it appends comes back.
                    if cut % 16 == 0 {
                        append(&log, &record(77)).unwrap();
                        log.close().unwrap();
                        let (_, again) = open_sim(&sim, Lsn(0), log.durable(), true).unwrap();
                        assert_eq!(again[..seen.len()], seen);
                        assert_eq!(again[seen.len()].1, record(77));
                        assert_eq!(again.len(), seen.len() + 1);
                        let newest = segments(&sim).pop().unwrap().0;
                        assert_ne!(newest, path);
                        sim.remove(&newest).unwrap();
                    }
                }
                Err(e) => panic!("cut at {cut}, filler {filler:?}: {e}"),
            }
            if changed
                && open_sim(&sim, Lsn(0), Lsn(0), true).is_ok_and(|o| o.1.len() < content.len())
            {
                assert_detected(open_sim(&sim, Lsn(0), end, true));
            }
            sim.tamper(&path, bytes.clone());
        }
    }
    assert!(lengths.len() > 2);
}

/// However many there are.
#[test]
fn segments_without_a_header_are_damage_and_not_removed() {
    for bytes in [vec![], vec![0; 4096]] {
        let (sim, content, _) = built(true);
        let newest = segments(&sim).pop().unwrap().0;
        let number = u64::from_str_radix(newest.file_stem().unwrap().to_str().unwrap(), 16);
        for sequence in (number.unwrap()..).take(2) {
            let path = segment::segment_path(Path::new(DIR), sequence);
            sim.tamper(&path, bytes.clone());
            match open_sim(&sim, Lsn(0), Lsn(0), false) {
                Err(Error::Corrupt {
                    path: named,
                    offset: 0,
                    ..
                }) => assert_eq!(named, path),
                other => panic!("{:?}", other.map(|o| o.1.len())),
            }
            assert_eq!(sim.contents()[&path], bytes);
            let (records, lost) = salvaged(&sim, Known::default()).unwrap();
            assert!(content.starts_with(&records));
            assert!(matches!(&lost[0], Error::Corrupt { path, .. } if *path == newest));
        }
    }
}

fn salvaged(sim: &Sim, known: Known) -> Result<(Seen, Vec<Error>)> {
    let (mut records, mut lost) = (Vec::new(), Vec::new());
    salvage::salvage(sim, Path::new(DIR), known, &mut |piece| {
        match piece {
            Piece::Record(lsn, record) => records.push((lsn, own(record))),
            Piece::Lost(error) => lost.push(error),
        }
        Ok(())
    })?;
    Ok((records, lost))
}

/// A log that cannot be listed is a loss, and so is a segment that cannot be read; want of
/// descriptors is none.
#[test]
fn salvage_tells_what_it_could_not_read() {
    let (sim, content, _) = built(true);
    let known = Known {
        database_id: Some(7),
        from: Some(Lsn(0)),
        durable: Lsn(0),
    };
    let before = sim.ios();
    let (records, lost) = salvaged(&sim, known).unwrap();
    assert!(records == content && lost.is_empty());
    for at in before + 1..=sim.ios() {
        sim.fail_at(sim.ios() + at - before, Fault::NoDescriptors, true);
        if let Err(error) = salvaged(&sim, known) {
            assert!(error.is_transient());
        } else {
            assert_eq!(sim.faults(), 0);
        }
        sim.fail_at(sim.ios() + at - before, Fault::Eio, true);
        let (_, lost) = salvaged(&sim, known).unwrap();
        assert!(!lost.is_empty(), "{at}");
    }
}

#[test]
fn a_missing_segment_is_corruption() {
    let (sim, content, end) = built(true);
    let files = segments(&sim);
    for (i, (path, bytes)) in files.iter().enumerate() {
        sim.remove(path).unwrap();
        let hint = if i + 1 == files.len() { end } else { Lsn(0) };
        assert_detected(open_sim(&sim, Lsn(0), hint, false));
        sim.tamper(path, bytes.clone());
    }
    for (path, _) in &files {
        sim.remove(path).unwrap();
    }
    assert_detected(open_sim(&sim, Lsn(0), end, false));
    assert!(open_sim(&sim, Lsn(0), Lsn(0), false).unwrap().1.is_empty());
    drop(content);
}

#[test]
fn stale_and_foreign_bytes_do_not_pass() {
    let (sim, content, _) = built(true);
    let files = segments(&sim);
    let (newest, bytes) = files.last().unwrap().clone();
    // Groups of the same segment again, behind its end; of another one; at another offset.
    for (from, shift) in [(&bytes, 0), (&files[1].1, 0), (&bytes, 8)] {
        let mut stale = bytes.clone();
        stale.extend(std::iter::repeat_n(0, shift));
        stale.extend_from_slice(&from[64..]);
        sim.tamper(&newest, stale);
        let (_, seen) = open_sim(&sim, Lsn(0), Lsn(0), true).unwrap();
        assert!(seen == content);
    }
    sim.tamper(&newest, bytes);
    // A whole segment under the name of another.
    sim.tamper(&files[2].0, files[1].1.clone());
    assert_detected(open_sim(&sim, Lsn(0), Lsn(0), true));
    sim.tamper(&files[2].0, files[2].1.clone());
    // Files that are not ours are left alone.
    for name in [
        "lost+found",
        "1.wal",
        "000000000000000g.wal",
        "0000000000000001.wal.bak",
        "00000000000000FF.wal",
    ] {
        sim.tamper(&Path::new(DIR).join(name), b"foreign".to_vec());
    }
    sim.tamper(
        &Path::new(DIR).join("00000000000000ff.wal-new"),
        b"ours".to_vec(),
    );
    assert!(open_sim(&sim, Lsn(0), Lsn(0), false).unwrap().1 == content);
    assert_eq!(sim.contents().len(), files.len() + 5);
}

#[test]
fn another_database_or_version_is_refused() {
    let (sim, _, _) = built(true);
    let other = LogOptions {
        database_id: 8,
        ..small(LogDurability::Sync)
    };
    assert_detected(open_with(
        Arc::new(sim.clone()),
        other,
        Lsn(0),
        Lsn(0),
        false,
    ));
    let (newest, mut bytes) = segments(&sim).pop().unwrap();
    bytes[8] = 9;
    let crc = crc32c::crc32c(&bytes[..60]);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    sim.tamper(&newest, bytes);
    match open_sim(&sim, Lsn(0), Lsn(0), false) {
        Err(Error::FormatVersion {
            found: 9,
            supported: 4,
            path,
        }) => assert_eq!(path, newest),
        other => panic!("{:?}", other.map(|o| o.1.len())),
    }
}

/// A lost tail and what was written over it later must not mix, even when the lost bytes come back.
#[test]
fn lost_groups_do_not_come_back_behind_new_ones() {
    let sim = Sim::default();
    let (log, _) = open_sim(&sim, Lsn(0), Lsn(0), false).unwrap();
    let end = put(&log, 1, b"kept");
    log.wait_durable(end).unwrap();
    let end = put(&log, 2, b"lost");
    log.wait_durable(end).unwrap();
    let end = put(&log, 3, b"also lost");
    log.wait_durable(end).unwrap();
    let sim = sim.snapshot();
    let (path, before) = segments(&sim).pop().unwrap();
    sim.tamper(&path, before[..64 + 56].to_vec());
    let (log, seen) = open_sim(&sim, Lsn(0), Lsn(0), false).unwrap();
    assert_eq!(seen.len(), 1);
    let end = put(&log, 4, b"new!");
    log.wait_durable(end).unwrap();
    log.close().unwrap();
    let want = open_sim(&sim, Lsn(0), end, true).unwrap().1;
    assert_eq!(want.len(), 2);
    // The old tail is back: the segment now ends beyond where its successor begins.
    sim.tamper(&path, before);
    assert_detected(open_sim(&sim, Lsn(0), end, true));
}
