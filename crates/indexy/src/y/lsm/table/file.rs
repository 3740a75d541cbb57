//! Blocks of a table's file: read, and checked against their headers.
//!
//! Two ways to the device. *Buffered*: through the system's page cache, one `pread` a block into
//! its final place. *Direct*: past it, as many sectors as the block lies on, one copy more. Where
//! memory is short the page cache answers next to nothing and costs each read an eviction;
//! `shared.rs` says which is used.
//! Threads: any. Nothing is cached here.

#![forbid(unsafe_code)]

use crate::{
    error::{Error, Result},
    mem::aligned::AlignedBuffer,
    storage::{ReadAt, overlap},
    y::lsm::cache::buffers::ReadBuffers,
};
use lsm_tree::{
    Slice,
    coding::Decode,
    table::{
        BlockHandle,
        block::{BlockType, Header},
    },
};
use rustix::fs::OFlags;
use std::{
    fs::{File, OpenOptions},
    io::{self, IoSliceMut, Read},
    ops::Range,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
};
use xxhash_rust::xxh3::xxh3_128;

/// In front of every block.
const HEADER_BYTES: usize = Header::serialized_len();
/// Sectors of devices, in bytes: what offsets and lengths of direct reads are multiples of.
const SECTOR_BYTES: [u16; 2] = [512, 4096];

/// How a file was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Buffered,
    Direct { sector_bytes: u16 },
}

/// Opens a table's file; past the page cache if `direct` and the file system does that.
pub(crate) fn open(path: &Path, direct: bool) -> Result<(File, Access)> {
    if direct {
        for sector_bytes in SECTOR_BYTES {
            let access = Access::Direct { sector_bytes };
            // Some refuse only when it comes to reading. Whatever is wrong with the file itself is
            // wrong again, and told, without the flag.
            match open_as(path, access) {
                // Says nothing about the file system.
                Err(e) if e.is_transient() => return Err(e),
                Ok(file)
                    if file
                        .read_at(&mut AlignedBuffer::new(0)[..sector_bytes.into()], 0)
                        .is_ok() =>
                {
                    return Ok((file, access));
                }
                _ => {}
            }
        }
    }
    Ok((open_as(path, Access::Buffered)?, Access::Buffered))
}

/// Opens a table's file as it was opened before.
pub(crate) fn open_as(path: &Path, access: Access) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    if let Access::Direct { .. } = access {
        // The flag is a bit of a C int.
        options.custom_flags(OFlags::DIRECT.bits().cast_signed());
    }
    options.open(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Error::corrupt(path, 0, "the file is missing"),
        _ => Error::io("open", path, e),
    })
}

/// Payload of a block, its header and checksum compared. Cost: one read of the file.
pub(crate) fn read_block(
    (file, access): (&File, Access),
    path: &Path,
    handle: BlockHandle,
    kind: BlockType,
) -> Result<Slice> {
    match access {
        Access::Buffered => read_buffered(file, path, handle, kind),
        Access::Direct { sector_bytes } => {
            let span = Span::of(handle, sector_bytes);
            let mut buffer = AlignedBuffer::new(span.bytes);
            let to = &mut buffer[..span.bytes];
            let got = span.read(file, path, to)?;
            span.payload(&to[..got], path, handle, kind)
        }
    }
}

/// A block of a file that was opened for direct access.
pub(crate) struct DirectRead<'f> {
    pub(crate) file: Arc<File>,
    pub(crate) path: &'f Path,
    pub(crate) handle: BlockHandle,
    pub(crate) sector_bytes: u16,
}

/// Where a block's sectors are in a buffer.
#[derive(Debug)]
struct Part {
    span: Span,
    at: Range<usize>,
}

