//! Requests and answers, as words of a frame.
//!
//! | request | words |
//! |---|---|
//! | read | number, 1, then for each part: offset, words |
//! | write | number, 2, offset, words to write |
//! | compare-and-swap | number, 3, offset, expected, new |
//! | call | number, 4, words of the handler's request |
//!
//! An answer is the number, a status (0 done, 1 outside the region, 2 not understood), and what
//! was read, what the word was, or what the handler answered.
//!
//! Numbers of a connection go up by one. A request that comes twice or is missing ends the
//! connection, before it does anything.

use super::frame::MAX_FRAME_WORDS;
use crate::remote::{
    contract::{Handler, MAX_WORDS},
    region::Region,
};

pub(crate) const READ: u64 = 1;
pub(crate) const WRITE: u64 = 2;
pub(crate) const SWAP: u64 = 3;
pub(crate) const CALL: u64 = 4;

pub(crate) const DONE: u64 = 0;
pub(crate) const OUTSIDE: u64 = 1;
const NOT_UNDERSTOOD: u64 = 2;

/// Does what `body` (a request behind its number) asks for, and appends status and result.
/// `may_call` stands for the server's threads: it is held while the handler runs.
pub(crate) fn perform<T>(
    region: &Region,
    handler: Handler,
    may_call: impl FnOnce() -> T,
    body: &[u64],
    answer: &mut Vec<u64>,
) {
    let status_at = answer.len();
    answer.push(DONE);
    let status = match body {
        [READ, parts @ ..] => read(region, parts, answer),
        [WRITE, offset, words @ ..] => {
            let done = region.write(*offset, words);
            done.map_or(OUTSIDE, |()| DONE)
        }
        [SWAP, offset, expected, new] => match region.cas(*offset, *expected, *new) {
            Some(was) => {
                answer.push(was);
                DONE
            }
            None => OUTSIDE,
        },
        [CALL, request @ ..] => {
            let permit = may_call();
            let words = handler(region, request);
            drop(permit);
            let fits = words.len() <= MAX_WORDS;
            answer.extend(words.into_iter().take(MAX_WORDS));
            if fits { DONE } else { NOT_UNDERSTOOD }
        }
        _ => NOT_UNDERSTOOD,
    };
    if status != DONE {
        answer.truncate(status_at);
        answer.push(status);
    }
}

fn read(region: &Region, parts: &[u64], answer: &mut Vec<u64>) -> u64 {
    let (parts, rest) = parts.as_chunks::<2>();
    if !rest.is_empty() {
        return NOT_UNDERSTOOD;
    }
    for &[offset, words] in parts {
        let start = answer.len();
        let Ok(words) = usize::try_from(words) else {
            return NOT_UNDERSTOOD;
        };
        if words > MAX_FRAME_WORDS - start.min(MAX_FRAME_WORDS) {
            return NOT_UNDERSTOOD;
        }
        answer.resize(start + words, 0);
        if region.read(offset, &mut answer[start..]).is_none() {
            return OUTSIDE;
        }
    }
    DONE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(body: &[u64]) -> Vec<u64> {
        let region = Region::create(8192).unwrap();
        let mut answer = Vec::new();
        let twice = |_: &Region, request: &[u64]| request.repeat(2);
        perform(&region, twice, || (), body, &mut answer);
        answer
    }

    #[test]
    fn requests_are_answered() {
        assert_eq!(asked(&[READ, 16, 1, 0, 0]), [DONE, 8192]);
        assert_eq!(asked(&[SWAP, 4096, 0, 5]), [DONE, 0]);
        assert_eq!(asked(&[WRITE, 4096, 5, 6]), [DONE]);
        assert_eq!(asked(&[CALL, 3, 4]), [DONE, 3, 4, 3, 4]);
    }

    #[test]
    fn requests_that_make_no_sense_are_refused_and_do_nothing() {
        assert_eq!(asked(&[]), [NOT_UNDERSTOOD]);
        assert_eq!(asked(&[9]), [NOT_UNDERSTOOD]);
        assert_eq!(asked(&[READ, 16]), [NOT_UNDERSTOOD]);
        assert_eq!(asked(&[READ, 0, u64::MAX]), [NOT_UNDERSTOOD]);
        assert_eq!(asked(&[READ, 8, 1, 9000, 1]), [OUTSIDE]);
        assert_eq!(asked(&[SWAP, 4096, 0]), [NOT_UNDERSTOOD]);
        assert_eq!(asked(&[WRITE, 8192, 1]), [OUTSIDE]);
        let many = [vec![CALL], vec![0; MAX_WORDS]].concat();
        assert_eq!(asked(&many), [NOT_UNDERSTOOD]);
    }
}
