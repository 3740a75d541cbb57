//! Which pages were checked where they lie in the file.
//!
//! A bit for each page, in parts that are made when a page in them is first checked, each twice as
//! long as all before it. Who may do what: a reader sets the bit of a page that its version has; a
//! writer clears those of pages that no version has, before it writes them. So nobody sets a bit
//! that somebody clears, and a reader of the new version sees it cleared. Bits share words: changes
//! are atomic.

use crate::y::page::{PAGE_LIMIT, PageNo};
use std::{
    ops::Range,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// Pages of the first part: 4 KiB of bits.
const FIRST_PAGES: u64 = 1 << 15;
const PARTS: usize = (PAGE_LIMIT / FIRST_PAGES).trailing_zeros() as usize + 1;
const WORD_BITS: u64 = u64::BITS as u64;

/// See the module header.
#[derive(Default)]
pub(crate) struct CheckedPages {
    parts: [OnceLock<Box<[AtomicU64]>>; PARTS],
}

impl CheckedPages {
    /// Cost: two loads.
    pub(crate) fn has(&self, page: PageNo) -> bool {
        let word = self.word(page);
        word.is_some_and(|(word, bit)| word.load(Relaxed) & bit != 0)
    }

    pub(crate) fn set(&self, page: PageNo) {
        let (part, _, words) = place(page);
        if let Some(part) = self.parts.get(part) {
            part.get_or_init(|| (0..words).map(|_| AtomicU64::new(0)).collect());
        }
        if let Some((word, bit)) = self.word(page) {
            word.fetch_or(bit, Relaxed);
        }
    }

    pub(crate) fn forget(&self, pages: Range<PageNo>) {
        for page in pages {
            if let Some((word, bit)) = self.word(page)
                && word.load(Relaxed) & bit != 0
            {
                word.fetch_and(!bit, Relaxed);
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let parts = self.parts.iter().filter_map(OnceLock::get);
        parts.map(|words| size_of_val(&**words)).sum()
    }

    fn word(&self, page: PageNo) -> Option<(&AtomicU64, u64)> {
        let (part, at, _) = place(page);
        let words = self.parts.get(part)?.get()?;
        let word = words.get((at / WORD_BITS) as usize)?;
        Some((word, 1 << (at % WORD_BITS)))
    }
}

/// The part that `page` is in, its place there, and the words of that part.
fn place(page: PageNo) -> (usize, u64, u64) {
    let (part, start, pages) = match (page / FIRST_PAGES).checked_ilog2() {
        None => (0, 0, FIRST_PAGES),
        Some(power) => (
            power as usize + 1,
            FIRST_PAGES << power,
            FIRST_PAGES << power,
        ),
    };
    (part, page - start, pages / WORD_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_remembered_one_by_one() {
        let checked = CheckedPages::default();
        assert_eq!(checked.memory_bytes(), 0);
        let pages = [
            0,
            1,
            63,
            64,
            FIRST_PAGES - 1,
            FIRST_PAGES,
            5 * FIRST_PAGES + 7,
        ];
        for (i, page) in pages.iter().enumerate() {
            assert!(!checked.has(*page));
            checked.set(*page);
            for (j, other) in pages.iter().enumerate() {
                assert_eq!(checked.has(*other), j <= i, "{page} {other}");
            }
        }
        assert_eq!(checked.memory_bytes(), 4096 + 4096 + 16384);
        checked.forget(1..FIRST_PAGES);
        let left: Vec<_> = pages.iter().filter(|page| checked.has(**page)).collect();
        assert_eq!(left, [&0, &FIRST_PAGES, &(5 * FIRST_PAGES + 7)]);
        assert!(!checked.has(PAGE_LIMIT - 1));
    }
}
