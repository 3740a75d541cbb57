//! Operands: entries that wait to be merged with what Y has.
//!
//! Keeps: I3 (an operand becomes a value, or goes, only if its range has still the stamp that it
//! had when Y was read, so that Y had one value all the while), I4 (an operand is dirty: no cut
//! takes it), I8 (`commit` under the leaf's latch).
//!
//! Threads: any. [`Tree::put_waiting`] is called by the writer of the key alone,
//! [`Tree::settle_waiting`] by anybody: what it found is compared under the latch.

#![forbid(unsafe_code)]

use super::{
    put::{Attempt, Target},
    step::Step,
};
use crate::{
    key::{Key, Value},
    x::{
        Stamp, Waiting,
        backoff::Backoff,
        bounds::{Probe, first},
        edit::Edit,
        entry::{DIRTY, IN_Y, TOMBSTONE, is_operand},
        leaf::{LeafBuffer, LeafLatched, LeafSeen, StableLeaf, mask, ones},
        pending::PendingValue,
        tree::{Kind, Spot, Tree},
    },
};

/// What a write expects to find.
enum Expected<'a> {
    /// No entry, in a mounted range.
    Nothing,
    /// This operand.
    Operand(&'a [u8]),
    /// This operand, in a range with this stamp.
    Unmoved(&'a [u8], Stamp),
}

impl Expected<'_> {
    /// The index of the entry of `suffix`, or the one where it belongs, if all is as expected.
    fn find(&self, leaf: &LeafLatched<'_>, suffix: &[u8]) -> Option<usize> {
        let stable = leaf.stable();
        let mount = stable.mount()?;
        match (self, stable.find(suffix)) {
            (Self::Nothing, Err(at)) => Some(at),
            (Self::Operand(operand), Ok(at)) => is(stable, at, operand).then_some(at),
            (Self::Unmoved(operand, stamp), Ok(at)) => {
                (mount == *stamp && is(stable, at, operand)).then_some(at)
            }
            _ => None,
        }
    }
}

/// Entry `at` is the operand `operand`.
fn is(leaf: StableLeaf<'_>, at: usize, operand: &[u8]) -> bool {
    let entry = leaf.entry(at);
    if !is_operand(leaf.flags(at)) || entry.value_len != operand.len() {
        return false;
    }
    let mut bytes = Vec::with_capacity(operand.len());
    leaf.push_value(&entry, &mut bytes);
    bytes == operand
}

impl<S: Kind> Tree<S> {
    /// See [`IndexX::put_operand`](crate::x::IndexX::put_operand).
    pub(super) fn put_waiting<E>(
        &self,
        key: &[u8],
        operand: &[u8],
        over: Option<&[u8]>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        let flags = DIRTY | TOMBSTONE;
        match over {
            None => self.write_if(key, operand, flags, &Expected::Nothing, commit),
            Some(over) => self.write_if(key, operand, flags, &Expected::Operand(over), commit),
        }
    }

    /// See [`IndexX::resolve`](crate::x::IndexX::resolve).
    pub(super) fn settle_waiting<E>(
        &self,
        key: &[u8],
        operand: &[u8],
        stamp: Stamp,
        value: Option<&[u8]>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        let expected = Expected::Unmoved(operand, stamp);
        match value {
            Some(value) => self.write_if(key, value, DIRTY | IN_Y, &expected, commit),
            None => self.drop_waiting(key, &expected, commit),
        }
    }

    /// Writes an entry with `flags`, if what it finds is as expected.
    fn write_if<E>(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expected: &Expected<'_>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        let guard = self.memory.enter();
        let mut commit = Some(commit);
        let mut pending = PendingValue::new(&self.memory, value);
        let mut backoff = Backoff::default();
        loop {
            let target = Target {
                guard: &guard,
                place: &self.descend(&guard, Probe::at(key)),
                key,
            };
            if let Some(mount) = target.empty()
                && (mount.is_none() || !matches!(expected, Expected::Nothing))
            {
                return Ok(false);
            }
            if let Some(leaf) = self.leaf_at(&target, &mut pending) {
                let Some(at) = expected.find(&leaf, target.suffix(&leaf)) else {
                    return Ok(false);
                };
                let edit = match expected {
                    Expected::Nothing => Edit::Insert { at, flags },
                    Expected::Operand(_) | Expected::Unmoved(..) => Edit::Replace { at, flags },
                };
                let attempt = self.apply(&target, leaf, edit, &mut pending, |_| {
                    commit.take().map_or(Ok(()), |commit| commit())
                })?;
                if let Attempt::Done(shrunk) = attempt {
                    if shrunk {
                        S::merge(self, &guard, Probe::at(key));
                    }
                    return Ok(true);
                }
            }
            backoff.wait();
        }
    }

