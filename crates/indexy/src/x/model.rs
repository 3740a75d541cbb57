//! The plainest Index X: ordered maps behind one lock. The reference that tests compare others
//! with.

#![forbid(unsafe_code)]

use super::*;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone)]
struct Entry {
    value: Option<Vec<u8>>,
    operand: bool,
    dirty: bool,
    in_y: bool,
    run: RunId,
}

struct State {
    entries: BTreeMap<Vec<u8>, Entry>,
    /// Ranges by their first key; the first is empty.
    ranges: BTreeMap<Vec<u8>, Option<Stamp>>,
    clock: Stamp,
    tracks_references: bool,
    /// Entries that were read; some keys have no entry any more.
    referenced: Mutex<BTreeSet<Vec<u8>>>,
}

pub(crate) struct ModelX(RwLock<State>);

impl ModelX {
    pub(crate) fn new(mounted: bool) -> Self {
        let ranges = BTreeMap::from([(vec![], mounted.then_some(0))]);
        Self(RwLock::new(State {
            entries: BTreeMap::new(),
            ranges,
            clock: 0,
            tracks_references: false,
            referenced: Mutex::default(),
        }))
    }

    /// A `get` that leaves no trace.
    fn look<R>(&self, key: &[u8], found: impl FnOnce(&[u8]) -> R) -> Lookup<R> {
        let s = self.0.read();
        match s.entries.get(key) {
            Some(Entry { operand: true, .. }) => Lookup::Operand,
            Some(Entry { value: Some(v), .. }) => Lookup::Found(found(v)),
            Some(_) => Lookup::Deleted,
            None => s.mount(key).map_or(Lookup::Absent, Lookup::AskY),
        }
    }
}

impl State {
    fn mount(&self, key: &[u8]) -> Option<Stamp> {
        *self
            .ranges
            .range::<[u8], _>((std::ops::Bound::Unbounded, std::ops::Bound::Included(key)))
            .next_back()
            .unwrap()
            .1
    }
    fn keys(&self, from: &[u8], to: Option<&[u8]>) -> Vec<Vec<u8>> {
        self.entries
            .range::<[u8], _>((std::ops::Bound::Included(from), std::ops::Bound::Unbounded))
            .map(|(k, _)| k.clone())
            .take_while(|k| to.is_none_or(|t| &k[..] < t))
            .collect()
    }
    fn split_at(&mut self, key: &[u8]) {
        let mount = self.mount(key);
        self.ranges.entry(key.to_vec()).or_insert(mount);
    }
    fn set_range(&mut self, from: &[u8], to: Option<&[u8]>, mount: Option<Stamp>) {
        self.split_at(from);
        if let Some(to) = to {
            self.split_at(to);
        }
        let starts: Vec<_> = self
            .ranges
            .range::<[u8], _>((std::ops::Bound::Included(from), std::ops::Bound::Unbounded))
            .map(|(k, _)| k.clone())
            .take_while(|k| to.is_none_or(|t| &k[..] < t))
            .collect();
        for start in starts {
            self.ranges.insert(start, mount);
        }
    }
    fn tick(&mut self) -> Stamp {
        self.clock += 1;
        self.clock
    }
    fn reference(&self, key: &[u8]) {
        if self.tracks_references {
            self.referenced.lock().insert(key.to_vec());
        }
    }
    /// Forgets that `key` was read; false if it was not.
    fn unreference(&mut self, key: &[u8]) -> bool {
        self.referenced.get_mut().remove(key)
    }
}

/// What a key was.
struct Old(Lookup<Vec<u8>>);

impl Before for Old {
    fn look(&self, found: &mut dyn FnMut(&[u8])) -> Lookup<()> {
        match &self.0 {
            Lookup::Found(value) => {
                found(value);
                Lookup::Found(())
            }
            Lookup::Deleted => Lookup::Deleted,
            Lookup::Absent => Lookup::Absent,
            Lookup::AskY(stamp) => Lookup::AskY(*stamp),
            Lookup::Operand => Lookup::Operand,
        }
    }
}

impl IndexX for ModelX {
    fn get<R>(&self, key: &[u8], found: impl FnOnce(&[u8]) -> R) -> Lookup<R> {
        let answer = self.look(key, found);
        if matches!(answer, Lookup::Found(_)) {
            self.0.read().reference(key);
        }
        answer
    }

