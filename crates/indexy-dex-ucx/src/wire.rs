//! What both ends say: by the TCP connection to the fabric, and by messages of UCX.
//!
//! | asked of the fabric | words | answer |
//! |---|---|---|
//! | lane | 1, the worker's address | ticket (2), where the region is, its bytes, its key, the worker's address |
//! | end | 2, tickets (2 each) | |
//!
//! The answer to a lane is empty if there is none left, or no way from here to that worker. Keys
//! and addresses are their bytes' number, and the bytes. A client asks for a lane, connects to the
//! worker that it is told of, which has connected to the client's, and says hello.
//!
//! | message | kind | number | rest of the header | words |
//! |---|---|---|---|---|
//! | hello | 1 | 0 | ticket (2) | |
//! | write | 2 | n | offset | what is written |
//! | swap | 3 | n | offset, expected, new | |
//! | call | 4 | n | | the handler's request |
//! | answer | 0 | n | status, what a word was | the handler's answer |
//!
//! Status: 0 done, 1 outside of the region, 2 not understood. Words are in the machine's order.

use crate::ucp::Header;

pub(crate) const LANE: u64 = 1;
pub(crate) const END: u64 = 2;

pub(crate) const ANSWER: u64 = 0;
pub(crate) const HELLO: u64 = 1;
pub(crate) const WRITE: u64 = 2;
pub(crate) const SWAP: u64 = 3;
pub(crate) const CALL: u64 = 4;

pub(crate) const DONE: u64 = 0;
pub(crate) const OUTSIDE: u64 = 1;
pub(crate) const NOT_UNDERSTOOD: u64 = 2;

/// Longest key of a region or address of a worker.
const MAX_BYTES: usize = 8192;

/// The name of a lane.
pub(crate) type Ticket = [u64; 2];

/// A header with zeros behind what is given.
pub(crate) fn header(words: &[u64]) -> Header {
    let mut header = Header::default();
    for (to, from) in header.iter_mut().zip(words) {
        *to = *from;
    }
    header
}

/// Appends bytes behind their number.
pub(crate) fn put_bytes(words: &mut Vec<u64>, bytes: &[u8]) {
    words.push(bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(chunk) {
            *to = *from;
        }
        words.push(u64::from_ne_bytes(word));
    }
}

/// Takes bytes from the front. `None`: there are not as many as it says, or too many.
pub(crate) fn take_bytes(words: &mut &[u64]) -> Option<Vec<u8>> {
    let (&length, rest) = words.split_first()?;
    let length = usize::try_from(length).ok().filter(|n| *n <= MAX_BYTES)?;
    let (own, rest) = rest.split_at_checked(length.div_ceil(8))?;
    let mut bytes: Vec<u8> = own.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.truncate(length);
    *words = rest;
    Some(bytes)
}

/// How a region is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) ticket: Ticket,
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) key: Vec<u8>,
    pub(crate) worker: Vec<u8>,
}

impl Reach {
    pub(crate) fn encode(&self) -> Vec<u64> {
        let [first, second] = self.ticket;
        let mut words = vec![first, second, self.start, self.bytes];
        put_bytes(&mut words, &self.key);
        put_bytes(&mut words, &self.worker);
        words
    }

    /// `None`: it makes no sense.
    pub(crate) fn decode(words: &[u64]) -> Option<Self> {
        let (&[first, second, start, bytes], mut rest) = words.split_first_chunk()?;
        start.checked_add(bytes)?;
        let key = take_bytes(&mut rest)?;
        let worker = take_bytes(&mut rest)?;
        rest.is_empty().then_some(Self {
            ticket: [first, second],
            start,
            bytes,
            key,
            worker,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reach_comes_as_it_was_sent_and_nothing_else_does() {
        let reach = Reach {
            ticket: [1, 2],
            start: 4096,
            bytes: 8192,
            key: (0..13).collect(),
            worker: (0..16).collect(),
        };
        let words = reach.encode();
        assert_eq!(Reach::decode(&words), Some(reach));
        for end in 0..words.len() {
            assert_eq!(Reach::decode(&words[..end]), None);
        }
        for (at, wrong) in [(2, u64::MAX), (4, 17), (4, u64::MAX), (7, 1)] {
            let mut words = words.clone();
            words[at] = wrong;
            assert_eq!(Reach::decode(&words), None, "{at}");
        }
    }
}
