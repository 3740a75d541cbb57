//! The images of one key, as bytes: the newest one first.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `until`, little-endian |
//! | 1 | 0: absent, 1: what Y has, 2: a value |
//! | 4 | length of the value |
//! | | the value |
//!
//! `until` falls from image to image. On disk only in scratch files (`spilled.rs`), and there
//! without markers.

#![forbid(unsafe_code)]

use super::clock::Epoch;
use crate::key::Value;

/// What a key was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Image {
    Absent,
    /// What Y has.
    InY,
    Value(Value),
}

impl Image {
    /// Bytes of the value.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.borrowed().bytes()
    }

    /// The same, borrowed.
    #[inline]
    pub(crate) fn borrowed(&self) -> ImageRef<'_> {
        match self {
            Self::Absent => ImageRef::Absent,
            Self::InY => ImageRef::InY,
            Self::Value(value) => ImageRef::Value(value),
        }
    }
}

/// An [`Image`] whose value is somebody else's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageRef<'a> {
    Absent,
    InY,
    Value(&'a [u8]),
}

impl<'a> ImageRef<'a> {
    #[inline]
    fn bytes(self) -> usize {
        self.parts().1.len()
    }

    #[inline]
    fn parts(self) -> (u8, &'a [u8]) {
        match self {
            Self::Absent => (ABSENT, &[]),
            Self::InY => (IN_Y, &[]),
            Self::Value(value) => (VALUE, value),
        }
    }
}

const ABSENT: u8 = 0;
const IN_Y: u8 = 1;
const VALUE: u8 = 2;
const HEADER_BYTES: usize = 13;
/// A chain of so many bytes is built without an allocation.
const SHORT_BYTES: usize = 128;

/// One image of a chain.
#[derive(Debug, Clone, Copy)]
struct Link<'a> {
    until: Epoch,
    tag: u8,
    value: &'a [u8],
    /// All of its bytes.
    bytes: &'a [u8],
}

impl Link<'_> {
    fn image(&self) -> Image {
        match self.tag {
            ABSENT => Image::Absent,
            IN_Y => Image::InY,
            _ => Image::Value(Value::new(self.value)),
        }
    }
}

/// The images of `chain`, the newest first.
fn links(mut chain: &[u8]) -> impl Iterator<Item = Link<'_>> {
    std::iter::from_fn(move || {
        let (until, rest) = chain.split_first_chunk::<8>()?;
        let (&tag, rest) = rest.split_first()?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let len = u32::from_le_bytes(*len) as usize;
        let (value, rest) = rest.split_at_checked(len)?;
        let bytes = &chain[..HEADER_BYTES + len];
        chain = rest;
        Some(Link {
            until: Epoch::from_le_bytes(*until),
            tag,
            value,
            bytes,
        })
    })
}

/// The largest `until`; 0 of an empty chain.
#[inline]
pub(super) fn newest(chain: &[u8]) -> Epoch {
    let until = chain.first_chunk::<8>();
    until.map_or(0, |until| Epoch::from_le_bytes(*until))
}

/// What snapshot `epoch` sees, and up to which epoch; `None`: the chain says nothing about it.
pub(super) fn at(chain: &[u8], epoch: Epoch) -> Option<(Epoch, Image)> {
    let newer = links(chain).take_while(|link| link.until > epoch);
    newer.last().map(|link| (link.until, link.image()))
}

/// Whether an image of a snapshot after `oldest` is a marker.
pub(super) fn has_marker(chain: &[u8], oldest: Epoch) -> bool {
    links(chain).any(|link| link.until > oldest && link.tag == IN_Y)
}

fn header(until: Epoch, tag: u8, len: usize) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&until.to_le_bytes());
    header[8] = tag;
    header[9..].copy_from_slice(&(len as u32).to_le_bytes());
    header
}

fn push_link(out: &mut Vec<u8>, until: Epoch, image: ImageRef<'_>) {
    let (tag, value) = image.parts();
    out.extend_from_slice(&header(until, tag, value.len()));
    out.extend_from_slice(value);
}

/// Hands a chain of nothing but `image` to `write`. Cost: no allocation for a short value.
#[inline]
pub(super) fn alone<R>(until: Epoch, image: ImageRef<'_>, write: impl FnOnce(&[u8]) -> R) -> R {
    let (tag, value) = image.parts();
    let mut short = [0; SHORT_BYTES];
    let len = HEADER_BYTES + value.len();
    match short.get_mut(..len) {
        Some(chain) => {
            chain[..HEADER_BYTES].copy_from_slice(&header(until, tag, value.len()));
            chain[HEADER_BYTES..].copy_from_slice(value);
            write(chain)
        }
        None => write(&with(&[], &[], until, image)),
    }
}

/// `chain` with `image` as its newest one, and without those that none of the `open` epochs
/// (ascending) sees.
pub(super) fn with(chain: &[u8], open: &[Epoch], until: Epoch, image: ImageRef<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES + image.bytes() + chain.len());
    push_link(&mut out, until, image);
    let mut links = links(chain).peekable();
    while let Some(link) = links.next() {
        let before = links.peek().map_or(0, |older| older.until);
        if is_seen(open, before, link.until) {
            out.extend_from_slice(link.bytes);
        }
    }
    out
}

