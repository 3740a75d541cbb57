//! Trees whose entries expire: what is stored becomes what a reader sees, and the other way round.
//!
//! The framework has values with their expiry before them (`framework/expiry.rs`); all that goes
//! through a handle is opened here, by the time of its reader: that of now, or of his snapshot.
//! Calls of ordinary trees come here with nothing to do, or not at all.
//!
//! Threads: any.

#![forbid(unsafe_code)]

use super::{
    reads::Tree,
    reference::{Soonest, TreeRef, View},
};
use crate::{
    db::{directory, handle::Pinned, tree_options::Ttl},
    error::{Error, Result},
    framework::{
        expiry::{self, EXPIRY_BYTES, NEVER},
        living::Judged,
        misses::Purpose,
        scan::Merged,
        sweep_schedule::Expiry,
    },
    key::Value,
    versions::time::{Millis, millis},
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// When an entry expires; see [`Tree::expires_at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expires {
    /// At that moment, in whole milliseconds: from then on it is absent.
    At(SystemTime),
    /// Not at all.
    Never,
}

impl Expires {
    pub(in crate::db) fn of(moment: Millis) -> Self {
        let since = Duration::from_millis(moment);
        match UNIX_EPOCH.checked_add(since).filter(|_| moment != NEVER) {
            Some(at) => Self::At(at),
            None => Self::Never,
        }
    }
}

/// How long an entry is to live.
#[derive(Debug, Clone, Copy)]
pub(in crate::db) enum Life {
    /// As its tree says.
    Default,
    For(Duration),
    Until(Expires),
}

impl TreeRef {
    pub(super) fn expiry(&self) -> Option<&Expiry> {
        self.joined().expiry.as_ref()
    }

    fn now(&self) -> Millis {
        self.core().shared.versions.time().now()
    }

    /// When what is written now expires. Errors: `NoExpiry`, `ZeroTtl`.
    pub(super) fn expires(&self, life: Life) -> Result<Millis> {
        match (self.expiry(), life) {
            (None, Life::Default) => Ok(NEVER),
            (None, _) => Err(self.no_expiry()),
            (Some(expiry), Life::Default) => Ok(match expiry.default_ttl() {
                NEVER => NEVER,
                ttl => expiry::after(self.now(), ttl),
            }),
            (_, Life::For(Duration::ZERO)) => Err(Error::ZeroTtl),
            (_, Life::For(ttl)) => Ok(expiry::after_duration(self.now(), ttl)),
            (_, Life::Until(Expires::At(moment))) => Ok(millis(moment)),
            (_, Life::Until(Expires::Never)) => Ok(NEVER),
        }
    }

    fn no_expiry(&self) -> Error {
        Error::NoExpiry {
            name: self.tree.name().to_string(),
        }
    }

    /// `value` as it is stored.
    pub(super) fn stored(&self, value: &[u8], life: Life) -> Result<Value> {
        let expires = self.expires(life)?;
        Ok(match self.expiry() {
            Some(_) => expiry::stored(expires, value),
            None => Value::new(value),
        })
    }

