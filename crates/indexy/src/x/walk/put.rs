//! Writes and loads.
//!
//! Keeps: I8 (`commit` under the leaf's latch, when nothing can fail any more), I3 (a load looks
//! at mark and stamp under the latch), I2 (a write makes the entry dirty, whatever is in flight).
//!
//! Threads: any; writers of one key are serialized by the caller. A latch is held for one edit,
//! and while `commit` runs.

#![forbid(unsafe_code)]

use crate::{
    mem::Guard,
    x::{
        Before, Load, Put, Stamp,
        backoff::Backoff,
        before::InLeaf,
        bounds::Probe,
        counters::Delta,
        edit::{Edit, edit_for_put},
        entry::{IN_Y, NewEntry, is_removal},
        large::LargeRef,
        leaf::LeafLatched,
        pending::PendingValue,
        tree::{Kind, Place, Spot, Structure, Tree},
    },
};

/// What an attempt to write came to.
pub(super) enum Attempt {
    /// Done; whether the leaf became smaller.
    Done(bool),
    /// Go down again.
    Again,
}

/// Where a descent to a key ended.
pub(super) struct Target<'a, 'g, S: Structure> {
    pub guard: &'g Guard<'g>,
    pub place: &'a S::Place<'g>,
    pub key: &'a [u8],
}

impl<S: Structure> Target<'_, '_, S> {
    /// The mount of the range, if it is an empty one.
    pub(super) fn empty(&self) -> Option<Option<Stamp>> {
        match self.place.spot() {
            Some(Spot::Empty(mount)) => Some(mount),
            _ => None,
        }
    }

    /// The suffix of the key in `leaf`, which is here.
    pub(super) fn suffix(&self, leaf: &LeafLatched<'_>) -> &[u8] {
        &self.key[leaf.leaf().depth()..]
    }
}

impl<S: Kind> Tree<S> {
    /// See [`IndexX::put_over`](crate::x::IndexX::put_over).
    pub(super) fn write<E>(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        commit: impl FnOnce(&dyn Before) -> Result<(), E>,
    ) -> Result<Put, E> {
        let guard = self.memory.enter();
        let mut commit = Some(commit);
        let mut pending = PendingValue::new(&self.memory, value.unwrap_or_default());
        if value.is_some() && self.put_in_place(&guard, key, &mut pending, &mut commit)? {
            return Ok(Put::Applied);
        }
        let mut backoff = Backoff::default();
        loop {
            let target = Target {
                guard: &guard,
                place: &self.descend(&guard, Probe::at(key)),
                key,
            };
            if value.is_none() && matches!(target.empty(), Some(None)) {
                return Ok(Put::Nothing);
            }
            if let Some(leaf) = self.leaf_at(&target, &mut pending) {
                let stable = leaf.stable();
                let found = stable
                    .find(target.suffix(&leaf))
                    .map(|at| (at, stable.flags(at)));
                let mounted = stable.mount().is_some();
                let Some(edit) = edit_for_put(found, mounted, value.is_some()) else {
                    return Ok(Put::Nothing);
                };
                let attempt = self.apply(&target, leaf, edit, &mut pending, |before| {
                    commit.take().map_or(Ok(()), |commit| commit(before))
                })?;
                if let Attempt::Done(shrunk) = attempt {
                    if shrunk {
                        S::merge(self, &guard, Probe::at(key));
                    }
                    return Ok(Put::Applied);
                }
            }
            backoff.wait();
        }
    }

    /// The short way of a value into a leaf that has room for it: nothing but the leaf is looked
    /// at. False when the long way has to be taken; then nothing was done.
    #[inline]
    fn put_in_place<E>(
        &self,
        guard: &Guard<'_>,
        key: &[u8],
        pending: &mut PendingValue<'_>,
        commit: &mut Option<impl FnOnce(&dyn Before) -> Result<(), E>>,
    ) -> Result<bool, E> {
        let Some(Spot::Leaf(seen)) = S::try_find(&self.root, guard, key) else {
            return Ok(false);
        };
        seen.leaf().prefetch_entries();
        let suffix = key.get(seen.leaf().depth()..).unwrap_or_default();
        // A large block is made before the latch is taken.
        let entry = pending.entry(suffix, 0);
        let Some(leaf) = seen.try_latch() else {
            return Ok(false);
        };
        let stable = leaf.stable();
        let found = stable.find(suffix).map(|at| (at, stable.flags(at)));
        let Some(edit) = edit_for_put(found, stable.mount().is_some(), true) else {
            return Ok(false);
        };
        let (Edit::Insert { flags, .. } | Edit::Replace { flags, .. }) = edit else {
            return Ok(false);
        };
        let entry = NewEntry { flags, ..entry };
        let enough = match edit {
            // A leaf that becomes loose is replaced: for that its place is needed.
            Edit::Replace { at, .. } => {
                leaf.has_room_instead(at, &entry) && !leaf.is_loose_with(at, &entry)
            }
            _ => leaf.has_room(&entry),
        };
        let Some(commit) = commit.take_if(|_| enough) else {
            return Ok(false);
        };
        // I8: from here on nothing fails.
        commit(&InLeaf { leaf: stable, edit })?;
        let (mut delta, old) = edit_leaf(&leaf, edit, Some(&entry));
        if let Edit::Insert { flags, .. } | Edit::Replace { flags, .. } = edit {
            delta.add_large(flags, pending.publish());
        }
        self.counters.add(delta);
        if let Some(old) = old {
            old.retire(&self.memory);
        }
        Ok(true)
    }

