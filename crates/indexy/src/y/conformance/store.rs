//! Where the Y under test lives, what it should hold, and how to fill and compare it.

use crate::{
    error::{Error, Result},
    x::Order,
    y::{IndexY, Maintained, RunEntry, RunSource},
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// A place where one Y lives, across reopens. One test has one store.
pub trait Store {
    /// The implementation under test.
    type Y: IndexY;
    /// Opens it; the first time creates it. The one opened before was dropped, or its
    /// `release_files` said true.
    fn open(&self) -> Self::Y;
    /// Opens another one, in the directory of a copy.
    fn open_copy(&self, dir: &Path) -> Self::Y;
    /// An absent directory for a copy; the same at every call.
    fn copy_dir(&self) -> PathBuf;

    /// The directory with the files of [`Store::open`]. `None`, for a Y without files, leaves out
    /// the behaviours that look at them.
    fn dir(&self) -> Option<PathBuf> {
        None
    }

    /// Opens the Y in `dir` read-only. `None` leaves out the behaviours of a Y opened so.
    fn open_read_only(&self, _dir: &Path) -> Option<Result<Self::Y>> {
        None
    }
}

/// What a Y should hold.
pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A sorted run, or what a scan gave: keys and values, `None` for a delete.
pub type Entries = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// A run from a list, with a call before publication and an optional end with an error.
pub struct ListRun<'a> {
    /// The entries, ascending.
    pub entries: &'a Entries,
    /// Fails instead of giving the entry of this number.
    pub fail_at: Option<usize>,
    /// What [`RunSource::before_publish`] does.
    pub before_publish: &'a mut dyn FnMut() -> Result<()>,
}

impl RunSource for ListRun<'_> {
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
        for (i, (key, value)) in self.entries.iter().enumerate() {
            if self.fail_at == Some(i) {
                return Err(Error::Closed);
            }
            sink((key, value.as_deref()))?;
        }
        match self.fail_at {
            Some(at) if at >= self.entries.len() => Err(Error::Closed),
            _ => Ok(()),
        }
    }

    fn before_publish(&mut self) -> Result<()> {
        (self.before_publish)()
    }
}

/// Writes `entries` (ascending) as one run.
pub fn write(y: &dyn IndexY, entries: &Entries) -> Result<()> {
    y.write_run(&mut ListRun {
        entries,
        fail_at: None,
        before_publish: &mut || Ok(()),
    })
}

/// Writes a run and the model.
pub fn write_both(y: &dyn IndexY, model: &mut Model, entries: &Entries) {
    write(y, entries).expect("run");
    for (key, value) in entries {
        match value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(key),
        };
    }
}

/// An entry of a run: `key` gets `value`.
pub fn put(key: &[u8], value: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    (key.to_vec(), Some(value.to_vec()))
}

/// An entry of a run: `key` is deleted.
pub fn del(key: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    (key.to_vec(), None)
}

/// Everything that a scan gives.
pub fn scan(y: &dyn IndexY, from: &[u8], to: Option<&[u8]>, order: Order) -> Entries {
    let mut iter = y.range(from, to, order).expect("range");
    let (mut entries, mut promised) = (Entries::new(), 0);
    loop {
        promised = promised.max(entries.len() + iter.size_hint().0);
        let Some(entry) = iter.next() else { break };
        let (key, value) = entry.expect("entry");
        entries.push((key.to_vec(), Some(value.to_vec())));
    }
    let given = entries.len();
    assert!(
        given >= promised,
        "size_hint: {promised} promised, {given} given"
    );
    entries
}

/// Compares everything that `y` says with `model`.
pub fn check(y: &dyn IndexY, model: &Model) {
    let expected: Entries = model
        .iter()
        .map(|(k, v)| (k.clone(), Some(v.clone())))
        .collect();
    assert!(
        scan(y, b"", None, Order::Ascending) == expected,
        "ascending"
    );
    let mut reversed = expected;
    reversed.reverse();
    assert!(
        scan(y, b"", None, Order::Descending) == reversed,
        "descending"
    );
    for (key, value) in model {
        assert_eq!(y.get(key).expect("get").as_deref(), Some(&value[..]));
    }
    let keys: Vec<&[u8]> = model.keys().map(|k| &k[..]).collect();
    for some in keys.chunks(100) {
        let values = y.multi_get(some).expect("multi_get");
        for (key, value) in some.iter().zip(values) {
            assert_eq!(value.as_deref(), model.get(*key).map(|v| &v[..]));
        }
    }
    assert_eq!(y.verify().expect("verify"), model.len() as u64);
    if !model.is_empty() {
        assert!(!y.is_empty().expect("is_empty"));
    }
}

/// Calls `maintain` until there is nothing to do.
pub fn settle(y: &dyn IndexY) {
    for _ in 0..1000 {
        if y.maintain().expect("maintain") == Maintained::Idle {
            return;
        }
    }
    panic!("maintenance does not come to rest");
}