/// Reads data blocks past the page cache, their reads overlapped as far as a lent buffer goes, and
/// calls `done` with the number and the checked payload of each as it arrives. The first error, of
/// a read or of `done`, is returned when all reads have ended.
pub(crate) fn read_together(
    blocks: &[DirectRead<'_>],
    buffers: &ReadBuffers,
    mut done: impl FnMut(usize, Slice) -> Result<()>,
) -> Result<()> {
    let lent = if blocks.len() > 1 {
        buffers.lend()
    } else {
        None
    };
    let Some(mut buffer) = lent else {
        // Others keep the device busy.
        return blocks.iter().enumerate().try_for_each(|(n, block)| {
            let access = Access::Direct {
                sector_bytes: block.sector_bytes,
            };
            let from = (&*block.file, access);
            done(
                n,
                read_block(from, block.path, block.handle, BlockType::Data)?,
            )
        });
    };
    let mut first = 0;
    while let Some(rest) = blocks.get(first..).filter(|rest| !rest.is_empty()) {
        let parts = parts(rest, buffer.len());
        let wave = &rest[..parts.len()];
        read_wave(wave, &parts, &mut buffer, |n, payload| {
            done(first + n, payload)
        })?;
        first += parts.len();
    }
    Ok(())
}

/// Places in a buffer of `room` bytes for the first of `blocks`, as many as fit, one at least.
fn parts(blocks: &[DirectRead<'_>], room: usize) -> Vec<Part> {
    let mut end = 0usize;
    let mut parts = Vec::with_capacity(blocks.len());
    for block in blocks {
        let span = Span::of(block.handle, block.sector_bytes);
        // Memory aligned as the offsets are.
        let start = end.next_multiple_of(span.sector_bytes);
        end = start + span.bytes;
        if end > room {
            break;
        }
        let at = start..end;
        parts.push(Part { span, at });
    }
    parts
}

fn read_wave(
    blocks: &[DirectRead<'_>],
    parts: &[Part],
    buffer: &mut [u8],
    mut done: impl FnMut(usize, Slice) -> Result<()>,
) -> Result<()> {
    let mut reads = Vec::with_capacity(parts.len());
    let (mut rest, mut from) = (buffer, 0);
    for part in parts {
        let (before, after) = rest.split_at_mut(part.at.end - from);
        let offset = part.span.start;
        let to = &mut before[part.at.start - from..];
        reads.push(ReadAt { offset, to, got: 0 });
        (rest, from) = (after, part.at.end);
    }
    let mut outcome = Ok(());
    let mut arrived = |n: usize, sectors: &[u8]| {
        if outcome.is_ok() {
            let (block, span) = (&blocks[n], &parts[n].span);
            let payload = span.payload(sectors, block.path, block.handle, BlockType::Data);
            outcome = payload.and_then(|payload| done(n, payload));
        }
    };
    overlap(&mut reads, |n| &blocks[n].file, &mut arrived);
    for (n, read) in reads.iter_mut().enumerate() {
        if read.got < read.to.len() {
            // In part, interrupted or failed: the plain call says which.
            let block = &blocks[n];
            let got = parts[n].span.read(&block.file, block.path, read.to)?;
            arrived(n, &read.to[..got]);
        }
    }
    outcome
}

/// The sectors of a file that a block lies on.
#[derive(Debug)]
struct Span {
    start: u64,
    bytes: usize,
    sector_bytes: usize,
}

impl Span {
    fn of(handle: BlockHandle, sector_bytes: u16) -> Self {
        let sector = u64::from(sector_bytes);
        let start = *handle.offset() / sector * sector;
        // A damaged handle may say anything.
        let end = handle.offset().saturating_add(handle.size().into());
        let end = end.checked_next_multiple_of(sector).unwrap_or(end);
        Self {
            start,
            bytes: (end - start) as usize,
            sector_bytes: sector_bytes.into(),
        }
    }

    /// Reads them; returns how many bytes there are, less than `to` holds only at the end of the
    /// file.
    fn read(&self, file: &File, path: &Path, to: &mut [u8]) -> Result<usize> {
        let mut got = 0;
        while got < to.len() {
            match file.read_at(&mut to[got..], self.start + got as u64) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::io("read", path, e)),
            }
            if !got.is_multiple_of(self.sector_bytes) {
                // The end of the file, which need not be that of a sector.
                break;
            }
        }
        Ok(got)
    }

    /// The block's payload out of its sectors, checked.
    fn payload(
        &self,
        sectors: &[u8],
        path: &Path,
        handle: BlockHandle,
        kind: BlockType,
    ) -> Result<Slice> {
        let from = (*handle.offset() - self.start) as usize;
        let block = sectors.get(from..from + handle.size() as usize);
        let block = block.ok_or_else(|| corrupt(path, handle, "the file ends inside a block"))?;
        let (header, payload) = block
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or_else(|| too_short(path, handle))?;
        check(header, payload, kind).map_err(|what| corrupt(path, handle, what))?;
        Ok(Slice::from(payload))
    }
}

fn corrupt(path: &Path, handle: BlockHandle, what: &str) -> Error {
    Error::corrupt(path, *handle.offset(), what)
}

fn too_short(path: &Path, handle: BlockHandle) -> Error {
    corrupt(path, handle, "a block shorter than its header")
}

fn read_buffered(file: &File, path: &Path, handle: BlockHandle, kind: BlockType) -> Result<Slice> {
    let mut at = BlockReader {
        file,
        offset: *handle.offset(),
        header: [0; HEADER_BYTES],
        done: 0,
    };
    let Some(bytes) = (handle.size() as usize).checked_sub(HEADER_BYTES) else {
        return Err(too_short(path, handle));
    };
    let payload = Slice::from_reader(&mut at, bytes).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => corrupt(path, handle, "the file ends inside a block"),
        _ => Error::io("read", path, e),
    })?;
    check(&at.header, &payload, kind).map_err(|what| corrupt(path, handle, what))?;
    Ok(payload)
}

