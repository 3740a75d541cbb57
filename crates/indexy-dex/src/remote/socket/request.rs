//! Requests and answers, as words of a frame.
//!
//! | request | words | result |
//! |---|---|---|
//! | read | number, 1, then for each part: offset, words | the words |
//! | write | number, 2, offset, words to write | |
//! | compare-and-swap | number, 3, offset, expected, new | what the word was |
//! | call | number, 4, words of the handler's request | words of its answer |
//! | attach | number, 5, owner, session or 0, connection | session, lease in ns |
//! | renew | number, 6 | lease in ns |
//! | fence | number, 7, session | |
//! | session of | number, 8, owner | its last session, or 0 |
//! | end | number, 9, connections that the client gave up | |
//! | leave | number, 10 | |
//! | reach | number, 12, words of the fabric's request | words of its answer |
//! | status | number, 11 | bytes, next free byte, connections, lease in ns, then for each session: owner, session, rest of the lease in ns |
//!
//! An answer is the number, a status (0 done, 1 outside the region, 2 not understood, 3 the
//! session is over, 4 a lease runs for so many ns), and the result. `keys.rs` has the rules of
//! sessions.
//!
//! Numbers of a connection go up by one. A request that comes twice or is missing ends the
//! connection, before it does anything.

use super::frame::MAX_FRAME_WORDS;
use crate::remote::{
    contract::{Handler, MAX_WORDS},
    fabric::{Fabric, Visitor},
    keys::{Keys, Member, Refusal, now_ns},
    region::{BYTES_OFFSET, NEXT_FREE_OFFSET, Region},
};

pub(crate) const READ: u64 = 1;
pub(crate) const WRITE: u64 = 2;
pub(crate) const SWAP: u64 = 3;
pub(crate) const CALL: u64 = 4;
pub(crate) const ATTACH: u64 = 5;
/// Who attaches does not know yet which life of the memory server it is.
pub(crate) const ANY_LIFE: u64 = 0;
pub(crate) const RENEW: u64 = 6;
pub(crate) const FENCE: u64 = 7;
pub(crate) const SESSION_OF: u64 = 8;
pub(crate) const END: u64 = 9;
pub(crate) const LEAVE: u64 = 10;
pub(crate) const STATUS: u64 = 11;
pub(crate) const REACH: u64 = 12;

pub(crate) const DONE: u64 = 0;
pub(crate) const OUTSIDE: u64 = 1;
const NOT_UNDERSTOOD: u64 = 2;
pub(crate) const FENCED: u64 = 3;
pub(crate) const ALIVE: u64 = 4;

/// Most sessions that a status names.
const MAX_SESSIONS: usize = 1024;

/// What requests are performed on.
pub(crate) struct Desk<'a> {
    pub(crate) region: &'a Region,
    pub(crate) handler: Handler,
    pub(crate) keys: &'a Keys,
    /// Connections that are open.
    pub(crate) connections: usize,
    /// The number of this one.
    pub(crate) connection: u64,
    pub(crate) fabric: Option<&'a dyn Fabric>,
}

/// Why a request is not done: a status, and a word that belongs to it.
type Refused = (u64, Option<u64>);

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Fenced => (FENCED, None),
            Refusal::Alive(ns) => (ALIVE, Some(ns)),
            Refusal::Exhausted => (NOT_UNDERSTOOD, None),
        }
    }
}

const CONFUSED: Refused = (NOT_UNDERSTOOD, None);
const ASTRAY: Refused = (OUTSIDE, None);

/// Does what `body` (a request behind its number) asks for, and appends status and result.
/// `may_call` stands for the server's threads: it is held while the handler runs. `member` is the
/// connection's, once it attached.
pub(crate) fn perform<T>(
    desk: &Desk<'_>,
    member: &mut Option<Member>,
    may_call: impl FnOnce() -> T,
    body: &[u64],
    answer: &mut Vec<u64>,
) {
    let status_at = answer.len();
    answer.push(DONE);
    let done = match body {
        [READ..=CALL, ..] => verb(desk, *member, may_call, body, answer),
        _ => control(desk, member, body, answer),
    };
    if let Err((status, word)) = done {
        answer.truncate(status_at);
        answer.push(status);
        answer.extend(word);
    }
}

