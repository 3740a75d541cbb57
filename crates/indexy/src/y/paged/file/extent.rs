//! Extents: keys and values that do not fit a node, in pages that lie one behind the other.
//!
//! The first page begins with a page's header, which has the length and one checksum over all pages
//! of the extent; the bytes stand behind it, then zeros to the end of the last page. So it is
//! written and read at once, and checked when it is read. An extent never changes: nodes that are
//! rewritten keep naming it, until its entry goes.
//!
//! A reference to an extent has [`EXTENT`] set in its length; one without it is to a chain
//! (`chain.rs`), which files of format version 1 have. So what pages an entry has is known without
//! a read.

use super::{PageFile, chain};
use crate::{
    error::Result,
    key::Value,
    limits::MAX_VALUE_BYTES,
    mem::aligned::AlignedBuffer,
    y::page::{self, HEADER_BYTES, Header, Kind, PAGE_LIMIT, PageNo, PageSource, node::Far, put},
};
use std::ops::Range;
use xxhash_rust::xxh3::Xxh3;

/// In a reference's length: the bytes lie in an extent.
const EXTENT: u32 = 1 << 31;
/// What is read at once, at most: longer extents are read piece by piece.
pub(crate) const READ_BYTES: usize = 256 << 10;
// A length leaves room for the flag, and pieces are whole pages.
const _: () = assert!(MAX_VALUE_BYTES < EXTENT as usize && READ_BYTES.is_multiple_of(16 << 10));

/// Pages of an extent of `bytes` bytes.
pub(crate) fn pages_for(bytes: usize, page_bytes: usize) -> usize {
    (HEADER_BYTES + bytes).div_ceil(page_bytes)
}

/// The reference to an extent of `bytes` bytes that begins with page `first`.
pub(crate) fn reference(first: PageNo, bytes: usize) -> Far {
    Far {
        bytes: bytes as u32 | EXTENT,
        first,
    }
}

/// The pages of the extent that `far` refers to; `None`: it refers to a chain.
pub(crate) fn pages(file: &PageFile, far: Far) -> Option<Range<PageNo>> {
    let pages = pages_for(length(far)?, file.page_bytes) as u64;
    Some(far.first..far.first + pages)
}

/// Bytes in the extent that `far` refers to; `None`: it refers to a chain.
fn length(far: Far) -> Option<usize> {
    (far.bytes & EXTENT != 0).then_some((far.bytes & !EXTENT) as usize)
}

/// Writes the header of an extent of `bytes` bytes into its first page.
pub(crate) fn write_header(page: &mut [u8], bytes: usize) {
    let header = Header {
        payload: bytes as u32,
        ..Header::of_kind(Kind::Extent)
    };
    header.write(page);
}

/// The bytes of `far` in `pages`, which are those of its extent as they were written.
pub(crate) fn bytes_in(pages: &[u8], far: Far) -> Option<&[u8]> {
    pages.get(HEADER_BYTES..)?.get(..length(far)?)
}

/// Bytes of the extent that page `page` begins, if that is what it says it is. Nothing is checked
/// by then.
pub(crate) fn begins(page: &[u8]) -> Option<usize> {
    let header = Header::read(page).filter(|h| h.kind == Kind::Extent)?;
    Some(header.payload as usize)
}

/// Reads the bytes of a key or value that does not lie near, from an extent or a chain. Cost: a
/// read of the device for each [`READ_BYTES`] of an extent.
pub(crate) fn read(file: &PageFile, far: Far) -> Result<Vec<u8>> {
    let Some(length) = length(far) else {
        return chain::read(file, far);
    };
    check_bounds(file, far.first, length)?;
    let mut bytes = vec![0; length];
    read_into(file, far.first, &mut bytes)?;
    Ok(bytes)
}

/// The same, of a value: no more memory than that and one read.
pub(crate) fn read_value(file: &PageFile, far: Far) -> Result<Value> {
    let Some(length) = length(far) else {
        return Ok(chain::read(file, far)?.into());
    };
    check_bounds(file, far.first, length)?;
    if let Some(value) = look(file, far, length)? {
        return Ok(value);
    }
    Value::filled(length, |to| read_into(file, far.first, to))
}

/// The value of `far`, of `length` bytes, from a view of its extent; `None`: it has to be read.
fn look(file: &PageFile, far: Far, length: usize) -> Result<Option<Value>> {
    let bytes = pages_for(length, file.page_bytes) * file.page_bytes;
    let Some(pages) = file.look(far.first, bytes)? else {
        return Ok(None);
    };
    let value = file
        .check_once(far.first, pages, || check_whole(file, far, pages))?
        .filter(|pages| begins(pages) == Some(length))
        .and_then(|pages| bytes_in(pages, far))
        .map(Value::new);
    file.looked_at(far.first, HEADER_BYTES + length);
    Ok(value.filter(|_| file.views_hold()))
}

