//! How a tree merges, as it is remembered.

#![forbid(unsafe_code)]

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest operand, and longest value that a merge makes, in bytes (128 KiB).
pub(crate) const MAX_MERGED_BYTES: usize = 128 << 10;
/// Longest name of an operator, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// How [`Tree::merge`](crate::Tree::merge) merges; see
/// [`TreeOptions::merge_operator`](crate::TreeOptions::merge_operator).
///
/// What a merge does depends on the value and the operands alone, never on when they meet. Where a
/// value does not suit, a merge leaves it as it is: if that is known when the merge is called, it
/// returns `MergeRefused`; else nobody hears of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MergeOperator {
    /// Adds unsigned numbers of 64 bits, big-endian, 8 bytes each; an absent key counts as 0. A sum
    /// over `u64::MAX` is `u64::MAX`. A value that has not 8 bytes does not suit.
    AddU64,
    /// Adds signed numbers of 64 bits in two's complement, big-endian, 8 bytes each; an absent key
    /// counts as 0. A sum that overflows wraps around: any other rule would depend on the order. A
    /// value that has not 8 bytes does not suit.
    AddI64,
    /// Keeps the greater of value and operand in bytewise order. An operand of any length up to
    /// 128 KiB; every value suits.
    Max,
    /// Appends the operand to the value, with a separator between them. A value that would become
    /// longer than the limit does not suit: it stays as it is, and a later, shorter operand may
    /// still fit.
    Append {
        /// Comes before the operand where the key has a value, even an empty one.
        separator: Vec<u8>,
        /// Longest value that an append makes, in bytes: 1..=131,072.
        limit: usize,
    },
    /// One of your own, by its [name](super::Merge::name).
    Own(String),
}

impl MergeOperator {
    /// `InvalidOption` for parameters that cannot work.
    pub(crate) fn check(&self) -> Result<()> {
        let reason = match self {
            Self::Append { limit, .. } if *limit == 0 || *limit > MAX_MERGED_BYTES => {
                format!("a limit of {limit} bytes: from 1 to {MAX_MERGED_BYTES}")
            }
            Self::Append { separator, limit } if separator.len() >= *limit => {
                "the separator is as long as the limit".into()
            }
            Self::Own(name) => return check_name(name),
            Self::AddU64 | Self::AddI64 | Self::Max | Self::Append { .. } => return Ok(()),
        };
        Err(invalid(reason))
    }
}

impl fmt::Display for MergeOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddU64 => f.write_str("add-u64"),
            Self::AddI64 => f.write_str("add-i64"),
            Self::Max => f.write_str("max"),
            Self::Append { separator, limit } => {
                write!(
                    f,
                    "append({:?}, {limit})",
                    separator.escape_ascii().to_string()
                )
            }
            Self::Own(name) => write!(f, "own:{name}"),
        }
    }
}

fn invalid(reason: String) -> Error {
    Error::InvalidOption {
        option: "merge_operator",
        reason,
    }
}

pub(super) fn check_name(name: &str) -> Result<()> {
    match name.len() {
        1..=MAX_NAME_BYTES => Ok(()),
        len => Err(invalid(format!(
            "a name of {len} bytes: from 1 to {MAX_NAME_BYTES}"
        ))),
    }
}
