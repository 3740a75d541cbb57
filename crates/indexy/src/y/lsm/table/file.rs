//! The file of a table: pages at their places, each checked when it is read.
//!
//! Threads: any. Nothing is cached.

use super::{
    PAGE_BYTES,
    far::{self, SEAL_BYTES},
    packed::{Packed, Place},
    packed_far,
};
use crate::{
    error::{Error, Result},
    key::Value,
    limits::MAX_VALUE_BYTES,
    mem::aligned::AlignedBuffer,
    storage::{ReadAt, Storage, StorageFile, read_together},
    y::page::{self, HEADER_BYTES, Header, Identity, Kind, PageNo, PageSource, node::Far},
    y::pool::TABLE_PLACES,
};
use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The head's magic number, and the version of all formats of the file. In version 1 pages had
/// slots of another form; up to version 2 no leaf was packed, up to version 3 no value.
const MAGIC: &[u8; 8] = b"indexyRT";
pub(super) const VERSION: u32 = 4;
/// What the head says behind its header: the magic number, the version, and the table's number.
const HEAD_BYTES: u32 = 24;
const _: () = assert!(MAGIC.len() == 8 && HEAD_BYTES == 8 + 8 + 8 && HEADER_BYTES == 56);
const VERSIONS: std::ops::RangeInclusive<u32> = 1..=VERSION;
/// Every page of a table is of its first generation.
const BIRTH: u64 = 1;
/// What one read of far bytes takes at most: longer ones come in pieces.
const FAR_READ_BYTES: u64 = 256 << 10;

/// The name of table `number` in the folder of the tables.
pub(crate) fn file_name(number: u64) -> PathBuf {
    PathBuf::from(number.to_string())
}

/// What makes page `number` one of table `id`.
pub(super) fn identity(id: u64, number: PageNo) -> Identity {
    Identity {
        number,
        tree: id,
        birth: BIRTH,
    }
}

/// Fills the first page of a table.
pub(super) fn write_head(page: &mut [u8], number: u64) {
    let header = Header {
        payload: HEAD_BYTES,
        ..Header::of_kind(Kind::TableHead)
    };
    header.write(page);
    page::put(page, HEADER_BYTES, MAGIC);
    page::put(page, HEADER_BYTES + 8, &VERSION.to_le_bytes());
    page::put(page, HEADER_BYTES + 16, &number.to_le_bytes());
}

/// See the module header. Clones share the open file.
#[derive(Clone)]
pub(crate) struct TableFile {
    pub(super) storage: Arc<dyn StorageFile>,
    pub(super) id: u64,
    /// Length of the file in pages.
    pub(super) pages: u64,
}

impl TableFile {
    pub(super) fn path(&self) -> &Path {
        self.storage.path()
    }

    /// More leaves than the file has room for.
    pub(super) fn most_leaves(&self) -> u64 {
        self.pages * TABLE_PLACES
    }

    pub(super) fn bytes(&self) -> u64 {
        self.pages * PAGE_BYTES as u64
    }

    /// Whether `page`, of which `got` bytes were read, is page `number`.
    pub(super) fn check(&self, number: PageNo, page: &[u8], got: usize) -> Result<()> {
        if got < PAGE_BYTES {
            return Err(self.corrupt(number, "the file ends"));
        }
        let offset = number * PAGE_BYTES as u64;
        page::check(page, identity(self.id, number), self.path(), offset)
    }

    /// A buffer for the pages that a packed leaf is in. Errors: `Corrupt`, if it cannot be there.
    fn window(&self, packed: Packed) -> Result<AlignedBuffer> {
        self.check_place(packed)?;
        Ok(AlignedBuffer::new(packed.pages().1))
    }

