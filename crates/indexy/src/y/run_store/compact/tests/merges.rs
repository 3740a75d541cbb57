//! The merge against a `BTreeMap`.

use crate::{
    error::{Error, Result},
    y::run_store::compact::merge::{Deletes, MergeInput, MergeOutput, Merged, merge},
};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

type Entry = (Vec<u8>, Option<Vec<u8>>);

struct List {
    entries: Vec<Entry>,
    at: usize,
    /// Fails instead of going here.
    fails_at: usize,
}

impl List {
    fn new(entries: Vec<Entry>) -> Self {
        Self {
            entries,
            at: 0,
            fails_at: usize::MAX,
        }
    }
}

impl MergeInput for List {
    fn key(&self) -> Option<&[u8]> {
        self.entries.get(self.at).map(|(key, _)| &key[..])
    }

    fn value(&self) -> Option<&[u8]> {
        self.entries.get(self.at)?.1.as_deref()
    }

    fn advance(&mut self) -> Result<()> {
        self.at += 1;
        if self.at == self.fails_at {
            return Err(Error::corrupt("table", 4096, "damaged".to_string()));
        }
        Ok(())
    }
}

#[derive(Default)]
struct Written<'a> {
    entries: Vec<Entry>,
    cancels: Option<(usize, &'a AtomicBool)>,
    fails_at: Option<usize>,
}

impl MergeOutput for Written<'_> {
    fn add(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if self.fails_at == Some(self.entries.len()) {
            return Err(Error::OutOfSpace {
                path: "table".into(),
            });
        }
        self.entries.push((key.to_vec(), value.map(<[u8]>::to_vec)));
        if let Some((at, flag)) = self.cancels {
            flag.store(self.entries.len() >= at, Relaxed);
        }
        Ok(())
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }
}

/// Keys that are equal in their first bytes, prefixes of each other, and with zeros at the end.
fn key(random: &mut Random, prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    let len = [0, 1, 7, 8, 9, 12][random.below(6)];
    key.extend((0..len).map(|_| [0, 0, 1, 0xff][random.below(4)]));
    key
}

fn inputs(random: &mut Random, prefix: &[u8]) -> Vec<BTreeMap<Vec<u8>, Option<Vec<u8>>>> {
    let count = random.below(9);
    let most = [1, 30, 200][random.below(3)];
    let mut input = |i: usize| {
        let entries = random.below(most);
        let entry = |_| {
            let value = (random.below(4) > 0).then(|| vec![i as u8]);
            (key(random, prefix), value)
        };
        (0..entries).map(entry).collect()
    };
    (0..count).map(&mut input).collect()
}

#[test]
fn it_writes_the_newest_of_each_key_in_order() {
    let mut random = Random(5);
    let go_on = AtomicBool::new(false);
    let mut all = 0;
    for round in 0..2000 {
        let prefix = &b"a prefix of all keys"[..[0, 3, 20][round % 3]];
        let inputs = inputs(&mut random, prefix);
        for deletes in [Deletes::Keep, Deletes::Drop] {
            let mut model = BTreeMap::new();
            for input in inputs.iter().rev() {
                model.extend(input.clone());
            }
            if deletes == Deletes::Drop {
                model.retain(|_, value| value.is_some());
            }
            let lists = inputs.iter().cloned().map(|i| i.into_iter().collect());
            let mut lists: Vec<List> = lists.map(List::new).collect();
            let mut written = Written::default();
            let ended = merge(&mut lists, &mut written, deletes, prefix.len(), &go_on).unwrap();
            assert_eq!(written.entries, model.into_iter().collect::<Vec<_>>());
            let read = inputs.iter().map(|i| i.len() as u64).sum();
            let written = written.entries.len() as u64;
            assert_eq!(ended, Merged::Done { read, written });
            all += written;
        }
    }
    assert!(all > 100_000, "{all}");
}

fn long(n: usize) -> Vec<List> {
    let input = |i: usize| {
        let keys = (0..n).map(|k| ((2 * k + i) as u32).to_be_bytes().to_vec());
        List::new(keys.map(|key| (key, None)).collect())
    };
    vec![input(0), input(1)]
}

#[test]
fn it_ends_soon_after_it_was_cancelled() {
    let cancel = AtomicBool::new(false);
    let mut written = Written {
        cancels: Some((3000, &cancel)),
        ..Written::default()
    };
    let ended = merge(&mut long(10_000), &mut written, Deletes::Keep, 0, &cancel);
    assert_eq!(ended.unwrap(), Merged::Cancelled);
    assert!((3000..=4100).contains(&written.entries.len()));
    let ended = merge(&mut long(1), &mut written, Deletes::Keep, 0, &cancel);
    assert_eq!(ended.unwrap(), Merged::Cancelled);
}

#[test]
fn errors_of_inputs_and_output_end_it() {
    let go_on = AtomicBool::new(false);
    let mut inputs = long(100);
    inputs[1].fails_at = 50;
    let ended = merge(
        &mut inputs,
        &mut Written::default(),
        Deletes::Keep,
        0,
        &go_on,
    );
    assert!(matches!(ended, Err(Error::Corrupt { .. })));
    let mut output = Written {
        fails_at: Some(70),
        ..Written::default()
    };
    let ended = merge(&mut long(100), &mut output, Deletes::Keep, 0, &go_on);
    assert!(matches!(ended, Err(Error::OutOfSpace { .. })));
}
