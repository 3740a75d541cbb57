//! The writes of a `Tree`.
//!
//! Every write, in this order: check the limits; take the key's stripe; look under it whether the
//! tree is live; reserve memory, then room in the log (both may wait); leave an image where a
//! snapshot is open (I10); apply, where the log record is made under the leaf's latch (I8); let the
//! stripe go; with `Sync` wait for the log.
//!
//! The stripe comes before the reservation. A writer that reserved memory and then waited for a
//! stripe could deadlock with `update`, which holds the stripe while it waits for memory of its
//! own. What frees memory and what writes the log take no stripe.

#![forbid(unsafe_code)]

use super::{expiring::Life, reads::Tree};
use crate::{
    db::{
        handle::updating::{self, Updating},
        options::Durability,
    },
    error::{Error, Result},
    framework::{
        expiry,
        memory::Admitted,
        merge::writes::NewOperand,
        misses::Purpose,
        snapshots::{BEGINS_AWAITED, SHORT_IMAGE_BYTES},
        tree::{Joined, Route, Written},
    },
    key::Value,
    versions::{Epoch, Image, time::Millis},
    wal::{Admission, Lsn},
};

/// Bytes of X that a new entry may take beside key and value: its share of a leaf and of a node.
const ENTRY_OVERHEAD_BYTES: usize = 64;
/// Bytes of a log record beside key and value.
const RECORD_OVERHEAD_BYTES: usize = 32;

/// What is written under a key.
#[derive(Clone, Copy)]
pub(super) enum New<'a> {
    /// `None`: it is removed.
    Value(Option<&'a [u8]>),
    Operand(NewOperand<'a>),
}

impl New<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Value(value) => value.map_or(0, <[u8]>::len),
            // The record has the one, X the other, and they share a request for room.
            Self::Operand(new) => new.waiting.len().max(new.operand.len()),
        }
    }

    fn is_removal(&self) -> bool {
        matches!(self, Self::Value(None))
    }
}

/// Room in memory and in the log, kept while these live.
struct Permit<'a> {
    route: Route,
    _memory: Option<Admitted<'a>>,
    _log: Option<Admission<'a>>,
}