/// What `RemoteMemory` has for all.
fn verb<T>(
    desk: &Desk<'_>,
    member: Option<Member>,
    may_call: impl FnOnce() -> T,
    body: &[u64],
    answer: &mut Vec<u64>,
) -> Result<(), Refused> {
    // Before the session is looked at: F1 must not wait for other calls.
    let permit = matches!(body, [CALL, ..]).then(may_call);
    let admitted = desk.keys.admit(member)?;
    match body {
        [READ, parts @ ..] => read(desk.region, parts, answer)?,
        [WRITE, offset, words @ ..] => desk.region.write(*offset, words).ok_or(ASTRAY)?,
        [SWAP, offset, expected, new] => {
            let was = desk.region.cas(*offset, *expected, *new);
            answer.push(was.ok_or(ASTRAY)?);
        }
        [CALL, request @ ..] => {
            let words = (desk.handler)(desk.region, request);
            if words.len() > MAX_WORDS {
                return Err(CONFUSED);
            }
            answer.extend(words);
        }
        _ => return Err(CONFUSED),
    }
    drop((admitted, permit));
    Ok(())
}

/// Sessions and their leases.
fn control(
    desk: &Desk<'_>,
    member: &mut Option<Member>,
    body: &[u64],
    answer: &mut Vec<u64>,
) -> Result<(), Refused> {
    let keys = desk.keys;
    let own = member.ok_or(CONFUSED);
    match body {
        &[ATTACH, owner, session, connection, life] if member.is_none() => {
            let owner = u16::try_from(owner).map_err(|_| CONFUSED)?;
            if life != ANY_LIFE && life != keys.life() {
                // Of a server that was here before: what its clients have read is not here.
                return Err(Refusal::Fenced.into());
            }
            let session = keys.attach(owner, session, now_ns())?;
            *member = Some(Member {
                session,
                connection,
            });
            answer.extend([session, keys.lease_ns(), keys.life()]);
        }
        [RENEW] => {
            keys.renew(own?, now_ns())?;
            answer.push(keys.lease_ns());
        }
        &[FENCE, session] => keys.fence(session, now_ns())?,
        &[SESSION_OF, owner] => {
            let owner = u16::try_from(owner).map_err(|_| CONFUSED)?;
            answer.push(keys.session_of(owner));
        }
        [END, connections @ ..] => keys.end(own?, connections)?,
        [LEAVE] => keys.leave(own?),
        [REACH, request @ ..] => {
            // F1: a session that is over gets no new way.
            let admitted = keys.admit(*member)?;
            let visitor = Visitor {
                connection: desk.connection,
                session: member.map_or(0, |member| member.session),
            };
            let fabric = desk.fabric.ok_or(CONFUSED)?;
            let words = fabric.reach(visitor, request).ok_or(CONFUSED)?;
            if words.len() > MAX_WORDS {
                return Err(CONFUSED);
            }
            answer.extend(words);
            drop(admitted);
        }
        [STATUS] => {
            let mut next_free = [0];
            let mut bytes = [0];
            desk.region.read(NEXT_FREE_OFFSET, &mut next_free);
            desk.region.read(BYTES_OFFSET, &mut bytes);
            let connections = desk.connections as u64;
            answer.extend([bytes[0], next_free[0], connections, keys.lease_ns()]);
            let sessions = keys.sessions(now_ns()).into_iter().take(MAX_SESSIONS);
            for (owner, session, rest_ns) in sessions {
                answer.extend([u64::from(owner), session, rest_ns]);
            }
        }
        _ => return Err(CONFUSED),
    }
    Ok(())
}