    /// Unpacks and checks a leaf into `to`; its pages are in `window`, as far as they were `got`.
    pub(super) fn unpack(
        &self,
        packed: Packed,
        window: &[u8],
        got: usize,
        to: &mut [u8],
    ) -> Result<()> {
        let at = (packed.offset - packed.pages().0) as usize;
        let read = window.get(..got).unwrap_or(window);
        let Some(bytes) = read.get(at..at + packed.bytes) else {
            return Err(self.wrong_packed(packed, "the file ends"));
        };
        let unpacked = packed.unpack(self.id, bytes, to)?;
        unpacked.map_err(|wrong| self.wrong_packed(packed, wrong))
    }

    fn wrong_packed(&self, packed: Packed, what: &str) -> Error {
        Error::corrupt(self.path(), packed.offset, what)
    }

    /// Whether a packed leaf can be there.
    pub(super) fn check_place(&self, packed: Packed) -> Result<()> {
        match packed.fits(self.bytes()) {
            true => Ok(()),
            false => Err(self.wrong_packed(packed, "a packed leaf beyond its limits")),
        }
    }

    /// Reads as many consecutive pages from `first` on as `to` has room for, and checks each. Cost:
    /// one read of the device.
    pub(super) fn read_run(&self, first: PageNo, to: &mut [u8]) -> Result<()> {
        let got = self.storage.read_at(to, first * PAGE_BYTES as u64)?;
        for (number, page) in (first..).zip(to.chunks(PAGE_BYTES)) {
            let before = (number - first) as usize * PAGE_BYTES;
            self.check(number, page, got.saturating_sub(before))?;
        }
        Ok(())
    }

    /// The page `number`, which must be of kind `kind`, in a buffer of its own.
    pub(super) fn read_kind(&self, number: PageNo, kind: Kind) -> Result<(AlignedBuffer, Header)> {
        let mut page = self.page_buffer();
        self.read(number, &mut page)?;
        let header = Header::read(&page).filter(|h| h.kind == kind);
        let header = header.ok_or_else(|| self.corrupt(number, "a page of another kind"))?;
        Ok((page, header))
    }

    /// Checks the first page. Errors: `Corrupt`, `FormatVersion`.
    pub(super) fn check_head(&self, table: u64) -> Result<()> {
        let (page, _) = self.read_kind(0, Kind::TableHead)?;
        let body = page.get(HEADER_BYTES..).unwrap_or_default();
        if !body.starts_with(MAGIC) {
            return Err(self.corrupt(0, "this is no table"));
        }
        match page::u32_at(body, 8) {
            Some(version) if VERSIONS.contains(&version) => {}
            found => {
                return Err(Error::FormatVersion {
                    path: self.path().to_path_buf(),
                    found: found.unwrap_or(0),
                    supported: VERSION,
                });
            }
        }
        if page::u64_at(body, 16) != Some(table) {
            return Err(self.corrupt(0, "the table has another number"));
        }
        Ok(())
    }

    /// Errors: `FormatVersion`, where the first page is whole and says so. Cost: a read of a page.
    pub(in crate::y::lsm) fn check_format(&self, table: u64) -> Result<()> {
        match self.check_head(table) {
            Err(unknown @ Error::FormatVersion { .. }) => Err(unknown),
            _ => Ok(()),
        }
    }

    /// Where far bytes lie, seal included, if they can lie there.
    pub(super) fn place_of(&self, far: Far) -> Result<far::Place> {
        let place = far::Place::of(far);
        if far.bytes as usize > MAX_VALUE_BYTES
            || place.start < PAGE_BYTES as u64
            || place.end > self.bytes()
        {
            return Err(self.wrong_far(far, "far bytes beyond their limits"));
        }
        Ok(place)
    }

    /// Reads bytes as they are; `offset` and length are multiples of a page.
    pub(super) fn read_raw(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        let got = self.storage.read_at(to, offset)?;
        if got < to.len() {
            let what = "the file ends";
            return Err(Error::corrupt(self.path(), offset + got as u64, what));
        }
        Ok(())
    }

