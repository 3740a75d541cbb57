//! Sweeps: what has expired goes from Index Y, so that its space comes back.
//!
//! A sweep reads what Y has, in order and piece by piece, and removes what is dead
//! (`expiry.rs`): a long stretch as a range, which an LSM tree gives back at once, single keys by
//! deletes. It knows nothing of how Y is made.
//!
//! When: what was written to Y since the last sweep is half of what Y holds, so that a sweep reads
//! at most twice what was written; or a quarter of what the last one left has expired meanwhile; or
//! when a tree was open for a while and none has told yet what Y has.
//! `Tree::compact` sweeps at once.
//!
//! Keeps:
//! - I1, I4: only Y changes, and only keys whose newest version there is dead. What X has, wins.
//! - I2: in the words of `expiry.rs`.
//! - I5: nothing was logged for it. What is removed was durable in the log before Y showed it.
//! - I7: what a piece remembers is bounded, and taken from the budget.
//! - I12: a marker of a key that goes stands for what no open snapshot sees.
//!
//! A crash may bring back what a sweep removed; it is expired then as before.
//!
//! Threads: one sweeps at a time (`Sweeps` is locked for a piece): the compactor, or a caller of
//! `compact`. A piece is read without the run lock. Then the lock is taken, and if Y has shown
//! something meanwhile the piece is read again. Not here: what expires (`db/`).

#![forbid(unsafe_code)]

use super::{expiry, sweep_schedule::Left, tree::Joined};
use crate::{
    error::{Error, Result},
    events,
    key::{Key, successor},
    mem::budget::Holder,
    versions::time::Millis,
    x::Order,
    y::{KeyRange, Maintained, RunEntry, RunSource},
};

/// A piece ends when so much of Y was read.
const PIECE_BYTES: usize = 8 << 20;
/// Or when so many bytes of dead keys are remembered, or this part of the budget.
const DEAD_BYTES: usize = 256 << 10;
const DEAD_DIVISOR: usize = 256;
/// A stretch of so many dead entries goes as a range.
const WORTH_A_RANGE: usize = 256;
/// Memory of a remembered key beside its bytes.
const KEY_OVERHEAD_BYTES: usize = 48;

/// Dead entries of Y that are neighbours there.
#[derive(Debug)]
struct Stretch {
    first: Key,
    last: Key,
    entries: usize,
    /// All of them, as long as they are to be deleted one by one.
    keys: Vec<Key>,
}

/// Whether maintenance may sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sweeping {
    IfDue,
    No,
}

/// What failed in a step of maintenance.
#[derive(Debug)]
pub(super) enum Failed {
    /// Y's own.
    Maintenance(Error),
    /// A sweep. What it writes has poisoned where it had to; a read that fails leaves nothing in
    /// doubt.
    Sweep(Error),
}

/// What a piece has read.
#[derive(Debug, Default)]
struct Found {
    stretches: Vec<Stretch>,
    /// Memory of the keys.
    bytes: usize,
    left: Left,
    /// Where the next piece begins; `None`: this was the last one.
    next: Option<Vec<u8>>,
}

impl Joined {
    /// A step of Y's maintenance, or if nothing is due there, of a sweep.
    pub(super) fn maintain(&self, sweeping: Sweeping) -> std::result::Result<Maintained, Failed> {
        match (self.y.maintain().map_err(Failed::Maintenance)?, sweeping) {
            (Maintained::Idle, Sweeping::IfDue) => self.sweep_if_due().map_err(Failed::Sweep),
            (step, _) => Ok(step),
        }
    }

    fn sweep_if_due(&self) -> Result<Maintained> {
        let Some(expiry) = &self.expiry else {
            return Ok(Maintained::Idle);
        };
        // A caller of `compact` is at it.
        let Some(mut sweeps) = expiry.sweeps.try_lock() else {
            return Ok(Maintained::Idle);
        };
        // By the horizon: as long as a snapshot is open, no sweep finds more than the last one.
        let horizon = self.shared.versions.horizon();
        if !expiry.is_due(&sweeps, horizon, self.y.disk_bytes()) {
            return Ok(Maintained::Idle);
        }
        let from = expiry.go_on(&mut sweeps);
        let found = match self.sweep_piece(&from, None) {
            // Writing goes on beside damage: `verify` counts it, and reads of it tell.
            Err(error @ Error::Corrupt { .. }) => {
                events::refused(&error);
                Found::default()
            }
            found => found.inspect_err(|_| sweeps.again(from))?,
        };
        Ok(match sweeps.swept(&found.left, found.next, horizon) {
            true => Maintained::Idle,
            false => Maintained::More,
        })
    }

    /// Removes what is dead in `[from, to)` of Y. `go_on` is asked between two pieces.
    pub(crate) fn sweep(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        mut go_on: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let Some(expiry) = &self.expiry else {
            return Ok(());
        };
        let mut at = Some(from.to_vec());
        while let Some(from) = at {
            go_on()?;
            let _sweeps = expiry.sweeps.lock();
            at = self.sweep_piece(&from, to)?.next;
        }
        Ok(())
    }