    fn put_over<E>(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        commit: impl FnOnce(&dyn Before) -> Result<(), E>,
    ) -> Result<Put, E> {
        let before = Old(self.look(key, <[u8]>::to_vec));
        let mut s = self.0.write();
        let mounted = s.mount(key).is_some();
        let old = s.entries.get(key).cloned();
        if value.is_none() {
            match &old {
                None if !mounted => return Ok(Put::Nothing),
                Some(Entry { value: None, .. }) => return Ok(Put::Nothing),
                Some(e) if !e.in_y && !mounted => {
                    commit(&before)?;
                    s.entries.remove(key);
                    return Ok(Put::Applied);
                }
                _ => {}
            }
        }
        commit(&before)?;
        if old.is_none() {
            s.unreference(key);
        }
        let (in_y, run) = old.map_or((mounted, 0), |e| (e.in_y | e.operand, e.run));
        s.entries.insert(
            key.to_vec(),
            Entry {
                value: value.map(<[u8]>::to_vec),
                operand: false,
                dirty: true,
                in_y,
                run,
            },
        );
        Ok(Put::Applied)
    }

    fn load(&self, key: &[u8], value: &[u8], stamp: Stamp) -> Load {
        let mut s = self.0.write();
        if s.mount(key) != Some(stamp) || s.entries.contains_key(key) {
            return Load::Raced;
        }
        s.unreference(key);
        s.entries.insert(
            key.to_vec(),
            Entry {
                value: Some(value.to_vec()),
                operand: false,
                dirty: false,
                in_y: true,
                run: 0,
            },
        );
        Load::Loaded
    }

    fn put_operand<E>(
        &self,
        key: &[u8],
        operand: &[u8],
        over: Option<&[u8]>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut s = self.0.write();
        let found = s.entries.get(key);
        let expected = match over {
            None => found.is_none() && s.mount(key).is_some(),
            Some(over) => found.is_some_and(|e| e.operand && e.value.as_deref() == Some(over)),
        };
        if !expected {
            return Ok(false);
        }
        commit()?;
        let run = found.map_or(0, |e| e.run);
        s.entries.insert(
            key.to_vec(),
            Entry {
                value: Some(operand.to_vec()),
                operand: true,
                dirty: true,
                in_y: false,
                run,
            },
        );
        Ok(true)
    }

    fn operand(&self, key: &[u8]) -> Option<(Value, Stamp)> {
        let s = self.0.read();
        let entry = s.entries.get(key).filter(|e| e.operand)?;
        Some((Value::new(entry.value.as_deref()?), s.mount(key)?))
    }

    fn resolve<E>(
        &self,
        key: &[u8],
        operand: &[u8],
        stamp: Stamp,
        value: Option<&[u8]>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut s = self.0.write();
        let found = s.entries.get(key).filter(|e| e.operand);
        let same = found.is_some_and(|e| e.value.as_deref() == Some(operand));
        if !same || s.mount(key) != Some(stamp) {
            return Ok(false);
        }
        commit()?;
        let Some(value) = value else {
            s.entries.remove(key);
            return Ok(true);
        };
        let entry = s.entries.get_mut(key).unwrap();
        entry.value = Some(value.to_vec());
        (entry.operand, entry.dirty, entry.in_y) = (false, true, true);
        Ok(true)
    }

    fn operands(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        enough: usize,
        out: &mut Vec<Waiting>,
    ) -> Option<Vec<u8>> {
        let most = out.len().saturating_add(enough);
        let s = self.0.read();
        for k in s.keys(from, to) {
            if out.len() >= most {
                return Some(k);
            }
            let e = &s.entries[&k];
            if let (true, Some(operand)) = (e.operand, &e.value) {
                out.push(Waiting {
                    key: Key::new(&k),
                    operand: Value::new(operand),
                    stamp: s.mount(&k).unwrap(),
                });
            }
        }
        None
    }

    fn evict(&self, key: &[u8]) {
        let mut s = self.0.write();
        s.entries.remove(key);
        let tick = s.tick();
        s.set_range(key, Some(&crate::key::successor(key)), Some(tick));
    }

