//! What YCSB calls things: operations, distributions, keys.

use super::{keys::mix, scrambled::fnv64};
use std::io::Write as _;

/// What a client does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reads a record.
    Read,
    /// Overwrites a record or a field of it.
    Update,
    /// Adds a record.
    Insert,
    /// Reads records in key order from one on.
    Scan,
    /// Reads a record and writes it back changed.
    ReadModifyWrite,
    /// Removes a record.
    Delete,
}

/// Operations in the order of their properties.
pub(super) const OPERATIONS: [(Operation, &str); 6] = [
    (Operation::Read, "readproportion"),
    (Operation::Update, "updateproportion"),
    (Operation::Insert, "insertproportion"),
    (Operation::Scan, "scanproportion"),
    (Operation::ReadModifyWrite, "readmodifywriteproportion"),
    (Operation::Delete, "deleteproportion"),
];

/// How record numbers are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// Each evenly.
    Uniform,
    /// Scrambled zipfian.
    Zipfian,
    /// The newest most often.
    Latest,
    /// A hot set.
    Hotspot,
    /// Distances back from the newest.
    Exponential,
    /// One after the other.
    Sequential,
}

/// How record numbers become keys.
#[derive(Debug, Clone, Copy)]
pub struct YcsbKeys {
    pub(super) ordered: bool,
    pub(super) digits: usize,
    pub(super) eight_bytes: bool,
}

impl YcsbKeys {
    /// Writes the key of record `number` into `out`, replacing what is there.
    #[inline]
    pub fn write(&self, number: u64, out: &mut Vec<u8>) {
        out.clear();
        if self.eight_bytes {
            let number = if self.ordered { number } else { mix(number) };
            out.extend_from_slice(&number.to_be_bytes());
            return;
        }
        let number = if self.ordered { number } else { fnv64(number) };
        write!(out, "user{number:0width$}", width = self.digits).expect("a vector takes all");
    }

    /// Bytes of the longest key.
    pub fn longest_bytes(&self) -> usize {
        const PREFIX: usize = "user".len();
        const MOST_DIGITS: usize = 20;
        if self.eight_bytes {
            8
        } else {
            PREFIX + self.digits.max(MOST_DIGITS)
        }
    }

    /// True if all keys are numbers of 8 bytes.
    pub fn eight_bytes(&self) -> bool {
        self.eight_bytes
    }
}
