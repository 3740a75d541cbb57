//! The buffer pool: which page is in which frame, and which goes when frames run out.
//!
//! Frames are never dirty, because a run writes its pages itself. So making room costs no I/O, and
//! a reader never pays for a writer. Replacement is second chance (clock): a leaf that was read
//! since the hand passed stays once more, an inner page or one of a filter three times. A page that
//! comes in has not been read in this sense, so what is read once goes first.
//!
//! A reference to a child has a hint, the number of its frame; the frame's tag says whether the
//! page is still there. Otherwise the table finds the page and renews the hint. So a hit takes no
//! lock. A reader that finds no free frame makes some. If all are being read it uses memory of its
//! own: a read neither waits nor fails for want of frames (I7: that is one page a reading thread).
//!
//! Threads: any. Locks: a shard of the table, the clock's hand; never held across I/O.

use crate::y::page::{self, PageNo, PageSource, node};

use crate::{
    error::{Error, Result},
    mem::{
        aligned::AlignedBuffer,
        frames::{
            FRAME_OVERHEAD_BYTES, FrameGuard, FrameView, Frames, MAX_FRAMES, NO_PAGE, OwnedFrame,
        },
    },
};
use loan::{Borrowers, FilterLoan};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

pub(crate) mod chunk;
mod in_place;
pub(crate) mod loan;
pub(crate) mod located;
pub(crate) mod search;
pub(crate) mod values;

const SHARDS: usize = 16;
/// Pages of tables, and so of filters.
const FILTER_PAGE_BYTES: usize = 4096;
/// What an entry of the table costs at most.
const TABLE_BYTES: usize = 48;
/// Fewest frames that a pool works with: a path, and some for what is read beside. All sizes
/// together take 224 KiB then, less than the least share of a database's caches (I7); a reader who
/// finds no free one uses a page of its own.
const MIN_FRAMES: usize = 8;
/// One in so many frames is kept free.
const FREE_DIVISOR: usize = 16;
/// Frames that are made free at once, at most.
const MAX_EVICTIONS: usize = 64;
/// There are so many turns for each frame, within these bounds.
const TURNS_A_FRAME: usize = 2;
const TURNS: (usize, usize) = (256, 1 << 16);
/// Bits of a tag that name the page in its tree. Tables of LSM trees have few pages, and there are
/// many of them over time: their tags have the highest bit.
const PAGE_BITS: u32 = 40;
const TABLE_PAGE_BITS: u32 = (TABLE_PAGES * TABLE_PLACES).trailing_zeros();
const TABLE: u64 = 1 << 63;
/// Pages that a table has at most (64 GiB of 4 KiB pages).
pub(crate) const TABLE_PAGES: PageNo = 1 << 24;
/// Leaves that begin in a page of a table at most.
pub(crate) const TABLE_PLACES: u64 = 16;

/// Rounds of the hand that a page stays after its last use. An inner page, or one of a filter,
/// serves hundreds of leaves: where single leaves are read and few are read twice, it would be gone
/// before its next use as often as one time in ten.
pub(crate) const INNER_ROUNDS: u8 = 3;
pub(crate) const LEAF_ROUNDS: u8 = 1;

/// One size of pages.
pub(crate) struct Pool {
    pub(crate) frames: Frames,
    table: [Mutex<HashMap<u64, u32>>; SHARDS],
    hand: Mutex<usize>,
    trees: AtomicU64,
    tables: AtomicU64,
    /// Pages read from devices.
    pub(crate) reads: AtomicU64,
    /// The turns of pages of all trees that are read by locator (`y/paged/turns.rs`).
    turns: OnceLock<Arc<[AtomicU64]>>,
    /// Bytes that it may take without what is lent to filters.
    usual: AtomicUsize,
}

/// A page that was read from the device.
pub(crate) enum Loaded<'p> {
    Frame(OwnedFrame<'p>),
    Alone(AlignedBuffer),
}

