//! What readers of now see of entries that expire.
//!
//! A reader finds what is stored at one moment, and asks the clock at another one. Meanwhile the
//! entry may have been written anew. So what has expired since the reader began is read once more:
//! then it had expired before that read. What lived all the while is never answered as absent.
//!
//! Threads: any; nothing is held, and nothing is waited for but reads of Y. It ends: the second
//! read begins when the first answer had expired, so that only one that is written after that, and
//! expires within a read, is read again.

#![forbid(unsafe_code)]

use super::{
    expiry::{NEVER, split},
    tree::{Joined, Known},
};
use crate::{error::Result, key::Value, versions::time::Millis};

/// What an entry is to somebody who has read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judged {
    Lives,
    /// It had expired when he began.
    Expired,
    /// It has expired since, or while he waited.
    Unsure,
}

impl Joined {
    /// A moment that has passed, for a reader who begins. Cost: a load.
    #[inline]
    pub(crate) fn passed(&self) -> Millis {
        self.shared.versions.time().seen()
    }

    /// What an entry that expires at `expires` is to a reader of now, who began at `began`.
    #[inline]
    pub(crate) fn judge(&self, expires: Millis, began: Millis) -> Judged {
        judge(expires, began, || self.shared.versions.time().now())
    }

    /// What is left of `stored`, as it was read under `key` by a reader who began at `began` and
    /// asks the clock at `now`. In a tree without expiry that is all.
    fn living(
        &self,
        key: &[u8],
        stored: Option<Value>,
        mut began: Millis,
        mut now: Millis,
    ) -> Result<Option<Value>> {
        let mut found = stored;
        while let (Some(_), Some(value)) = (&self.expiry, &found) {
            // Too short: the caller says so.
            let Some((expires, _)) = split(value) else {
                break;
            };
            match judge(expires, began, || now) {
                Judged::Lives => break,
                Judged::Expired => return Ok(None),
                Judged::Unsure => {
                    began = now;
                    found = self.get(key, Value::new)?;
                    now = self.moment();
                }
            }
        }
        Ok(found)
    }

    /// The time of now, where it matters.
    fn moment(&self) -> Millis {
        let time = self.shared.versions.time();
        self.expiry.as_ref().map_or(0, |_| time.now())
    }

    /// What X knows of `key`, as far as it lives.
    pub(crate) fn known_living(&self, key: &[u8]) -> Result<Known> {
        let began = self.passed();
        match self.known(key) {
            Known::Value(found) => self
                .living(key, found, began, self.moment())
                .map(Known::Value),
            unknown => Ok(unknown),
        }
    }

    /// As [`Joined::fetch`], what lives of it.
    pub(crate) fn fetch_living(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        let began = self.passed();
        let found = self.fetch(keys)?;
        self.all_living(keys, found, began)
    }

    /// As [`Joined::multi_get`], what lives of it.
    pub(crate) fn multi_get_living(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        let began = self.passed();
        let found = self.multi_get(keys)?;
        self.all_living(keys, found, began)
    }

    /// By one moment, unless something is read again.
    fn all_living(
        &self,
        keys: &[&[u8]],
        found: Vec<Option<Value>>,
        began: Millis,
    ) -> Result<Vec<Option<Value>>> {
        let now = self.moment();
        let each = keys.iter().zip(found);
        each.map(|(key, found)| self.living(key, found, began, now))
            .collect()
    }
}

/// The clock is asked where it matters.
#[inline]
fn judge(expires: Millis, began: Millis, now: impl FnOnce() -> Millis) -> Judged {
    if expires == NEVER || expires > now() {
        return Judged::Lives;
    }
    match expires <= began {
        true => Judged::Expired,
        false => Judged::Unsure,
    }
}
