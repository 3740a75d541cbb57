//! Values of any length, out of line: the leaf has the address of a block.
//!
//! A block is a head, and further nodes of bytes:
//!
//! | word of the head | field |
//! |---|---|
//! | 0 | magic, and the checksum of all that follows and of the bytes |
//! | 1 | its own address |
//! | 2 | the key |
//! | 3 | bytes of the value |
//! | 4.. | addresses of the further nodes, then the first bytes |
//!
//! # Invariants
//! - V1: a block does not change while a leaf names it: it is written before, and a new value has
//!   a new block.
//! - V2: a block's memory is used again after the leaf that named it was written to the pool
//!   without it. Until then the block is *retired*: whoever takes over finds what the pool's
//!   leaves name.
//! - V3: a reader that comes late finds another key, another checksum or no head, and asks the
//!   tree again.

use super::Tree;
use crate::{
    address::Address,
    error::{Error, Result},
    node::{NODE_BYTES, NODE_WORDS},
    remote::{Counts, Part, RemoteMemory},
};
use parking_lot::Mutex;

/// Longest value.
pub const MAX_VALUE_BYTES: usize = 32 << 10;

const NODE: usize = NODE_BYTES as usize;
const HEADER_WORDS: usize = 4;
const MAX_FURTHER: usize = MAX_VALUE_BYTES.div_ceil(NODE);
const MAGIC: u64 = 0x4445_5856;
/// Retired blocks after which the tree is flushed.
const MAX_RETIRED: usize = 4_096;
/// How often a reader may come late: each time costs a writer a flush.
const ATTEMPTS: usize = 100;
/// Heads that a scan reads in one trip.
const BATCH: usize = 16;

const _: () = assert!(HEADER_WORDS + MAX_FURTHER < NODE_WORDS);

type Head = [u64; NODE_WORDS];

/// A tree whose values are byte strings of 0 to 32 KiB.
///
/// The pool's tree has to be filled through this type alone: the values that [`Tree`] sees are
/// addresses.
pub struct Values<M> {
    tree: Tree<M>,
    /// Heads of blocks that no cached leaf names, but the pool's leaf may.
    retired: Mutex<Vec<Address>>,
}

/// What a head says of its block.
struct Block {
    further: Vec<Address>,
    bytes: usize,
}

fn further_nodes(bytes: usize) -> usize {
    // The head's room shrinks by a word for each further node.
    (0..MAX_FURTHER)
        .find(|further| bytes <= 8 * (NODE_WORDS - HEADER_WORDS - further) + NODE * further)
        .unwrap_or(MAX_FURTHER)
}

fn checksum(head: &Head, rest: &[u64]) -> u64 {
    let sum = |sum, words: &[u64]| {
        words.iter().fold(sum, |sum, word| {
            crc32c::crc32c_append(sum, &word.to_le_bytes())
        })
    };
    u64::from(sum(sum(0, &head[1..]), rest))
}

/// The block of `head`, if it is the key's; V3.
fn block_of(head: &Head, at: Address, key: u64) -> Option<Block> {
    let is_right = head[0] >> 32 == MAGIC && head[1] == at.word() && head[2] == key;
    let bytes = usize::try_from(head[3]).ok()?;
    if !is_right || bytes > MAX_VALUE_BYTES {
        return None;
    }
    let words = &head[HEADER_WORDS..HEADER_WORDS + further_nodes(bytes)];
    let further = words.iter().map(|word| Address::from_word(*word));
    Some(Block {
        further: further.collect::<Option<_>>()?,
        bytes,
    })
}

impl<M: RemoteMemory> Values<M> {
    /// Values of `tree`.
    pub fn new(tree: Tree<M>) -> Self {
        Self {
            tree,
            retired: Mutex::default(),
        }
    }

    /// The tree of addresses: for hand-overs, counts and the load.
    pub fn tree(&self) -> &Tree<M> {
        &self.tree
    }

    /// Verbs and bytes so far.
    pub fn counts(&self) -> Counts {
        self.tree.counts()
    }

    /// The value of `key`.
    ///
    /// Cost: that of [`Tree::get`], 1 read of the head, and one trip for values above 992 bytes.
    pub fn get(&self, key: u64) -> Result<Option<Vec<u8>>> {
        let mut at = Address::new(0, 0);
        for _ in 0..ATTEMPTS {
            let Some(word) = self.tree.get(key)? else {
                return Ok(None);
            };
            at = address(word)?;
            let mut head = [0; NODE_WORDS];
            self.tree.memory.read(at, &mut head)?;
            // V3: otherwise somebody replaced it, and the block's memory was used again.
            if let Some(value) = self.value(&head, at, key)? {
                return Ok(Some(value));
            }
        }
        Err(Error::corrupt(at, "a value is not what its leaf says"))
    }

    /// The rest of a block behind its head; `None`: V3.
    fn value(&self, head: &Head, at: Address, key: u64) -> Result<Option<Vec<u8>>> {
        let Some(block) = block_of(head, at, key) else {
            return Ok(None);
        };
        let mut rest = vec![0; NODE_WORDS * block.further.len()];
        let (chunks, _) = rest.as_chunks_mut::<NODE_WORDS>();
        let words = chunks.iter_mut().map(|chunk| &mut chunk[..]);
        let mut parts: Vec<Part<'_>> = block.further.iter().copied().zip(words).collect();
        for batch in parts.chunks_mut(BATCH) {
            self.tree.memory.read_many(batch)?;
        }
        if checksum(head, &rest) != head[0] & u64::from(u32::MAX) {
            return Ok(None);
        }
        let first = &head[HEADER_WORDS + block.further.len()..];
        let bytes = first
            .iter()
            .chain(&rest)
            .flat_map(|word| word.to_le_bytes());
        Ok(Some(bytes.take(block.bytes).collect()))
    }

