//! Nodes: the checked view of leaves and inner pages, and the search in them.
//!
//! Behind the header ([`page`](super)), as `docs/formats/pages.md` has it in full:
//!
//! - slots of 8 bytes: the *head* (the first four key bytes behind the prefix, as a number), then
//!   offset and length (with flags) of the entry;
//! - the prefix that all keys start with;
//! - entries: the key behind the prefix, with [`FAR_KEY`] where the whole key is; in leaves the
//!   value, with [`FAR_VALUE`] where it is, with [`DELETED`] none;
//! - at the end of an inner page, a reference of 8 bytes to each child.
//!
//! A key longer than [`max_stub`] lies elsewhere; its *stub*, its first bytes of that length, is
//! in the page. An inner page of n references has n - 1 slots: keys from that of slot i on, up to
//! that of the next, are under child i + 1. In memory the references hold a hint where the child's
//! frame is, above the page's number.
//!
//! A leaf whose keys and values have equal lengths may be of another kind, without slots:
//! `fixed.rs`. The view is the same.
//!
//! Every access is checked: `None` means that the page makes no sense, which the caller turns into
//! `Corrupt`.

use super::{
    HEADER_BYTES, Header, Kind, PAGE_LIMIT, PageNo,
    fixed::{DELETES, Fixed, Suffix},
    put, u16_at, u32_at, u64_at,
};
use crate::{error::Result, mem::frames::FrameView};
use std::{
    cmp::Ordering,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

pub(crate) const SLOT_BYTES: usize = 8;
pub(crate) const REFERENCE_BYTES: usize = 8;
/// Where a key or value is that does not lie near: its length and its first page.
pub(super) const FAR_BYTES: usize = 12;
pub(crate) const FAR_KEY: u16 = 1 << 15;
pub(crate) const FAR_VALUE: u16 = 1 << 14;
/// The entry says that its key is deleted, and has no value. Only in tables of the run store.
pub(crate) const DELETED: u16 = 1 << 13;
/// Of pages with a longer prefix the heads do not decide: a stub may end before its head does.
const MAX_PREFIX_FOR_HEADS: usize = max_stub(4096) - 4;
pub(super) const LENGTH: u16 = DELETED - 1;
/// Bits of a reference that name the page; above them is the hint.
const NUMBER_BITS: u32 = PAGE_LIMIT.trailing_zeros();

/// Bytes of a key that lie in a page at most.
pub(crate) const fn max_stub(page_bytes: usize) -> usize {
    page_bytes / 8
}

/// Bytes of key and value that lie in a leaf at most; if there are more, the value lies
/// elsewhere.
pub(crate) const fn max_near(page_bytes: usize) -> usize {
    page_bytes / 4
}

/// Bytes of the largest pages.
const LARGEST_PAGE: usize = 16 << 10;
// Slots and the header of a fixed leaf have room for the lengths of what is near.
const _: () = assert!(max_stub(LARGEST_PAGE) <= LENGTH as usize);
const _: () = assert!(max_near(LARGEST_PAGE) < DELETES as usize);

/// Bytes that lie outside of nodes. What file they are in, and how, is for the tree to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Far {
    pub(crate) bytes: u32,
    pub(crate) first: PageNo,
}

/// A key in a page: its first bytes and, if it is longer, where all of it is.
#[derive(Clone, Copy)]
pub(crate) struct KeyAt<'a> {
    prefix: &'a [u8],
    suffix: Suffix<'a>,
    pub(crate) far: Option<Far>,
}

#[derive(Clone, Copy)]
pub(crate) enum ValueAt<'a> {
    Near(&'a [u8]),
    Far(Far),
    Deleted,
}

/// Where the value of an entry is: if it is near, its bytes in the page.
#[derive(Clone)]
pub(super) enum Place {
    Near(Range<usize>),
    Far(Far),
    Deleted,
}

/// An entry of a leaf, the first bytes of its key in one piece.
#[derive(Clone, Copy)]
pub(crate) struct EntryAt<'a> {
    pub(crate) stub: &'a [u8],
    /// Where all of the key is, if that is more.
    pub(crate) far_key: Option<Far>,
    pub(crate) value: ValueAt<'a>,
}

#[derive(Clone, Copy)]
enum References<'a> {
    Words(&'a [AtomicU64]),
    Bytes(&'a [u8]),
}

/// A leaf or inner page.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    bytes: &'a [u8],
    references: References<'a>,
    pub(crate) level: u8,
    count: usize,
    prefix: &'a [u8],
    /// A leaf without slots.
    fixed: Option<Fixed<'a>>,
}

/// Gives bytes that lie outside of nodes.
pub(crate) type Fetch<'f> = &'f dyn Fn(Far) -> Result<Vec<u8>>;