    /// Appends far bytes to `to` as they stand there, read through `window`, and checks them.
    pub(super) fn fetch_into(&self, far: Far, window: &mut [u8], to: &mut Vec<u8>) -> Result<()> {
        let place = self.place_of(far)?;
        let before = to.len();
        let mut seal = [0; SEAL_BYTES];
        let mut at = place.first_page();
        let last = at + place.page_bytes();
        while at < last {
            let len = (last - at).min(window.len() as u64);
            let part = window.get_mut(..len as usize).unwrap_or_default();
            self.read_raw(at, part)?;
            // Of this part, what lies inside the place; the seal is in the first part.
            let from = place.start.max(at) - at;
            let until = place.end.min(at + len) - at;
            let mut inside = part.get(from as usize..until as usize).unwrap_or_default();
            if at <= place.start
                && let Some((found, rest)) = inside.split_first_chunk()
            {
                seal = *found;
                inside = rest;
            }
            to.extend_from_slice(inside);
            at += len;
        }
        let bytes = to.get(before..).unwrap_or_default();
        self.check_seal(far, u64::from_le_bytes(seal), bytes)
    }

    /// Where the far bytes lie in `pages`, which begin at offset `start` of the file. Checks them.
    pub(super) fn far_within(&self, far: Far, start: u64, pages: &[u8]) -> Result<Range<usize>> {
        let place = self.place_of(far)?;
        let at = (place.start - start) as usize;
        let within = at + SEAL_BYTES..at + place.bytes() as usize;
        let seal = pages.get(at..).and_then(|b| b.first_chunk());
        let (Some(seal), Some(found)) = (seal, pages.get(within.clone())) else {
            return Err(self.wrong_far(far, "far bytes beyond their limits"));
        };
        self.check_seal(far, u64::from_le_bytes(*seal), found)?;
        Ok(within)
    }

    /// Whether `bytes` are those that `seal` was made for.
    fn check_seal(&self, far: Far, seal: u64, bytes: &[u8]) -> Result<()> {
        let offset = packed_far::offset(far);
        if bytes.len() == far.bytes as usize && far::seal(self.id, offset, bytes) == seal {
            return Ok(());
        }
        Err(self.wrong_far(far, "the checksum of far bytes does not match"))
    }

    /// The value of which `sealed`, to which `far` refers, was made. Errors: `Unsupported`,
    /// `Corrupt`.
    pub(super) fn unpack_far(&self, far: Far, sealed: &[u8]) -> Result<Vec<u8>> {
        let value = packed_far::unpack(sealed)?;
        value.ok_or_else(|| self.wrong_far(far, "what is packed is no value"))
    }

    pub(super) fn wrong_far(&self, far: Far, what: &str) -> Error {
        Error::corrupt(self.path(), packed_far::offset(far), what)
    }
}

impl TableFile {
    /// The file of table `number`, whose pages have `id`, as the version log says; its own pages
    /// need not be whole. For salvage.
    pub(in crate::y::lsm) fn open(
        storage: &dyn Storage,
        dir: &Path,
        (number, id, pages): (u64, u64, u64),
    ) -> Result<Self> {
        let storage = storage.open(&dir.join(file_name(number)), false)?;
        Ok(Self { storage, id, pages })
    }
}

impl PageSource for TableFile {
    const IS_TABLE: bool = true;

    fn page_bytes(&self) -> usize {
        PAGE_BYTES
    }

    fn place(&self, number: PageNo) -> u64 {
        Place::of(number).number()
    }

    /// What is packed has a place by the width of its offset.
    #[inline]
    fn may_have(&self, number: PageNo) -> bool {
        match Place::of(number) {
            Place::Page(number) => number < self.pages,
            Place::Packed(_) => true,
        }
    }

