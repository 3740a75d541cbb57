//! A set of pages that takes little memory, whether it has few or most of the file.
//!
//! Pure. A list of few pages costs a run eight bytes each; beyond, a bit for each page of the file
//! up to the last one, so that whoever removes a large tree holds a 32,768th of pages of 4 KiB.

use super::bits::Bits;
use crate::y::page::PageNo;

/// So many pages are a list.
const FEW: usize = 2048;

/// See the module header.
#[derive(Debug, Default)]
pub(crate) struct PageSet {
    few: Vec<PageNo>,
    many: Bits,
}

impl PageSet {
    /// Adds a page that the set does not have.
    pub(crate) fn push(&mut self, page: PageNo) {
        if self.few.len() == FEW {
            for page in self.few.drain(..) {
                self.many.set(page, true);
            }
        }
        self.few.push(page);
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

    #[test]
    fn a_set_has_what_was_put_in_and_stays_small() {
        let mut set = PageSet::default();
        for n in 0..1_000_000u64 {
            set.push(n * 7 % 1_000_003);
            if n == FEW as u64 - 1 {
                assert_eq!(set.bytes(), FEW * size_of::<PageNo>());
            }
        }
        assert!(
            set.bytes() < 1_000_003 / 8 * 2 + FEW * 8 * 2,
            "{}",
            set.bytes()
        );
        let mut all: Vec<_> = set.pages().collect();
        all.sort_unstable();
        let mut expected: Vec<_> = (0..1_000_000u64).map(|n| n * 7 % 1_000_003).collect();
        expected.sort_unstable();
        assert_eq!(all, expected);
    }
}
