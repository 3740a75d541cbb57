//! The memory server's keys: one for each session of an owner, valid until it is revoked.
//!
//! A compute server that serves ranges has a *session* at every memory server: its owner's number
//! and a number of its own, which the first memory server draws. A session has a lease. Whoever
//! wants the ranges of an owner that is gone revokes its session first, here called *fencing*.
//!
//! # Invariants
//! - F1: a verb of a session that was fenced does nothing, from the moment that fencing was
//!   answered on. A verb runs under the read half of `state`, fencing takes the write half, so it
//!   waits for verbs under way.
//! - F2: a session is fenced only after its lease ended here. The owner's own lease starts when it
//!   *asks* for more, ours when we hear of it, so the owner's ended before; from then on it
//!   answers nothing from its cache (`session.rs`).
//! - F3: an owner has one session at a time. A new one is refused while the lease of the one
//!   before runs, and fences it otherwise. Numbers of sessions are never used twice.
//! - F4: a connection that its client gave up does nothing more once the client's next verb was
//!   answered: a request that was late does not come after one that replaced it.
//! - F5: a session is of one life of the memory server. One that was started anew at the same place
//!   has another region: it refuses connections of the session.
//!
//! Connections without a session are for tools that load or look: nothing fences them.

use super::fabric::Way;
use crate::lock_word::MAX_SESSION;
use parking_lot::{RwLock, RwLockReadGuard};
use rustix::time::{ClockId, clock_gettime};
use std::{
    collections::{HashMap, HashSet},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// The machine's clock in ns. It goes on while the machine or the process is stopped.
pub(super) fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Which connection of which session sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) session: u64,
    /// Chosen by the client.
    pub(super) connection: u64,
}

/// The session may not do what it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It was replaced.
    Fenced,
    /// The lease of the session in question runs for so many ns.
    Alive(u64),
    /// Numbers of sessions have run out.
    Exhausted,
}

struct Session {
    until_ns: AtomicU64,
    /// Connections that the client gave up.
    ended: HashSet<u64>,
}

#[derive(Default)]
struct State {
    last: u64,
    owners: HashMap<u16, u64>,
    sessions: HashMap<u64, Session>,
    fenced: HashSet<u64>,
}

pub(super) struct Keys {
    lease: Duration,
    /// Which one of the servers that were started at this place; never 0.
    life: u64,
    /// What else reaches the region.
    fabric: Way,
    state: RwLock<State>,
}

impl State {
    /// `Alive` while the lease runs.
    fn has_lapsed(&self, session: u64, now_ns: u64) -> Result<(), Refusal> {
        let found = self.sessions.get(&session);
        let until = found.map_or(0, |session| session.until_ns.load(Relaxed));
        match until.checked_sub(now_ns) {
            Some(rest @ 1..) => Err(Refusal::Alive(rest)),
            _ => Ok(()),
        }
    }

    fn admits(&self, member: Member) -> Result<&Session, Refusal> {
        let session = self.sessions.get(&member.session);
        let session = session.ok_or(Refusal::Fenced)?;
        match session.ended.contains(&member.connection) {
            true => Err(Refusal::Fenced),
            false => Ok(session),
        }
    }
}

impl Keys {
    pub(super) fn new(lease: Duration, fabric: Way) -> Self {
        Self {
            lease,
            life: random() | 1,
            fabric,
            state: RwLock::default(),
        }
    }

    pub(super) fn lease_ns(&self) -> u64 {
        self.lease.as_nanos() as u64
    }

    /// A number that no other server has.
    pub(super) fn life(&self) -> u64 {
        self.life
    }

    /// F1: under the write half, by any way to the region.
    fn revoke(&self, state: &mut State, session: u64) {
        state.sessions.remove(&session);
        state.fenced.insert(session);
        if let Some(fabric) = &self.fabric {
            fabric.revoke(session);
        }
    }

    /// A session for `owner`: `number`, which another memory server drew, or a new one if it is 0.
    pub(super) fn attach(&self, owner: u16, number: u64, now_ns: u64) -> Result<u64, Refusal> {
        let mut state = self.state.write();
        let before = state.owners.get(&owner).copied().unwrap_or(0);
        let number = match number {
            0 => {
                // F3.
                state.has_lapsed(before, now_ns)?;
                if state.last >= MAX_SESSION {
                    return Err(Refusal::Exhausted);
                }
                state.last += 1;
                state.last
            }
            number if number < before || state.fenced.contains(&number) => {
                return Err(Refusal::Fenced);
            }
            number => number,
        };
        if before != 0 && before != number {
            self.revoke(&mut state, before);
        }
        state.last = state.last.max(number);
        state.owners.insert(owner, number);
        let until_ns = now_ns + self.lease_ns();
        let fresh = || Session {
            until_ns: AtomicU64::new(until_ns),
            ended: HashSet::new(),
        };
        let session = state.sessions.entry(number).or_insert_with(fresh);
        session.until_ns.fetch_max(until_ns, Relaxed);
        Ok(number)
    }

