//! Writes and loads.
//!
//! Keeps: I8 (`commit` under the leaf's latch, when nothing can fail any more), I3 (a load looks at mark and
//! stamp under the latch), I2 (a write makes the entry dirty, whatever is in flight).
//!
//! Threads: any; writers of one key are serialized by the caller. A latch is held for one edit, and while
//! `commit` runs.

#![forbid(unsafe_code)]

use super::{
    Art,
    leaf::LeafLatched,
    reshape::Need,
    search::{Place, Spot},
};
use crate::{
    mem::Guard,
    x::{
        Load, Put, Stamp,
        bounds::Probe,
        counts::Delta,
        draft::Draft,
        form::{IN_Y, NewEntry},
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

impl Art {
    /// See [`IndexX::put`](crate::x::IndexX::put).
    pub(super) fn write<E>(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<Put, E> {
        let guard = self.memory.enter();
        let mut draft = Draft::new(&self.memory, value.unwrap_or_default());
        let mut patience = Patience::default();
        let mut commit = Some(commit);
        loop {
            let place = self.descend(&guard, Probe::at(key));
            if value.is_none() && place.empty() == Some(None) {
                return Ok(Put::Nothing);
            }
            let suffix = &key[place.depth..];
            if let Some(leaf) = self.leaf_at(&guard, &place, draft.need(suffix)) {
                let stable = leaf.stable();
                let found = stable.find(suffix).map(|at| (at, stable.slot(at).flags()));
                let Some(edit) = plan_put(found, leaf.mount().is_some(), value.is_some()) else {
                    return Ok(Put::Nothing);
                };
                let attempt = self.apply(&guard, &place, leaf, edit, suffix, &mut draft, || {
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

    /// See [`IndexX::load`](crate::x::IndexX::load).
    pub(super) fn install(&self, key: &[u8], value: &[u8], stamp: Stamp) -> Load {
        let guard = self.memory.enter();
        let mut draft = Draft::new(&self.memory, value);
        let mut patience = Patience::default();
        loop {
            let place = self.descend(&guard, Probe::at(key));
            let suffix = &key[place.depth..];
            if place.empty().is_some_and(|mount| mount != Some(stamp)) {
                return Load::Raced;
            }
            if let Some(leaf) = self.leaf_at(&guard, &place, draft.need(suffix)) {
                // I3: nothing was removed from the range since before Y was read, and nothing newer is here.
                let (Some(seen), Err(at)) = (leaf.mount(), leaf.stable().find(suffix)) else {
                    return Load::Raced;
                };
                if seen != stamp {
                    return Load::Raced;
                }
                let edit = Edit::Insert { at, flags: IN_Y };
                let attempt = self.apply(&guard, &place, leaf, edit, suffix, &mut draft, || {
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
        need: usize,
    ) -> Option<LeafLatched<'g>> {
        match place.spot {
            Spot::Leaf(leaf) => leaf.try_latch(),
            Spot::Empty(mount) => self.fill(
                guard,
                place,
                mount,
                Need {
                    slots: 1,
                    heap: need,
                },
            ),
            Spot::Gap { node, matched, .. } => {
                self.split_prefix(guard, place, node, matched);
                None
            }
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
        suffix: &[u8],
        draft: &mut Draft<'_>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<Attempt, E> {
        let (entry, enough, slots) = match edit {
            Edit::Insert { flags, .. } => {
                let entry = draft.entry(suffix, flags);
                (Some(entry), leaf.has_room(entry.size()), 1)
            }
            Edit::Replace { at, flags } => {
                let entry = draft.entry(suffix, flags);
                (Some(entry), leaf.has_room_instead(at, entry.size()), 0)
            }
            Edit::Remove { .. } => (None, true, 0),
        };
        if !enough {
            let heap = entry.map_or(0, |e| e.size());
            match self.make_room(guard, place, leaf, Need { slots, heap }) {
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
        delta.drop_entry(before.slot.flags());
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
