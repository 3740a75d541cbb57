//! Blocks: byte strings in nodes of their own, which a leaf names by address.
//!
//! A block is a head, and further nodes of bytes:
//!
//! | word of the head | field |
//! |---|---|
//! | 0 | magic, and the checksum of all that follows and of the bytes |
//! | 1 | its own address |
//! | 2 | its number: what its leaf says beside the address |
//! | 3 | bytes of the value |
//! | 4.. | addresses of the further nodes, then the first bytes |
//!
//! # Invariants
//! - V1: a block does not change while a leaf names it: it is written before, and a new value has
//!   a new block.
//! - V2: a block's memory is used again after the leaf that named it was written to the pool
//!   without it. Until then the block is *retired*: whoever takes over finds what the pool's
//!   leaves name.
//! - V3: a reader that comes late finds another number, another checksum or no head, and asks the
//!   tree again.

use super::{Tree, alloc::Allocator};
use crate::{
    address::Address,
    error::{Error, Result},
    node::{NODE_BYTES, NODE_WORDS, TreeKey},
    remote::{Part, RemoteMemory},
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
pub(super) const ATTEMPTS: usize = 100;
/// Heads that a scan reads in one trip.
pub(super) const BATCH: usize = 16;

const _: () = assert!(HEADER_WORDS + MAX_FURTHER < NODE_WORDS);

type Head = [u64; NODE_WORDS];

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

/// The block of `head`, if it has this number; V3.
fn block_of(head: &Head, at: Address, number: u64) -> Option<Block> {
    let is_right = head[0] >> 32 == MAGIC && head[1] == at.word() && head[2] == number;
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

/// The address of a block that a leaf names.
pub(super) fn address(word: u64) -> Result<Address> {
    let at = Address::from_word(word).filter(|at| at.offset().is_multiple_of(NODE_BYTES));
    at.ok_or_else(|| Error::corrupt(Address::new(0, 0), "a value has no address"))
}

/// Reads the block `number` at `at`; `None`: V3.
pub(super) fn read(
    memory: &impl RemoteMemory,
    at: Address,
    number: u64,
) -> Result<Option<Vec<u8>>> {
    let mut head = [0; NODE_WORDS];
    memory.read(at, &mut head)?;
    rest(memory, &head, at, number)
}

/// Reads the blocks at these addresses and with these numbers, heads in one trip. `None`: V3.
pub(super) fn read_many(
    memory: &impl RemoteMemory,
    blocks: &[(Address, u64)],
) -> Result<Vec<Option<Vec<u8>>>> {
    let mut heads = vec![[0; NODE_WORDS]; blocks.len()];
    let into = heads.iter_mut().map(|head| &mut head[..]);
    let places = blocks.iter().map(|block| block.0);
    let mut parts: Vec<Part<'_>> = places.zip(into).collect();
    memory.read_many(&mut parts)?;
    let values = blocks.iter().zip(&heads);
    let values = values.map(|((at, number), head)| rest(memory, head, *at, *number));
    values.collect()
}

/// The rest of a block behind its head.
fn rest(
    memory: &impl RemoteMemory,
    head: &Head,
    at: Address,
    number: u64,
) -> Result<Option<Vec<u8>>> {
    let Some(block) = block_of(head, at, number) else {
        return Ok(None);
    };
    let mut rest = vec![0; NODE_WORDS * block.further.len()];
    let (chunks, _) = rest.as_chunks_mut::<NODE_WORDS>();
    let words = chunks.iter_mut().map(|chunk| &mut chunk[..]);
    let mut parts: Vec<Part<'_>> = block.further.iter().copied().zip(words).collect();
    for batch in parts.chunks_mut(BATCH) {
        memory.read_many(batch)?;
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

/// V1: writes a block that no leaf names yet, on a server that `spread` chooses. If the leaf does
/// not get to name it, its memory is lost.
///
/// [`Error::Options`]: the value is longer than [`MAX_VALUE_BYTES`].
pub(super) fn write(
    memory: &impl RemoteMemory,
    nodes: &Allocator,
    (number, spread): (u64, u64),
    value: &[u8],
) -> Result<Address> {
    if value.len() > MAX_VALUE_BYTES {
        let bytes = value.len();
        let what = format!("a value of {bytes} bytes; at most {MAX_VALUE_BYTES}");
        return Err(Error::Options(what));
    }
    let further = further_nodes(value.len());
    let servers = memory.servers() as u64;
    let server = (spread.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % servers;
    let node = || nodes.take(memory, server as u16);
    let reserved: Vec<_> = (0..=further).map(|_| node()).collect::<Result<_>>()?;
    let places: Vec<Address> = reserved.iter().map(|node| node.at()).collect();
    let mut words = vec![0; NODE_WORDS * (1 + further)];
    words[1..HEADER_WORDS].copy_from_slice(&[places[0].word(), number, value.len() as u64]);
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
        memory.write(*place, chunk)?;
    }
    reserved.into_iter().for_each(|node| node.keep());
    Ok(places[0])
}

/// Blocks that no cached leaf names, but the pool's leaf may.
#[derive(Default)]
pub(super) struct Retired(Mutex<Vec<Address>>);

impl Retired {
    /// V2. Cost: now and then that of [`Retired::flush`].
    pub(super) fn add<K: TreeKey>(
        &self,
        tree: &Tree<impl RemoteMemory, K>,
        at: Address,
    ) -> Result<()> {
        let mut retired = self.0.lock();
        retired.push(at);
        let is_much = retired.len() >= MAX_RETIRED;
        drop(retired);
        if is_much { self.flush(tree) } else { Ok(()) }
    }

    /// What `attempt` says, which needs memory; where the pool is full it gets that of retired
    /// blocks.
    pub(super) fn with_room<K: TreeKey, T>(
        &self,
        tree: &Tree<impl RemoteMemory, K>,
        attempt: impl Fn() -> Result<T>,
    ) -> Result<T> {
        match attempt() {
            Err(Error::PoolFull { .. }) if !self.0.lock().is_empty() => {
                self.flush(tree)?;
                attempt()
            }
            done => done,
        }
    }

    /// Writes every dirty page to the pool; memory of blocks that were retired before is used
    /// again.
    ///
    /// Cost: one write a dirty page, one read a block.
    pub(super) fn flush<K: TreeKey>(&self, tree: &Tree<impl RemoteMemory, K>) -> Result<()> {
        let retired = std::mem::take(&mut *self.0.lock());
        let done = tree.flush();
        if done.is_err() {
            self.0.lock().extend(retired);
            return done;
        }
        let mut rest = retired.into_iter();
        while let Some(at) = rest.next() {
            let mut head = [0; NODE_WORDS];
            if let Err(error) = tree.memory.read(at, &mut head) {
                let mut kept = self.0.lock();
                kept.push(at);
                kept.extend(rest);
                return Err(error);
            }
            if let Some(block) = block_of(&head, at, head[2]) {
                block
                    .further
                    .into_iter()
                    .for_each(|node| tree.nodes.give(node));
                tree.nodes.give(at);
            }
        }
        Ok(())
    }
}
