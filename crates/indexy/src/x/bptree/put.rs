//! Writes and loads.
//!
//! Keeps: I8 (`commit` under the leaf's latch, when nothing can fail any more), I3 (a load looks at mark and
//! stamp under the latch), I2 (a write makes the entry dirty, whatever is in flight).
//!
//! Threads: any; writers of one key are serialized by the caller. A latch is held for one edit, and while
//! `commit` runs.

#![forbid(unsafe_code)]

use super::{
    BPlus,
    leaf::LeafLatched,
    path::{Place, Spot},
};
use crate::{
    mem::Guard,
    x::{
        Load, Put, Stamp,
        bounds::Probe,
        counts::Delta,
        draft::Draft,
        form::{Form, IN_Y, NewEntry},
        large::LargeRef,
        patience::Patience,
        plan::{Edit, plan_put},
    },
};

/// What an attempt to write came to.
enum Attempt {
    /// Done; whether the leaf became smaller.
    Done(bool),
    /// Go down again.
    Again,
}

impl BPlus {
    /// See [`IndexX::put`](crate::x::IndexX::put).
    pub(super) fn write<E>(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<Put, E> {
        let guard = self.memory.enter();
        let mut commit = Some(commit);
        if let Some(value) = value
            && self.put_in_place(&guard, key, value, &mut commit)?
        {
            return Ok(Put::Applied);
        }
        let mut draft = Draft::new(&self.memory, value.unwrap_or_default());
        let mut patience = Patience::default();
        loop {
            let place = self.descend(&guard, Probe::at(key));
            if value.is_none() && place.empty() == Some(None) {
                return Ok(Put::Nothing);
            }
            if let Some(leaf) = self.leaf_at(&guard, &place, key, &mut draft) {
                let stable = leaf.stable();
                let suffix = &key[stable.meta().depth..];
                let found = stable.find(suffix).map(|at| (at, stable.flags(at)));
                let Some(edit) = plan_put(found, leaf.mount().is_some(), value.is_some()) else {
                    return Ok(Put::Nothing);
                };
                let attempt = self.apply(&guard, &place, leaf, edit, key, &mut draft, || {
                    commit.take().map_or(Ok(()), |commit| commit())
                })?;
                if let Attempt::Done(shrunk) = attempt {
                    if shrunk {
                        self.merge(&guard, Probe::at(key));
                    }
                    return Ok(Put::Applied);
                }
            }
            patience.wait();
        }
    }

    /// The short way of a small value into a leaf that has room for it: nothing but the leaf is looked at. False when the
    /// long way has to be taken; then nothing was done.
    #[inline]
    fn put_in_place<E>(
        &self,
        guard: &Guard<'_>,
        key: &[u8],
        value: &[u8],
        commit: &mut Option<impl FnOnce() -> Result<(), E>>,
    ) -> Result<bool, E> {
        let Some(seen) = self.leaf_of(guard, key) else {
            return Ok(false);
        };
        seen.prefetch_to_write();
        let suffix = key.get(seen.leaf().depth()..).unwrap_or_default();
        if Form::of(suffix.len(), value.len()) != Form::Inline {
            return Ok(false);
        }
        let Some(leaf) = seen.try_latch() else {
            return Ok(false);
        };
        let stable = leaf.stable();
        let found = stable.find(suffix).map(|at| (at, stable.flags(at)));
        let Some(edit) = plan_put(found, leaf.mount().is_some(), true) else {
            return Ok(false);
        };
        let (Edit::Insert { flags, .. } | Edit::Replace { flags, .. }) = edit else {
            return Ok(false);
        };
        let entry = NewEntry {
            suffix,
            value,
            large: None,
            flags,
        };
        let enough = match edit {
            Edit::Replace { at, .. } => leaf.has_room_instead(at, &entry),
            _ => leaf.has_room(&entry),
        };
        let Some(commit) = commit.take_if(|_| enough) else {
            return Ok(false);
        };
        // I8: from here on nothing fails.
        commit()?;
        let (delta, old) = edit_leaf(&leaf, edit, Some(&entry));
        self.counts.add(delta);
        if let Some(old) = old {
            old.retire(&self.memory);
        }
        Ok(true)
    }

    /// See [`IndexX::load`](crate::x::IndexX::load).
    pub(super) fn install(&self, key: &[u8], value: &[u8], stamp: Stamp) -> Load {
        let guard = self.memory.enter();
        let mut draft = Draft::new(&self.memory, value);
        let mut patience = Patience::default();
        loop {
            let place = self.descend(&guard, Probe::at(key));
            if place.empty().is_some_and(|mount| mount != Some(stamp)) {
                return Load::Raced;
            }
            if let Some(leaf) = self.leaf_at(&guard, &place, key, &mut draft) {
                // I3: nothing was removed from the range since before Y was read, and nothing newer is here.
                let suffix = &key[leaf.leaf().depth()..];
                let (Some(seen), Err(at)) = (leaf.mount(), leaf.stable().find(suffix)) else {
                    return Load::Raced;
                };
                if seen != stamp {
                    return Load::Raced;
                }
                let edit = Edit::Insert { at, flags: IN_Y };
                let attempt = self.apply(&guard, &place, leaf, edit, key, &mut draft, || {
                    Ok::<(), std::convert::Infallible>(())
                });
                if let Ok(Attempt::Done(_)) = attempt {
                    return Load::Loaded;
                }
            }
            patience.wait();
        }
    }

    /// A latched leaf at `place`, made if there is none; `None` when the caller has to go down again.
    fn leaf_at<'g>(
        &self,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        key: &[u8],
        draft: &mut Draft<'_>,
    ) -> Option<LeafLatched<'g>> {
        match place.spot {
            Spot::Leaf(leaf) => leaf.try_latch(),
            Spot::Empty(mount) => self.fill(guard, place, key, mount, draft),
            Spot::Inner(_) => None,
        }
    }

    /// Makes room, commits and edits.
    #[allow(clippy::too_many_arguments)]
    fn apply<'g, E>(
        &self,
        guard: &'g Guard<'_>,
        place: &Place<'g>,
        mut leaf: LeafLatched<'g>,
        edit: Edit,
        key: &[u8],
        draft: &mut Draft<'_>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<Attempt, E> {
        let suffix = &key[leaf.leaf().depth()..];
        let entry = match edit {
            Edit::Insert { flags, .. } | Edit::Replace { flags, .. } => {
                Some(draft.entry(suffix, flags))
            }
            Edit::Remove { .. } => None,
        };
        let enough = match (edit, &entry) {
            (Edit::Insert { .. }, Some(entry)) => leaf.has_room(entry),
            (Edit::Replace { at, .. }, Some(entry)) => leaf.has_room_instead(at, entry),
            _ => true,
        };
        if let (false, Some(entry)) = (enough, &entry) {
            match self.make_room(guard, place, key, leaf, edit, entry) {
                Some(roomy) => leaf = roomy,
                None => return Ok(Attempt::Again),
            }
        }
        // I8: from here on nothing fails.
        commit()?;
        let (mut delta, old) = edit_leaf(&leaf, edit, entry.as_ref());
        delta.bytes += draft.publish();
        self.counts.add(delta);
        if let Some(old) = old {
            old.retire(&self.memory);
        }
        if let Edit::Remove { .. } = edit {
            return Ok(Attempt::Done(self.tidy(guard, place, leaf)));
        }
        Ok(Attempt::Done(false))
    }
}

/// Does `edit`; returns by how much counts changed (the new large block not among them) and the large block
/// that is out of use now.
fn edit_leaf<'g>(
    leaf: &LeafLatched<'g>,
    edit: Edit,
    entry: Option<&NewEntry<'_>>,
) -> (Delta, Option<LargeRef<'g>>) {
    let mut delta = Delta::default();
    let stable = leaf.stable();
    let mut old = None;
    if let Edit::Replace { at, .. } | Edit::Remove { at } = edit {
        let before = stable.entry(at);
        delta.drop_entry(stable.flags(at));
        old = stable.large(&before);
        delta.bytes -= old.map_or(0, |large| large.arena_bytes() as isize);
    }
    match (edit, entry) {
        (Edit::Insert { at, flags }, Some(entry)) => {
            leaf.insert(at, entry);
            delta.add_entry(flags);
        }
        (Edit::Replace { at, flags }, Some(entry)) => {
            leaf.replace(at, entry);
            delta.add_entry(flags);
        }
        _ => {
            if let Edit::Remove { at } = edit {
                leaf.remove(at);
            }
        }
    }
    (delta, old)
}
