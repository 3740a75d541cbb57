//! Numbers and byte strings one behind the other, as records of the version log have them.
//!
//! Numbers are little-endian; a byte string has its length (4 bytes) before it. Reading trusts
//! nothing: every length is checked against what is there and against a limit.

#![forbid(unsafe_code)]

/// Why bytes could not be read.
pub(super) type Wrong = &'static str;

pub(super) fn put_u64(to: &mut Vec<u8>, number: u64) {
    to.extend_from_slice(&number.to_le_bytes());
}

pub(super) fn put_u32(to: &mut Vec<u8>, number: usize) {
    debug_assert!(u32::try_from(number).is_ok());
    to.extend_from_slice(&(number as u32).to_le_bytes());
}

pub(super) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(to, bytes.len());
    to.extend_from_slice(bytes);
}

/// What is left to read.
pub(super) struct Reader<'b>(pub(super) &'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, bytes: usize) -> Result<&'b [u8], Wrong> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or("cut off")?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Wrong> {
        self.take(1)?.first().copied().ok_or("cut off")
    }

    pub(super) fn u32(&mut self) -> Result<usize, Wrong> {
        let bytes = self.take(4)?.try_into().map_err(|_| "cut off")?;
        Ok(u32::from_le_bytes(bytes) as usize)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Wrong> {
        let bytes = self.take(8)?.try_into().map_err(|_| "cut off")?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A byte string of at most `limit`.
    pub(super) fn bytes(&mut self, limit: usize) -> Result<Box<[u8]>, Wrong> {
        let len = self.u32()?;
        if len > limit {
            return Err("a byte string is too long");
        }
        Ok(self.take(len)?.into())
    }

    /// How many elements follow, each of which takes `least` bytes at least: no more than there is
    /// room for, so that a damaged number does not take the machine's memory.
    pub(super) fn count(&mut self, least: usize) -> Result<usize, Wrong> {
        let count = self.u32()?;
        if count > self.0.len() / least.max(1) {
            return Err("more elements than bytes");
        }
        Ok(count)
    }
}