/// Where the references of `page` start; the page's size if it has none.
pub(crate) fn split(page: &[u8]) -> usize {
    match Header::read(page) {
        Some(header) if header.kind == Kind::Inner => {
            let references = usize::from(header.count) * REFERENCE_BYTES;
            page.len().saturating_sub(references).max(HEADER_BYTES)
        }
        _ => page.len(),
    }
}

impl<'a> Node<'a> {
    /// A whole page, as it was read. `None`: not a node.
    pub(crate) fn of_page(page: &'a [u8]) -> Option<Self> {
        let (bytes, references) = page.split_at_checked(split(page))?;
        Self::new(bytes, References::Bytes(references))
    }

    pub(crate) fn of_frame(view: FrameView<'a>) -> Option<Self> {
        Self::new(view.bytes, References::Words(view.words))
    }

    #[inline]
    fn new(bytes: &'a [u8], references: References<'a>) -> Option<Self> {
        let header = Header::read(bytes)?;
        let count = usize::from(header.count);
        let slots = match header.kind {
            Kind::FixedLeaf => return Self::fixed(bytes, references, &header),
            Kind::Leaf => count,
            Kind::Inner => {
                let found = match references {
                    References::Words(words) => words.len(),
                    References::Bytes(bytes) => bytes.len() / REFERENCE_BYTES,
                };
                if found != count {
                    return None;
                }
                count.checked_sub(1)?
            }
            _ => return None,
        };
        let prefix_at = HEADER_BYTES + slots * SLOT_BYTES;
        let prefix = bytes.get(prefix_at..prefix_at + usize::from(header.prefix))?;
        Some(Self {
            bytes,
            references,
            level: header.level,
            count: slots,
            prefix,
            fixed: None,
        })
    }

    #[inline]
    fn fixed(bytes: &'a [u8], references: References<'a>, header: &Header) -> Option<Self> {
        let fixed = Fixed::new(bytes, header)?;
        Some(Self {
            bytes,
            references,
            level: header.level,
            count: usize::from(header.count),
            prefix: fixed.prefix,
            fixed: Some(fixed),
        })
    }