    fn scan(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        order: Order,
        limits: ScanLimits,
        out: &mut Chunk,
    ) {
        let s = self.0.read();
        out.entries.clear();
        out.mounted.clear();
        (out.resume, out.passed) = (None, 0);
        let mut keys = s.keys(from, to);
        if order == Order::Descending {
            keys.reverse();
        }
        let mut bytes = 0;
        for k in &keys {
            if bytes >= limits.bytes || out.entries.len() >= limits.entries {
                out.resume = Some(match order {
                    Order::Ascending => k.clone(),
                    Order::Descending => out.entries.last().unwrap().key.to_vec(),
                });
                break;
            }
            let e = &s.entries[k];
            if e.value.is_none() && s.mount(k).is_none() {
                continue;
            }
            bytes += k.len() + e.value.as_ref().map_or(0, Vec::len);
            out.entries.push(ChunkEntry {
                key: Key::new(k),
                value: e.value.as_deref().map(Value::new).filter(|_| !e.operand),
                operand: e.operand,
                dirty: e.dirty,
            });
        }
        let (lo, hi) = match (order, &out.resume) {
            (Order::Ascending, Some(r)) => (from.to_vec(), Some(r.clone())),
            (Order::Descending, Some(r)) => (r.clone(), to.map(<[u8]>::to_vec)),
            (_, None) => (from.to_vec(), to.map(<[u8]>::to_vec)),
        };
        let starts: Vec<_> = s.ranges.iter().collect();
        for (i, (start, mount)) in starts.iter().enumerate() {
            let end = starts.get(i + 1).map(|(k, _)| (*k).clone());
            let a = (*start).clone().max(lo.clone());
            let b = match (end, hi.clone()) {
                (Some(x), Some(y)) => Some(x.min(y)),
                (x, y) => x.or(y),
            };
            if mount.is_some() && b.as_ref().is_none_or(|b| a < *b) {
                match out.mounted.last_mut() {
                    Some(last) if last.1.as_ref() == Some(&a) => last.1 = b,
                    _ => out.mounted.push((a, b)),
                }
            }
        }
        if order == Order::Descending {
            out.mounted.reverse();
        }
    }

    fn count(&self, from: &[u8], to: Option<&[u8]>) -> (usize, Option<Vec<u8>>) {
        let mut chunk = Chunk::default();
        let unlimited = ScanLimits {
            bytes: usize::MAX,
            entries: usize::MAX,
            leaves: usize::MAX,
            leaves_if_mounted: usize::MAX,
        };
        self.scan(from, to, Order::Ascending, unlimited, &mut chunk);
        let mounted = chunk.mounted.into_iter().next().map(|(start, _)| start);
        let before = |key: &[u8]| mounted.as_ref().is_none_or(|start| key < &start[..]);
        let live = chunk.entries.iter().filter(|e| before(&e.key)).count();
        (live, mounted)
    }

    fn clean(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        run: RunId,
        sink: &mut crate::x::CleanSink<'_>,
    ) -> ControlFlow<StopWalk> {
        let keys = self.0.read().keys(from, to);
        for k in keys {
            let mut s = self.0.write();
            let Some(e) = s.entries.get_mut(&k) else {
                continue;
            };
            if !e.dirty || e.operand {
                continue;
            }
            let in_y = e.in_y;
            (e.dirty, e.in_y, e.run) = (false, true, run);
            let value = e.value.clone();
            drop(s);
            sink(&k, value.as_deref(), in_y)?;
        }
        ControlFlow::Continue(())
    }

    fn redirty(&self, from: &[u8], to: Option<&[u8]>, run: RunId) {
        let mut s = self.0.write();
        for k in s.keys(from, to) {
            let e = s.entries.get_mut(&k).unwrap();
            e.dirty |= e.run == run;
        }
    }

    fn settle(&self, from: &[u8], to: Option<&[u8]>, acked: RunId) {
        let mut s = self.0.write();
        for k in s.keys(from, to) {
            let e = &s.entries[&k];
            if e.value.is_none() && !e.dirty && e.run <= acked {
                s.entries.remove(&k);
                let tick = s.tick();
                if s.mount(&k).is_some() {
                    s.set_range(&k, Some(&crate::key::successor(&k)), Some(tick));
                }
            }
        }
    }

