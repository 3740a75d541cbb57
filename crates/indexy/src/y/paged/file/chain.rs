//! Chains of pages for keys and values that do not fit a node, as files of format version 1 have
//! them. They are read, and go with their entries; new ones are extents (`extent.rs`).
//!
//! Each page holds `payload` bytes behind its header and the number of the next one. A chain never
//! changes: nodes that are rewritten keep naming it, until its entry goes. Its pages are mostly
//! neighbours, as they are allocated together.

use super::PageFile;
use crate::y::page::PageSource;
use crate::y::page::{HEADER_BYTES, Header, Kind, PageNo, node::Far};
use crate::{error::Result, limits::MAX_VALUE_BYTES, mem::aligned::AlignedBuffer};

/// Visits the pages of a chain with their payloads; finds chains that are too long, too short or
/// circular.
pub(crate) fn walk(
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
pub(crate) fn read(file: &PageFile, far: Far) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    walk(
        file,
        far,
        |number, to| file.read(number, to),
        |_, part| bytes.extend_from_slice(part),
    )?;
    Ok(bytes)
}