    /// The value in `stored` and its expiry; `None`: it has expired at `at`.
    #[inline]
    pub(super) fn opened<'v>(
        &self,
        stored: &'v [u8],
        at: impl FnOnce() -> Millis,
    ) -> Result<Option<(Millis, &'v [u8])>> {
        if self.expiry().is_none() {
            return Ok(Some((NEVER, stored)));
        }
        let (expires, value) = expiry::split(stored).ok_or_else(|| self.too_short())?;
        // The clock is asked where it matters.
        let lives = expires == NEVER || expires > at();
        Ok(lives.then_some((expires, value)))
    }

    /// The same for whoever reads now.
    #[inline]
    pub(super) fn opened_now<'v>(&self, stored: &'v [u8]) -> Result<Option<(Millis, &'v [u8])>> {
        self.opened(stored, || self.now())
    }

    /// The same of a value, without a copy.
    fn opened_value(
        &self,
        stored: Option<Value>,
        at: impl FnOnce() -> Millis,
    ) -> Result<Option<(Millis, Value)>> {
        let Some(stored) = stored else {
            return Ok(None);
        };
        let opened = self.opened(&stored, at)?;
        let opened = opened.map(|(expires, value)| (expires, stored.len() - value.len()));
        Ok(opened.map(|(expires, head)| match head {
            0 => (expires, stored),
            head => (expires, stored.without_first(head)),
        }))
    }

    pub(super) fn opened_value_now(&self, stored: Option<Value>) -> Result<Option<Value>> {
        let opened = self.opened_value(stored, || self.now())?;
        Ok(opened.map(|(_, value)| value))
    }

    /// The value in `stored`, which has not expired for its reader.
    pub(super) fn value_in(&self, stored: Option<Value>) -> Result<Option<Value>> {
        let opened = self.opened_value(stored, || 0)?;
        Ok(opened.map(|(_, value)| value))
    }

    /// What `pinned` sees of `stored`, and when that expires.
    pub(super) fn opened_value_at(
        &self,
        stored: Option<Value>,
        pinned: &Pinned,
    ) -> Result<Option<(Millis, Value)>> {
        self.opened_value(stored, || pinned.time())
    }

    /// The moment by which a scan through `view` that begins now leaves entries out. What is
    /// written anew later has not expired by it.
    pub(super) fn moment(&self, view: &View) -> Millis {
        match (self.expiry(), view) {
            (None, _) => 0,
            (Some(_), View::Newest) => self.now(),
            (Some(_), View::At(pinned)) => pinned.time(),
        }
    }

    /// Leaves in `merged` what has not expired at `at`.
    pub(super) fn open_all(
        &self,
        merged: &mut Merged,
        at: Millis,
        soonest: &mut Soonest,
    ) -> Result<()> {
        if self.expiry().is_none() {
            return Ok(());
        }
        let entries = std::mem::take(&mut merged.entries);
        merged.bytes = 0;
        merged.entries.reserve(entries.len());
        for (key, stored) in entries {
            if let Some((expires, value)) = self.opened_value(Some(stored), || at)? {
                merged.bytes += key.len() + value.len();
                if expires < soonest.as_ref().map_or(NEVER, |(moment, _)| *moment) {
                    *soonest = Some((expires, key.clone()));
                }
                merged.entries.push((key, value));
            }
        }
        Ok(())
    }

    fn too_short(&self) -> Error {
        let dir = directory::tree_dir(&self.core().path, self.tree.entry.id);
        Error::corrupt(dir, 0, "a value without its expiry")
    }
}

