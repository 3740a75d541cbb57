//! Where a word lies in the pool: 15 bits for the memory server, 48 for the offset in its region.
//! Source: DEX section 3. The top bit is clear: in a cached inner node it marks a child that is
//! cached too.

use std::fmt;

const OFFSET_BITS: u32 = 48;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

/// Most memory servers of a pool.
pub const MAX_SERVERS: usize = 1 << 15;

/// The address of a word in the pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(u64);

impl Address {
    /// The word at byte `offset` of the region of `server`.
    ///
    /// # Panics
    /// If `server` has more than 15 bits, or `offset` more than 48.
    pub fn new(server: u16, offset: u64) -> Self {
        assert!(usize::from(server) < MAX_SERVERS && offset <= OFFSET_MASK);
        Self(u64::from(server) << OFFSET_BITS | offset)
    }

    /// The address that a node's word holds; `None` if its top bit is set.
    pub fn from_word(word: u64) -> Option<Self> {
        (word >> 63 == 0).then_some(Self(word))
    }

    /// As a word of a node.
    pub fn word(self) -> u64 {
        self.0
    }

    /// The memory server.
    pub fn server(self) -> u16 {
        (self.0 >> OFFSET_BITS) as u16
    }

    /// Bytes from the start of the server's region.
    pub fn offset(self) -> u64 {
        self.0 & OFFSET_MASK
    }

    /// The address `bytes` further on.
    pub fn plus(self, bytes: u64) -> Self {
        Self::new(self.server(), self.offset() + bytes)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:#x}", self.server(), self.offset())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_its_parts_and_leaves_the_top_bit() {
        let at = Address::new(0x7fff, OFFSET_MASK);
        assert_eq!((at.server(), at.offset()), (0x7fff, OFFSET_MASK));
        assert_eq!(Address::from_word(at.word()), Some(at));
        assert_eq!(Address::from_word(at.word() | 1 << 63), None);
        assert_eq!(Address::new(3, 8).plus(16), Address::new(3, 24));
    }
}
