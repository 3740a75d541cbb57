//! Names of the kinds of Index Y that come from outside, and the factories registered for them.

#![forbid(unsafe_code)]

use crate::{
    error::{Error, Result},
    y::IndexYFactory,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{
    collections::BTreeMap,
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

/// Names of the kinds that this crate brings; a registered one is never mistaken for them.
const RESERVED: [&str; 5] = ["lsm", "rocksdb", "bplus", "art", "custom"];

/// The name of a kind of disk index that the program registers; see
/// [`Options::register_index_y`](crate::Options::register_index_y).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexYName {
    /// Zeros from `len` on.
    bytes: [u8; IndexYName::MAX_BYTES],
    len: u8,
}

impl IndexYName {
    /// Longest name, in bytes.
    pub const MAX_BYTES: usize = 31;

    /// A name of 1..=31 bytes: lower-case letters, digits, `-`, `_` and `.`, a letter first; none
    /// of this crate's own names.
    ///
    /// Errors: `InvalidOption`.
    ///
    /// ```
    /// use indexy::IndexYName;
    /// assert!(IndexYName::new("my-index_2").is_ok());
    /// assert!(IndexYName::new("lsm").is_err());
    /// ```
    pub fn new(name: &str) -> Result<Self> {
        let refuse = |reason: &str| {
            Err(Error::InvalidOption {
                option: "index_y",
                reason: format!("the name {name:?} {reason}"),
            })
        };
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
            return refuse("does not start with a lower-case letter");
        }
        let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b"-_.".contains(&c);
        if !name.bytes().all(fits) {
            return refuse("has other characters than a-z, 0-9, '-', '_' and '.'");
        }
        if RESERVED.contains(&name) {
            return refuse("is one of this library's own");
        }
        let mut bytes = [0; Self::MAX_BYTES];
        match bytes.get_mut(..name.len()) {
            Some(part) => part.copy_from_slice(name.as_bytes()),
            None => return refuse("is longer than 31 bytes"),
        }
        let len = name.len() as u8;
        Ok(Self { bytes, len })
    }

    /// The name.
    ///
    /// ```
    /// use indexy::IndexYName;
    /// assert_eq!(IndexYName::new("redb")?.as_str(), "redb");
    /// # Ok::<(), indexy::Error>(())
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len.into()).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Display for IndexYName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for IndexYName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl Serialize for IndexYName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for IndexYName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::new(&name).map_err(serde::de::Error::custom)
    }
}

/// The factories of a database, by name.
#[derive(Clone, Default)]
pub(crate) struct Factories(BTreeMap<IndexYName, Arc<dyn IndexYFactory>>);

impl Factories {
    /// The last one registered under a name counts.
    pub(crate) fn register(&mut self, name: IndexYName, factory: Arc<dyn IndexYFactory>) {
        self.0.insert(name, factory);
    }

    pub(crate) fn get(&self, name: IndexYName) -> Option<&Arc<dyn IndexYFactory>> {
        self.0.get(&name)
    }

    /// What one run and one step of maintenance of any of them take, in bytes.
    pub(crate) fn work_bytes(&self) -> usize {
        self.0.values().map(|f| f.work_bytes()).max().unwrap_or(0)
    }
}

/// So that `Options` may cross `catch_unwind`. A factory that panicked is not called again by the
/// same open; what it does at the next one is up to it.
impl UnwindSafe for Factories {}
impl RefUnwindSafe for Factories {}

impl fmt::Debug for Factories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl PartialEq for Factories {
    /// The same factories under the same names.
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|((name, factory), (n, f))| {
                    name == n && std::ptr::addr_eq(Arc::as_ptr(factory), Arc::as_ptr(f))
                })
    }
}

impl Eq for Factories {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_plain_and_not_ours() {
        for good in ["redb", "a", "my-index_2.1", &"x".repeat(31)] {
            assert_eq!(IndexYName::new(good).unwrap().as_str(), good);
        }
        let bad = [
            "", "lsm", "custom", "Redb", "1a", "a b", "a:b", "\u{e4}", "a\0",
        ];
        for bad in bad.into_iter().chain([&*"x".repeat(32), &*"x".repeat(300)]) {
            let refused = IndexYName::new(bad);
            assert!(
                matches!(refused, Err(Error::InvalidOption { .. })),
                "{bad:?}: {refused:?}"
            );
        }
    }
}