impl Pool {
    fn new(page_bytes: usize, memory_bytes: usize) -> Self {
        Self {
            frames: Frames::new(page_bytes, frames_for(page_bytes, memory_bytes)),
            table: Default::default(),
            hand: Mutex::new(0),
            trees: AtomicU64::new(0),
            tables: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            turns: OnceLock::new(),
            usual: AtomicUsize::new(usual_bytes(page_bytes, memory_bytes)),
        }
    }

    /// What the tags of a tree's pages have in common; never given twice.
    ///
    /// Errors: `Unsupported` behind 2^23 trees, or 2^35 tables, that were opened.
    fn tags_of_a_tree(&self, is_table: bool) -> Result<u64> {
        let (counter, bits, kind) = match is_table {
            true => (&self.tables, TABLE_PAGE_BITS, TABLE),
            false => (&self.trees, PAGE_BITS, 0),
        };
        let number = counter.fetch_add(1, Relaxed) + 1;
        if number >= TABLE >> bits {
            // Not one of the numbers that follow is taken for a small one.
            counter.fetch_sub(1, Relaxed);
            let what = "so many trees opened by one handle of a database: open it again".into();
            return Err(Error::Unsupported { what });
        }
        Ok(kind | number << bits)
    }

    /// Bytes of memory that it may take.
    pub(crate) fn bytes(&self) -> usize {
        let frame = self.frames.page_bytes() + FRAME_OVERHEAD_BYTES + TABLE_BYTES;
        let turns = self.turns.get().map_or(0, |turns| size_of_val(&**turns));
        self.frames.limit() * frame + self.frames.fixed_bytes() + turns
    }

    /// The same without what is lent to filters, about. Cost: a load.
    #[inline]
    pub(crate) fn usual_bytes(&self) -> usize {
        self.usual.load(Relaxed)
    }

    /// What trees count turns in. Made when the first one asks, and never changed.
    pub(crate) fn turns(&self) -> Arc<[AtomicU64]> {
        let turns = self.turns.get_or_init(|| {
            let count = (self.frames.limit() * TURNS_A_FRAME).clamp(TURNS.0, TURNS.1);
            (0..count).map(|_| AtomicU64::new(0)).collect()
        });
        Arc::clone(turns)
    }

    /// Changes the size, of which `lent` bytes are for filters. Pages in frames that have to go are
    /// forgotten.
    fn set_memory(&self, bytes: usize, lent: usize) {
        let page_bytes = self.frames.page_bytes();
        let usual = usual_bytes(page_bytes, bytes - lent.min(bytes));
        self.usual.store(usual, Relaxed);
        let limit = frames_for(page_bytes, bytes);
        self.frames.set_limit(limit);
        for number in limit..self.frames.used_once() {
            self.evict(number as u32);
        }
        self.frames.reclaim();
        for shard in &self.table {
            shard.lock().shrink_to(limit / SHARDS);
        }
    }

    fn shard(&self, tag: u64) -> &Mutex<HashMap<u64, u32>> {
        let hash = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        &self.table[hash as usize % SHARDS]
    }

