//! Values that lie in no node, many at once: their reads overlap.
//!
//! Memory: the pages of a group of values are read beside the pool, at most [`GROUP_BYTES`] of
//! them, as the pieces of one long value are.

#![forbid(unsafe_code)]

use crate::{
    error::Result,
    key::Value,
    mem::aligned::AlignedBuffer,
    storage::{ReadAt, StorageFile, read_together},
    y::page::{PageSource, node::Far},
};

/// The values of a group lie in so many bytes of pages at most,
const GROUP_BYTES: usize = 256 << 10;
/// and are so many at most: more keep no device busier.
const GROUP: usize = 64;

/// A value that one read takes.
struct Wanted<'f, S> {
    /// Its place in the answer.
    at: usize,
    file: &'f S,
    far: Far,
    offset: u64,
    pages: AlignedBuffer,
}

/// The values that `wanted` refers to, each in its file, in that order. Cost: a read of the device
/// each, overlapped; long ones one after the other.
pub(crate) fn fetch_values<S: PageSource>(wanted: &[(&S, Far)]) -> Result<Vec<Value>> {
    let mut values = vec![Value::default(); wanted.len()];
    let mut group = Vec::new();
    let mut bytes = 0;
    for (at, &(file, far)) in wanted.iter().enumerate() {
        let pages = file.far_pages(far)?;
        let Some((offset, len)) = pages.filter(|(_, len)| *len <= GROUP_BYTES) else {
            answer(&mut values, at, file.fetch_value(far)?);
            continue;
        };
        if group.len() == GROUP || bytes + len > GROUP_BYTES {
            read_group(&mut group, &mut values)?;
            bytes = 0;
        }
        bytes += len;
        group.push(Wanted {
            at,
            file,
            far,
            offset,
            pages: AlignedBuffer::new(len),
        });
    }
    read_group(&mut group, &mut values)?;
    Ok(values)
}

/// Reads all of `group`, which is empty then.
fn read_group<S: PageSource>(group: &mut Vec<Wanted<'_, S>>, values: &mut [Value]) -> Result<()> {
    if let [wanted] = &group[..] {
        answer(values, wanted.at, wanted.file.fetch_value(wanted.far)?);
        group.clear();
        return Ok(());
    }
    let files: Vec<&dyn StorageFile> = group.iter().map(|wanted| wanted.file.storage()).collect();
    let reads = group.iter_mut().map(|wanted| ReadAt {
        offset: wanted.offset,
        to: &mut wanted.pages,
        got: 0,
    });
    let mut reads: Vec<ReadAt<'_>> = reads.collect();
    read_together(&mut reads, &files)?;
    let got: Vec<usize> = reads.iter().map(|read| read.got).collect();
    for (wanted, got) in group.drain(..).zip(got) {
        let value = match got < wanted.pages.len() {
            // It says where the file ends.
            true => wanted.file.fetch_value(wanted.far)?,
            false => wanted.file.value_in(wanted.far, &wanted.pages)?,
        };
        answer(values, wanted.at, value);
    }
    Ok(())
}

fn answer(values: &mut [Value], at: usize, value: Value) {
    if let Some(slot) = values.get_mut(at) {
        *slot = value;
    }
}
