//! An endpoint that something happens to at one of its verbs.
#![allow(dead_code, reason = "each test file uses a part")]

use indexy_dex::{
    Address, Error, Result,
    remote::{Counts, Model, Part, RemoteMemory},
};
use std::{
    cell::RefCell,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// What happens at a verb.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fate {
    /// The verb and all later ones fail.
    DiesBefore,
    /// The verb is done, but fails; as do all later ones.
    DiesAfter,
    /// The verb is done, but fails; the later ones pass.
    LosesAnswer,
    /// Another owner takes over, and the process goes on.
    IsReplacedBefore,
    IsReplacedAfter,
}

type Hook = Box<dyn FnOnce() + Send>;

/// An endpoint that meets its fate at verb `at`.
pub struct Mortal {
    model: Model,
    /// Verbs so far.
    pub verbs: AtomicU64,
    at: u64,
    fate: Fate,
    replace: Mutex<Option<Hook>>,
}

impl Mortal {
    /// `replace`: what [`Fate::IsReplacedBefore`] and [`Fate::IsReplacedAfter`] do.
    pub fn new(model: Model, at: u64, fate: Fate, replace: impl FnOnce() + Send + 'static) -> Self {
        Self {
            model,
            verbs: AtomicU64::new(0),
            at,
            fate,
            replace: Mutex::new(Some(Box::new(replace))),
        }
    }

    fn verb<T>(&self, verb: impl Fn() -> Result<T>) -> Result<T> {
        let number = self.verbs.fetch_add(1, Relaxed);
        let lost = || Error::Lost {
            server: 0,
            source: std::io::ErrorKind::ConnectionReset.into(),
        };
        let dies = matches!(self.fate, Fate::DiesBefore | Fate::DiesAfter);
        if number < self.at {
            return verb();
        }
        if number > self.at {
            return if dies { Err(lost()) } else { verb() };
        }
        let replace = || {
            if let Some(replace) = self.replace.lock().unwrap().take() {
                replace();
            }
        };
        match self.fate {
            Fate::DiesBefore => Err(lost()),
            Fate::DiesAfter | Fate::LosesAnswer => verb().and(Err(lost())),
            Fate::IsReplacedBefore => {
                replace();
                verb()
            }
            Fate::IsReplacedAfter => {
                let done = verb();
                replace();
                done
            }
        }
    }
}

impl RemoteMemory for Mortal {
    fn servers(&self) -> usize {
        self.model.servers()
    }

    fn read(&self, at: Address, into: &mut [u64]) -> Result<()> {
        let into = RefCell::new(into);
        self.verb(|| self.model.read(at, &mut into.borrow_mut()))
    }

    fn read_many(&self, parts: &mut [Part<'_>]) -> Result<()> {
        let parts = RefCell::new(parts);
        self.verb(|| self.model.read_many(&mut parts.borrow_mut()))
    }

    fn write(&self, at: Address, words: &[u64]) -> Result<()> {
        self.verb(|| self.model.write(at, words))
    }

    fn cas(&self, at: Address, expected: u64, new: u64) -> Result<u64> {
        self.verb(|| self.model.cas(at, expected, new))
    }

    fn call(&self, server: u16, request: &[u64]) -> Result<Vec<u64>> {
        self.verb(|| self.model.call(server, request))
    }

    fn counts(&self) -> Counts {
        self.model.counts()
    }

    fn session(&self) -> u64 {
        self.model.session()
    }

    fn check_session(&self) -> Result<()> {
        self.model.check_session()
    }

    fn abandon(&self) {
        self.model.abandon();
    }

    fn session_of(&self, owner: u16) -> Result<u64> {
        self.model.session_of(owner)
    }

    fn fence(&self, session: u64) -> Result<()> {
        self.model.fence(session)
    }

    fn now_ns(&self) -> u64 {
        self.model.now_ns()
    }
}