    /// The page `tag` if it is in a frame; `hint` (0: none) says which to look at first. Returns
    /// the frame's hint too. `rounds`: how much longer the page stays, 0 for no longer.
    #[inline]
    pub(crate) fn find<'g>(
        &self,
        guard: &'g FrameGuard<'_>,
        tag: u64,
        hint: u32,
        rounds: u8,
    ) -> Option<(FrameView<'g>, u32)> {
        if let Some(number) = hint.checked_sub(1)
            && let Some(view) = guard.find(number, tag, rounds)
        {
            return Some((view, hint));
        }
        let number = *self.shard(tag).lock().get(&tag)?;
        Some((guard.find(number, tag, rounds)?, number + 1))
    }

    /// Whether the page is in a frame, most likely.
    pub(crate) fn contains(&self, tag: u64) -> bool {
        self.shard(tag).lock().contains_key(&tag)
    }

    /// Reads page `number` from the device, into a frame if one can be had.
    pub(crate) fn load(&self, file: &impl PageSource, number: PageNo) -> Result<Loaded<'_>> {
        self.reads.fetch_add(1, Relaxed);
        match self.free_frame() {
            Some(mut frame) => {
                file.read(number, frame.bytes_mut())?;
                Ok(Loaded::Frame(frame))
            }
            None => {
                let mut page = file.page_buffer();
                file.read(number, &mut page)?;
                Ok(Loaded::Alone(page))
            }
        }
    }

    /// Reads pages `numbers` of the tree with tags `tree` into frames and shows them; as many, from
    /// the first on, as frames can be had for. They must be pages that the caller's version has.
    pub(crate) fn load_all(
        &self,
        file: &impl PageSource,
        tree: u64,
        numbers: &[PageNo],
    ) -> Result<()> {
        let tags: Vec<u64> = numbers.iter().map(|n| tree | file.place(*n)).collect();
        self.fill(&tags, |frames| {
            let mut pages: Vec<_> = numbers.iter().copied().zip(frames).collect();
            file.read_all(&mut pages)
        })
    }

    /// Shows pages `tags` in frames; as many, from the first on, as frames can be had for. `read`
    /// fills and checks that many pages.
    pub(crate) fn fill(
        &self,
        tags: &[u64],
        read: impl FnOnce(Vec<&mut [u8]>) -> Result<()>,
    ) -> Result<()> {
        let mut frames: Vec<OwnedFrame<'_>> = Vec::with_capacity(tags.len());
        while frames.len() < tags.len()
            && let Some(frame) = self.free_frame()
        {
            frames.push(frame);
        }
        self.reads.fetch_add(frames.len() as u64, Relaxed);
        read(frames.iter_mut().map(OwnedFrame::bytes_mut).collect())?;
        for (tag, frame) in tags.iter().zip(frames) {
            self.show(*tag, frame);
        }
        Ok(())
    }

    /// Shows a page that was read. It must be one that the caller's version has. Returns a hint
    /// where it is (0: in no frame).
    pub(crate) fn keep(&self, tag: u64, page: Loaded<'_>) -> u32 {
        match page {
            Loaded::Frame(frame) => self.show(tag, frame) + 1,
            Loaded::Alone(_) => 0,
        }
    }

    /// Puts a page that was written into a frame, if one is free.
    pub(crate) fn insert(&self, tag: u64, page: &[u8]) {
        if let Some(mut frame) = self.free_frame()
            && frame.bytes().len() == page.len()
        {
            frame.bytes_mut().copy_from_slice(page);
            self.show(tag, frame);
        }
    }

    /// Returns the number of the frame that the page is in.
    fn show(&self, tag: u64, frame: OwnedFrame<'_>) -> u32 {
        let split = node::split(frame.bytes());
        let mut table = self.shard(tag).lock();
        match table.get(&tag) {
            Some(&number) if self.frames.tag(number) == tag => number,
            _ => {
                let number = frame.publish(tag, split);
                table.insert(tag, number);
                number
            }
        }
    }

    /// The page is going to be free: what is known of it must not be found under its number again.
    pub(crate) fn forget(&self, tag: u64) {
        let number = self.shard(tag).lock().remove(&tag);
        if let Some(number) = number {
            self.frames.unlink(number, tag);
        }
    }

    fn free_frame(&self) -> Option<OwnedFrame<'_>> {
        self.frames.take().or_else(|| {
            self.replenish();
            self.frames.take()
        })
    }

    /// The page provider's step: makes frames free until as many are as should be. True if it did
    /// something.
    pub(crate) fn replenish(&self) -> bool {
        let Some(mut hand) = self.hand.try_lock() else {
            return self.frames.reclaim() > 0;
        };
        let wanted = (self.frames.limit() / FREE_DIVISOR).clamp(1, MAX_EVICTIONS);
        let mut evicted = 0;
        let used = self.frames.used_once();
        // Once around more than pages may stay.
        let mut steps = (usize::from(INNER_ROUNDS) + 1) * used;
        while self.frames.free_frames() + evicted < wanted && steps > 0 {
            steps -= 1;
            *hand = if *hand + 1 < used { *hand + 1 } else { 0 };
            let number = *hand as u32;
            if !self.frames.pass_over(number) && self.evict(number) {
                evicted += 1;
            }
        }
        self.frames.reclaim() > 0 || evicted > 0
    }

    fn evict(&self, number: u32) -> bool {
        let tag = self.frames.tag(number);
        if tag == NO_PAGE {
            return false;
        }
        // Before the frame is out of sight: with the same page in it again it would be in no table.
        let mut table = self.shard(tag).lock();
        if !self.frames.unlink(number, tag) {
            return false;
        }
        if table.get(&tag) == Some(&number) {
            table.remove(&tag);
        }
        true
    }
}

