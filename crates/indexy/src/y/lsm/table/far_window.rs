//! Far bytes in the order in which they were written, through one buffer.

use super::{file::TableFile, packed_far};
use crate::{error::Result, mem::aligned::AlignedBuffer, y::page::node::Far};
use std::ops::Range;

/// Bytes of the file that were read ahead, and those asked for last.
pub(super) struct FarWindow {
    /// Taken when far bytes are first met.
    buffer: Option<AlignedBuffer>,
    buffer_bytes: usize,
    /// What of the file is in the buffer.
    start: u64,
    filled: usize,
    present: Present,
}

enum Present {
    /// A part of the buffer.
    Inside(Range<usize>),
    /// What is longer than the buffer, or was packed.
    Long(Vec<u8>),
}

impl FarWindow {
    /// Reads of up to `bytes`, whole pages.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            buffer: None,
            buffer_bytes: bytes,
            start: 0,
            filled: 0,
            present: Present::Inside(0..0),
        }
    }

    /// Lets go of what was loaded last, if that is not in the buffer.
    #[inline]
    pub(super) fn forget(&mut self) {
        if matches!(self.present, Present::Long(_)) {
            self.present = Present::Inside(0..0);
        }
    }

    /// The bytes that were loaded last.
    pub(super) fn present(&self) -> &[u8] {
        match (&self.present, &self.buffer) {
            (Present::Long(bytes), _) => bytes,
            (Present::Inside(at), Some(buffer)) => buffer.get(at.clone()).unwrap_or_default(),
            (Present::Inside(_), None) => &[],
        }
    }

    /// Makes the bytes of `far` present, checked. Cost: none if they were read with those before,
    /// else a read of the device.
    pub(super) fn load(&mut self, file: &TableFile, far: Far) -> Result<()> {
        self.present = Present::Inside(0..0);
        let place = file.place_of(far)?;
        let bytes = self.buffer_bytes;
        let buffer = self.buffer.get_or_insert_with(|| AlignedBuffer::new(bytes));
        if place.page_bytes() > bytes as u64 {
            let mut long = Vec::with_capacity(far.bytes as usize);
            self.filled = 0;
            file.fetch_into(far, buffer, &mut long)?;
            self.present = Present::Long(match packed_far::is_packed(far) {
                true => file.unpack_far(far, &long)?,
                false => long,
            });
            return Ok(());
        }
        if place.start < self.start || place.end > self.start + self.filled as u64 {
            self.filled = 0;
            self.start = place.first_page();
            let ahead = (file.bytes() - self.start).min(bytes as u64) as usize;
            file.read_raw(self.start, buffer.get_mut(..ahead).unwrap_or_default())?;
            self.filled = ahead;
        }
        let within = file.far_within(far, self.start, buffer)?;
        self.present = match packed_far::is_packed(far) {
            true => {
                let sealed = buffer.get(within).unwrap_or_default();
                Present::Long(file.unpack_far(far, sealed)?)
            }
            false => Present::Inside(within),
        };
        Ok(())
    }
}