impl Tree {
    /// Whether entries of this tree expire, and when unless their writer says otherwise; `None`:
    /// they do not. See [`TreeOptions::ttl`](crate::TreeOptions::ttl).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{TreeOptions, Ttl};
    /// assert_eq!(db.tree("t")?.ttl(), None);
    /// let sessions = db.tree_with("sessions", TreeOptions::new().ttl(Ttl::PerEntry))?;
    /// assert_eq!(sessions.ttl(), Some(Ttl::PerEntry));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn ttl(&self) -> Option<Ttl> {
        self.at.expiry().map(|expiry| Ttl::of(expiry.default_ttl()))
    }

    /// Writes `value` under `key`, to be absent after `ttl`.
    ///
    /// `ttl`: rounded up to milliseconds; what goes beyond 500 million years is for ever. Cost and
    /// errors: those of [`Tree::insert`]; `ZeroTtl`, and `NoExpiry` of a tree that was made without
    /// [`TreeOptions::ttl`](crate::TreeOptions::ttl).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{TreeOptions, Ttl};
    /// use std::time::Duration;
    /// let sessions = db.tree_with("sessions", TreeOptions::new().ttl(Ttl::PerEntry))?;
    /// sessions.insert_with_ttl("ann", "token", Duration::from_millis(1))?;
    /// std::thread::sleep(Duration::from_millis(2));
    /// assert_eq!(sessions.get("ann")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_with_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.insert_living(key.as_ref(), value.as_ref(), Life::For(ttl))
    }

    /// Writes `value` under `key`, to expire as `expires` says: for entries that come with their
    /// moment, from another database or the change feed. A moment that has passed makes the key
    /// absent. Cost and errors: those of [`Tree::insert_with_ttl`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{Expires, TreeOptions, Ttl};
    /// let tree = db.tree_with("t", TreeOptions::new().ttl(Ttl::PerEntry))?;
    /// tree.insert_until("key", "value", Expires::Never)?;
    /// assert_eq!(tree.expires_at("key")?, Some(Expires::Never));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_until(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expires: Expires,
    ) -> Result<()> {
        self.insert_living(key.as_ref(), value.as_ref(), Life::Until(expires))
    }

    /// When the entry of `key` expires; `None`: there is no entry, or none any more. Cost and
    /// errors: those of [`Tree::get`]; `NoExpiry` of a tree that was made without
    /// [`TreeOptions::ttl`](crate::TreeOptions::ttl).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// use indexy::{Expires, TreeOptions, Ttl};
    /// use std::time::{Duration, SystemTime};
    /// let hour = Duration::from_secs(3600);
    /// let sessions = db.tree_with("sessions", TreeOptions::new().ttl(Ttl::Default(hour)))?;
    /// sessions.insert("ann", "token")?;
    /// let Some(Expires::At(moment)) = sessions.expires_at("ann")? else {
    ///     panic!("it is there, and expires");
    /// };
    /// assert!(moment <= SystemTime::now() + hour);
    /// assert_eq!(sessions.expires_at("bob")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expires_at(&self, key: impl AsRef<[u8]>) -> Result<Option<Expires>> {
        if self.at.expiry().is_none() {
            self.at.live()?;
            return Err(self.at.no_expiry());
        }
        self.get_expiring(key.as_ref(), |expires, _| Expires::of(expires))
    }

    /// As [`Tree::get_with`]; `read` is also told when the entry expires.
    #[cold]
    #[inline(never)]
    pub(super) fn get_expiring<R>(
        &self,
        key: &[u8],
        read: impl FnOnce(Millis, &[u8]) -> R,
    ) -> Result<Option<R>> {
        self.at.live()?;
        self.at.check_key(key)?;
        let joined = self.at.joined();
        let mut read = Some(read);
        loop {
            let began = joined.passed();
            let mut judged = Judged::Expired;
            let found = joined.get(key, |stored| -> Result<Option<R>> {
                let opened = self.at.opened(stored, || 0)?;
                let Some((expires, value)) = opened else {
                    return Ok(None);
                };
                judged = joined.judge(expires, began);
                let living = read.take_if(|_| judged == Judged::Lives);
                Ok(living.map(|read| read(expires, value)))
            });
            let found = self.at.alive(found)?.transpose()?.flatten();
            if judged != Judged::Unsure {
                return Ok(found);
            }
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn insert_living(&self, key: &[u8], value: &[u8], life: Life) -> Result<()> {
        self.at.live()?;
        let expires = self.at.expires(life)?;
        self.write_live(key, value.len(), |_| {
            let put = |stored: &[u8]| self.put(key, Some(stored));
            Ok(((), expiry::with_stored(expires, value, put)?))
        })
    }

    /// Writes what another database has stored in a tree of the same kind.
    pub(in crate::db) fn insert_stored(&self, key: &[u8], stored: &[u8]) -> Result<()> {
        self.at.live()?;
        let head = self.at.expiry().map_or(0, |_| EXPIRY_BYTES);
        let len = stored.len().saturating_sub(head);
        self.write_live(key, len, |_| Ok(((), self.put(key, Some(stored))?)))
    }

    /// What is stored under `key`, expired or not.
    pub(in crate::db) fn get_stored(&self, key: &[u8]) -> Result<Option<Value>> {
        self.at.live()?;
        let joined = self.at.joined();
        self.at
            .alive(joined.get_for(Purpose::Read, key, Value::new))
    }

    /// The value in what was stored in this tree by a writer who has not committed yet, and reads
    /// at `at`: he may have given it a moment that had passed.
    pub(in crate::db) fn value_of(&self, stored: &Option<Value>, at: Millis) -> Option<Value> {
        let opened = self.at.opened_value(stored.clone(), || at).ok()?;
        opened.map(|(_, value)| value)
    }

    /// `value` as it is stored in this tree.
    pub(in crate::db) fn stored(&self, value: &[u8], life: Life) -> Result<Value> {
        self.at.stored(value, life)
    }
}
