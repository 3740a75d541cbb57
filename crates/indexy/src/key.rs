//! Keys and values as the API hands them out: immutable byte strings.
//!
//! Both are one word of length and one of pointer; up to 20 bytes are held
//! inline, longer ones are reference counted, so that a clone never copies.
//! No threads, no I/O.

#![forbid(unsafe_code)]

use byteview::ByteView;
use std::{borrow::Borrow, fmt, ops::Deref};

/// Up to so many bytes are put together on the stack: an allocation that has to be zero takes
/// longer than a copy.
const ON_STACK_BYTES: usize = 512;
/// As that, for most keys.
const SHORT_BYTES: usize = 64;

macro_rules! bytes_type {
    ($(#[$doc:meta])* $name:ident, $example:literal) => {
        $(#[$doc])*
        #[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(ByteView);

        impl $name {
            /// Copies `bytes`. Cost: one allocation above 20 bytes.
            ///
            /// ```
            #[doc = $example]
            /// ```
            #[must_use]
            pub fn new(bytes: &[u8]) -> Self {
                Self(ByteView::from(bytes))
            }

            /// `len` bytes that `fill` writes over zeros. Cost: as of `new`.
            #[inline]
            pub(crate) fn build(len: usize, fill: impl FnOnce(&mut [u8])) -> Self {
                if len <= SHORT_BYTES {
                    let mut short = [0; SHORT_BYTES];
                    fill(&mut short[..len]);
                    return Self::new(&short[..len]);
                }
                if len <= ON_STACK_BYTES {
                    let mut bytes = [0; ON_STACK_BYTES];
                    fill(&mut bytes[..len]);
                    return Self::new(&bytes[..len]);
                }
                let mut bytes = ByteView::builder(len);
                fill(&mut bytes);
                Self(bytes.freeze())
            }

            /// `len` bytes that `fill` writes, zeros before. Cost: one allocation above 20 bytes.
            #[allow(dead_code, reason = "only values are filled in place")]
            pub(crate) fn filled<E>(
                len: usize,
                fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
            ) -> Result<Self, E> {
                let mut bytes = ByteView::with_size(len);
                if let Some(mut to) = bytes.get_mut() {
                    fill(&mut to)?;
                }
                Ok(Self(bytes))
            }
        }

        impl Deref for $name {
            type Target = [u8];
            fn deref(&self) -> &[u8] {
                &self.0
            }
        }

        impl AsRef<[u8]> for $name {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }

        impl Borrow<[u8]> for $name {
            fn borrow(&self) -> &[u8] {
                &self.0
            }
        }

        impl From<&[u8]> for $name {
            fn from(bytes: &[u8]) -> Self {
                Self::new(bytes)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text.as_bytes())
            }
        }

        impl From<$name> for Vec<u8> {
            fn from(bytes: $name) -> Self {
                bytes.to_vec()
            }
        }

        impl From<Vec<u8>> for $name {
            fn from(bytes: Vec<u8>) -> Self {
                Self(ByteView::from(bytes))
            }
        }

        impl PartialEq<[u8]> for $name {
            fn eq(&self, other: &[u8]) -> bool {
                **self == *other
            }
        }

        impl PartialEq<&[u8]> for $name {
            fn eq(&self, other: &&[u8]) -> bool {
                **self == **other
            }
        }

        impl<const N: usize> PartialEq<&[u8; N]> for $name {
            fn eq(&self, other: &&[u8; N]) -> bool {
                **self == other[..]
            }
        }

        impl<const N: usize> PartialEq<[u8; N]> for $name {
            fn eq(&self, other: &[u8; N]) -> bool {
                **self == other[..]
            }
        }

        impl PartialEq<Vec<u8>> for $name {
            fn eq(&self, other: &Vec<u8>) -> bool {
                **self == **other
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "b\"{}\"", self.escape_ascii())
            }
        }
    };
}

bytes_type! {
    /// A key: 0..=65,534 bytes, ordered bytewise. A clone never copies the bytes.
    ///
    /// ```
    /// use indexy::Key;
    /// let key = Key::from("de/berlin");
    /// assert_eq!(&key[..3], b"de/");
    /// assert!(key < Key::from("de/bonn"));
    /// ```
    Key, "assert_eq!(indexy::Key::new(b\"key\"), b\"key\");"
}
bytes_type! {
    /// A value: 0..=256 MiB. A clone never copies the bytes; it is no part of the memory budget.
    ///
    /// ```
    /// use indexy::Value;
    /// let value = Value::from(vec![1, 2, 3]);
    /// assert_eq!(value.iter().sum::<u8>(), 6);
    /// assert_eq!(Vec::from(value), [1, 2, 3]);
    /// ```
    Value, "assert_eq!(indexy::Value::new(b\"value\"), b\"value\");"
}

impl Value {
    /// All but the first `bytes`, which there are. Never copies more than 20 bytes.
    pub(crate) fn without_first(&self, bytes: usize) -> Self {
        Self(self.0.slice(bytes..))
    }
}

/// Bytes of a head.
pub(crate) const HEAD_BYTES: usize = 4;

/// The head of what a key has behind its node's prefix: the first four bytes, with zeros behind, as
/// a number. Two keys of a node with different heads are in the order of those.
#[inline]
pub(crate) fn head(suffix: &[u8]) -> u32 {
    if let Some(four) = suffix.first_chunk::<HEAD_BYTES>() {
        return u32::from_be_bytes(*four);
    }
    let mut four = [0; HEAD_BYTES];
    four[..suffix.len()].copy_from_slice(suffix);
    u32::from_be_bytes(four)
}

/// The smallest key greater than `key`: `key ++ 0x00`.
pub(crate) fn successor(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

/// The smallest byte string greater than every one that starts with `prefix`,
/// or `None` when there is none (`prefix` is empty or all 0xFF).
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&b| b != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}
