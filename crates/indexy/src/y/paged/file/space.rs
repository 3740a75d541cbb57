//! Which pages of the file are free.
//!
//! A page is busy from its allocation until all of these hold:
//! 1. the present version does not have it (`current`),
//! 2. no version that a reader may still hold has it (`leaving`),
//! 3. neither the durable superblock nor one that is being written has it (`committed`,
//!    `committing`, `doubtful`, `held`).
//!
//! So a crash at any moment finds every page of the last durable version as it was. I4, I6: that
//! version is what the framework was told is durable.
//! Threads: one lock around all of it (in `tree.rs`), never held across I/O.
//! Not here: how the map is stored (`map.rs`).

use super::{bits::Bits, page_set::PageSet};
use crate::y::page::{PAGE_LIMIT, PageNo};
use crate::y::paged::version::Version;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// Fewer free pages at the end of the file are not worth a cut.
const LEAST_CUT: u64 = 64;
/// Nor is less than one part in so many of the file.
const CUT_DIVISOR: u64 = 8;

/// See the module header.
pub(crate) struct Space {
    first: PageNo,
    /// Pages from here on were never used.
    end: PageNo,
    busy: Bits,
    free: u64,
    cursor: PageNo,
    /// No so many free pages follow one another, as a search has found.
    no_run_of: u64,
    /// The file is longer than `end` says.
    uncut: bool,
    /// Where the file is to end, while it is compacted.
    aim: Option<PageNo>,
    /// By a number of pages, before which page no so many free ones follow one another, as searches
    /// from the beginning have found. More pages, a later page.
    no_run_before: BTreeMap<u64, PageNo>,
    current: Bits,
    committed: Bits,
    committing: Option<Bits>,
    /// Pages that a superblock may name whose writing failed, until one took its place.
    doubtful: Option<Bits>,
    /// Left the current version, read by nobody, but in a superblock.
    held: Bits,
    /// Versions that were replaced, oldest first, with the pages that their successors do not have.
    leaving: VecDeque<(Arc<Version>, PageSet)>,
    /// The current version is not the committed one.
    pub(crate) changed: bool,
}

impl Space {
    /// `used`: pages of the durable version; `map`: pages of its stored map.
    pub(crate) fn new(first: PageNo, end: PageNo, used: Bits, map: &[PageNo]) -> Self {
        let mut busy = used.clone();
        for page in map {
            busy.set(*page, true);
        }
        let end = end.max(first);
        Self {
            first,
            end,
            free: (end - first).saturating_sub(busy.count()),
            busy,
            cursor: first,
            no_run_of: u64::MAX,
            uncut: false,
            aim: None,
            no_run_before: BTreeMap::new(),
            current: used.clone(),
            committed: used,
            committing: None,
            doubtful: None,
            held: Bits::default(),
            leaving: VecDeque::new(),
            changed: false,
        }
    }

    pub(crate) fn end(&self) -> PageNo {
        self.end
    }

    /// Pages in use for whatever reason.
    #[cfg(test)]
    pub(crate) fn busy_pages(&self) -> u64 {
        self.end - self.first - self.free
    }

    pub(crate) fn current(&self) -> &Bits {
        &self.current
    }

    pub(crate) fn committed(&self) -> &Bits {
        &self.committed
    }

    /// A page that nothing needs. `None`: there can be no more pages.
    pub(crate) fn allocate(&mut self) -> Option<PageNo> {
        let page = if self.free == 0 {
            self.end
        } else {
            let found = self.busy.first(false, self.cursor, self.end);
            found.or_else(|| self.busy.first(false, self.first, self.end))?
        };
        if page >= PAGE_LIMIT {
            return None;
        }
        if page == self.end {
            self.end += 1;
        } else {
            self.free -= 1;
        }
        self.busy.set(page, true);
        self.cursor = page + 1;
        Some(page)
    }

    /// The first of `count` pages (at least 1) that follow one another and that nothing needs.
    /// `None`: there can be no more pages.
    pub(crate) fn allocate_run(&mut self, count: u64) -> Option<PageNo> {
        if count <= 1 {
            return self.allocate();
        }
        let first = self.free_run(count).unwrap_or(self.end);
        let end = first.checked_add(count).filter(|end| *end <= PAGE_LIMIT)?;
        self.free -= self.end.min(end) - first;
        self.end = self.end.max(end);
        for page in first..end {
            self.busy.set(page, true);
        }
        self.cursor = end;
        Some(first)
    }

