//! The bytes of a hot set: a header, blocks of keys, an end. `docs/formats/hot-set.md` has the
//! layout.
//!
//! A decoder trusts no byte. Its errors say what does not hold; whoever reads the file knows where.
//! Pure; the keys of a block are decoded one by one into one buffer.

#![forbid(unsafe_code)]

use crate::framework::hot::{HotKey, TIERS};

const MAGIC: &[u8; 8] = b"IndeXYhs";
/// Version of the format.
pub(crate) const VERSION: u32 = 1;
/// Magic, version, database id, crc32c of these.
pub(super) const HEADER_BYTES: usize = 32;
/// Kind, tree, keys, payload length, crc32c.
pub(super) const BLOCK_HEADER_BYTES: usize = 20;
const CRC_AT: usize = BLOCK_HEADER_BYTES - 4;
/// A block ends with the key that brings its payload to so many bytes.
const FULL_BYTES: usize = 8 << 10;
/// Longer keys are not kept: a walk holds a few of each leaf's at once.
pub(crate) const LONGEST_KEY_BYTES: usize = 1 << 10;
/// A key needs so many bytes beside its own.
const ENTRY_OVERHEAD_BYTES: usize = 15;
/// No payload is longer.
pub(super) const MAX_PAYLOAD_BYTES: usize = FULL_BYTES + LONGEST_KEY_BYTES + ENTRY_OVERHEAD_BYTES;
/// Keys and blocks of a file.
const END_BYTES: usize = 16;

/// What does not hold.
pub(crate) type Malformed = &'static str;

/// Which keys a block has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// None: the file ends here.
    End,
    /// Those of a tier, 0 being the hottest.
    Tier(usize),
}

impl Kind {
    fn number(self) -> u32 {
        match self {
            Self::End => 0,
            Self::Tier(tier) => tier as u32 + 1,
        }
    }
}

/// The header of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub kind: Kind,
    /// The tree's number.
    pub tree: u32,
    pub keys: u32,
    pub payload_bytes: usize,
    crc: u32,
}

/// What the end of a file says about it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    pub keys: u64,
    pub blocks: u64,
}

/// The first bytes of a file of this database.
pub(super) fn encode_header(database_id: u128) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&database_id.to_le_bytes());
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

/// Checks the first bytes of a file.
pub(super) fn check_header(bytes: &[u8], database_id: u128) -> Result<(), Malformed> {
    let (head, crc) = bytes
        .split_at_checked(HEADER_BYTES - 4)
        .ok_or("the header is cut short")?;
    if head.get(..8) != Some(&MAGIC[..]) {
        return Err("not a hot set of IndeXY");
    }
    if word(crc, 0)? != crc32c::crc32c(head) {
        return Err("checksum of the header does not match");
    }
    if word(head, 8)? != VERSION {
        return Err("of another version");
    }
    match head.get(12..) {
        Some(id) if id == database_id.to_le_bytes() => Ok(()),
        _ => Err("of another database"),
    }
}

impl BlockHeader {
    /// Decodes the header of a block.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let kind = match word(bytes, 0)? {
            0 => Kind::End,
            tier if tier as usize <= TIERS => Kind::Tier(tier as usize - 1),
            _ => return Err("a block of no kind"),
        };
        let payload_bytes = word(bytes, 12)? as usize;
        if payload_bytes > MAX_PAYLOAD_BYTES {
            return Err("a block is too long");
        }
        Ok(Self {
            kind,
            tree: word(bytes, 4)?,
            keys: word(bytes, 8)?,
            payload_bytes,
            crc: word(bytes, CRC_AT)?,
        })
    }

    /// Whether `payload` is what was written behind this header, at `offset` of a file of this
    /// database.
    pub(super) fn check(
        &self,
        database_id: u128,
        offset: u64,
        payload: &[u8],
    ) -> Result<(), Malformed> {
        match self.checksum(database_id, offset, payload) == self.crc {
            true => Ok(()),
            false => Err("checksum of a block does not match"),
        }
    }

    fn start(&self) -> [u8; CRC_AT] {
        let mut bytes = [0; CRC_AT];
        let words = [
            self.kind.number(),
            self.tree,
            self.keys,
            self.payload_bytes as u32,
        ];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Covers the place, too: a block of another file, or from elsewhere, is not taken for one.
    fn checksum(&self, database_id: u128, offset: u64, payload: &[u8]) -> u32 {
        let mut crc = crc32c::crc32c(&database_id.to_le_bytes());
        for part in [&offset.to_le_bytes()[..], &self.start(), payload] {
            crc = crc32c::crc32c_append(crc, part);
        }
        crc
    }
}