    /// Sets the value of `key`; whether it had one.
    ///
    /// Cost: that of [`Tree::put`], and 1 write for each started KiB. [`Error::Options`]: the value
    /// is longer than [`MAX_VALUE_BYTES`].
    pub fn put(&self, key: u64, value: &[u8]) -> Result<bool> {
        if value.len() > MAX_VALUE_BYTES {
            let what = format!(
                "a value of {} bytes; at most {MAX_VALUE_BYTES}",
                value.len()
            );
            return Err(Error::Options(what));
        }
        self.tree.ownership().check(key)?;
        let at = self.write_block(key, value)?;
        let old = self.tree.put(key, at.word())?;
        self.retire(old)?;
        Ok(old.is_some())
    }

    /// V1: a block that no leaf names yet. If the leaf does not get to name it, its memory is lost.
    fn write_block(&self, key: u64, value: &[u8]) -> Result<Address> {
        let further = further_nodes(value.len());
        let servers = self.tree.memory.servers() as u64;
        let server = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % servers;
        let node = || self.tree.nodes.take(&self.tree.memory, server as u16);
        let reserved: Vec<_> = (0..=further).map(|_| node()).collect::<Result<_>>()?;
        let places: Vec<Address> = reserved.iter().map(|node| node.at()).collect();
        let mut words = vec![0; NODE_WORDS * (1 + further)];
        words[1..HEADER_WORDS].copy_from_slice(&[places[0].word(), key, value.len() as u64]);
        let start = HEADER_WORDS + further;
        for (word, place) in words[HEADER_WORDS..start].iter_mut().zip(&places[1..]) {
            *word = place.word();
        }
        for (word, bytes) in words[start..].iter_mut().zip(value.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(whole);
        }
        let (chunks, _) = words.as_chunks_mut::<NODE_WORDS>();
        if let [head, rest @ ..] = chunks {
            head[0] = MAGIC << 32 | checksum(head, rest.as_flattened());
        }
        for (place, chunk) in places.iter().zip(chunks) {
            self.tree.memory.write(*place, chunk)?;
        }
        reserved.into_iter().for_each(|node| node.keep());
        Ok(places[0])
    }

    /// Removes `key`; whether it had a value.
    pub fn remove(&self, key: u64) -> Result<bool> {
        let old = self.tree.remove(key)?;
        self.retire(old)?;
        Ok(old.is_some())
    }

    /// V2.
    fn retire(&self, word: Option<u64>) -> Result<()> {
        let Some(word) = word else {
            return Ok(());
        };
        let mut retired = self.retired.lock();
        retired.push(address(word)?);
        let is_much = retired.len() >= MAX_RETIRED;
        drop(retired);
        if is_much { self.flush() } else { Ok(()) }
    }

    /// Writes every dirty page to the pool; memory of values that were replaced before is used
    /// again.
    ///
    /// Cost: one write a dirty page, one read a value that was replaced.
    pub fn flush(&self) -> Result<()> {
        let retired = std::mem::take(&mut *self.retired.lock());
        let done = self.tree.flush();
        if done.is_err() {
            self.retired.lock().extend(retired);
            return done;
        }
        for at in retired {
            let mut head = [0; NODE_WORDS];
            self.tree.memory.read(at, &mut head)?;
            if let Some(block) = block_of(&head, at, head[2]) {
                block
                    .further
                    .into_iter()
                    .for_each(|node| self.tree.nodes.give(node));
                self.tree.nodes.give(at);
            }
        }
        Ok(())
    }

    /// Appends up to `most` entries from `from` to `to` (included), in order; returns the key to
    /// go on from, as [`Tree::scan`] does.
    ///
    /// Cost: that of [`Tree::scan`], and one read a value, 16 in a trip.
    pub fn scan(
        &self,
        from: u64,
        to: u64,
        most: usize,
        found: &mut Vec<(u64, Vec<u8>)>,
    ) -> Result<Option<u64>> {
        let mut words = Vec::new();
        let next = self.tree.scan(from, to, most, &mut words)?;
        for batch in words.chunks(BATCH) {
            let mut heads = vec![[0; NODE_WORDS]; batch.len()];
            let places = batch.iter().map(|(_, word)| address(*word));
            let places: Vec<Address> = places.collect::<Result<_>>()?;
            let into = heads.iter_mut().map(|head| &mut head[..]);
            let mut parts: Vec<Part<'_>> = places.iter().copied().zip(into).collect();
            self.tree.memory.read_many(&mut parts)?;
            for (((key, _), at), head) in batch.iter().zip(places).zip(heads) {
                let value = match self.value(&head, at, *key)? {
                    Some(value) => Some(value),
                    None => self.get(*key)?,
                };
                found.extend(value.map(|value| (*key, value)));
            }
        }
        Ok(next)
    }
}

fn address(word: u64) -> Result<Address> {
    let at = Address::from_word(word).filter(|at| at.offset().is_multiple_of(NODE_BYTES));
    at.ok_or_else(|| Error::corrupt(Address::new(0, 0), "a value has no address"))
}

impl<M> std::fmt::Debug for Values<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Values").field(&self.tree).finish()
    }
}
