//! The stored map of used pages: what a tree knows at open of what is free.
//!
//! The map is cut into parts of a page; a list of pages names the pages of the parts. A commit
//! writes the parts that changed and the list to free pages, as everything else is written; the
//! superblock names the list.

use super::{PageFile, bits::Bits};
use crate::y::page::PageSource;
use crate::y::page::{HEADER_BYTES, Header, Kind, PAGE_LIMIT, PageNo, put, u64_at};
use crate::{error::Result, mem::aligned::AlignedBuffer};

/// Puts out a page: `fill` gets zeros. Returns the page's number.
pub(crate) type AddPage<'a> = dyn FnMut(&mut dyn FnMut(&mut [u8])) -> Result<PageNo> + 'a;

/// Where the parts and the list of the durable map lie.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StoredMap {
    parts: Vec<PageNo>,
    list: Vec<PageNo>,
}

fn words_in_part(page_bytes: usize) -> usize {
    (page_bytes - HEADER_BYTES) / 8
}

impl StoredMap {
    pub(crate) fn first(&self) -> PageNo {
        self.list.first().copied().unwrap_or(0)
    }

    pub(crate) fn pages(&self) -> Vec<PageNo> {
        self.parts.iter().chain(&self.list).copied().collect()
    }

    /// Pages of this map that `next` does not have.
    pub(crate) fn without(&self, next: &Self) -> Vec<PageNo> {
        let kept: std::collections::HashSet<PageNo> = next.pages().into_iter().collect();
        let mut gone = self.pages();
        gone.retain(|page| !kept.contains(page));
        gone
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        (self.parts.capacity() + self.list.capacity()) * size_of::<PageNo>()
    }

    /// Writes pages for `bits`, all below `end`, which differ from what this map says as from
    /// `before`; returns the new map. Its pages from `movable` on are written anew, too.
    pub(crate) fn write(
        &self,
        page_bytes: usize,
        add: &mut AddPage<'_>,
        before: &Bits,
        bits: &Bits,
        end: PageNo,
        movable: PageNo,
    ) -> Result<Self> {
        let words = words_in_part(page_bytes);
        let parts = end.div_ceil(words as u64 * 64) as usize;
        let mut next = Self::default();
        for part in 0..parts {
            let from = part * words;
            let same = before.words(from, words).eq(bits.words(from, words));
            let page = match self.parts.get(part) {
                Some(page) if same && *page < movable => *page,
                _ => write_words(add, Kind::Map, 0, bits.words(from, words))?,
            };
            next.parts.push(page);
        }
        // Backwards, so that each page knows the next one.
        let mut link = 0;
        for chunk in next.parts.chunks(words).rev() {
            link = write_words(add, Kind::MapList, link, chunk.iter().copied())?;
            next.list.insert(0, link);
        }
        Ok(next)
    }

    /// Reads the map that starts at page `first`; `end`: pages that it tells of.
    pub(crate) fn load(file: &PageFile, first: PageNo, end: PageNo) -> Result<(Self, Bits)> {
        let words = words_in_part(file.page_bytes);
        let parts = end.div_ceil(words as u64 * 64);
        let mut map = Self::default();
        let mut link = first;
        while link != 0 {
            // A list that is too long is one that goes round in circles.
            if map.list.len() as u64 > parts {
                return Err(file.corrupt(link, "the list of the map does not end"));
            }
            map.list.push(link);
            let at = link;
            link = read_words(file, link, Kind::MapList, |page| map.parts.push(page))?;
            let usable = |page: &PageNo| *page != 0 && *page < PAGE_LIMIT;
            if !map.parts.iter().all(usable) {
                return Err(file.corrupt(at, "the list of the map names no page"));
            }
        }
        // There may be fewer: behind the last one nothing is used but pages of the map.
        if map.parts.len() as u64 > parts {
            return Err(file.corrupt(first, "the map has more parts than the tree has pages"));
        }
        let mut bits = Bits::default();
        for (i, page) in map.parts.iter().enumerate() {
            let mut at = i * words;
            read_words(file, *page, Kind::Map, |word| {
                bits.set_word(at, word);
                at += 1;
            })?;
        }
        let beyond = bits.pages().last().is_some_and(|page| page >= end);
        let before = (0..file.first_page()).any(|page| bits.get(page));
        if beyond || before {
            return Err(file.corrupt(first, "the map names pages that cannot be"));
        }
        Ok((map, bits))
    }
}

fn write_words(
    add: &mut AddPage<'_>,
    kind: Kind,
    link: PageNo,
    mut words: impl Iterator<Item = u64>,
) -> Result<PageNo> {
    add(&mut |page| {
        let mut at = HEADER_BYTES;
        for word in words.by_ref() {
            put(page, at, &word.to_le_bytes());
            at += 8;
        }
        let header = Header {
            link,
            payload: (at - HEADER_BYTES) as u32,
            ..Header::of_kind(kind)
        };
        header.write(page);
    })
}

/// Feeds the words of a page to `take`; returns its link.
fn read_words(
    file: &PageFile,
    number: PageNo,
    kind: Kind,
    mut take: impl FnMut(u64),
) -> Result<PageNo> {
    let mut page = AlignedBuffer::new(file.page_bytes);
    let page = page.get_mut(..file.page_bytes).unwrap_or_default();
    file.read(number, page)?;
    let header = Header::read(page).filter(|h| h.kind == kind);
    let Some(header) = header else {
        return Err(file.corrupt(number, "this is no page of the map"));
    };
    let words = page
        .get(HEADER_BYTES..)
        .and_then(|body| body.get(..header.payload as usize))
        .ok_or_else(|| file.corrupt(number, "the map's page is too short"))?;
    for word in words.chunks_exact(8) {
        take(u64_at(word, 0).unwrap_or(0));
    }
    Ok(header.link)
}
