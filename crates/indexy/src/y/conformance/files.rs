//! Behaviours of the files: reopening, copies, a killed process, opening read-only.

use super::{Entries, Model, Store, check, del, put, settle, write, write_both};
use crate::{x::Order, y::IndexY};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// As long as a database asks.
const RELEASE_LIMIT: Duration = Duration::from_secs(2);

/// I2: what is written after a reopen wins over what was there before, round after round.
pub fn i2_overwrites_after_reopen_win<S: Store>(store: &S) {
    let mut model = Model::new();
    for round in 0u32..8 {
        let y = store.open();
        check(&y, &model);
        // Several runs a round, so that a counter restarting at zero would be behind.
        for step in 0..=round {
            let value = format!("{round}.{step}");
            let mut entries: Entries = (0u32..50)
                .map(|i| put(&i.to_be_bytes(), value.as_bytes()))
                .collect();
            entries.push(match round % 2 {
                0 => put(b"x", value.as_bytes()),
                _ => del(b"x"),
            });
            write_both(&y, &mut model, &entries);
            check(&y, &model);
        }
        if round % 3 == 2 {
            settle(&y);
        }
        y.make_durable().unwrap();
    }
    check(&store.open(), &model);
}

/// After [`IndexY::release_files`] said true the files are the next owner's: what that one writes
/// stays, whenever the one before is dropped.
pub fn released_files_are_left_alone<S: Store>(store: &S) {
    if store.dir().is_none() {
        return;
    }
    let y = store.open();
    let mut model = Model::new();
    for n in 0u8..3 {
        let entries = (0u32..500).map(|i| put(&(i * 2 + u32::from(n)).to_be_bytes(), &[n; 30]));
        write_both(&y, &mut model, &entries.collect());
    }
    y.make_durable().unwrap();
    // Not durable, and of keys that the next owner writes.
    let late = (0u32..500).map(|i| put(&i.to_be_bytes(), b"late"));
    write(&y, &late.collect()).unwrap();
    until_released(&y);
    let next = store.open();
    let entries = (0u32..500).map(|i| match i % 3 {
        0 => del(&i.to_be_bytes()),
        _ => put(&i.to_be_bytes(), b"the next owner's"),
    });
    write_both(&next, &mut model, &entries.collect());
    next.make_durable().unwrap();
    check(&next, &model);
    drop(y);
    check(&next, &model);
    settle(&next);
    drop(next);
    check(&store.open(), &model);
}

/// An iterator that is open when [`IndexY::release_files`] is asked: the answer is no, or the
/// iterator touches no file from then on, neither when it goes on nor when it is dropped.
pub fn an_open_iterator_keeps_the_files_or_leaves_them<S: Store>(store: &S) {
    let Some(dir) = store.dir() else { return };
    let y = store.open();
    let mut model = Model::new();
    let run = |n: u8| -> Entries {
        (0u32..3000)
            .map(|i| put(&i.to_be_bytes(), &[n; 50]))
            .collect()
    };
    write_both(&y, &mut model, &run(0));
    let mut iter = y.range(b"", None, Order::Ascending).unwrap();
    iter.next().unwrap().unwrap();
    // What it is reading is replaced under it, and would be removed were it not there.
    for n in 1..8 {
        write_both(&y, &mut model, &run(n));
        settle(&y);
    }
    y.make_durable().unwrap();
    if y.release_files() {
        let before = files(&dir);
        drop(iter.next());
        drop(iter);
        assert!(files(&dir) == before, "the iterator changed files");
    } else {
        drop(iter);
        until_released(&y);
    }
    let before = files(&dir);
    drop(y);
    assert!(files(&dir) == before, "the drop changed files");
    let next = store.open();
    check(&next, &model);
    write_both(&next, &mut model, &run(9));
    settle(&next);
    check(&next, &model);
    drop(next);
    check(&store.open(), &model);
}