    /// Where `count` pages are free; the last ones may lie behind the end.
    fn free_run(&mut self, count: u64) -> Option<PageNo> {
        if self.free == 0 || count >= self.no_run_of {
            return None;
        }
        let behind = self.busy.first_run(self.cursor, self.end, count, false);
        let found = behind.or_else(|| self.busy.first_run(self.first, self.end, count, true));
        if found.is_none_or(|first| first + count > self.end) {
            self.no_run_of = count;
        }
        found
    }

    /// Where the file should end, nearly, if most of it is free: what is written goes before that
    /// then.
    pub(crate) fn wanted_end(&self) -> Option<PageNo> {
        if self.aim.is_some() {
            return self.aim;
        }
        let pages = self.end - self.first;
        let used = pages - self.free;
        let sparse = self.free >= LEAST_CUT && self.free > pages / 2;
        sparse.then_some(self.first + used + used / 4 + LEAST_CUT / 4)
    }

    /// Says that the file is to end where it would if it had no holes, nearly, with `map` pages of
    /// the map; returns that. What is allocated from now on goes in front.
    pub(crate) fn set_aim(&mut self, map: u64) -> PageNo {
        let aim = self.first + self.current.count() + map + LEAST_CUT / 4;
        self.aim = Some(aim);
        self.cursor = self.first;
        self.no_run_of = u64::MAX;
        aim
    }

    pub(crate) fn clear_aim(&mut self) {
        self.aim = None;
        self.no_run_before.clear();
    }

    /// Whether a page below `end` is free.
    pub(crate) fn has_free_below(&self, end: PageNo) -> bool {
        let end = end.min(self.end);
        self.busy.first(false, self.cursor, end).is_some()
    }

    /// The first of `count` pages below `end` that follow one another and that nothing needs. What
    /// an earlier search looked at is not looked at again before pages become free.
    pub(crate) fn allocate_run_below(&mut self, count: u64, end: PageNo) -> Option<PageNo> {
        let end = end.min(self.end);
        let known = self.no_run_before.range(..=count).next_back();
        // A run may begin in what was looked at, and end behind it.
        let from = known.map_or(self.first, |(_, page)| page.saturating_sub(count - 1));
        let first = self.busy.first_run(from.max(self.first), end, count, false);
        self.note_no_run(count, first.map_or(end, |first| first + count));
        let first = first?;
        for page in first..first + count {
            self.busy.set(page, true);
        }
        self.free -= count;
        Some(first)
    }

    /// No `count` free pages follow one another before `page`.
    fn note_no_run(&mut self, count: u64, page: PageNo) {
        let known = self.no_run_before.range(..=count).next_back();
        if known.is_some_and(|(_, known)| *known >= page) {
            return;
        }
        while let Some((more, _)) = self
            .no_run_before
            .range(count..)
            .next()
            .filter(|(_, known)| **known <= page)
        {
            let more = *more;
            self.no_run_before.remove(&more);
        }
        self.no_run_before.insert(count, page);
    }

    /// Pages became free.
    fn forget_searches(&mut self) {
        self.no_run_of = u64::MAX;
        self.no_run_before.clear();
    }

    /// The first of `count` pages behind all others.
    pub(crate) fn allocate_last(&mut self, count: u64) -> Option<PageNo> {
        let first = self.end;
        self.end = first.checked_add(count).filter(|end| *end <= PAGE_LIMIT)?;
        for page in first..self.end {
            self.busy.set(page, true);
        }
        Some(first)
    }

    /// Pages before the end that nothing needs.
    pub(crate) fn free_pages(&self) -> u64 {
        self.free
    }

    /// The file has pages behind the end, which the next [`cut`](Self::cut) cuts off.
    pub(crate) fn set_uncut(&mut self) {
        self.uncut = true;
    }

