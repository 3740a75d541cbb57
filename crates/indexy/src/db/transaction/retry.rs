//! `Db::transact`: a closure in a transaction, again while it meets conflicts.

#![forbid(unsafe_code)]

use super::api::Transaction;
use crate::{
    db::{database::Db, handle::updating},
    error::{Error, Result},
};
use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

/// How [`Db::transact_with`] goes on after a conflict.
///
/// Before each further attempt it waits for a random time, whose bound doubles from the first pause
/// to the longest. After some attempts the transaction runs *alone*: no other transaction commits
/// until it is over, so that only single writes and batches can still conflict with it. After some
/// more it fails with `RetriesExhausted`.
///
/// ```
/// use indexy::RetryPolicy;
/// use std::time::Duration;
/// let policy = RetryPolicy::new().attempts(5).alone_after(3);
/// assert_ne!(policy, RetryPolicy::default());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    attempts: u32,
    alone_after: u32,
    first_pause: Duration,
    longest_pause: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::new()
    }
}

impl RetryPolicy {
    /// 64 attempts, from the ninth one on alone, pauses from 20 us to 5 ms.
    #[must_use]
    pub fn new() -> Self {
        Self {
            attempts: 64,
            alone_after: 8,
            first_pause: Duration::from_micros(20),
            longest_pause: Duration::from_millis(5),
        }
    }

    /// How often the closure runs at most; 0 counts as 1.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// After so many attempts the transaction runs alone.
    #[must_use]
    pub fn alone_after(mut self, attempts: u32) -> Self {
        self.alone_after = attempts;
        self
    }

    /// Bounds of the pauses between attempts.
    #[must_use]
    pub fn pauses(mut self, first: Duration, longest: Duration) -> Self {
        (self.first_pause, self.longest_pause) = (first, longest);
        self
    }

    /// The pause before attempt `attempt`, counted from 1.
    fn pause(&self, attempt: u32) -> Duration {
        let doubled = self
            .first_pause
            .saturating_mul(1 << attempt.saturating_sub(1).min(16));
        let bound = doubled.min(self.longest_pause).as_nanos();
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        // A new one has random keys.
        let random = RandomState::new().build_hasher().finish();
        Duration::from_nanos(random % bound.saturating_add(1))
    }
}

impl Db {
    /// Runs `body` in a transaction and commits it; after a conflict again, by the default
    /// [`RetryPolicy`]. When `body` fails, nothing is written and its error is returned.
    ///
    /// `body` may run several times: it should do nothing that cannot be repeated. It may write to
    /// this database beside the transaction, but must not wait for another thread that commits one.
    ///
    /// Errors: those of `body`; those of [`Transaction::commit`], but no `Conflict` and no
    /// `SnapshotTooOld`; `RetriesExhausted`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// let accounts = db.tree("accounts")?;
    /// accounts.insert("ann", 100u64.to_be_bytes())?;
    /// accounts.insert("bob", 0u64.to_be_bytes())?;
    /// let moved = db.transact(|tx| {
    ///     let read = |name: &str| -> indexy::Result<u64> {
    ///         let bytes = tx.get(&accounts, name)?.unwrap_or_default();
    ///         Ok(u64::from_be_bytes(bytes[..].try_into().unwrap_or_default()))
    ///     };
    ///     let (ann, bob) = (read("ann")?, read("bob")?);
    ///     let amount = ann.min(30);
    ///     tx.insert(&accounts, "ann", (ann - amount).to_be_bytes())?;
    ///     tx.insert(&accounts, "bob", (bob + amount).to_be_bytes())?;
    ///     Ok(amount)
    /// })?;
    /// assert_eq!(moved, 30);
    /// assert_eq!(accounts.get("bob")?.unwrap(), 30u64.to_be_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transact<R>(&self, body: impl FnMut(&mut Transaction) -> Result<R>) -> Result<R> {
        self.transact_with(&RetryPolicy::default(), body)
    }

    /// As [`Db::transact`], by a policy of the caller's, and with errors of its own: say which,
    /// `|tx| -> Result<_, MyError> { .. }`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// use indexy::{Error, RetryPolicy};
    /// // Somebody else writes what the transaction read, each time.
    /// let failed = db.transact_with(&RetryPolicy::new().attempts(2), |tx| -> Result<(), Error> {
    ///     tx.get(&tree, "key")?;
    ///     tree.insert("key", "theirs")?;
    ///     tx.insert(&tree, "other", "ours")
    /// });
    /// assert!(matches!(failed, Err(Error::RetriesExhausted { attempts: 2 })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transact_with<R, E: From<Error>>(
        &self,
        policy: &RetryPolicy,
        mut body: impl FnMut(&mut Transaction) -> Result<R, E>,
    ) -> Result<R, E> {
        for attempt in 0..policy.attempts {
            if attempt > 0 {
                std::thread::sleep(policy.pause(attempt));
            }
            // Inside an `update` nothing is committed, and nobody may be waited for who commits.
            let alone = attempt >= policy.alone_after && updating::check(&**self.core()).is_ok();
            let _alone = alone.then(|| self.core().turn.take()).flatten();
            let mut tx = self.begin()?;
            match body(&mut tx) {
                Ok(result) => match tx.commit() {
                    Ok(()) => return Ok(result),
                    Err(error) if error.is_retryable() => {}
                    Err(error) => return Err(error.into()),
                },
                // Whatever `body` made of it.
                Err(_) if tx.met_retryable() => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::RetriesExhausted {
            attempts: policy.attempts,
        }
        .into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        let policy =
            RetryPolicy::new().pauses(Duration::from_micros(1), Duration::from_micros(100));
        for attempt in 1..1000 {
            let bound = 1u64 << (attempt - 1).min(7);
            let pause = policy.pause(attempt);
            assert!(
                pause <= Duration::from_micros(bound.min(100)),
                "{attempt}: {pause:?}"
            );
        }
    }

    #[test]
    fn the_longest_pause_may_be_any() {
        for longest in [
            Duration::MAX,
            Duration::from_nanos(u64::MAX),
            Duration::ZERO,
        ] {
            let policy = RetryPolicy::new().pauses(longest, longest);
            assert!(policy.pause(1) <= longest);
        }
    }
}