fn read(region: &Region, parts: &[u64], answer: &mut Vec<u64>) -> Result<(), Refused> {
    let (parts, rest) = parts.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(CONFUSED);
    }
    for &[offset, words] in parts {
        let start = answer.len();
        let words = usize::try_from(words).map_err(|_| CONFUSED)?;
        if words > MAX_FRAME_WORDS - start.min(MAX_FRAME_WORDS) {
            return Err(CONFUSED);
        }
        answer.resize(start + words, 0);
        let done = region.read(offset, &mut answer[start..]);
        done.ok_or(ASTRAY)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    struct Paths;

    impl Fabric for Paths {
        fn reach(&self, visitor: Visitor, request: &[u64]) -> Option<Vec<u64>> {
            let answer = vec![visitor.connection, visitor.session];
            request.is_empty().then_some(answer)
        }

        fn revoke(&self, _: u64) {}

        fn gone(&self, _: u64) {}
    }

    struct Office {
        region: Region,
        keys: Keys,
        member: Option<Member>,
    }

    fn office() -> Office {
        Office {
            region: Region::create(8192).unwrap(),
            keys: Keys::new(Duration::from_secs(60), None),
            member: None,
        }
    }

    impl Office {
        fn ask(&mut self, body: &[u64]) -> Vec<u64> {
            let desk = Desk {
                region: &self.region,
                handler: |_, request| request.repeat(2),
                keys: &self.keys,
                connections: 3,
                connection: 1,
                fabric: Some(&Paths),
            };
            let mut answer = Vec::new();
            perform(&desk, &mut self.member, || (), body, &mut answer);
            answer
        }
    }

    fn asked(body: &[u64]) -> Vec<u64> {
        office().ask(body)
    }

    #[test]
    fn requests_are_answered() {
        assert_eq!(asked(&[READ, 16, 1, 0, 0]), [DONE, 8192]);
        assert_eq!(asked(&[SWAP, 4096, 0, 5]), [DONE, 0]);
        assert_eq!(asked(&[WRITE, 4096, 5, 6]), [DONE]);
        assert_eq!(asked(&[CALL, 3, 4]), [DONE, 3, 4, 3, 4]);
    }

    #[test]
    fn sessions_come_and_go() {
        let mut office = office();
        let lease = 60_000_000_000;
        assert_eq!(office.ask(&[RENEW]), [NOT_UNDERSTOOD], "no session yet");
        let life = office.keys.life();
        assert_eq!(office.ask(&[ATTACH, 7, 0, 1, !life]), [FENCED]);
        assert_eq!(office.ask(&[ATTACH, 7, 0, 1, 0]), [DONE, 1, lease, life]);
        let another = [ATTACH, 8, 0, 2, life];
        assert_eq!(office.ask(&another), [NOT_UNDERSTOOD]);
        assert_eq!(office.ask(&[RENEW]), [DONE, lease]);
        assert_eq!(office.ask(&[SESSION_OF, 7]), [DONE, 1]);
        assert_eq!(office.ask(&[SESSION_OF, 9]), [DONE, 0]);
        let refused = office.ask(&[FENCE, 1]);
        assert!(refused[0] == ALIVE && refused[1] > 0);
        let status = office.ask(&[STATUS]);
        assert_eq!(status[..7], [DONE, 8192, 4096, 3, lease, 7, 1]);
        assert_eq!(office.ask(&[WRITE, 4096, 5]), [DONE]);
        assert_eq!(office.ask(&[REACH]), [DONE, 1, 1]);
        assert_eq!(office.ask(&[LEAVE]), [DONE]);
        for verb in [
            &[WRITE, 4096, 6][..],
            &[READ, 4096, 1],
            &[CALL, 1],
            &[SWAP, 4096, 5, 6],
            &[REACH],
        ] {
            assert_eq!(office.ask(verb), [FENCED]);
        }
        assert_eq!(office.ask(&[RENEW]), [FENCED]);
        let mut word = [0];
        office.region.read(4096, &mut word).unwrap();
        assert_eq!(word, [5]);
    }

    #[test]
    fn requests_that_make_no_sense_are_refused_and_do_nothing() {
        assert_eq!(asked(&[]), [NOT_UNDERSTOOD]);
        assert_eq!(asked(&[99]), [NOT_UNDERSTOOD]);
        assert_eq!(asked(&[READ, 16]), [NOT_UNDERSTOOD]);
        assert_eq!(asked(&[READ, 0, u64::MAX]), [NOT_UNDERSTOOD]);
        assert_eq!(asked(&[READ, 8, 1, 9000, 1]), [OUTSIDE]);
        assert_eq!(asked(&[SWAP, 4096, 0]), [NOT_UNDERSTOOD]);
        assert_eq!(asked(&[WRITE, 8192, 1]), [OUTSIDE]);
        assert_eq!(asked(&[REACH]), [DONE, 1, 0]);
        assert_eq!(asked(&[REACH, 1]), [NOT_UNDERSTOOD]);
        assert_eq!(asked(&[ATTACH, 1 << 16, 0, 1, 0]), [NOT_UNDERSTOOD]);
        let many = [vec![CALL], vec![0; MAX_WORDS]].concat();
        assert_eq!(asked(&many), [NOT_UNDERSTOOD]);
    }
}