    /// Cost: of a packed leaf one read of its one to three pages, and unpacking it.
    fn read(&self, number: PageNo, to: &mut [u8]) -> Result<()> {
        if let Place::Packed(packed) = Place::of(number) {
            let mut window = self.window(packed)?;
            let got = self.storage.read_at(&mut window, packed.pages().0)?;
            return self.unpack(packed, &window, got, to);
        }
        let got = self.storage.read_at(to, number * PAGE_BYTES as u64)?;
        self.check(number, to, got)
    }

    fn read_all(&self, pages: &mut [(PageNo, &mut [u8])]) -> Result<()> {
        let pages = pages
            .iter_mut()
            .map(|(number, to)| (self, *number, &mut **to));
        read_pages(pages.collect())
    }

    /// Cost: a read of the device for every 256 KiB, and unpacking what is packed.
    fn fetch(&self, far: Far) -> Result<Vec<u8>> {
        let place = self.place_of(far)?;
        let mut window = AlignedBuffer::new(place.page_bytes().min(FAR_READ_BYTES) as usize);
        let mut bytes = Vec::with_capacity(far.bytes as usize);
        self.fetch_into(far, &mut window, &mut bytes)?;
        match packed_far::is_packed(far) {
            true => self.unpack_far(far, &bytes),
            false => Ok(bytes),
        }
    }

    fn far_pages(&self, far: Far) -> Result<Option<(u64, usize)>> {
        let place = self.place_of(far)?;
        let bytes = place.page_bytes();
        Ok((bytes <= FAR_READ_BYTES).then_some((place.first_page(), bytes as usize)))
    }

    fn value_in(&self, far: Far, pages: &[u8]) -> Result<Value> {
        let within = self.far_within(far, self.place_of(far)?.first_page(), pages)?;
        let bytes = pages.get(within).unwrap_or_default();
        Ok(match packed_far::is_packed(far) {
            true => self.unpack_far(far, bytes)?.into(),
            false => Value::new(bytes),
        })
    }

    fn storage(&self) -> &dyn StorageFile {
        &*self.storage
    }

    fn corrupt(&self, number: PageNo, what: &str) -> Error {
        match Place::of(number) {
            Place::Page(_) => {
                let what = format!("page {number}: {what}");
                Error::corrupt(self.path(), number * PAGE_BYTES as u64, what)
            }
            Place::Packed(packed) => Error::corrupt(self.path(), packed.offset, what),
        }
    }
}

/// Reads pages of tables into buffers of the size of a page, and checks them. Cost: a read of the
/// device each, overlapped.
pub(super) fn read_pages(mut wanted: Vec<(&TableFile, PageNo, &mut [u8])>) -> Result<()> {
    // What is packed does not go where it will stand.
    let windows = wanted
        .iter()
        .map(|(file, number, _)| match Place::of(*number) {
            Place::Page(_) => Ok(None),
            Place::Packed(packed) => file.window(packed).map(Some),
        });
    let mut windows = windows.collect::<Result<Vec<Option<AlignedBuffer>>>>()?;
    let mut files: Vec<&dyn StorageFile> = Vec::with_capacity(wanted.len());
    let mut reads = Vec::with_capacity(wanted.len());
    for ((file, number, to), window) in wanted.iter_mut().zip(&mut windows) {
        let (offset, to) = match (Place::of(*number), window) {
            (Place::Packed(packed), Some(window)) => (packed.pages().0, &mut **window),
            _ => (*number * PAGE_BYTES as u64, &mut **to),
        };
        reads.push(ReadAt { offset, to, got: 0 });
        files.push(&*file.storage);
    }
    read_together(&mut reads, &files)?;
    let got: Vec<usize> = reads.iter().map(|read| read.got).collect();
    for (((file, number, to), window), got) in wanted.iter_mut().zip(&windows).zip(got) {
        match (Place::of(*number), window) {
            (Place::Packed(packed), Some(window)) => file.unpack(packed, window, got, to)?,
            _ => file.check(*number, to, got)?,
        }
    }
    Ok(())
}
