//! Chains of pages for keys and values that do not fit a node.
//!
//! Each page holds `payload` bytes behind its header and the number of the next one. A chain never changes: nodes that are
//! rewritten keep naming it, until its entry goes. Its pages are mostly neighbours, as they are allocated together.

use super::{
    file::PageFile,
    node::Far,
    output::Output,
    page::{HEADER_BYTES, Header, Kind, PageNo, put},
};
use crate::{error::Result, limits::MAX_VALUE_BYTES, mem::aligned::AlignedBuffer};

/// Writes `bytes` (not empty) as a chain.
pub(super) fn write(output: &mut Output<'_>, page_bytes: usize, bytes: &[u8]) -> Result<Far> {
    let first = output.reserve()?;
    let mut number = first;
    let mut parts = bytes.chunks(page_bytes - HEADER_BYTES).peekable();
    while let Some(part) = parts.next() {
        let next = match parts.peek() {
            Some(_) => output.reserve()?,
            None => 0,
        };
        let header = Header {
            link: next,
            payload: part.len() as u32,
            ..Header::of_kind(Kind::Overflow)
        };
        output.add_at(number, |page| {
            header.write(page);
            put(page, HEADER_BYTES, part);
        })?;
        number = next;
    }
    let bytes = bytes.len() as u32;
    Ok(Far { bytes, first })
}

/// Visits the pages of a chain with their payloads; finds chains that are too long, too short or circular.
pub(super) fn walk(
    file: &PageFile,
    far: Far,
    read: impl Fn(PageNo, &mut [u8]) -> Result<()>,
    mut visit: impl FnMut(PageNo, &[u8]),
) -> Result<()> {
    let mut page = AlignedBuffer::new(file.page_bytes);
    let mut left = far.bytes as usize;
    let mut number = far.first;
    if left > MAX_VALUE_BYTES {
        return Err(file.corrupt(number, "the chain is longer than any value"));
    }
    while number != 0 {
        let page = page.get_mut(..file.page_bytes).unwrap_or_default();
        read(number, page)?;
        let part = Header::read(page)
            .filter(|h| h.kind == Kind::Overflow && h.payload > 0)
            .and_then(|h| {
                let payload = page.get(HEADER_BYTES..)?.get(..h.payload as usize)?;
                Some((h.link, payload))
            });
        let Some((link, payload)) = part else {
            return Err(file.corrupt(number, "this is no page of a chain"));
        };
        let Some(rest) = left.checked_sub(payload.len()) else {
            return Err(file.corrupt(number, "the chain is longer than its entry says"));
        };
        visit(number, payload);
        left = rest;
        number = link;
    }
    if left > 0 {
        return Err(file.corrupt(far.first, "the chain is shorter than its entry says"));
    }
    Ok(())
}

/// The bytes of a chain. Cost: a read a page.
pub(super) fn read(file: &PageFile, far: Far) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    walk(
        file,
        far,
        |number, to| file.read(number, to),
        |_, part| bytes.extend_from_slice(part),
    )?;
    Ok(bytes)
}