/// When the drop of a Y returns, its work on files has ended: the directory may be given to
/// somebody else, or be gone.
pub fn a_drop_ends_all_work<S: Store>(store: &S) {
    const WHILE: Duration = Duration::from_millis(200);
    let Some(dir) = store.dir() else { return };
    let y = store.open();
    let mut model = Model::new();
    for n in 0u8..8 {
        let run = (0u32..3000).map(|i| put(&(i * (1 + u32::from(n))).to_be_bytes(), &[n; 50]));
        write_both(&y, &mut model, &run.collect());
    }
    // Maintenance has begun and much is left to do.
    y.maintain().unwrap();
    y.interrupt();
    drop(y);
    let before = files(&dir);
    assert_eq!(open_for_writing(&dir), Vec::<PathBuf>::new());
    std::thread::sleep(WHILE);
    assert!(files(&dir) == before, "files changed after the drop");
    check(&store.open(), &model);
    std::fs::remove_dir_all(&dir).expect("remove");
    std::thread::sleep(WHILE);
    assert!(!dir.exists(), "the directory was made again");
}

/// Files below `dir` that this process has open for writing, where the system tells.
fn open_for_writing(dir: &Path) -> Vec<PathBuf> {
    const ACCESS_MODE: u32 = 0o3;
    let Ok(descriptors) = std::fs::read_dir("/proc/self/fd") else {
        return Vec::new();
    };
    let dir = dir.canonicalize().expect("the directory");
    let mut found = Vec::new();
    for descriptor in descriptors.flatten() {
        let number = descriptor.file_name().to_string_lossy().into_owned();
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"));
        // Another test may have closed it.
        let (Ok(path), Ok(info)) = (std::fs::read_link(descriptor.path()), info) else {
            continue;
        };
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok());
        if path.starts_with(&dir) && flags.is_some_and(|flags| flags & ACCESS_MODE != 0) {
            found.push(path);
        }
    }
    found
}

fn until_released(y: &dyn IndexY) {
    let deadline = Instant::now() + RELEASE_LIMIT;
    while !y.release_files() {
        assert!(Instant::now() < deadline, "nobody reads any more");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A copy opens as what the original was, and the two have nothing in common from then on.
pub fn copies_open_equal<S: Store>(store: &S) {
    let y = store.open();
    let mut model = Model::new();
    for n in 0u8..6 {
        let entries = (0u32..1000).filter(|i| i % 7 != u32::from(n));
        write_both(
            &y,
            &mut model,
            &entries.map(|i| put(&i.to_be_bytes(), &[n; 30])).collect(),
        );
    }
    let before = model.clone();
    let dir = store.copy_dir();
    y.copy_to(&dir).unwrap();
    // What happens to the original later does not reach the copy, and the other way round.
    write_both(
        &y,
        &mut model,
        &(0u32..1000).map(|i| del(&i.to_be_bytes())).collect(),
    );
    settle(&y);
    let copy = store.open_copy(&dir);
    check(&copy, &before);
    let mut changed = before;
    write_both(&copy, &mut changed, &vec![put(b"only here", b"1")]);
    settle(&copy);
    check(&copy, &changed);
    check(&y, &model);
    drop((y, copy));
    check(&store.open(), &model);
    check(&store.open_copy(&dir), &changed);
}

/// Every file below `dir` with its bytes.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(&at).expect("list") {
            let path = entry.expect("list").path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let bytes = std::fs::read(&path).expect("read");
                files.insert(path.strip_prefix(dir).expect("below").to_path_buf(), bytes);
            }
        }
    }
    files
}

