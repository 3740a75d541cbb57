//! Codecs: bytes made smaller, and what they were.
//!
//! Nothing read from a file is believed: what comes out is written to a buffer whose size the
//! caller knows, and must fill it.

use crate::{
    error::{Error, Result},
    y::Compression,
};
#[cfg(feature = "zstd")]
use std::cell::RefCell;

/// As tables store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Codec {
    Stored = 0,
    Lz4 = 1,
    Zstd = 2,
}

/// Of Zstandard: higher ones take much longer and save hardly more of a page.
#[cfg(feature = "zstd")]
const LEVEL: i32 = 1;

impl Codec {
    pub(super) fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Stored,
            1 => Self::Lz4,
            2 => Self::Zstd,
            _ => return None,
        })
    }

    /// The codec of a table that is written with `compression`. Errors: `Unsupported`, if this
    /// build does not have it.
    pub(crate) fn for_writing(compression: Compression) -> Result<Self> {
        match compression {
            Compression::None => Ok(Self::Stored),
            Compression::Lz4 => Ok(Self::Lz4),
            Compression::Zstd if cfg!(feature = "zstd") => Ok(Self::Zstd),
            Compression::Zstd => Err(missing()),
        }
    }

    /// Puts the compressed form of `bytes` behind `to`; false if that is not smaller, and `to` is
    /// as it was.
    pub(super) fn compress(self, bytes: &[u8], to: &mut Vec<u8>) -> bool {
        let before = to.len();
        // LZ4 wants room for the worst case.
        let most = lz4_flex::block::get_maximum_output_size(bytes.len());
        to.resize(before + most, 0);
        let room = to.get_mut(before..).unwrap_or_default();
        let written = match self {
            Self::Stored => None,
            Self::Lz4 => lz4_flex::block::compress_into(bytes, room).ok(),
            Self::Zstd => zstd_compress(bytes, room),
        };
        let smaller = written.filter(|written| *written < bytes.len());
        to.truncate(before + smaller.unwrap_or(0));
        smaller.is_some()
    }

    /// Fills `to` with what `bytes` are the form of; false: they are not of anything so long.
    /// Errors: `Unsupported`, if this build does not have the codec.
    pub(super) fn decompress(self, bytes: &[u8], to: &mut [u8]) -> Result<bool> {
        let written = match self {
            Self::Stored => {
                let whole = bytes.len() == to.len();
                if whole {
                    to.copy_from_slice(bytes);
                }
                return Ok(whole);
            }
            Self::Lz4 => lz4_flex::block::decompress_into(bytes, to).ok(),
            Self::Zstd => zstd_decompress(bytes, to)?,
        };
        Ok(written == Some(to.len()))
    }
}

fn missing() -> Error {
    Error::Unsupported {
        what: "compression by zstd in a build without the cargo feature `zstd`".into(),
    }
}

#[cfg(feature = "zstd")]
thread_local! {
    /// Making a context takes longer than a leaf does: each thread that has met Zstandard keeps
    /// one to decode with, some 160 KiB.
    static DECODER: RefCell<zstd::bulk::Decompressor<'static>> = RefCell::default();
}

#[cfg(feature = "zstd")]
fn zstd_compress(bytes: &[u8], to: &mut [u8]) -> Option<usize> {
    zstd::bulk::compress_to_buffer(bytes, to, LEVEL).ok()
}

#[cfg(feature = "zstd")]
fn zstd_decompress(bytes: &[u8], to: &mut [u8]) -> Result<Option<usize>> {
    // A thread that is ending has none any more.
    let known = DECODER.try_with(|decoder| decoder.borrow_mut().decompress_to_buffer(bytes, to));
    let done = known.unwrap_or_else(|_| zstd::bulk::decompress_to_buffer(bytes, to));
    Ok(done.ok())
}

#[cfg(not(feature = "zstd"))]
fn zstd_compress(_: &[u8], _: &mut [u8]) -> Option<usize> {
    None
}

#[cfg(not(feature = "zstd"))]
fn zstd_decompress(_: &[u8], _: &mut [u8]) -> Result<Option<usize>> {
    Err(missing())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codecs() -> Vec<Codec> {
        let all = [Compression::Lz4, Compression::Zstd];
        let codecs = all.iter().filter_map(|c| Codec::for_writing(*c).ok());
        codecs.collect()
    }

    #[test]
    fn what_was_compressed_comes_back_and_no_other_length_does() {
        let bytes: Vec<u8> = (0..4096u32).map(|i| (i / 7 % 50) as u8).collect();
        for codec in codecs() {
            let mut packed = vec![9; 3];
            assert!(codec.compress(&bytes, &mut packed), "{codec:?}");
            let packed = packed.get(3..).unwrap();
            assert!(packed.len() < bytes.len() / 2, "{codec:?}");
            let mut found = vec![1; bytes.len()];
            assert!(codec.decompress(packed, &mut found).unwrap());
            assert_eq!(found, bytes);
            for len in [0, 1, bytes.len() - 1, bytes.len() + 1] {
                assert!(!codec.decompress(packed, &mut vec![0; len]).unwrap());
            }
            let cut = packed.get(..packed.len() - 1).unwrap();
            assert!(!codec.decompress(cut, &mut found).unwrap());
        }
    }

    #[test]
    fn what_does_not_become_smaller_is_left() {
        let mut state = 1u64;
        let random = std::iter::repeat_with(|| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 56) as u8
        });
        let bytes: Vec<u8> = random.take(4096).collect();
        for codec in codecs() {
            let mut to = vec![9; 3];
            assert!(!codec.compress(&bytes, &mut to), "{codec:?}");
            assert_eq!(to, [9; 3]);
        }
    }

    #[test]
    fn a_codec_that_is_not_compiled_in_is_told() {
        let asked = Codec::for_writing(Compression::Zstd);
        assert_eq!(asked.is_ok(), cfg!(feature = "zstd"));
        let read = Codec::Zstd.decompress(&[1, 2, 3], &mut [0; 8]);
        assert_eq!(read.is_ok(), cfg!(feature = "zstd"));
    }
}