impl Loaded<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Frame(frame) => frame.bytes(),
            Self::Alone(page) => page,
        }
    }
}

/// Copies the page in a frame, hints included.
pub(crate) fn copy_frame(view: FrameView<'_>, to: &mut AlignedBuffer) {
    page::put(to, 0, view.bytes);
    for (i, word) in view.words.iter().enumerate() {
        let at = view.bytes.len() + i * 8;
        page::put(to, at, &word.load(Relaxed).to_ne_bytes());
    }
}

fn frames_for(page_bytes: usize, memory_bytes: usize) -> usize {
    let frame = page_bytes + FRAME_OVERHEAD_BYTES + TABLE_BYTES;
    (memory_bytes / frame).clamp(MIN_FRAMES, MAX_FRAMES)
}

fn usual_bytes(page_bytes: usize, memory_bytes: usize) -> usize {
    frames_for(page_bytes, memory_bytes) * (page_bytes + FRAME_OVERHEAD_BYTES + TABLE_BYTES)
}

/// What all trees of pages of a database share: a pool for each size of pages in use.
pub(crate) struct PageCache {
    pools: Mutex<Pools>,
}

struct Pools {
    /// For all pools together, in bytes.
    total: usize,
    /// Besides, for the pool that filters are in.
    lent: usize,
    pools: Vec<Arc<Pool>>,
    loans: Vec<Weak<FilterLoan>>,
    borrowers: Arc<Borrowers>,
}

impl PageCache {
    /// Pools of together `memory_bytes` bytes (a few dozen pages at least). Nothing is allocated
    /// yet.
    pub(crate) fn new(memory_bytes: usize) -> Self {
        let pools = Mutex::new(Pools {
            total: memory_bytes,
            lent: 0,
            pools: Vec::new(),
            loans: Vec::new(),
            borrowers: Arc::default(),
        });
        Self { pools }
    }

    /// Upper bound in bytes of what the pools hold in memory, whatever the trees do (I7).
    pub(crate) fn memory_bytes(&self) -> usize {
        let pools = self.pools.lock();
        let taken: usize = pools.pools.iter().map(|p| p.bytes()).sum();
        taken.max(pools.total + pools.lent)
    }

    /// Changes the size, at any time; pages that do not fit any more are forgotten.
    pub(crate) fn set_memory(&self, memory_bytes: usize) {
        let mut pools = self.pools.lock();
        pools.total = memory_bytes;
        pools.forget_unused();
        pools.resize_all(pools.pools.len());
    }

    /// Changes what filters have beside that, at any time.
    pub(crate) fn lend(&self, bytes: usize) {
        let mut pools = self.pools.lock();
        pools.lent = bytes;
        pools.forget_unused();
        pools.resize_all(pools.pools.len());
    }

    /// Says how much filters would be lent at most.
    pub(crate) fn offer(&self, bytes: usize) {
        self.pools.lock().borrowers.offer(bytes);
    }

    /// Where one more tree says what its filters need, and learns what they have.
    pub(crate) fn loan(&self) -> Arc<FilterLoan> {
        let mut pools = self.pools.lock();
        let loan = Arc::new(FilterLoan::new(&pools.borrowers));
        pools.loans.retain(|loan| loan.strong_count() > 0);
        pools.loans.push(Arc::downgrade(&loan));
        loan
    }