/// The images of one key from several chains, the newest chain first, as one: without those that
/// none of the `open` epochs (ascending) sees. Where two chains say what a snapshot sees, the older
/// one is right: the newer one was begun without a look at it.
pub(super) fn joined<'a>(chains: impl Iterator<Item = &'a [u8]>, open: &[Epoch]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut links = chains.flat_map(links).peekable();
    while let Some(link) = links.next() {
        let before = links.peek().map_or(0, |older| older.until);
        if is_seen(open, before, link.until) {
            out.extend_from_slice(link.bytes);
        }
    }
    out
}

/// Whether one of the `open` epochs (ascending) lies in `[before, until)`.
fn is_seen(open: &[Epoch], before: Epoch, until: Epoch) -> bool {
    let at = open.partition_point(|&epoch| epoch < before);
    open.get(at).is_some_and(|&epoch| epoch < until)
}

/// Whether these bytes of a file are a chain without markers.
pub(super) fn is_sound(chain: &[u8]) -> bool {
    let (mut bytes, mut last) = (0, Epoch::MAX);
    for link in links(chain) {
        if link.until >= last || !matches!(link.tag, ABSENT | VALUE) {
            return false;
        }
        last = link.until;
        bytes += link.bytes.len();
    }
    bytes == chain.len() && bytes > 0
}

/// `chain` with every marker replaced by `image`, and how many these are.
pub(super) fn resolved(chain: &[u8], image: ImageRef<'_>) -> (Vec<u8>, usize) {
    let mut out = Vec::with_capacity(chain.len() + image.bytes());
    let mut replaced = 0;
    for link in links(chain) {
        if link.tag == IN_Y {
            push_link(&mut out, link.until, image);
            replaced += 1;
        } else {
            out.extend_from_slice(link.bytes);
        }
    }
    (out, replaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(chain: &[u8], epoch: Epoch) -> Option<Image> {
        super::at(chain, epoch).map(|(_, image)| image)
    }

    fn value(text: &str) -> Image {
        Image::Value(text.into())
    }

    fn with(chain: &[u8], open: &[Epoch], until: Epoch, image: &Image) -> Vec<u8> {
        super::with(chain, open, until, image.borrowed())
    }

    #[test]
    fn a_snapshot_sees_the_oldest_image_that_is_newer_than_itself() {
        let open = [1, 4, 6];
        let chain = with(&[], &open, 3, &value("one"));
        let chain = with(&chain, &open, 5, &Image::Absent);
        let chain = with(&chain, &open, 7, &Image::InY);
        assert_eq!(newest(&chain), 7);
        for (epoch, image) in [
            (1, Some(value("one"))),
            (2, Some(value("one"))),
            (3, Some(Image::Absent)),
            (4, Some(Image::Absent)),
            (6, Some(Image::InY)),
            (7, None),
        ] {
            assert_eq!(at(&chain, epoch), image, "{epoch}");
        }
    }

    #[test]
    fn images_that_nobody_sees_go() {
        let chain = with(&[], &[1], 2, &value("a"));
        let chain = with(&chain, &[1, 5], 6, &value("b"));
        // Nobody is open between 2 and 6 any more.
        let chain = with(&chain, &[1, 8], 9, &value("c"));
        assert_eq!(links(&chain).count(), 2);
        assert_eq!(at(&chain, 1), Some(value("a")));
        assert_eq!(at(&chain, 8), Some(value("c")));
    }

    #[test]
    fn of_two_chains_the_older_one_is_right() {
        let open = [1, 4, 6];
        let old = with(&with(&[], &open, 2, &value("a")), &open, 7, &value("b"));
        // Left without a look at the older one, at the same watch and at a lower one.
        let young = with(&[], &open, 7, &value("c"));
        let lower = with(&[], &open, 5, &value("d"));
        for young in [&young, &lower] {
            let chain = joined([&young[..], &old].into_iter(), &open);
            assert_eq!(chain, old);
            assert!(is_sound(&chain));
        }
        let later = with(&[], &[8], 9, &value("e"));
        let chain = joined([&later[..], &old].into_iter(), &[1, 8]);
        assert_eq!(at(&chain, 1), Some(value("a")));
        assert_eq!(
            (at(&chain, 8), links(&chain).count()),
            (Some(value("e")), 2)
        );
        assert!(joined([&later[..], &old].into_iter(), &[9]).is_empty());
    }

    #[test]
    fn bytes_that_are_no_chain_are_found() {
        let chain = with(&with(&[], &[1], 2, &value("a")), &[1, 4], 5, &Image::Absent);
        assert!(is_sound(&chain));
        for len in 0..chain.len() {
            assert!(len == HEADER_BYTES || !is_sound(&chain[..len]), "{len}");
        }
        assert!(!is_sound(&with(&[], &[1], 2, &Image::InY)));
        let twice = [&chain[..], &chain].concat();
        assert!(!is_sound(&twice));
    }

    #[test]
    fn markers_are_resolved_all_at_once() {
        let open = [1, 4];
        let chain = with(&[], &open, 2, &Image::InY);
        let chain = with(&chain, &open, 5, &value("v"));
        assert!(has_marker(&chain, 0) && has_marker(&chain, 1) && !has_marker(&chain, 2));
        let (chain, replaced) = resolved(&chain, ImageRef::Value(b"old"));
        assert_eq!(replaced, 1);
        assert!(!has_marker(&chain, 0));
        assert_eq!(at(&chain, 1), Some(value("old")));
        assert_eq!(at(&chain, 4), Some(value("v")));
    }
}