/// I6: the files as a killed process leaves them open as of `make_durable` at least: per key, that
/// state or a later one. Nothing is closed or dropped before.
pub fn i6_a_killed_process_keeps_what_was_durable<S: Store>(store: &S) {
    let Some(dir) = store.dir() else { return };
    let y = store.open();
    let run = |n: u8, keys: std::ops::Range<u32>| -> Entries {
        keys.map(|i| put(&i.to_be_bytes(), &[n; 40])).collect()
    };
    write(&y, &run(1, 0..4000)).unwrap();
    y.make_durable().unwrap();
    // Acknowledged, not durable: any part of it may come back.
    write(&y, &run(2, 1000..2000)).unwrap();
    let copy = store.copy_dir();
    for (path, bytes) in files(&dir) {
        let path = copy.join(path);
        std::fs::create_dir_all(path.parent().expect("parent")).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    if let Some(read_only) = store.open_read_only(&copy) {
        let read_only = read_only.expect("read-only after a kill");
        assert_eq!(read_only.verify().unwrap(), 4000);
    }
    let again = store.open_copy(&copy);
    assert_eq!(again.verify().unwrap(), 4000);
    for i in 0u32..4000 {
        let value = again.get(&i.to_be_bytes()).unwrap().expect("was durable");
        let newest = if (1000..2000).contains(&i) { 2 } else { 1 };
        assert!(value == [1; 40] || value == [newest; 40], "key {i}");
    }
    // The log writes again what was not durable.
    write(&again, &run(2, 1000..2000)).unwrap();
    let mut model = Model::new();
    for (key, value) in run(1, 0..4000).into_iter().chain(run(2, 1000..2000)) {
        model.insert(key, value.expect("a value"));
    }
    check(&again, &model);
    check(&y, &model);
}

/// Opened read-only, a Y answers everything and changes no byte of its files; an absent one is an
/// error and stays absent.
pub fn read_only_changes_nothing<S: Store>(store: &S) {
    let Some(dir) = store.dir() else { return };
    if let Some(absent) = store.open_read_only(&store.copy_dir()) {
        assert!(absent.is_err(), "there is nothing to open");
        assert!(!store.copy_dir().exists());
    } else {
        return;
    }
    let mut model = Model::new();
    let y = store.open();
    for n in 0u8..4 {
        let entries = (0u32..3000).step_by(1 + usize::from(n));
        let run = entries.map(|i| put(&i.to_be_bytes(), &[n; 60])).collect();
        write_both(&y, &mut model, &run);
    }
    y.make_durable().unwrap();
    drop(y);
    let before = files(&dir);
    let y = store.open_read_only(&dir).expect("as before").unwrap();
    check(&y, &model);
    assert!(!y.is_empty().unwrap() && y.approximate_len() > 0);
    // A checkpoint of a database that is open read-only.
    y.copy_to(&store.copy_dir()).unwrap();
    drop(y);
    assert!(files(&dir) == before, "a file was changed");
    check(&store.open_copy(&store.copy_dir()), &model);
}

/// A copy made beside runs is of one moment: each run is in it as a whole or not at all.
pub fn copies_beside_runs_are_of_one_moment<S: Store>(store: &S) {
    const KEYS: u32 = 400;
    const ROUNDS: u8 = 60;
    const MOST_COPIES: usize = 12;
    let y = store.open();
    if !y.copies_beside_runs() {
        return;
    }
    let run = |round: u8| -> Entries {
        (0..KEYS)
            .map(|i| put(&i.to_be_bytes(), &[round; 50]))
            .collect()
    };
    write(&y, &run(0)).unwrap();
    let mut copies: Vec<PathBuf> = Vec::new();
    std::thread::scope(|s| {
        let writer = s.spawn(|| {
            for round in 1..ROUNDS {
                write(&y, &run(round)).unwrap();
                if round % 8 == 0 {
                    settle(&y);
                    y.make_durable().unwrap();
                }
            }
        });
        while !writer.is_finished() && copies.len() < MOST_COPIES {
            let copy = store.copy_dir().with_extension(copies.len().to_string());
            y.copy_to(&copy).unwrap();
            copies.push(copy);
        }
    });
    let mut least = 0;
    for dir in &copies {
        let copy = store.open_copy(dir);
        let round = copy
            .get(&0u32.to_be_bytes())
            .unwrap()
            .expect("the key is there")[0];
        let model: Model = (0..KEYS)
            .map(|i| (i.to_be_bytes().to_vec(), vec![round; 50]))
            .collect();
        check(&copy, &model);
        assert_eq!(copy.verify().unwrap(), u64::from(KEYS));
        assert!(round >= least, "a later copy is of a later moment");
        least = round;
    }
}
