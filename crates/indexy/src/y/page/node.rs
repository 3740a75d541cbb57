//! Nodes: the checked view of leaves and inner pages, and the search in them.
//!
//! A page has the *heads* of its keys in an array (the first four key bytes behind the prefix that
//! all keys share, as a number), and of each entry what the head does not hold. `slotted.rs` has
//! the form for keys and values of any lengths, `fixed.rs` that of leaves whose keys and values
//! have equal lengths, `old_slots.rs` one that is no longer written. The view is the same, and
//! `docs/formats/pages.md` has the bytes.
//!
//! A key longer than [`max_stub`] lies elsewhere; its *stub*, its first bytes of that length, is
//! in the page. An inner page of n references has n - 1 keys: those from key i on, up to the next,
//! are under child i + 1. The references, of 8 bytes each, end the page. In memory they hold a hint
//! where the child's frame is, above the page's number.
//!
//! Every access is checked: `None` means that the page makes no sense, which the caller turns into
//! `Corrupt`.

pub(crate) use super::entry::Far;
use super::{
    HEADER_BYTES, Header, Kind, PAGE_LIMIT, PageNo,
    entry::{LENGTH, Place},
    fixed::{DELETES, Fixed},
    heads::{HEAD_BYTES, Suffix, head},
    old_slots::OldSlots,
    slotted::Slotted,
    u64_at,
};
use crate::{error::Result, mem::frames::FrameView};
use std::{
    cmp::Ordering,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

pub(crate) const REFERENCE_BYTES: usize = 8;
/// Of pages with a longer prefix the heads do not decide: a stub may end before its head does.
const MAX_PREFIX_FOR_HEADS: usize = max_stub(4096) - HEAD_BYTES;
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
    form: Form<'a>,
}

/// How a page holds its keys and values.
#[derive(Clone, Copy)]
enum Form<'a> {
    Fixed(Fixed<'a>),
    Slotted(Slotted<'a>),
    Old(OldSlots<'a>),
}

/// Gives bytes that lie outside of nodes.
pub(crate) type Fetch<'f> = &'f dyn Fn(Far) -> Result<Vec<u8>>;

/// Where the references of `page` start; the page's size if it has none.
pub(crate) fn split(page: &[u8]) -> usize {
    match Header::read(page) {
        Some(header) if header.kind.is_inner() => {
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
        let mut count = usize::from(header.count);
        if header.kind.is_inner() {
            let found = match references {
                References::Words(words) => words.len(),
                References::Bytes(bytes) => bytes.len() / REFERENCE_BYTES,
            };
            if found != count {
                return None;
            }
            count = count.checked_sub(1)?;
        }
        let prefix = usize::from(header.prefix);
        let (form, prefix) = match header.kind {
            Kind::FixedLeaf => {
                let fixed = Fixed::new(bytes, &header)?;
                (Form::Fixed(fixed), fixed.prefix)
            }
            Kind::Leaf | Kind::Inner => {
                let slotted = Slotted::new(bytes, count, prefix)?;
                (Form::Slotted(slotted), slotted.prefix)
            }
            Kind::OldLeaf | Kind::OldInner => {
                let old = OldSlots::new(bytes, count, prefix)?;
                (Form::Old(old), old.prefix)
            }
            _ => return None,
        };
        Some(Self {
            bytes,
            references,
            level: header.level,
            count,
            prefix,
            form,
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

    /// Key `i` of a leaf; key `i` of an inner page bounds child `i + 1` from below.
    #[inline]
    pub(crate) fn key(&self, i: usize) -> Option<KeyAt<'a>> {
        let (suffix, far) = match &self.form {
            Form::Fixed(fixed) => (fixed.suffix(i)?, None),
            Form::Slotted(slotted) => slotted.key(i)?,
            Form::Old(old) => old.key(i)?,
        };
        let prefix = self.prefix;
        Some(KeyAt {
            prefix,
            suffix,
            far,
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
        let (suffix, far, place) = match &self.form {
            Form::Fixed(fixed) => {
                let place = fixed.value(i).map_or(Place::Deleted, Place::Near);
                (fixed.suffix(i)?, None, place)
            }
            Form::Slotted(slotted) => slotted.entry(i)?,
            Form::Old(old) => old.entry(i)?,
        };
        let prefix = self.prefix;
        let key = KeyAt {
            prefix,
            suffix,
            far,
        };
        Some((key, place))
    }

    /// The first key that is not less than `key`, and whether it is equal; `None` inside if the
    /// page makes no sense.
    pub(crate) fn search(&self, key: &[u8], fetch: Fetch<'_>) -> Result<Option<(usize, bool)>> {
        let Some(rest) = key.strip_prefix(self.prefix) else {
            let all_less = key > self.prefix;
            return Ok(Some((if all_less { self.count } else { 0 }, false)));
        };
        let head = head(rest);
        let decide = self.prefix.len() <= MAX_PREFIX_FOR_HEADS;
        let compare = |i| match self.key(i) {
            Some(at) => at.compare_rest(key, rest, fetch).map(Some),
            None => Ok(None),
        };
        match &self.form {
            Form::Fixed(fixed) => fixed.search(head, rest),
            Form::Slotted(slotted) => slotted.search(head, decide, compare),
            Form::Old(old) => old.search(head, decide, compare),
        }
    }

    /// Whether key `i` is `key`; `None` inside if the page makes no sense.
    pub(crate) fn is_key(&self, i: usize, key: &[u8], fetch: Fetch<'_>) -> Result<Option<bool>> {
        let Some(at) = self.key(i) else {
            return Ok(None);
        };
        match key.strip_prefix(self.prefix) {
            Some(rest) => Ok(Some(at.compare_rest(key, rest, fetch)?.is_eq())),
            None => Ok(Some(false)),
        }
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

    /// This key against `key`, which starts with the prefix and goes on with
    /// `rest`.
    fn compare_rest(&self, key: &[u8], rest: &[u8], fetch: Fetch<'_>) -> Result<Ordering> {
        let Some(far) = self.far else {
            return Ok(self.suffix.compare(rest));
        };
        // The suffix is cut off: only a difference in its bytes decides.
        let len = self.suffix.len();
        match self.suffix.compare(rest.get(..len).unwrap_or(rest)) {
            Ordering::Equal if rest.len() <= len => Ok(Ordering::Greater),
            Ordering::Equal => Ok(fetch(far)?.as_slice().cmp(key)),
            other => Ok(other),
        }
    }
}