    /// The page, without the references of an inner page.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.level == 0
    }

    /// Keys in the page.
    pub(crate) fn keys(&self) -> usize {
        self.count
    }

    /// Children of an inner page.
    pub(crate) fn children(&self) -> usize {
        self.count + 1
    }

    /// Page of child `i`, and the hint where its frame is (0: none).
    #[inline]
    pub(crate) fn child(&self, i: usize) -> Option<(PageNo, u32)> {
        let word = match self.references {
            References::Words(words) => u64::from_le(words.get(i)?.load(Relaxed)),
            References::Bytes(bytes) => u64_at(bytes, i * REFERENCE_BYTES)?,
        };
        let page = word & (PAGE_LIMIT - 1);
        (page != 0).then_some((page, (word >> NUMBER_BITS) as u32))
    }

    /// Leaves a hint at child `i`, if that is still `page` (the page itself never changes).
    #[inline]
    pub(crate) fn hint(&self, i: usize, page: PageNo, hint: u32) {
        if let References::Words(words) = self.references
            && let Some(word) = words.get(i)
        {
            let with_hint = u64::from(hint) << NUMBER_BITS | page;
            word.store(with_hint.to_le(), Relaxed);
        }
    }

    #[inline]
    fn slot(&self, i: usize) -> Option<(usize, u16)> {
        let at = HEADER_BYTES + i * SLOT_BYTES;
        let offset = u16_at(self.bytes, at + 4)?;
        Some((usize::from(offset), u16_at(self.bytes, at + 6)?))
    }

    #[inline]
    fn head(&self, i: usize) -> Option<u32> {
        u32_at(self.bytes, HEADER_BYTES + i * SLOT_BYTES)
    }

    /// Key `i` of a page with slots, and the offset behind it.
    #[inline]
    fn key_end(&self, i: usize) -> Option<(KeyAt<'a>, usize, u16)> {
        if i >= self.count {
            return None;
        }
        let (start, length) = self.slot(i)?;
        let end = start + usize::from(length & LENGTH);
        let suffix = Suffix::of_bytes(self.bytes.get(start..end)?);
        let mut behind = end;
        let mut far = None;
        if length & FAR_KEY != 0 {
            far = Some(self.far(u32_at(self.bytes, end)?, end + 4)?);
            behind = end + FAR_BYTES;
        }
        let key = KeyAt {
            prefix: self.prefix,
            suffix,
            far,
        };
        Some((key, behind, length))
    }

    fn far(&self, bytes: u32, at: usize) -> Option<Far> {
        let first = u64_at(self.bytes, at)?;
        (first != 0 && first < PAGE_LIMIT).then_some(Far { bytes, first })
    }

    /// Key `i` of a leaf; key `i` of an inner page bounds child `i + 1` from below.
    pub(crate) fn key(&self, i: usize) -> Option<KeyAt<'a>> {
        match &self.fixed {
            Some(fixed) => Some(self.fixed_key(fixed, i)?),
            None => Some(self.key_end(i)?.0),
        }
    }

    #[inline]
    fn fixed_key(&self, fixed: &Fixed<'a>, i: usize) -> Option<KeyAt<'a>> {
        Some(KeyAt {
            prefix: self.prefix,
            suffix: fixed.suffix(i)?,
            far: None,
        })
    }

    /// Value `i` of a leaf.
    pub(crate) fn value(&self, i: usize) -> Option<ValueAt<'a>> {
        Some(match self.entry(i)?.1 {
            Place::Near(at) => ValueAt::Near(self.bytes.get(at)?),
            Place::Far(far) => ValueAt::Far(far),
            Place::Deleted => ValueAt::Deleted,
        })
    }

    /// Key `i` of a leaf, and where its value is.
    #[inline]
    pub(super) fn entry(&self, i: usize) -> Option<(KeyAt<'a>, Place)> {
        if let Some(fixed) = &self.fixed {
            let key = self.fixed_key(fixed, i)?;
            let place = fixed.value(i).map_or(Place::Deleted, Place::Near);
            return Some((key, place));
        }
        let (key, at, flags) = self.key_end(i)?;
        if flags & DELETED != 0 {
            return Some((key, Place::Deleted));
        }
        let bytes = u32_at(self.bytes, at)?;
        if flags & FAR_VALUE != 0 {
            return Some((key, Place::Far(self.far(bytes, at + 4)?)));
        }
        let end = (at + 4).checked_add(bytes as usize)?;
        let inside = end <= self.bytes.len();
        inside.then_some((key, Place::Near(at + 4..end)))
    }

    /// The first key that is not less than `key`, and whether it is equal; `None` inside if the
    /// page makes no sense.
    pub(crate) fn search(&self, key: &[u8], fetch: Fetch<'_>) -> Result<Option<(usize, bool)>> {
        let Some(rest) = key.strip_prefix(self.prefix) else {
            let all_less = key > self.prefix;
            return Ok(Some((if all_less { self.count } else { 0 }, false)));
        };
        let head = head_of(rest);
        if let Some(fixed) = &self.fixed {
            return Ok(fixed.search(head, rest));
        }
        let heads_decide = self.prefix.len() <= MAX_PREFIX_FOR_HEADS;
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(found) = self.head(middle) else {
                return Ok(None);
            };
            let order = match found.cmp(&head) {
                other if heads_decide && other != Ordering::Equal => other,
                _ => match self.key(middle) {
                    Some(at) => at.compare_rest(key, rest, fetch)?,
                    None => return Ok(None),
                },
            };
            match order {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(Some((middle, true))),
                Ordering::Greater => high = middle,
            }
        }
        Ok(Some((low, false)))
    }

    /// The child of an inner page that `key` belongs to.
    pub(crate) fn child_for(&self, key: &[u8], fetch: Fetch<'_>) -> Result<Option<usize>> {
        let found = self.search(key, fetch)?;
        Ok(found.map(|(at, equal)| at + usize::from(equal)))
    }
}

impl KeyAt<'_> {
    /// Puts the bytes that are in the page behind `to`.
    #[inline]
    pub(crate) fn append_to(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.prefix);
        to.extend_from_slice(self.suffix.head());
        to.extend_from_slice(self.suffix.tail);
    }

    /// This key, of a page with slots, against `key`, which starts with the prefix and goes on with
    /// `rest`.
    fn compare_rest(&self, key: &[u8], rest: &[u8], fetch: Fetch<'_>) -> Result<Ordering> {
        let suffix = self.suffix.tail;
        let Some(far) = self.far else {
            return Ok(suffix.cmp(rest));
        };
        // The suffix is cut off: only a difference in its bytes decides.
        let common = rest.len().min(suffix.len());
        let (ours, theirs) = (suffix.get(..common), rest.get(..common));
        match ours.cmp(&theirs) {
            Ordering::Equal if rest.len() <= suffix.len() => Ok(Ordering::Greater),
            Ordering::Equal => Ok(fetch(far)?.as_slice().cmp(key)),
            other => Ok(other),
        }
    }
}

/// The first four bytes of what follows the prefix, as a number that orders as they do.
#[inline]
pub(crate) fn head_of(rest: &[u8]) -> u32 {
    if let Some(head) = rest.first_chunk() {
        return u32::from_be_bytes(*head);
    }
    let mut head = [0; 4];
    put(&mut head, 0, rest);
    u32::from_be_bytes(head)
}