    /// Drops the operand of `key`, if it is as expected.
    fn drop_waiting<E>(
        &self,
        key: &[u8],
        expected: &Expected<'_>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut commit = Some(commit);
        let (_, done) = self.step(key, |step| match step.spot()? {
            Spot::Empty(_) => Some(Ok(None)),
            Spot::Leaf(leaf) => {
                let leaf = leaf.try_latch()?;
                let Some(at) = expected.find(&leaf, &key[leaf.leaf().depth()..]) else {
                    return Some(Ok(None));
                };
                if let Err(error) = commit.take().map_or(Ok(()), |commit| commit()) {
                    return Some(Err(error));
                }
                // I3: it keeps its stamp. The operand made no difference, so that the key is again
                // what Y has said since the stamp; what else was read since then is still true.
                self.drop_entries(&leaf, 1 << at);
                Some(Ok(Some(S::tidy(self, step.guard, &step.place, leaf))))
            }
        });
        let done = done?;
        if done == Some(true) {
            S::merge(self, &self.memory.enter(), Probe::at(key));
        }
        Ok(done.is_some())
    }

    /// See [`IndexX::operand`](crate::x::IndexX::operand).
    pub(super) fn waiting_at(&self, key: &[u8]) -> Option<(Value, Stamp)> {
        let mut buffer = LeafBuffer::new();
        let (_, found) = self.step(key, |step| {
            let Spot::Leaf(leaf) = step.spot()? else {
                return Some(None);
            };
            let copy = leaf.copy(&mut buffer)?;
            let found = copy.find(&key[copy.raw().depth()..]).ok();
            let Some((at, stamp)) = found.zip(copy.mount()) else {
                return Some(None);
            };
            Some(is_operand(copy.flags(at)).then(|| (value(copy, at), stamp)))
        });
        found
    }

    /// See [`IndexX::operands`](crate::x::IndexX::operands).
    pub(super) fn collect_waiting(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        enough: usize,
        out: &mut Vec<Waiting>,
    ) -> Option<Vec<u8>> {
        let most = out.len().saturating_add(enough);
        let mut buffer = LeafBuffer::new();
        let mut at = first(from, to);
        while let Some(key) = at {
            if out.len() >= most {
                return Some(key);
            }
            let (bounds, ()) = self.step(&key, |step| match step.spot()? {
                Spot::Leaf(leaf) => note(step, leaf, to, &mut buffer, out),
                Spot::Empty(_) => Some(()),
            });
            at = bounds.next(to);
        }
        None
    }
}

/// Notes the operands of `leaf` up to `to`. `None`: it changed, and nothing was noted.
fn note<S: Kind>(
    step: &Step<'_, '_, S>,
    leaf: LeafSeen<'_>,
    to: Option<&[u8]>,
    buffer: &mut LeafBuffer,
    out: &mut Vec<Waiting>,
) -> Option<()> {
    if leaf.leaf().operands() == 0 {
        return leaf.unchanged().then_some(());
    }
    let copy = leaf.copy(buffer)?;
    let waiting = mask(step.entries(copy, to)) & copy.operands();
    let path = &step.key[..copy.raw().depth()];
    for i in ones(waiting) {
        let mut key = path.to_vec();
        copy.push_suffix(&copy.entry(i), &mut key);
        out.push(Waiting {
            key: Key::new(&key),
            operand: value(copy, i),
            stamp: copy.mount().unwrap_or_default(),
        });
    }
    Some(())
}

/// The bytes of entry `at`.
fn value(leaf: StableLeaf<'_>, at: usize) -> Value {
    let mut bytes = Vec::new();
    leaf.push_value(&leaf.entry(at), &mut bytes);
    Value::new(&bytes)
}
