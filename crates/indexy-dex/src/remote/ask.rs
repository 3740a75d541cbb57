//! Verbs that go over a socket on every transport: the memory server does them, if the session
//! may.

use super::{
    contract::MAX_WORDS,
    session::Ways,
    socket::{
        request::{CALL, SWAP, WRITE},
        stream::Stream,
    },
};
use crate::{
    address::Address,
    error::{Error, Result},
};

pub(super) fn too_long(server: u16) -> Error {
    let what = "a verb carries at most 4096 words";
    Error::Refused { server, what }
}

pub(super) fn write<S: Stream + Sync>(ways: &Ways<S>, at: Address, words: &[u64]) -> Result<()> {
    if words.len() > MAX_WORDS {
        return Err(too_long(at.server()));
    }
    let mut request = vec![0, WRITE, at.offset()];
    request.extend_from_slice(words);
    let nothing = |answer: &[u64]| answer.is_empty().then_some(());
    ways.to(at.server())?.exchange(&mut request, nothing)
}

pub(super) fn cas<S: Stream + Sync>(
    ways: &Ways<S>,
    at: Address,
    expected: u64,
    new: u64,
) -> Result<u64> {
    let mut request = [0, SWAP, at.offset(), expected, new];
    let way = ways.to(at.server())?;
    way.exchange(&mut request, |answer| match answer {
        &[was] => Some(was),
        _ => None,
    })
}

pub(super) fn call<S: Stream + Sync>(
    ways: &Ways<S>,
    server: u16,
    request: &[u64],
) -> Result<Vec<u64>> {
    if request.len() > MAX_WORDS {
        return Err(too_long(server));
    }
    let mut framed = vec![0, CALL];
    framed.extend_from_slice(request);
    let way = ways.to(server)?;
    way.exchange(&mut framed, |answer| Some(answer.to_vec()))
}