/// Offset and length of the pages of `far`, if it is an extent that is read at once and cannot be
/// looked at.
pub(crate) fn whole(file: &PageFile, far: Far) -> Result<Option<(u64, usize)>> {
    let Some(length) = length(far) else {
        return Ok(None);
    };
    check_bounds(file, far.first, length)?;
    let bytes = pages_for(length, file.page_bytes) * file.page_bytes;
    if file.has_views() {
        return Ok(None);
    }
    Ok((bytes <= READ_BYTES).then(|| (file.offset(far.first), bytes)))
}

/// The value of `far` in the pages of its extent, checked.
pub(crate) fn value_in(file: &PageFile, far: Far, pages: &[u8]) -> Result<Value> {
    check_whole(file, far, pages)?;
    Ok(Value::new(bytes_in(pages, far).unwrap_or_default()))
}

/// Whether `pages` are those of the extent that `far` refers to.
fn check_whole(file: &PageFile, far: Far, pages: &[u8]) -> Result<()> {
    let (Some(length), Some(_)) = (length(far), bytes_in(pages, far)) else {
        return Err(file.corrupt(far.first, "the extent is longer than its pages"));
    };
    let head = check_begin(file, far.first, length, pages)?;
    let mut sum = Xxh3::new();
    sum.update(page::summed(pages, true));
    file.check_sum(far.first, &head, sum.digest())
}

/// Whether `piece` is the begin of an extent of `length` bytes; returns its header.
fn check_begin(
    file: &PageFile,
    first: PageNo,
    length: usize,
    piece: &[u8],
) -> Result<[u8; HEADER_BYTES]> {
    let mut head = [0; HEADER_BYTES];
    put(&mut head, 0, piece.get(..HEADER_BYTES).unwrap_or_default());
    if begins(&head) != Some(length) {
        // Damage of the header, or a reference to something else.
        let page = piece.get(..file.page_bytes).unwrap_or_default();
        file.check(first, page, file.page_bytes)?;
        return Err(file.corrupt(first, "this is no extent of such a length"));
    }
    Ok(head)
}

fn read_into(file: &PageFile, first: PageNo, to: &mut [u8]) -> Result<()> {
    let mut at = 0;
    walk(file, first, to.len(), |piece| {
        let skipped = if at == 0 { HEADER_BYTES } else { 0 };
        let piece = piece.get(skipped..).unwrap_or_default();
        let piece = piece.get(..to.len() - at).unwrap_or(piece);
        put(to, at, piece);
        at += piece.len();
        Ok(())
    })
}

/// Visits the pages of a key or value that does not lie near, when all of them were read and
/// checked.
pub(crate) fn check(file: &PageFile, far: Far, mut visit: impl FnMut(PageNo)) -> Result<()> {
    let (Some(length), Some(pages)) = (length(far), pages(file, far)) else {
        let read = |number, to: &mut [u8]| file.read(number, to);
        return chain::walk(file, far, read, |number, _| visit(number));
    };
    walk(file, far.first, length, |_| Ok(()))?;
    pages.for_each(visit);
    Ok(())
}

/// [`walk`] of the extent that `far` refers to.
pub(crate) fn walk_far(
    file: &PageFile,
    far: Far,
    visit: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    match length(far) {
        Some(length) => walk(file, far.first, length, visit),
        None => Ok(()),
    }
}

/// Finds an extent that cannot be, before anything is allocated for it.
fn check_bounds(file: &PageFile, first: PageNo, length: usize) -> Result<()> {
    if length > MAX_VALUE_BYTES {
        return Err(file.corrupt(first, "the extent is longer than any value"));
    }
    let end = first + pages_for(length, file.page_bytes) as u64;
    // What is read at once is bounded; and the read finds that the file ends.
    let long = length > READ_BYTES;
    if end > PAGE_LIMIT || long && file.offset(end) > file.storage.len()? {
        return Err(file.corrupt(first, "the extent is longer than the file"));
    }
    Ok(())
}

/// Reads an extent of `length` bytes piece by piece (whole pages, from the header on), then checks
/// it. What `visit` was given counts only if this succeeds.
pub(crate) fn walk(
    file: &PageFile,
    first: PageNo,
    length: usize,
    mut visit: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    check_bounds(file, first, length)?;
    let all = pages_for(length, file.page_bytes) * file.page_bytes;
    let mut buffer = AlignedBuffer::new(all.min(READ_BYTES));
    let mut head = [0; HEADER_BYTES];
    let mut sum = Xxh3::new();
    for at in (0..all).step_by(READ_BYTES) {
        let piece = (all - at).min(READ_BYTES);
        let piece = buffer.get_mut(..piece).unwrap_or_default();
        let got = file
            .storage
            .read_at(piece, file.offset(first) + at as u64)?;
        if got < piece.len() {
            return Err(file.corrupt(first, "the file ends in the extent"));
        }
        if at == 0 {
            head = check_begin(file, first, length, piece)?;
        }
        sum.update(page::summed(piece, at == 0));
        visit(piece)?;
    }
    file.check_sum(first, &head, sum.digest())
}