    /// Those of the trees that are there.
    pub(crate) fn loans(&self) -> Vec<Arc<FilterLoan>> {
        let pools = self.pools.lock();
        pools.loans.iter().filter_map(Weak::upgrade).collect()
    }

    /// The pool of pages of `page_bytes`. Those that no tree uses any more give their share back.
    pub(crate) fn pool(&self, page_bytes: usize) -> Arc<Pool> {
        let mut pools = self.pools.lock();
        pools.forget_unused();
        let found = pools
            .pools
            .iter()
            .find(|p| p.frames.page_bytes() == page_bytes);
        if let Some(pool) = found {
            return Arc::clone(pool);
        }
        let parts = pools.pools.len() + 1;
        pools.resize_all(parts);
        let pool = Arc::new(Pool::new(page_bytes, pools.total / parts));
        pools.pools.push(Arc::clone(&pool));
        pools.resize_all(parts);
        pool
    }
}

impl Pools {
    /// Nobody else can begin to use one meanwhile: whoever wants it comes here for it.
    fn forget_unused(&mut self) {
        let before = self.pools.len();
        self.pools.retain(|pool| Arc::strong_count(pool) > 1);
        if self.pools.len() < before {
            self.resize_all(self.pools.len());
        }
    }

    /// Gives every pool one of `parts` equal parts, and that of filters what is lent to them.
    fn resize_all(&self, parts: usize) {
        for pool in &self.pools {
            let lent = match pool.frames.page_bytes() == FILTER_PAGE_BYTES {
                true => self.lent,
                false => 0,
            };
            pool.set_memory(self.total / parts.max(1) + lent, lent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A size of pages that no tree has any more takes no share.
    #[test]
    fn a_pool_that_is_not_used_gives_its_share_back() {
        const MIB: usize = 1 << 20;
        let cache = PageCache::new(4 * MIB);
        let small = cache.pool(4096);
        let whole = small.bytes();
        let large = cache.pool(16384);
        assert!(small.bytes() < whole * 3 / 4);
        drop(large);
        assert!(Arc::ptr_eq(&small, &cache.pool(4096)));
        assert_eq!(small.bytes(), whole);
    }

    /// The last tags of trees do not run into those of tables, nor begin anew.
    #[test]
    fn tags_are_never_given_twice() {
        let pool = Pool::new(4096, 1 << 20);
        let last = (TABLE >> PAGE_BITS) - 1;
        pool.trees.store(last - 1, Relaxed);
        assert_eq!(pool.tags_of_a_tree(false).unwrap(), last << PAGE_BITS);
        for _ in 0..3 {
            assert!(pool.tags_of_a_tree(false).is_err());
        }
        assert!(pool.tags_of_a_tree(true).is_ok());
    }

    /// Pages that were read since they came in outlive a crowd of those that were not.
    #[test]
    fn a_page_read_again_outlives_those_read_once() {
        const FRAMES: u64 = 64;
        let bytes = FRAMES as usize * (4096 + FRAME_OVERHEAD_BYTES + TABLE_BYTES);
        let pool = Pool::new(4096, bytes);
        let page = vec![0; 4096];
        let tag = |number: u64| 1 << PAGE_BITS | number;
        (0..FRAMES).for_each(|number| pool.insert(tag(number), &page));
        let again: Vec<u64> = (1..FRAMES).step_by(8).collect();
        for number in &again {
            assert!(
                pool.find(&pool.frames.enter(), tag(*number), 0, LEAF_ROUNDS)
                    .is_some()
            );
        }
        (FRAMES..FRAMES + FRAMES / 2).for_each(|number| pool.insert(tag(number), &page));
        for number in &again {
            assert!(pool.contains(tag(*number)), "page {number}");
        }
        let left = (0..FRAMES).filter(|n| pool.contains(tag(*n))).count();
        assert!(left < FRAMES as usize, "nothing made room");
    }
}