    fn cut(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        acked: RunId,
        spare_referenced: bool,
        enough: usize,
    ) -> Cut {
        let mut s = self.0.write();
        let mut cut = Cut::default();
        let mut end = to.map(<[u8]>::to_vec);
        for k in s.keys(from, to) {
            if cut.freed_bytes >= enough {
                end = Some(k);
                break;
            }
            let e = &s.entries[&k];
            if e.dirty || e.run > acked {
                cut.unclean += 1;
            } else if spare_referenced && s.unreference(&k) {
                cut.spared += 1;
            } else {
                let e = &s.entries[&k];
                cut.freed_bytes += k.len() + e.value.as_ref().map_or(0, Vec::len) + 64;
                cut.dropped += 1;
                s.entries.remove(&k);
            }
        }
        let tick = s.tick();
        if cut.dropped > 0 {
            s.set_range(from, end.as_deref(), Some(tick));
        }
        cut
    }

    fn clear(&self) {
        let mut s = self.0.write();
        s.entries.clear();
        s.ranges = [(Vec::new(), None)].into();
    }

    fn take_apart(&self, _enough_bytes: usize) -> usize {
        0
    }

    fn mount(&self, from: &[u8], to: Option<&[u8]>) {
        let mut s = self.0.write();
        let tick = s.tick();
        s.set_range(from, to, Some(tick));
    }

    fn restamp(&self, from: &[u8], to: Option<&[u8]>) {
        let mut s = self.0.write();
        s.split_at(from);
        if let Some(to) = to {
            s.split_at(to);
        }
        let tick = s.tick();
        let within = |start: &[u8]| start >= from && to.is_none_or(|to| start < to);
        let mounts = s.ranges.iter_mut().filter(|(start, _)| within(start));
        for (_, mount) in mounts.filter(|(_, mount)| mount.is_some()) {
            *mount = Some(tick);
        }
    }

    fn clear_mounts(&self, from: &[u8], to: Option<&[u8]>) {
        let mut s = self.0.write();
        s.set_range(from, to, None);
        let tick = s.tick();
        for k in s.keys(from, to) {
            if s.entries[&k].operand {
                s.set_range(&k, Some(&crate::key::successor(&k)), Some(tick));
            }
        }
    }

    fn leaves(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut dyn FnMut(LeafInfo<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk> {
        let leaves: Vec<_> = {
            let s = self.0.read();
            s.keys(from, to)
                .into_iter()
                .map(|k| {
                    let e = &s.entries[&k];
                    let bytes = k.len() + e.value.as_ref().map_or(0, Vec::len) + 64;
                    (usize::from(e.dirty), bytes, k)
                })
                .collect()
        };
        for (dirty, bytes, start) in &leaves {
            visit(LeafInfo {
                start,
                keys: 1,
                dirty: *dirty,
                bytes: *bytes,
            })?;
        }
        ControlFlow::Continue(())
    }

    fn keys(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        longest: usize,
        visit: &mut dyn FnMut(KeySeen<'_>) -> ControlFlow<StopWalk>,
    ) -> ControlFlow<StopWalk> {
        let live: Vec<_> = {
            let s = self.0.read();
            let keys = s.keys(from, to).into_iter();
            let keys = keys.filter(|k| k.len() <= longest && !s.entries[k].operand);
            let referenced = s.referenced.lock();
            let seen = |k: Vec<u8>| {
                let value_bytes = s.entries[&k].value.as_ref()?.len();
                Some((value_bytes, referenced.contains(&k), k))
            };
            keys.filter_map(seen).collect()
        };
        for (value_bytes, referenced, key) in &live {
            visit(KeySeen {
                key,
                value_bytes: *value_bytes,
                referenced: *referenced,
            })?;
        }
        ControlFlow::Continue(())
    }

    fn track_references(&self, on: bool) {
        self.0.write().tracks_references = on;
    }

    fn stats(&self) -> XStats {
        let s = self.0.read();
        XStats {
            keys: s.entries.len(),
            tombstones: s
                .entries
                .values()
                .filter(|e| e.value.is_none() || e.operand)
                .count(),
            operands: s.entries.values().filter(|e| e.operand).count(),
            dirty: s.entries.values().filter(|e| e.dirty).count(),
            bytes: s
                .entries
                .iter()
                .map(|(k, e)| k.len() + e.value.as_ref().map_or(0, Vec::len) + 64)
                .sum(),
            large_bytes: 0,
            large_operand_bytes: 0,
            mounts: s.ranges.values().filter(|m| m.is_some()).count(),
        }
    }

    fn verify(&self, _: bool) -> Result<(), String> {
        Ok(())
    }
}
