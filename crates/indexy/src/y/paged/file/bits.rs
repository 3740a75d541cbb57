//! A bit for each page of the file. Pure.

use crate::y::page::PageNo;

const WORD: u64 = u64::BITS as u64;

/// A bit a page; what lies behind its end is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn get(&self, page: PageNo) -> bool {
        let word = self.0.get((page / WORD) as usize);
        word.is_some_and(|w| w >> (page % WORD) & 1 == 1)
    }

    /// Sets the bit; returns what it was.
    pub(crate) fn set(&mut self, page: PageNo, to: bool) -> bool {
        let at = (page / WORD) as usize;
        if at >= self.0.len() {
            if !to {
                return false;
            }
            self.0.resize(at + 1, 0);
        }
        let Some(word) = self.0.get_mut(at) else {
            return false;
        };
        let bit = 1 << (page % WORD);
        let was = *word & bit != 0;
        *word = if to { *word | bit } else { *word & !bit };
        was
    }

    /// Clears the bits for which `keep` is false; returns those.
    pub(super) fn split_off(&mut self, keep: impl Fn(PageNo) -> bool) -> Self {
        let mut off = Self::default();
        for page in self.pages().filter(|page| !keep(*page)) {
            off.set(page, true);
        }
        for (word, gone) in self.0.iter_mut().zip(&off.0) {
            *word &= !gone;
        }
        off
    }

    pub(super) fn unite(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    /// The first bit in `[from, to)` that is `set`.
    pub(super) fn first(&self, set: bool, from: PageNo, to: PageNo) -> Option<PageNo> {
        let mut page = from;
        while page < to {
            let word = self.0.get((page / WORD) as usize).copied().unwrap_or(0);
            let skipped = page % WORD;
            let wanted = if set { word } else { !word } >> skipped;
            if wanted != 0 {
                let found = page + u64::from(wanted.trailing_zeros());
                return (found < to).then_some(found);
            }
            page += WORD - skipped;
        }
        None
    }

    /// The first of `count` clear bits in `[from, to)` that follow one another; those at `to` may
    /// be fewer if `open` says so.
    pub(super) fn first_run(
        &self,
        from: PageNo,
        to: PageNo,
        count: u64,
        open: bool,
    ) -> Option<PageNo> {
        let mut page = from;
        loop {
            let start = self.first(false, page, to)?;
            let end = self.first(true, start, to.min(start + count));
            match end {
                Some(end) => page = end,
                None if start + count <= to || open => return Some(start),
                None => return None,
            }
        }
    }

    pub(crate) fn words(&self, from: usize, count: usize) -> impl Iterator<Item = u64> + '_ {
        (from..from + count).map(|i| self.0.get(i).copied().unwrap_or(0))
    }

    pub(crate) fn set_word(&mut self, at: usize, word: u64) {
        if word != 0 && at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        if let Some(to) = self.0.get_mut(at) {
            *to = word;
        }
    }

    pub(crate) fn pages(&self) -> impl Iterator<Item = PageNo> + Clone {
        let words = self.0.iter().enumerate().filter(|(_, word)| **word != 0);
        words.flat_map(|(i, word)| {
            let set = (0..WORD).filter(move |b| word >> b & 1 == 1);
            set.map(move |b| i as u64 * WORD + b)
        })
    }

    /// The highest bit that is set.
    pub(super) fn last(&self) -> Option<PageNo> {
        let at = self.0.iter().rposition(|word| *word != 0)?;
        let word = self.0.get(at)?;
        Some(at as u64 * WORD + u64::from(word.ilog2()))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }
}