    fn sweep_piece(&self, from: &[u8], to: Option<&[u8]>) -> Result<Found> {
        if self.discarded() {
            return Ok(Found::default());
        }
        let horizon = self.shared.versions.horizon();
        let most = DEAD_BYTES.min(self.shared.budget.limit() / DEAD_DIVISOR);
        let _room = Room::take(self, most);
        let shown = self.writer.shown().count();
        let found = self.find_dead((from, to), horizon, most)?;
        self.check_kept()?;
        if found.stretches.is_empty() {
            return Ok(found);
        }
        let _run = self.writer.lock();
        if self.discarded() {
            return Ok(Found::default());
        }
        // Nothing is shown while the lock is held.
        let found = match shown.is_multiple_of(2) && shown == self.writer.shown().count() {
            true => found,
            false => {
                let end = found.next.as_deref().or(to);
                let again = self.find_dead((from, end), horizon, most)?;
                let next = again.next.or(found.next);
                Found { next, ..again }
            }
        };
        self.remove_dead(&found)?;
        Ok(found)
    }

    /// What of `[from, to)` is dead in Y, until a piece was read.
    fn find_dead(&self, (from, to): KeyRange<'_>, horizon: Millis, most: usize) -> Result<Found> {
        let removes_ranges = self.y.removes_ranges();
        let mut found = Found::default();
        let (mut read, mut in_stretch) = (0, false);
        for entry in self.y.range(from, to, Order::Ascending)? {
            let (key, value) = entry?;
            read += key.len() + value.len() + KEY_OVERHEAD_BYTES;
            let dead = expiry::is_over(&value, horizon);
            if dead {
                found.note(&key, in_stretch, removes_ranges);
            } else if let Some((expires, _)) = expiry::split(&value) {
                let lives_on = match expires {
                    expiry::NEVER => expiry::NEVER,
                    expires => expires.saturating_sub(horizon),
                };
                found.left.add(lives_on, key.len() + value.len());
            }
            in_stretch = dead;
            if read >= PIECE_BYTES || found.bytes >= most {
                found.next = Some(successor(&key));
                break;
            }
        }
        Ok(found)
    }

    /// The caller holds the run lock, and has read `found` under it or under the same count of what
    /// was shown.
    fn remove_dead(&self, found: &Found) -> Result<()> {
        let (single, long): (Vec<&Stretch>, Vec<&Stretch>) = found
            .stretches
            .iter()
            .partition(|s| s.keys.len() == s.entries);
        if !long.is_empty() {
            let ends: Vec<Vec<u8>> = long.iter().map(|s| successor(&s.last)).collect();
            let ranges = long.iter().zip(&ends);
            let ranges: Vec<KeyRange<'_>> = ranges
                .map(|(s, to)| (&s.first[..], Some(&to[..])))
                .collect();
            let removal = self.writer.begin_removal(&ranges)?;
            let published = self.writer.publish_removal(removal);
            self.shared.guarded(published)?;
        }
        if !single.is_empty() {
            let keys = single.iter().flat_map(|s| &s.keys);
            self.writer.write_run(&mut Deletes(keys))?;
        }
        self.shared.wake_compactor.notify();
        Ok(())
    }
}

impl Found {
    /// `key` is dead; `in_stretch`: so is what comes before it.
    fn note(&mut self, key: &Key, in_stretch: bool, removes_ranges: bool) {
        let bytes = key.len() + KEY_OVERHEAD_BYTES;
        match self.stretches.last_mut().filter(|_| in_stretch) {
            Some(stretch) => {
                stretch.last = key.clone();
                stretch.entries += 1;
                if removes_ranges && stretch.entries >= WORTH_A_RANGE {
                    let kept = |key: &Key| key.len() + KEY_OVERHEAD_BYTES;
                    self.bytes -= stretch.keys.drain(..).map(|key| kept(&key)).sum::<usize>();
                } else {
                    stretch.keys.push(key.clone());
                    self.bytes += bytes;
                }
            }
            None => {
                self.bytes += bytes;
                self.stretches.push(Stretch {
                    first: key.clone(),
                    last: key.clone(),
                    entries: 1,
                    keys: vec![key.clone()],
                });
            }
        }
    }
}

/// A run of deletes of ascending keys.
struct Deletes<I>(I);

impl<'k, I: Iterator<Item = &'k Key>> RunSource for Deletes<I> {
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
        self.0.by_ref().try_for_each(|key| sink((key, None)))
    }

    fn before_publish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Memory of a piece, taken from the budget while it lives.
struct Room<'a>(&'a Joined, usize);

impl<'a> Room<'a> {
    fn take(joined: &'a Joined, bytes: usize) -> Self {
        joined.shared.budget.take(Holder::Transfer, bytes);
        Self(joined, bytes)
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.shared.budget.give(Holder::Transfer, self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_stretches_are_remembered_by_their_ends() {
        let mut found = Found::default();
        for n in 0..WORTH_A_RANGE as u32 * 2 {
            found.note(&Key::new(&n.to_be_bytes()), n > 0, true);
        }
        found.note(&Key::new(b"z"), false, true);
        assert_eq!(found.stretches.len(), 2);
        assert_eq!(found.stretches[0].entries, WORTH_A_RANGE * 2);
        assert!(found.stretches[0].keys.is_empty());
        assert_eq!(found.bytes, 1 + KEY_OVERHEAD_BYTES);
    }
}