    /// See [`IndexX::load`](crate::x::IndexX::load).
    pub(super) fn install(&self, key: &[u8], value: &[u8], stamp: Stamp) -> Load {
        let guard = self.memory.enter();
        let mut pending = PendingValue::new(&self.memory, value);
        let mut backoff = Backoff::default();
        loop {
            let target = Target {
                guard: &guard,
                place: &self.descend(&guard, Probe::at(key)),
                key,
            };
            if target.empty().is_some_and(|mount| mount != Some(stamp)) {
                return Load::Raced;
            }
            if let Some(leaf) = self.leaf_at(&target, &mut pending) {
                // I3: nothing was removed from the range since before Y was read, and nothing
                // newer is here.
                let found = leaf.stable().find(target.suffix(&leaf));
                let (Some(seen), Err(at)) = (leaf.leaf().mount(), found) else {
                    return Load::Raced;
                };
                if seen != stamp {
                    return Load::Raced;
                }
                let edit = Edit::Insert { at, flags: IN_Y };
                let attempt = self.apply(&target, leaf, edit, &mut pending, |_| {
                    Ok::<(), std::convert::Infallible>(())
                });
                if let Ok(Attempt::Done(_)) = attempt {
                    return Load::Loaded;
                }
            }
            backoff.wait();
        }
    }

    /// A latched leaf at `target`, made if there is none; `None` when the caller has to go down
    /// again.
    pub(super) fn leaf_at<'g>(
        &self,
        target: &Target<'_, 'g, S>,
        pending: &mut PendingValue<'_>,
    ) -> Option<LeafLatched<'g>> {
        match target.place.spot()? {
            Spot::Leaf(leaf) => leaf.try_latch(),
            Spot::Empty(mount) => {
                S::fill(self, target.guard, target.place, target.key, mount, pending)
            }
        }
    }

    /// Makes room, commits and edits.
    pub(super) fn apply<'g, E>(
        &self,
        target: &Target<'_, 'g, S>,
        mut leaf: LeafLatched<'g>,
        edit: Edit,
        pending: &mut PendingValue<'_>,
        commit: impl FnOnce(&dyn Before) -> Result<(), E>,
    ) -> Result<Attempt, E> {
        let suffix = target.suffix(&leaf);
        let (entry, enough) = match edit {
            Edit::Insert { flags, .. } => {
                let entry = pending.entry(suffix, flags);
                (Some(entry), leaf.has_room(&entry))
            }
            Edit::Replace { at, flags } => {
                let entry = pending.entry(suffix, flags);
                let enough = leaf.has_room_instead(at, &entry);
                (Some(entry), enough)
            }
            Edit::Remove { .. } => (None, true),
        };
        if let (false, Some(entry)) = (enough, &entry) {
            let (guard, place) = (target.guard, target.place);
            match S::make_room(self, guard, place, target.key, leaf, edit, entry) {
                Some(roomy) => leaf = roomy,
                None => return Ok(Attempt::Again),
            }
        }
        // I8: from here on nothing fails.
        commit(&InLeaf {
            leaf: leaf.stable(),
            edit,
        })?;
        let (mut delta, old) = edit_leaf(&leaf, edit, entry.as_ref());
        if let Edit::Insert { flags, .. } | Edit::Replace { flags, .. } = edit {
            delta.add_large(flags, pending.publish());
        }
        self.counters.add(delta);
        if let Some(old) = old {
            old.retire(&self.memory);
        }
        let smaller = match edit {
            Edit::Insert { .. } => false,
            // Leaves of nothing but tombstones do without the room of values: they become few.
            Edit::Replace { flags, .. } => {
                is_removal(flags) && leaf.leaf().has_no_live() || leaf.is_loose()
            }
            Edit::Remove { .. } => true,
        };
        if smaller {
            let shrunk = S::tidy(self, target.guard, target.place, leaf);
            return Ok(Attempt::Done(shrunk));
        }
        Ok(Attempt::Done(false))
    }
}

/// Does `edit`; returns by how much counts changed (the new large block not among them) and the
/// large block that is out of use.
#[inline]
fn edit_leaf<'g>(
    leaf: &LeafLatched<'g>,
    edit: Edit,
    entry: Option<&NewEntry<'_>>,
) -> (Delta, Option<LargeRef<'g>>) {
    let mut delta = Delta::default();
    let stable = leaf.stable();
    let mut old = None;
    if let Edit::Replace { at, .. } | Edit::Remove { at } = edit {
        delta.drop_entry(stable.flags(at));
        if stable.raw().may_have_large() {
            old = stable.large(&stable.entry(at));
            if let Some(large) = old {
                delta.drop_large(stable.flags(at), large.arena_bytes());
            }
        }
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