    /// F1, F4: a verb of `member` may run while the result exists.
    pub(super) fn admit(&self, member: Option<Member>) -> Result<Guard<'_>, Refusal> {
        let state = self.state.read();
        if let Some(member) = member {
            state.admits(member)?;
        }
        Ok(Guard { _state: state })
    }

    /// Starts the lease again.
    pub(super) fn renew(&self, member: Member, now_ns: u64) -> Result<(), Refusal> {
        let state = self.state.read();
        let session = state.admits(member)?;
        session
            .until_ns
            .fetch_max(now_ns + self.lease_ns(), Relaxed);
        Ok(())
    }

    /// F4: requests of these connections of the member's session are refused from here on.
    pub(super) fn end(&self, member: Member, connections: &[u64]) -> Result<(), Refusal> {
        let mut state = self.state.write();
        state.admits(member)?;
        if let Some(session) = state.sessions.get_mut(&member.session) {
            session.ended.extend(connections);
        }
        Ok(())
    }

    /// Revokes a session whose lease ended.
    pub(super) fn fence(&self, session: u64, now_ns: u64) -> Result<(), Refusal> {
        let mut state = self.state.write();
        // F2.
        state.has_lapsed(session, now_ns)?;
        self.revoke(&mut state, session);
        Ok(())
    }

    /// A session ends itself.
    pub(super) fn leave(&self, member: Member) {
        let mut state = self.state.write();
        if state.admits(member).is_ok() {
            self.revoke(&mut state, member.session);
        }
    }

    /// A connection is gone.
    pub(super) fn forget(&self, member: Member) {
        let is_ended = |state: &State| state.admits(member).is_err();
        // A fenced session's connections are many at once: look before waiting for the lock.
        if is_ended(&self.state.read())
            && let Some(session) = self.state.write().sessions.get_mut(&member.session)
        {
            session.ended.remove(&member.connection);
        }
    }

    /// The last session of `owner`, or 0.
    pub(super) fn session_of(&self, owner: u16) -> u64 {
        self.state.read().owners.get(&owner).copied().unwrap_or(0)
    }

    /// Owner, session and the rest of its lease in ns (0: lapsed), of all that are not fenced.
    pub(super) fn sessions(&self, now_ns: u64) -> Vec<(u16, u64, u64)> {
        let state = self.state.read();
        let alive = state.owners.iter().filter_map(|(owner, number)| {
            let session = state.sessions.get(number)?;
            let rest = session.until_ns.load(Relaxed).saturating_sub(now_ns);
            Some((*owner, *number, rest))
        });
        let mut alive: Vec<_> = alive.collect();
        alive.sort_unstable();
        alive
    }
}

/// F1: while it exists, its session is not fenced.
pub(super) struct Guard<'a> {
    _state: RwLockReadGuard<'a, State>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicBool, Ordering::SeqCst},
        thread,
    };

    const LEASE: u64 = 1_000;

    fn keys() -> Keys {
        Keys::new(Duration::from_nanos(LEASE), None)
    }

    fn member(session: u64, connection: u64) -> Member {
        Member {
            session,
            connection,
        }
    }

    #[test]
    fn f1_fencing_waits_for_a_verb_under_way() {
        let keys = keys();
        let session = keys.attach(7, 0, 0).unwrap();
        let verb = keys.admit(Some(member(session, 1))).unwrap();
        let fenced = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                keys.fence(session, LEASE).unwrap();
                fenced.store(true, SeqCst);
            });
            thread::sleep(Duration::from_millis(50));
            assert!(!fenced.load(SeqCst));
            drop(verb);
        });
        assert!(matches!(
            keys.admit(Some(member(session, 1))),
            Err(Refusal::Fenced)
        ));
        assert_eq!(
            keys.renew(member(session, 1), LEASE),
            Err(Refusal::Fenced),
            "it does not come back"
        );
        assert_eq!(keys.attach(7, session, LEASE), Err(Refusal::Fenced));
    }

    #[test]
    fn f2_a_session_is_fenced_when_its_lease_ended() {
        let keys = keys();
        let session = keys.attach(7, 0, 0).unwrap();
        assert_eq!(keys.fence(session, 1), Err(Refusal::Alive(LEASE - 1)));
        keys.renew(member(session, 1), 500).unwrap();
        assert_eq!(keys.fence(session, LEASE), Err(Refusal::Alive(500)));
        keys.fence(session, LEASE + 500).unwrap();
        keys.fence(session, 0).unwrap();
        assert!(keys.sessions(0).is_empty());
        // Before it came here at all.
        keys.fence(77, 0).unwrap();
        assert_eq!(keys.attach(8, 77, 0), Err(Refusal::Fenced));
    }

    #[test]
    fn f3_an_owner_has_one_session() {
        let keys = keys();
        let first = keys.attach(7, 0, 0).unwrap();
        assert_eq!(keys.attach(7, 0, 999), Err(Refusal::Alive(1)));
        let other = keys.attach(8, 0, 0).unwrap();
        let second = keys.attach(7, 0, LEASE).unwrap();
        assert!(first < other && other < second);
        assert!(keys.admit(Some(member(first, 1))).is_err());
        assert!(keys.admit(Some(member(other, 1))).is_ok());
        assert_eq!(keys.session_of(7), second);
        assert_eq!(keys.sessions(LEASE), [(7, second, LEASE), (8, other, 0)]);
        // A session that leaves makes room at once.
        keys.leave(member(second, 1));
        assert!(keys.attach(7, 0, LEASE).unwrap() > second);
        // A memory server that is told of a session later than of its successor.
        assert_eq!(keys.attach(7, second, LEASE), Err(Refusal::Fenced));
    }

    #[test]
    fn f4_a_connection_that_was_given_up_does_nothing() {
        let keys = keys();
        let session = keys.attach(7, 0, 0).unwrap();
        keys.end(member(session, 2), &[1]).unwrap();
        assert!(keys.admit(Some(member(session, 1))).is_err());
        assert!(keys.admit(Some(member(session, 2))).is_ok());
        keys.forget(member(session, 1));
        assert!(keys.state.read().sessions[&session].ended.is_empty());
    }
}