impl Tree {
    /// Writes `value` under `key`.
    ///
    /// Cost: no I/O but what the durability asks for; may wait for memory to become free. A value
    /// over an eighth of the memory budget is written to the disk index at once, and with a log it
    /// is durable when the call returns.
    ///
    /// Errors: `KeyTooLong`, `ValueTooLong`, `ReadOnly`, `Closed`, `TreeDropped`, `Reentrant`:
    /// nothing was written. `OutOfSpace`, `Poisoned` or `Io` while the log is made durable: the
    /// write is seen, and the next open may find it or not. Where the disk index has no room for a
    /// value over an eighth of the budget, the old value stays and nothing is logged; if the device
    /// fills up or fails later in the call, the next open may find the new one.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// tree.insert(7u32.to_be_bytes(), [1, 2, 3])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    // IndeXY II-B; I4, I7, I8.
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        if !self.at.tree.is_plain() {
            return self.insert_living(key, value, Life::Default);
        }
        self.write_live(key, value.len(), |_| Ok(((), self.put(key, Some(value))?)))
    }

    /// Removes `key`, whether it is there or not. Cost: that of [`Tree::insert`]; nothing is read.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// tree.remove("key")?;
    /// assert!(!tree.contains_key("key")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        self.write(key, 0, |_| Ok(((), self.put(key, None)?)))
    }

    /// Removes `key` and returns the value that it had. Atomic. Cost: [`Tree::get`] and
    /// [`Tree::remove`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("job", "work")?;
    /// assert_eq!(tree.take("job")?.unwrap(), b"work");
    /// assert_eq!(tree.take("job")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.take_for(Purpose::Removal, key.as_ref())
    }

    pub(super) fn take_for(&self, purpose: Purpose, key: &[u8]) -> Result<Option<Value>> {
        self.write(key, 0, |joined| {
            if matches!(purpose, Purpose::RemovalOfFirst(_))
                && let Some((value, end)) = self.take_from_x(key)?
            {
                return Ok((Some(value), end));
            }
            let stored = joined.get_for(purpose, key, Value::new)?;
            let old = self.at.opened_value_now(stored)?;
            let end = if old.is_some() {
                self.put(key, None)?
            } else {
                None
            };
            Ok((old, end))
        })
    }

    /// Takes a value that a search has just seen, if X has it, nothing expires and no snapshot is
    /// open. The caller holds the stripe of `key`.
    fn take_from_x(&self, key: &[u8]) -> Result<Option<(Value, Option<Lsn>)>> {
        if self.at.expiry().is_some() || self.at.core().shared.versions.watch() != 0 {
            return Ok(None);
        }
        let permit = self.admit_value(key, None, 0)?;
        // The wait may have been long.
        self.at.live()?;
        match permit.route {
            Route::ThroughX => self.at.joined().take_from_x(key),
            Route::PastX => Ok(None),
        }
    }

    /// Writes `new` if the key's value is `old`; `None` means absent, on either side. Returns
    /// whether it did. Atomic. What has expired is absent; `new` begins a life of its own. Cost:
    /// [`Tree::get`] and [`Tree::insert`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("locks")?;
    /// // A bare `None` has no type: say which.
    /// const ABSENT: Option<&[u8]> = None;
    /// assert!(tree.compare_and_swap("lock", ABSENT, Some("mine"))?);
    /// assert!(!tree.compare_and_swap("lock", ABSENT, Some("yours"))?);
    /// assert!(tree.compare_and_swap("lock", Some("mine"), ABSENT)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compare_and_swap<O: AsRef<[u8]>, N: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        old: Option<O>,
        new: Option<N>,
    ) -> Result<bool> {
        let key = key.as_ref();
        let old = old.as_ref().map(AsRef::as_ref);
        let new = new.as_ref().map(AsRef::as_ref);
        let bytes = new.map_or(0, <[u8]>::len);
        self.write(key, bytes, |joined| {
            let compare = |stored: &[u8]| -> Result<Option<bool>> {
                let found = self.at.opened_now(stored)?;
                Ok(found.map(|(_, value)| old == Some(value)))
            };
            let found = joined.get_for(Purpose::Update, key, compare)?;
            let same = found.transpose()?.flatten();
            let same = same.unwrap_or(old.is_none());
            let end = match (same, new) {
                (true, Some(new)) => self.put_value(key, new, self.at.expires(Life::Default)?)?,
                (true, None) => self.put(key, None)?,
                (false, _) => None,
            };
            Ok((same, end))
        })
    }

    /// Replaces the value of `key` by what `change` makes of it; `None` means absent, on either
    /// side. Returns the new value. Atomic: `change` runs once, with the key locked against other
    /// writers.
    ///
    /// `change` may read this database, and use other databases. Every write to this one, and every
    /// call of [`Db`](crate::Db) that waits for writers, returns `Reentrant` inside it. It must not
    /// wait for another thread that writes here: of two threads that update two databases, each
    /// inside the other, both would wait for ever. When it panics, nothing was changed.
    ///
    /// Where entries expire, a value that is there expires when it would have before, and a new one
    /// after the tree's default.
    ///
    /// Cost: [`Tree::get`] and [`Tree::insert`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("counters")?;
    /// let count = |old: Option<&[u8]>| {
    ///     let n = old.and_then(|v| v.try_into().ok()).map_or(0, u64::from_be_bytes);
    ///     Some((n + 1).to_be_bytes().to_vec())
    /// };
    /// tree.update("visits", count)?;
    /// assert_eq!(tree.update("visits", count)?.unwrap(), 2u64.to_be_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Value>> {
        let key = key.as_ref();
        self.write(key, 0, |joined| {
            let stored = joined.get_for(Purpose::Update, key, Value::new)?;
            let old = match &stored {
                Some(stored) => self.at.opened_now(stored)?,
                None => None,
            };
            let new = {
                let _updating = Updating::enter(&**self.at.core());
                change(old.map(|(_, value)| value))
            };
            self.at.check_value(new.as_ref().map_or(0, Vec::len))?;
            let end = match (&new, old) {
                (Some(new), Some((expires, _))) => self.put_value(key, new, expires)?,
                (Some(new), None) => self.put_value(key, new, self.at.expires(Life::Default)?)?,
                (None, _) => self.put(key, None)?,
            };
            Ok((new.map(Value::from), end))
        })
    }

    /// The frame of every single-key write; see the module header. `apply` writes by [`Tree::put`].
    pub(super) fn write<R>(
        &self,
        key: &[u8],
        value_len: usize,
        apply: impl FnOnce(&Joined) -> Result<(R, Option<Lsn>)>,
    ) -> Result<R> {
        self.at.live()?;
        self.write_live(key, value_len, apply)
    }

    /// The same of a tree that was seen to be live.
    #[inline]
    pub(super) fn write_live<R>(
        &self,
        key: &[u8],
        value_len: usize,
        apply: impl FnOnce(&Joined) -> Result<(R, Option<Lsn>)>,
    ) -> Result<R> {
        let core = self.at.core();
        self.at.check_key(key)?;
        self.at.check_value(value_len)?;
        if core.options.read_only {
            return Err(Error::ReadOnly);
        }
        updating::check(&**core)?;
        core.shared.poison.check()?;
        let log = core.shared.log.get();
        let (result, end) = {
            let _stripe = core.stripes.lock(self.at.tree.entry.id, key);
            self.at.live()?;
            self.at.alive(apply(self.at.joined()))?
        };
        if let (Some(log), Some(end), Durability::Sync) = (log, end, core.options.durability) {
            log.wait_durable(end)?;
        }
        Ok(result)
    }

    /// As [`Tree::put`], of a value that expires as `expires` says, where entries expire.
    fn put_value(&self, key: &[u8], value: &[u8], expires: Millis) -> Result<Option<Lsn>> {
        match self.at.expiry() {
            Some(_) => expiry::with_stored(expires, value, |stored| self.put(key, Some(stored))),
            None => self.put(key, Some(value)),
        }
    }

    /// Waits for room and writes what is to be stored (`None`: removes). The caller holds the
    /// stripe of `key`.
    #[inline]
    pub(super) fn put(&self, key: &[u8], value: Option<&[u8]>) -> Result<Option<Lsn>> {
        let seen = self.at.core().shared.versions.watch();
        if seen == 0 {
            let permit = self.admit_value(key, value.map(<[u8]>::len), 0)?;
            // The wait may have been long.
            self.at.live()?;
            if let Written::Done(end) = self.at.joined().put(key, value, permit.route, 0)? {
                return Ok(end);
            }
        } else if let Written::Done(end) = self.put_and_keep(key, value, seen)? {
            return Ok(end);
        }
        let end = self.put_new(key, New::Value(value))?;
        Ok(end.flatten())
    }

    /// The same where a snapshot is open and the image that it needs is short, as far as that goes
    /// without a wait for room for images.
    #[inline(never)]
    fn put_and_keep(&self, key: &[u8], value: Option<&[u8]>, seen: Epoch) -> Result<Written> {
        let (joined, len) = (self.at.joined(), value.map(<[u8]>::len));
        // What is written tells how long it was, as a rule.
        if len > Some(SHORT_IMAGE_BYTES) || !joined.has_room_for_short(key) {
            return Ok(Written::NeedsImage);
        }
        let permit = self.admit_value(key, len, key.len() + SHORT_IMAGE_BYTES)?;
        self.at.live()?;
        match permit.route {
            Route::ThroughX => joined.put_and_keep(key, value, seen),
            Route::PastX => Ok(Written::NeedsImage),
        }
    }

    /// The same where a snapshot may be open, which needs what `key` was (I10). Starts again when
    /// another one begins meanwhile. `None`: an operand was to be written over something else than
    /// is there.
    #[inline(never)]
    pub(super) fn put_new(&self, key: &[u8], new: New<'_>) -> Result<Option<Option<Lsn>>> {
        let (joined, versions) = (self.at.joined(), &self.at.core().shared.versions);
        let mut begun = 0;
        loop {
            // Snapshots that begin all the time are made to wait in the end. The room for the image
            // is asked for before.
            let gated = begun >= BEGINS_AWAITED;
            let mut seen = match gated {
                true => Epoch::MAX,
                false => versions.watch(),
            };
            let image = match seen {
                0 => None,
                seen => joined.image(key, seen),
            };
            // What is absent and is removed stays what it was.
            let image = image.filter(|image| !new.is_removal() || *image != Image::Absent);
            if image.is_some() {
                joined.await_image_room();
            }
            let image_bytes = image.as_ref().map_or(0, |image| key.len() + image.bytes());
            // All of it in one request: a writer that holds a reservation and asks for more could
            // wait for itself.
            let len = (!new.is_removal()).then(|| new.len());
            let permit = self.admit_value(key, len, image_bytes)?;
            // A value past X takes the gate by itself.
            let _gate = (gated && permit.route == Route::ThroughX).then(|| versions.gate());
            // The waits, also for the gate, may have been long.
            self.at.live()?;
            if gated {
                seen = versions.watch();
            }
            // Nobody needs the image if all snapshots ended, or were given up, during the wait.
            if let Some(image) = image.filter(|_| versions.watch() != 0) {
                joined.keep(key, seen, &image);
            }
            let written = match &new {
                New::Value(value) => joined.put(key, *value, permit.route, seen)?,
                New::Operand(new) => joined.put_operand(key, new, seen)?,
            };
            match written {
                Written::Done(end) => return Ok(Some(end)),
                Written::Changed => return Ok(None),
                Written::NeedsImage => begun += 1,
            }
        }
    }

    /// As [`Tree::admit`], for `key` with a value of `len` bytes (`None`: its removal), and `kept`
    /// bytes of an image.
    #[inline]
    fn admit_value(&self, key: &[u8], len: Option<usize>, kept: usize) -> Result<Permit<'_>> {
        match self.admit(key.len() + len.unwrap_or(0), kept) {
            Err(error) if error.is_about_memory() => self.admit_at_last(key, len, kept, error),
            admitted => admitted,
        }
    }

    /// The same after the wait for memory has ended with `error`. Where resident trees fill the
    /// budget, a write that makes none of them larger goes on, or they could not be made smaller:
    /// above all the removal of a key. Where images do, they are spilled, and if that
    /// does not help, the snapshots are given up.
    #[cold]
    #[inline(never)]
    fn admit_at_last(
        &self,
        key: &[u8],
        len: Option<usize>,
        kept: usize,
        error: Error,
    ) -> Result<Permit<'_>> {
        let versions = &self.at.core().shared.versions;
        let bytes = key.len() + len.unwrap_or(0);
        let admit = || self.admit(bytes, kept);
        let mut admitted = self.at.joined().admit_after_spill(error, admit);
        if matches!(&admitted, Err(error) if error.is_about_memory()) && versions.give_up_all() {
            // Without an image: nobody needs it any more.
            admitted = self.admit(bytes, 0);
        }
        let grows = match len {
            None => !self.at.joined().removal_shrinks_x(key),
            Some(0) => !self.at.joined().has_in_x(key),
            Some(_) => true,
        };
        if grows || !matches!(admitted, Err(Error::ResidentTreesTooLarge { .. })) {
            return admitted;
        }
        let shared = &self.at.core().shared;
        // I7: a long key is copied. Its old memory may come back late, because readers hold it.
        let copied = key.len() + ENTRY_OVERHEAD_BYTES;
        if !shared.room.await_room_to_shrink(copied)? {
            return admitted;
        }
        let log = shared.log.get();
        let record = key.len() + RECORD_OVERHEAD_BYTES;
        Ok(Permit {
            route: Route::ThroughX,
            _memory: None,
            _log: log.map(|log| log.admit(record)).transpose()?,
        })
    }

    /// Waits until a write of `bytes`, key and value, and `kept` bytes of an image have room in X
    /// and in the log; both are reserved while the answer lives.
    fn admit(&self, bytes: usize, kept: usize) -> Result<Permit<'_>> {
        let core = self.at.core();
        let log = core.shared.log.get();
        let record = bytes + RECORD_OVERHEAD_BYTES;
        let copied = log.map_or(0, |log| log.extra_bytes(record));
        let route = self.at.joined().route(bytes);
        let (in_x, log) = match route {
            Route::ThroughX => (bytes + ENTRY_OVERHEAD_BYTES, log),
            Route::PastX => (0, None),
        };
        let room = &core.shared.room;
        Ok(Permit {
            route,
            _memory: Some(room.admit(in_x + kept + room.copy_bytes(copied))?),
            _log: log.map(|log| log.admit(record)).transpose()?,
        })
    }
}