/// Whether `header` says what `payload` is; else what is wrong.
fn check(header: &[u8; HEADER_BYTES], payload: &[u8], kind: BlockType) -> Result<(), &'static str> {
    let header =
        Header::decode_from(&mut header.as_slice()).map_err(|_| "malformed header of a block")?;
    if header.block_type != kind {
        return Err("a block of another kind");
    }
    if header.data_length as usize != payload.len() {
        return Err("a block of another length");
    }
    if header.uncompressed_length != header.data_length {
        return Err("a compressed block, which this version never writes");
    }
    if xxh3_128(payload) != header.checksum.into_u128() {
        return Err("a block that does not match its checksum");
    }
    Ok(())
}

/// Reads a block: its header aside, its payload where the caller says. Both with one read of the
/// file.
struct BlockReader<'a> {
    file: &'a File,
    offset: u64,
    header: [u8; HEADER_BYTES],
    /// Bytes read so far, header included.
    done: usize,
}

impl Read for BlockReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.done < HEADER_BYTES {
            let rest = &mut self.header[self.done..];
            let missing = rest.len();
            let mut parts = [IoSliceMut::new(rest), IoSliceMut::new(out)];
            let at = self.offset + self.done as u64;
            let n = rustix::io::preadv(self.file, &mut parts, at)?;
            if n == 0 {
                return Ok(0);
            }
            self.done += n;
            if n > missing {
                return Ok(n - missing);
            }
        }
        let n = self.file.read_at(out, self.offset + self.done as u64)?;
        self.done += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::y::lsm::cache::buffers::BUFFER_BYTES;
    use lsm_tree::table::BlockOffset;

    /// What a ring does not complete in full is read again, and whatever comes of that is told:
    /// nothing is passed over.
    #[test]
    fn reads_past_the_end_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("7");
        std::fs::write(&path, vec![7; 10_000]).unwrap();
        let (file, access) = open(&path, true).unwrap();
        let Access::Direct { sector_bytes } = access else {
            // This file system has no direct reads.
            return;
        };
        let file = Arc::new(file);
        let read = |offset: u64| DirectRead {
            file: Arc::clone(&file),
            path: &path,
            handle: BlockHandle::new(BlockOffset(offset), 4_900),
            sector_bytes,
        };
        let buffers = ReadBuffers::default();
        for bytes in [0, BUFFER_BYTES] {
            buffers.set_memory(bytes);
            for offsets in [[8_000, 9_000], [100_000, 200_000], [u64::MAX - 9, 8_000]] {
                let reads = offsets.map(read);
                let outcome = read_together(&reads, &buffers, |_, _| Ok(()));
                assert!(outcome.is_err(), "{offsets:?} with {bytes}");
            }
            let malformed = read_together(&[0, 1_000].map(read), &buffers, |_, _| Ok(()));
            assert!(
                matches!(malformed, Err(Error::Corrupt { .. })),
                "{malformed:?}"
            );
        }
    }
}