    /// Cuts the free pages at the end off, if they are worth it; returns where the file is to end,
    /// if it ends elsewhere. The next commit makes it known.
    pub(crate) fn cut(&mut self) -> Option<PageNo> {
        let end = self.busy.last().map_or(self.first, |page| page + 1);
        let end = end.max(self.first);
        let cut = self.end.checked_sub(end)?;
        let least = match self.aim {
            Some(_) => 1,
            None => LEAST_CUT.max((self.end - self.first) / CUT_DIVISOR),
        };
        let uncut = std::mem::take(&mut self.uncut);
        if cut < least {
            return uncut.then_some(self.end);
        }
        self.free -= cut;
        self.end = end;
        self.cursor = self.cursor.min(end);
        self.changed = true;
        Some(end)
    }

    /// Takes back pages that no version and no superblock has.
    pub(crate) fn free(&mut self, pages: impl Iterator<Item = PageNo>) {
        for page in pages {
            debug_assert!(!self.current.get(page), "page {page} is in use");
            if self.busy.set(page, false) {
                self.free += 1;
                self.forget_searches();
            }
        }
    }

    /// A new version: it has `added`, and not `removed`, which may be pages of `added` too. Returns
    /// those that nobody can have seen; the caller frees them.
    pub(crate) fn publish(
        &mut self,
        replaced: Arc<Version>,
        added: impl Iterator<Item = PageNo>,
        removed: &PageSet,
    ) -> PageSet {
        let (mut seen, mut unseen) = (PageSet::default(), PageSet::default());
        for page in removed.pages() {
            match self.current.get(page) {
                true => seen.push(page),
                false => unseen.push(page),
            }
        }
        for page in added {
            self.current.set(page, true);
        }
        for page in removed.pages() {
            self.current.set(page, false);
        }
        self.leaving.push_back((replaced, seen));
        self.changed = true;
        unseen
    }

    /// Pages that became free because nobody holds an old version any more; the caller frees them.
    pub(crate) fn unread(&mut self) -> PageSet {
        let mut unread = PageSet::default();
        // In order: a version also has the pages that its elders' successors lost later.
        while let Some((version, _)) = self.leaving.front_mut() {
            if Arc::get_mut(version).is_none() {
                break;
            }
            let pages = self.leaving.pop_front().map(|(_, pages)| pages);
            for page in pages.unwrap_or_default().pages() {
                if self.in_superblock(page) {
                    self.held.set(page, true);
                } else {
                    unread.push(page);
                }
            }
        }
        unread
    }

    fn in_superblock(&self, page: PageNo) -> bool {
        let others = [&self.committing, &self.doubtful];
        let mut others = others.into_iter().flatten();
        self.committed.get(page) || others.any(|bits| bits.get(page))
    }

    /// The current version is going to be written as durable; returns its pages.
    pub(crate) fn begin_commit(&mut self) -> Bits {
        if self.wanted_end().is_some() {
            self.cursor = self.first;
        }
        self.committing = Some(self.current.clone());
        self.changed = false;
        self.current.clone()
    }

    /// It is durable. Returns what became free; the caller frees it.
    pub(crate) fn end_commit(&mut self) -> Bits {
        if let Some(bits) = self.committing.take() {
            self.committed = bits;
        }
        self.doubtful = None;
        self.unhold()
    }

    /// It did not become durable. `map`: the pages of its map, if a superblock may name it all the
    /// same.
    pub(crate) fn abort_commit(&mut self, map: Option<&[PageNo]>) -> Bits {
        let bits = self.committing.take();
        self.changed = true;
        if let (Some(bits), Some(map)) = (bits, map) {
            let doubtful = self.doubtful.get_or_insert_default();
            doubtful.unite(&bits);
            for page in map {
                doubtful.set(*page, true);
                self.held.set(*page, true);
            }
        }
        self.unhold()
    }

    /// Lets go of held pages that no superblock has any more; returns them.
    fn unhold(&mut self) -> Bits {
        let mut held = std::mem::take(&mut self.held);
        let free = held.split_off(|page| self.in_superblock(page));
        self.held = held;
        free
    }

    /// No version but the present one is held by anybody.
    pub(crate) fn settled(&self) -> bool {
        self.leaving.is_empty()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let leaving: usize = self.leaving.iter().map(|(_, pages)| pages.bytes()).sum();
        let bits = [&self.busy, &self.current, &self.committed, &self.held];
        let more = [&self.committing, &self.doubtful].into_iter().flatten();
        let bits = bits.into_iter().chain(more).map(Bits::bytes);
        bits.sum::<usize>() + leaving
    }
}
