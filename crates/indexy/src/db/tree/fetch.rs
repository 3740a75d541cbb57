//! Reads that do not wait: what is in memory is answered at once, the rest by a ticket.
//!
//! Threads: any. Who reads for the tickets, and what ends every wait, is in `framework/fetch/`. A
//! ticket holds the database open as a tree does. Those who read are threads of the parent in a
//! forked child: there a ticket has its answer or an error, and no wait.

#![forbid(unsafe_code)]

use super::{reads::Tree, reference::TreeRef};
use crate::{
    error::{Error, Result},
    framework::{
        fetch::slot::{Answer, Slot},
        tree::Known,
    },
    key::Value,
};
use std::{fmt, sync::Arc};
#[cfg(feature = "async")]
use std::{
    pin::Pin,
    task::{Context, Poll},
};

/// What [`Tree::try_get`] came to.
#[derive(Debug)]
pub enum Fetch {
    /// The newest value, or that there is none.
    Now(Option<Value>),
    /// It is being read from the disk index.
    Later(Ticket),
}

impl Fetch {
    /// The value; waits for it where it is still being read. Errors: those of [`Ticket::wait`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// tree.insert("key", "value")?;
    /// assert_eq!(tree.try_get("key")?.wait()?.unwrap(), b"value");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(self) -> Result<Option<Value>> {
        match self {
            Self::Now(value) => Ok(value),
            Self::Later(ticket) => ticket.wait(),
        }
    }
}

/// A key that is being read from the disk index; see [`Tree::try_get`].
///
/// It may be dropped: the key is read all the same, and loaded into memory as by [`Tree::get`], if
/// the tree's [`Admission`](crate::Admission) takes it. It holds the database
/// open as a [`Tree`] does. With the feature `async` it is a `Future` of the value, for any
/// executor; then its waker is called by a thread of the database, or by one that closes it, and
/// must not block it: other tickets may wait for the same thread. It may close the database.
///
/// The answer, once read, is the caller's memory, which the database's budget does not count.
#[must_use = "the value comes by the ticket"]
pub struct Ticket {
    at: TreeRef,
    slot: Arc<Slot>,
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("ready", &self.is_ready())
            .finish_non_exhaustive()
    }
}

impl Ticket {
    /// Waits for the value. It was the newest at some moment between [`Tree::try_get`] and the
    /// answer.
    ///
    /// # Errors
    ///
    /// Those of [`Tree::get`]: `Closed` and `TreeDropped` where that happened before the key was
    /// read. `Unsupported` in a forked child, if the key was not read before the fork.
    ///
    /// # Panics
    ///
    /// With the feature `async`, if the ticket was polled and was ready: its value is given once.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// # tree.insert("key", "value")?;
    /// # tree.release::<&[u8]>(..)?;
    /// use indexy::Fetch;
    /// let value = match tree.try_get("key")? {
    ///     Fetch::Now(value) => value,
    ///     Fetch::Later(ticket) => ticket.wait()?,
    /// };
    /// assert_eq!(value.unwrap(), b"value");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(self) -> Result<Option<Value>> {
        let answer = match self.check_process() {
            Ok(()) => self.slot.wait(),
            Err(forked) => self.slot.take_forked().ok_or(forked)?,
        };
        self.told(answer)
    }

    /// Whether the answer is there, so that [`Ticket::wait`] does not wait. Cost: a short
    /// lock, and a system call.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// # tree.insert("key", "value")?;
    /// # tree.release::<&[u8]>(..)?;
    /// use indexy::Fetch;
    /// if let Fetch::Later(ticket) = tree.try_get("key")? {
    ///     while !ticket.is_ready() {
    ///         std::thread::yield_now(); // something useful
    ///     }
    ///     assert_eq!(ticket.wait()?.unwrap(), b"value");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_ready(&self) -> bool {
        // In a forked child there is no wait, whatever the slot says.
        self.check_process().is_err() || self.slot.is_answered()
    }

    /// `Unsupported` in a forked child: nobody answers there any more.
    fn check_process(&self) -> Result<()> {
        self.at.core().directory.check_process()
    }

    /// The answer in the caller's words: a request that nobody served was given up because the tree
    /// or the database ended, or because a thread of it did.
    fn told(&self, answer: Answer) -> Result<Option<Value>> {
        let answer = self.at.alive(answer);
        if let Err(Error::Closed) = &answer
            && self.at.live().is_ok()
        {
            self.at.core().shared.poison.check()?;
        }
        // What had expired when it was read is left out already.
        self.at.value_in(answer?)
    }
}

#[cfg(feature = "async")]
impl Future for Ticket {
    type Output = Result<Option<Value>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = match self.check_process() {
            Ok(()) => self.slot.poll(context.waker()),
            Err(forked) => Poll::Ready(self.slot.take_forked().ok_or(forked)?),
        };
        polled.map(|answer| self.told(answer))
    }
}

impl Tree {
    /// The newest value of `key` if that takes no I/O; else a [`Ticket`] for it, and the key is
    /// being read when this returns.
    ///
    /// For callers that have something else to do: a few threads of the database read what all
    /// callers wait for, with overlapping reads, so that one thread can have many keys under way.
    /// No thread is made per request. Reads that wait are read together: a key that many wait for
    /// is read once.
    ///
    /// At most 1,024 keys wait in a database, and at most 1/64 of the memory budget of them. Where
    /// there is no room, the call reads the key itself, as [`Tree::get`] does, and has it `Now`.
    ///
    /// Cost: that of [`Tree::get`] for what is in memory. Else an allocation or two, a short lock,
    /// and perhaps waking a thread; the first one starts a thread. Errors: those of
    /// [`Tree::get`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// # for i in 0..100u32 {
    /// #     tree.insert(i.to_be_bytes(), "v")?;
    /// # }
    /// # tree.release::<&[u8]>(..)?;
    /// // A hundred reads under way at once, by one thread.
    /// let under_way = (0..100u32)
    ///     .map(|i| tree.try_get(i.to_be_bytes()))
    ///     .collect::<Result<Vec<_>, _>>()?;
    /// for fetch in under_way {
    ///     assert_eq!(fetch.wait()?.unwrap(), b"v");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    // 001 (retrieval); I1, I3.
    pub fn try_get(&self, key: impl AsRef<[u8]>) -> Result<Fetch> {
        let key = key.as_ref();
        self.at.live()?;
        self.at.check_key(key)?;
        let joined = self.at.joined();
        if let Known::Value(value) = self.at.alive(joined.known_living(key))? {
            return self.at.value_in(value).map(Fetch::Now);
        }
        // The threads are the parent's in a forked child.
        let slot = match self.at.core().directory.is_forked() {
            true => None,
            false => self.at.handle.background.fetch(joined, key),
        };
        if let Some(slot) = slot {
            let at = self.at.clone();
            return Ok(Fetch::Later(Ticket { at, slot }));
        }
        let read = joined
            .fetch_living(&[key])
            .map(|mut values| values.pop().flatten());
        let value = self.at.alive(read)?;
        self.at.value_in(value).map(Fetch::Now)
    }
}
