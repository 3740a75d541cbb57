//! An Index X, a map that stands for Index Y, and the truth about both.

use crate::x::{Before, Chunk, IndexX, Load, Lookup, Order, Put, RunId, ScanLimits, Stamp};
use std::{
    collections::BTreeMap,
    ops::{Bound, ControlFlow},
};

pub(super) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A run on its way.
pub(super) struct Flight {
    pub run: RunId,
    pub from: Vec<u8>,
    pub to: Option<Vec<u8>>,
    pub entries: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// A read of Y that is not installed yet.
pub(super) struct PendingLoad {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub stamp: Stamp,
}

pub(super) struct World<X> {
    pub x: X,
    pub y: Map,
    pub truth: Map,
    pub last_run: RunId,
    pub acked: RunId,
    pub flight: Option<Flight>,
}

/// Entries of `map` in `[from, to)`.
pub(super) fn part<'m>(
    map: &'m Map,
    from: &[u8],
    to: Option<&[u8]>,
) -> impl Iterator<Item = (&'m Vec<u8>, &'m Vec<u8>)> {
    let to = to.map(<[u8]>::to_vec);
    map.range::<[u8], _>((Bound::Included(from), Bound::Unbounded))
        .take_while(move |(k, _)| to.as_ref().is_none_or(|to| *k < to))
}

/// What `before` says, with the value.
fn value_of(before: &dyn Before) -> Lookup<Vec<u8>> {
    let mut value = Vec::new();
    before
        .look(&mut |found| value = found.to_vec())
        .map(|()| value)
}

pub(super) fn show(key: &[u8]) -> String {
    let short = &key[..key.len().min(40)];
    format!("{} ({} bytes)", short.escape_ascii(), key.len())
}

