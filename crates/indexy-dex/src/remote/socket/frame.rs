//! A frame of a connection.
//!
//! | offset | size | field | rule |
//! |---|---|---|---|
//! | 0 | 4 | words | little-endian, 1 to [`MAX_FRAME_WORDS`] |
//! | 4 | 4 | checksum | CRC-32C of the payload |
//! | 8 | 8 x words | payload | little-endian words |

use crate::remote::contract::MAX_WORDS;
use std::io::{self, Read, Write};

/// A verb's words, and what a request says about them.
pub(crate) const MAX_FRAME_WORDS: usize = 2 * MAX_WORDS;
const HEADER_BYTES: usize = 8;

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Buffers of one end, kept from frame to frame.
#[derive(Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    pub(crate) fn send(&mut self, to: &mut impl Write, words: &[u64]) -> io::Result<()> {
        if words.is_empty() || words.len() > MAX_FRAME_WORDS {
            return Err(invalid("a frame of this length is not sent"));
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&[0; HEADER_BYTES]);
        for word in words {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&self.bytes[HEADER_BYTES..]);
        self.bytes[..4].copy_from_slice(&(words.len() as u32).to_le_bytes());
        self.bytes[4..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        to.write_all(&self.bytes)?;
        to.flush()
    }

    pub(crate) fn receive(&mut self, from: &mut impl Read, words: &mut Vec<u64>) -> io::Result<()> {
        let (mut length, mut checksum) = ([0; 4], [0; 4]);
        from.read_exact(&mut length)?;
        from.read_exact(&mut checksum)?;
        let length = u32::from_le_bytes(length) as usize;
        if length == 0 || length > MAX_FRAME_WORDS {
            return Err(invalid("a frame has an impossible length"));
        }
        self.bytes.clear();
        self.bytes.resize(8 * length, 0);
        from.read_exact(&mut self.bytes)?;
        if crc32c::crc32c(&self.bytes) != u32::from_le_bytes(checksum) {
            return Err(invalid("a frame's checksum is wrong"));
        }
        words.clear();
        let (chunks, _) = self.bytes.as_chunks::<8>();
        words.extend(chunks.iter().map(|&chunk| u64::from_le_bytes(chunk)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(words: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Frames::default().send(&mut bytes, words).unwrap();
        bytes
    }

    fn received(mut bytes: &[u8]) -> io::Result<Vec<u64>> {
        let mut words = Vec::new();
        Frames::default().receive(&mut bytes, &mut words)?;
        Ok(words)
    }

    #[test]
    fn a_frame_comes_as_it_was_sent() {
        let words = [1, u64::MAX, 3];
        assert_eq!(received(&sent(&words)).unwrap(), words);
    }

    #[test]
    fn every_damaged_byte_and_every_cut_is_found() {
        let whole = sent(&[7, 8, 9]);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert!(received(&damaged).is_err(), "byte {at}");
            assert!(received(&whole[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_length_is_checked_before_memory_is_taken() {
        let mut bytes = u32::MAX.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0; 4]);
        let error = received(&bytes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