/// A block under way.
#[derive(Debug)]
pub(super) struct BlockBuilder {
    kind: Kind,
    pub tree: u32,
    pub keys: u32,
    /// The header's place, then the payload.
    bytes: Vec<u8>,
    last: Vec<u8>,
}

impl BlockBuilder {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            tree: 0,
            keys: 0,
            bytes: vec![0; BLOCK_HEADER_BYTES],
            last: Vec::new(),
        }
    }

    /// Adds a key of the block's tree, of [`LONGEST_KEY_BYTES`] at most; whether the block is full.
    pub(super) fn push(&mut self, entry: &HotKey<'_>) -> bool {
        let pairs = self.last.iter().zip(entry.key);
        let shared = pairs.take_while(|(a, b)| a == b).count();
        let suffix = &entry.key[shared..];
        for number in [shared, suffix.len(), entry.value_bytes] {
            push_varint(&mut self.bytes, number);
        }
        self.bytes.extend_from_slice(suffix);
        self.last.truncate(shared);
        self.last.extend_from_slice(suffix);
        self.keys += 1;
        self.bytes.len() >= BLOCK_HEADER_BYTES + FULL_BYTES
    }

    /// The block as it stands at `offset`.
    pub(super) fn seal(&mut self, database_id: u128, offset: u64) -> &[u8] {
        let (head, payload) = self.bytes.split_at_mut(BLOCK_HEADER_BYTES);
        let header = BlockHeader {
            kind: self.kind,
            tree: self.tree,
            keys: self.keys,
            payload_bytes: payload.len(),
            crc: 0,
        };
        let crc = header.checksum(database_id, offset, payload);
        head[..CRC_AT].copy_from_slice(&header.start());
        head[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        &self.bytes
    }

    /// Begins the next block.
    pub(super) fn clear(&mut self) {
        self.keys = 0;
        self.bytes.truncate(BLOCK_HEADER_BYTES);
        self.last.clear();
    }

    /// For tests that put bytes of their own behind a good checksum.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn set_payload(&mut self, payload: &[u8]) {
        let payload = payload.get(..MAX_PAYLOAD_BYTES).unwrap_or(payload);
        self.bytes.truncate(BLOCK_HEADER_BYTES);
        self.bytes.extend_from_slice(payload);
    }

    /// The block that ends a file.
    pub(super) fn end(totals: Totals) -> Self {
        let mut end = Self::new(Kind::End);
        end.bytes.extend_from_slice(&totals.keys.to_le_bytes());
        end.bytes.extend_from_slice(&totals.blocks.to_le_bytes());
        end
    }
}

/// What the payload of the last block says.
pub(super) fn decode_totals(payload: &[u8]) -> Result<Totals, Malformed> {
    let (keys, blocks) = payload.split_at_checked(8).ok_or("the end is cut short")?;
    if payload.len() != END_BYTES {
        return Err("the end has another length");
    }
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    Ok(Totals {
        keys: number(keys),
        blocks: number(blocks),
    })
}

/// The keys of a payload, one after the other.
pub(crate) struct Keys<'p> {
    rest: &'p [u8],
    left: u32,
    key: Vec<u8>,
}

impl<'p> Keys<'p> {
    /// The keys of a block with this header.
    pub(crate) fn new(header: &BlockHeader, payload: &'p [u8]) -> Self {
        Self {
            rest: payload,
            left: header.keys,
            key: Vec::new(),
        }
    }

    /// The next key and the bytes that its value had.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], usize)>, Malformed> {
        if self.left == 0 {
            return match self.rest.is_empty() {
                true => Ok(None),
                false => Err("bytes behind the last key of a block"),
            };
        }
        self.left -= 1;
        let shared = take_varint(&mut self.rest)?;
        let suffix_len = take_varint(&mut self.rest)?;
        let value_bytes = take_varint(&mut self.rest)?;
        let suffix = self.rest.split_at_checked(suffix_len);
        let (suffix, rest) = suffix.ok_or("a key runs out of its block")?;
        if shared > self.key.len() || shared + suffix_len > LONGEST_KEY_BYTES {
            return Err("a key of an impossible length");
        }
        self.rest = rest;
        self.key.truncate(shared);
        self.key.extend_from_slice(suffix);
        Ok(Some((&self.key, value_bytes)))
    }
}

fn word(bytes: &[u8], at: usize) -> Result<u32, Malformed> {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    word.map(u32::from_le_bytes).ok_or("cut short")
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn push_varint(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Numbers below 2^35.
fn take_varint(rest: &mut &[u8]) -> Result<usize, Malformed> {
    let mut number = 0;
    for shift in (0..35).step_by(7) {
        let (&byte, after) = rest.split_first().ok_or("a number is cut short")?;
        *rest = after;
        number |= usize::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err("a number has no end")
}
