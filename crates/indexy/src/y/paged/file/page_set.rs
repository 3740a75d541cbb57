//! A set of pages that takes little memory, whether it has few pages of the file or most.
//!
//! Pure. It is a list while that is shorter, and then a bit for each page of the file up to the
//! last one of the set. So what a run replaces in a large file takes eight bytes a page, and who
//! removes a large tree holds an eighth of a byte a page.

use super::bits::Bits;
use crate::y::page::PageNo;

/// The list is looked at when it has so many pages, and then whenever it has twice as many.
const FEW: usize = 2048;

/// See the module header.
#[derive(Debug, Default)]
pub(crate) struct PageSet {
    few: Vec<PageNo>,
    many: Bits,
    /// The list is looked at when it is so long; 0: at [`FEW`].
    look_at: usize,
}

impl PageSet {
    /// Adds a page that the set does not have.
    pub(crate) fn push(&mut self, page: PageNo) {
        if self.few.len() >= self.look_at.max(FEW) {
            self.shorten();
        }
        self.few.push(page);
    }

    /// Turns the list into bits if these take less.
    fn shorten(&mut self) {
        let last = self.few.iter().copied().max().unwrap_or(0);
        let more = (last as usize / 8).saturating_sub(self.many.bytes());
        if more > self.few.len() * size_of::<PageNo>() {
            self.look_at = self.few.len() * 2;
            return;
        }
        // The last one first: the bits grow once.
        self.many.set(last, true);
        for page in self.few.drain(..) {
            self.many.set(page, true);
        }
        self.look_at = 0;
    }

    /// Adds pages that the set does not have.
    pub(crate) fn extend(&mut self, pages: impl IntoIterator<Item = PageNo>) {
        pages.into_iter().for_each(|page| self.push(page));
    }

    /// In no order.
    pub(crate) fn pages(&self) -> impl Iterator<Item = PageNo> + Clone {
        self.few.iter().copied().chain(self.many.pages())
    }

    pub(crate) fn bytes(&self) -> usize {
        self.few.capacity() * size_of::<PageNo>() + self.many.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(pages: impl Iterator<Item = PageNo>) -> Vec<PageNo> {
        let mut all: Vec<_> = pages.collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_set_of_most_pages_takes_a_bit_for_each() {
        let pages = (0..1_000_000u64).map(|n| n * 7 % 1_000_003);
        let mut set = PageSet::default();
        set.extend(pages.clone());
        assert!(set.bytes() < 1_000_003 / 4 + FEW * 32, "{}", set.bytes());
        assert_eq!(sorted(set.pages()), sorted(pages));
    }

    /// As what runs replace while somebody reads an old version: there may be many such sets.
    #[test]
    fn a_set_of_few_pages_of_a_large_file_takes_no_bit_of_the_others() {
        let pages = (0..10_000u64).map(|n| n * 7919 % 100_000_007);
        let mut set = PageSet::default();
        set.extend(pages.clone());
        assert!(set.bytes() <= 10_000 * 16, "{}", set.bytes());
        // More of them, up to nearly all.
        let more = (200_000_000..200_003_000u64).chain(10_000_000..12_000_000);
        set.extend(more.clone());
        assert!(set.bytes() <= 4_100_000 * 8, "{}", set.bytes());
        assert_eq!(sorted(set.pages()), sorted(pages.chain(more)));
    }
}