impl<X: IndexX> World<X> {
    pub(super) fn new(x: X) -> Self {
        Self {
            x,
            y: Map::new(),
            truth: Map::new(),
            last_run: 0,
            acked: 0,
            flight: None,
        }
    }

    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) {
        let was = self.x.get(key, <[u8]>::to_vec);
        let put = self.x.put_over(key, Some(value), |before| {
            assert_eq!(value_of(before), was, "{}", show(key));
            Ok::<(), ()>(())
        });
        assert_eq!(put, Ok(Put::Applied));
        self.truth.insert(key.to_vec(), value.to_vec());
    }

    pub(super) fn remove(&mut self, key: &[u8]) {
        let was = self.x.get(key, <[u8]>::to_vec);
        let mut commits = 0;
        let put = self.x.put_over(key, None, |before| {
            assert_eq!(value_of(before), was, "{}", show(key));
            commits += 1;
            Ok::<(), ()>(())
        });
        let there = self.truth.remove(key).is_some();
        match put {
            Ok(Put::Applied) => assert_eq!(commits, 1),
            Ok(Put::Nothing) => {
                assert_eq!(commits, 0);
                assert!(!there, "a removal of a key that is there did nothing");
            }
            Err(()) => panic!("commit did not fail"),
        }
    }

    /// The value as a reader of the whole database sees it; loads it when Y has it.
    pub(super) fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        match self.x.get(key, <[u8]>::to_vec) {
            Lookup::Found(value) => Some(value),
            Lookup::Operand => unreachable!("nothing is merged"),
            Lookup::Deleted | Lookup::Absent => None,
            Lookup::AskY(stamp) => {
                let value = self.y.get(key).cloned();
                if let Some(value) = &value {
                    assert_eq!(
                        self.x.load(key, value, stamp),
                        Load::Loaded,
                        "{}",
                        show(key)
                    );
                }
                value
            }
        }
    }

    pub(super) fn check(&self, key: &[u8]) {
        let value = self.get(key);
        assert_eq!(value.as_ref(), self.truth.get(key), "{}", show(key));
    }

    /// Reads Y for `key`, if X says so; the answer is to be installed later.
    pub(super) fn begin_load(&self, key: &[u8]) -> Option<PendingLoad> {
        let Lookup::AskY(stamp) = self.x.get(key, |_| ()) else {
            return None;
        };
        let value = self.y.get(key)?.clone();
        Some(PendingLoad {
            key: key.to_vec(),
            value,
            stamp,
        })
    }

    pub(super) fn finish_load(&self, load: &PendingLoad) -> Load {
        self.x.load(&load.key, &load.value, load.stamp)
    }

    /// Copies the dirty entries of a range into a new run.
    pub(super) fn begin_run(&mut self, from: &[u8], to: Option<&[u8]>) {
        assert!(self.flight.is_none());
        self.last_run += 1;
        let run = self.last_run;
        let mut entries: Vec<(Vec<u8>, Option<Vec<u8>>)> = vec![];
        let flow = self.x.clean(from, to, run, &mut |key, value, _| {
            if let Some((last, _)) = entries.last() {
                assert!(&last[..] < key, "a run ascends");
            }
            assert!(key >= from && to.is_none_or(|to| key < to));
            entries.push((key.to_vec(), value.map(<[u8]>::to_vec)));
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        let (from, to) = (from.to_vec(), to.map(<[u8]>::to_vec));
        self.flight = Some(Flight {
            run,
            from,
            to,
            entries,
        });
    }

    /// Y took the run.
    pub(super) fn acknowledge(&mut self) {
        let Some(flight) = self.flight.take() else {
            return;
        };
        for (key, value) in flight.entries {
            match value {
                Some(value) => self.y.insert(key, value),
                None => self.y.remove(&key),
            };
        }
        self.acked = flight.run;
        self.x
            .settle(&flight.from, flight.to.as_deref(), flight.run);
    }

    /// Y failed after it took the first `taken` entries.
    pub(super) fn fail(&mut self, taken: usize) {
        let Some(flight) = self.flight.take() else {
            return;
        };
        for (key, value) in flight.entries.into_iter().take(taken) {
            match value {
                Some(value) => self.y.insert(key, value),
                None => self.y.remove(&key),
            };
        }
        self.x
            .redirty(&flight.from, flight.to.as_deref(), flight.run);
        self.acked = flight.run;
    }

    /// Cleans everything and has Y take it.
    pub(super) fn flush(&mut self) {
        self.acknowledge();
        self.begin_run(&[], None);
        self.acknowledge();
    }

    pub(super) fn cut_all(&mut self) -> crate::x::Cut {
        self.x.cut(&[], None, self.acked, false, usize::MAX)
    }

    /// Writes past X, as the framework does with values that X does not hold.
    pub(super) fn write_past(&mut self, key: &[u8], value: &[u8]) {
        assert!(self.flight.is_none());
        self.y.insert(key.to_vec(), value.to_vec());
        self.truth.insert(key.to_vec(), value.to_vec());
        self.x.evict(key);
    }

    /// Scans a range in chunks and compares it, merged with Y, with the truth.
    pub(super) fn check_scan(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        limits: ScanLimits,
    ) {
        self.check_count(from, to);
        let (mut lo, mut hi) = (from.to_vec(), to.map(<[u8]>::to_vec));
        let mut chunk = Chunk::default();
        let mut seen: Vec<(Vec<u8>, Vec<u8>)> = vec![];
        loop {
            self.x.scan(&lo, hi.as_deref(), order, limits, &mut chunk);
            let (part_from, part_to) = match (order, &chunk.resume) {
                (Order::Ascending, Some(resume)) => (lo.clone(), Some(resume.clone())),
                (Order::Descending, Some(resume)) => (resume.clone(), hi.clone()),
                (_, None) => (lo.clone(), hi.clone()),
            };
            let mut found = self.merge(&chunk, &part_from, part_to.as_deref(), order);
            if order == Order::Descending {
                let mut rest = found.into_iter().collect::<Vec<_>>();
                rest.reverse();
                seen.extend(rest);
            } else {
                seen.extend(std::mem::take(&mut found));
            }
            match (chunk.resume.take(), order) {
                (None, _) => break,
                (Some(resume), Order::Ascending) => {
                    assert!(resume > lo, "a scan goes on");
                    lo = resume;
                }
                (Some(resume), Order::Descending) => {
                    assert!(hi.as_ref().is_none_or(|hi| resume < *hi), "a scan goes on");
                    hi = Some(resume);
                }
            }
        }
        let mut expected: Vec<_> = if to.is_some_and(|to| to <= from) {
            vec![]
        } else {
            part(&self.truth, from, to)
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect()
        };
        if order == Order::Descending {
            expected.reverse();
        }
        assert_eq!(
            seen.len(),
            expected.len(),
            "{order:?} {} {:?}",
            show(from),
            to.map(show)
        );
        assert!(
            seen == expected,
            "{order:?} {} {:?}",
            show(from),
            to.map(show)
        );
    }

    /// Counts a range up to its first mount and compares that with the truth.
    fn check_count(&self, from: &[u8], to: Option<&[u8]>) {
        let (counted, mounted) = self.x.count(from, to);
        assert!(mounted.as_ref().is_none_or(|at| &at[..] >= from));
        let end = mounted.as_deref().or(to);
        let expected = part(&self.truth, from, end).count();
        let empty = to.is_some_and(|to| to <= from);
        assert_eq!(counted, if empty { 0 } else { expected });
        if let Some(at) = &mounted {
            assert!(matches!(
                self.x.get(at, |_| ()),
                Lookup::AskY(_) | Lookup::Found(()) | Lookup::Deleted
            ));
        }
    }

    /// What a chunk that covers `[from, to)` says, with Y asked in its mounted ranges.
    fn merge(&self, chunk: &Chunk, from: &[u8], to: Option<&[u8]>, order: Order) -> Map {
        let mut merged = Map::new();
        for (start, end) in &chunk.mounted {
            assert!(&start[..] >= from && end.as_ref().is_none_or(|end| end > start));
            for (key, value) in part(&self.y, start, end.as_deref()) {
                merged.insert(key.clone(), value.clone());
            }
        }
        let ascending = |a: &[u8], b: &[u8]| match order {
            Order::Ascending => a < b,
            Order::Descending => a > b,
        };
        let mounts = chunk.mounted.iter().map(|(start, _)| &start[..]);
        assert!(mounts.is_sorted_by(|a, b| ascending(a, b)));
        let keys = chunk.entries.iter().map(|e| &e.key[..]);
        assert!(keys.is_sorted_by(|a, b| ascending(a, b)));
        for entry in &chunk.entries {
            assert!(&entry.key[..] >= from && to.is_none_or(|to| &entry.key[..] < to));
            match &entry.value {
                Some(value) => merged.insert(entry.key.to_vec(), value.to_vec()),
                None => merged.remove(&entry.key[..]),
            };
        }
        merged
    }

    /// Everything that can be checked at rest.
    pub(super) fn check_all(&self) {
        if let Err(what) = self.x.verify(true) {
            panic!("verify: {what}");
        }
        let stats = self.x.stats();
        let (mut keys, mut dirty) = (0, 0);
        let mut last: Option<Vec<u8>> = None;
        let flow = self.x.leaves(&[], None, &mut |leaf| {
            assert!(
                last.as_ref().is_none_or(|last| &last[..] < leaf.start),
                "leaves ascend"
            );
            last = Some(leaf.start.to_vec());
            keys += leaf.keys;
            dirty += leaf.dirty;
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        assert_eq!((keys, dirty), (stats.keys, stats.dirty));
    }
}
