//! How much of a page elements take, and how many fit.
//!
//! Sizes are counted with the prefix that the elements share, and for leaves in the form that takes
//! less: slotted (`node.rs`) or fixed (`fixed.rs`). So pages are full whatever the form.

use super::{
    HEADER_BYTES,
    fixed::{Lengths, Shape},
    heads::HEAD_BYTES,
    slotted::ENTRY_BYTES,
};

/// What nodes are made of.
pub(crate) trait Element {
    /// The bytes of its key that lie in the page.
    fn stub(&self) -> &[u8];
    /// Bytes of all that it says, with its whole stub.
    fn bytes(&self) -> usize;
    /// What a fixed leaf must know of it; `None`: it cannot be in one.
    fn lengths(&self) -> Option<Lengths>;
}

/// Bytes of an element in a slotted page, before truncation.
pub(crate) fn raw_bytes(element: &impl Element) -> usize {
    ENTRY_BYTES + element.bytes() - element.stub().len().min(HEAD_BYTES)
}

/// Counts what a page of consecutive elements takes.
#[derive(Default)]
pub(crate) struct Filling<'a> {
    first: &'a [u8],
    size: Size,
}

impl<'a> Filling<'a> {
    /// Adds an element; returns the bytes behind the header that the page takes with it.
    pub(crate) fn add(&mut self, element: &'a impl Element) -> usize {
        if self.size.elements == 0 {
            self.first = element.stub();
        }
        self.size.add(self.first, element);
        self.size.page_bytes()
    }
}

/// Beside all that an element says: its head holds a part of that.
const SLOT_BYTES: usize = ENTRY_BYTES - HEAD_BYTES;

/// How many keys have 0, 1, 2 and 3 bytes behind the prefix: their heads are not full. 32 bits
/// each.
#[derive(Clone, Copy, Default)]
struct Short(u128);

impl Short {
    /// One key more, with `bytes` bytes behind the prefix.
    #[inline]
    fn add(&mut self, bytes: usize) {
        if bytes < HEAD_BYTES {
            self.0 += 1 << (32 * bytes);
        }
    }

    /// The prefix is `bytes` bytes shorter.
    #[inline]
    fn shrink(&mut self, bytes: usize) {
        self.0 = match bytes < HEAD_BYTES {
            true => self.0 << (32 * bytes),
            false => 0,
        };
    }

    /// Bytes of heads that hold nothing.
    #[inline]
    fn unused_bytes(self) -> usize {
        if self.0 == 0 {
            return 0;
        }
        let keys = |bytes: usize| (self.0 >> (32 * bytes)) as u32 as usize;
        (0..HEAD_BYTES)
            .map(|bytes| keys(bytes) * (HEAD_BYTES - bytes))
            .sum()
    }
}

/// The numbers of a [`Filling`].
#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    pub(super) prefix: usize,
    pub(super) elements: usize,
    /// Of slots and of all that elements say, before truncation.
    bytes: usize,
    short: Short,
    /// Of all elements; `None`: there are none, or they do not fit a fixed leaf.
    lengths: Option<Lengths>,
}

impl Size {
    /// Adds an element behind others, of which `first` is the first one's stub.
    #[inline]
    pub(super) fn add(&mut self, first: &[u8], element: &impl Element) {
        let stub = element.stub();
        let before = self.prefix;
        if self.elements == 0 {
            self.prefix = stub.len();
            self.lengths = element.lengths();
        } else {
            let shared = first.get(..self.prefix).unwrap_or(first);
            self.prefix = common_prefix(shared, stub);
            self.lengths = match (self.lengths, element.lengths()) {
                (Some(all), Some(one)) => all.with(one),
                _ => None,
            };
        }
        if self.elements > 0 {
            self.short.shrink(before - self.prefix);
        }
        self.short.add(stub.len() - self.prefix);
        self.elements += 1;
        self.bytes += SLOT_BYTES + element.bytes();
    }

    /// Bytes behind the header that the page takes.
    #[inline]
    pub(super) fn page_bytes(&self) -> usize {
        let slotted = self.slotted_bytes();
        self.fixed_bytes()
            .map_or(slotted, |fixed| slotted.min(fixed))
    }

    pub(super) fn slotted_bytes(&self) -> usize {
        let unused = self.short.unused_bytes();
        self.bytes + unused - self.elements.saturating_sub(1) * self.prefix
    }

    fn fixed_bytes(&self) -> Option<usize> {
        let shape = self.lengths?.shape(self.prefix);
        Some(self.prefix + shape.bytes(self.elements))
    }

    /// The form of the leaf, if it is fixed.
    pub(super) fn shape(&self) -> Option<Shape> {
        let fixed = self.fixed_bytes()?;
        let smaller = fixed <= self.slotted_bytes();
        smaller.then(|| self.lengths.map(|l| l.shape(self.prefix)))?
    }
}

/// Bytes behind the header that a page of all `elements` would take.
pub(crate) fn filled_bytes<'a>(
    elements: impl IntoIterator<Item = &'a (impl Element + 'a)>,
) -> usize {
    let mut filling = Filling::default();
    let mut bytes = 0;
    for element in elements {
        bytes = filling.add(element);
    }
    bytes
}

/// Bytes of a page that nodes are filled with.
pub(crate) const fn capacity(page_bytes: usize) -> usize {
    page_bytes - HEADER_BYTES
}

#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// How full a page is made of elements that are too many for one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// With all that fits: what follows does not come between.
    Full,
    /// But for a sixteenth.
    Most,
    /// With half of them, or all that fits if they are too many for two pages.
    Half,
}

/// How many of `elements` go to the next page: all if they fit, else as `fill` says. At least one,
/// for one always fits.
pub(crate) fn next_page(elements: &[impl Element], page_bytes: usize, fill: Fill) -> usize {
    let room = match fill {
        Fill::Most => capacity(page_bytes) / 16 * 15,
        Fill::Full | Fill::Half => capacity(page_bytes),
    };
    let mut filling = Filling::default();
    let fitting = elements
        .iter()
        .take_while(|e| filling.add(*e) <= room)
        .count();
    if fitting == elements.len() || fill != Fill::Half {
        return fitting.max(1);
    }
    let total: usize = elements.iter().map(raw_bytes).sum();
    let mut left = 0;
    let half = elements
        .iter()
        .take_while(|e| {
            left += raw_bytes(*e);
            left <= total / 2
        })
        .count();
    half.min(fitting).max(1)
}
