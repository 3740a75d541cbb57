//! What the harness asks of an engine.

use super::cold::Cold;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

/// An error of an engine; its text goes into the report.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;
/// The result of an engine's call.
pub type Outcome<T> = std::result::Result<T, Fault>;

/// When a write survives a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Never, before a flush. No log where the engine permits it.
    None,
    /// Soon: the log is written behind the caller's back.
    Buffered,
    /// When the call returns.
    Sync,
}

impl Durability {
    /// As options and reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            Durability::None => "none",
            Durability::Buffered => "buffered",
            Durability::Sync => "sync",
        }
    }
}

/// What the next phase mostly does; engines whose memory is split by hand may shift it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Focus {
    /// Inserts only.
    Writes,
    /// Reads only.
    Reads,
    /// Both.
    Mixed,
}

/// How to open an engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// An existing directory of its own.
    pub path: PathBuf,
    /// Memory that it may use, in bytes, all caches and buffers included.
    pub budget: u64,
    /// When a write survives a crash.
    pub durability: Durability,
    /// Most threads that will have a session at the same time.
    pub threads: usize,
    /// Records that it will hold, roughly.
    pub records: u64,
    /// Longest key in bytes.
    pub key_bytes: usize,
    /// Longest value in bytes.
    pub value_bytes: usize,
    /// Page or block size in bytes, for engines that let it be chosen; 0: the engine's usual one.
    pub page_bytes: usize,
    /// What the first phase does.
    pub focus: Focus,
    /// Which of several forms of the engine, as registered.
    pub variant: String,
    /// On which modelled device, and by which policies; contenders of ours know it.
    #[serde(default)]
    pub cold: Option<Cold>,
}

/// An open engine.
pub trait Contender: Send + Sync + Sized + 'static {
    /// What one thread works through.
    type Session<'a>: Session
    where
        Self: 'a;

    /// Opens what is in `setup.path`, or creates it.
    fn open(setup: &Setup) -> Outcome<Self>;

    /// A session of the calling thread.
    fn session(&self) -> Outcome<Self::Session<'_>>;

    /// Tells what the next phase mostly does.
    fn focus(&self, _focus: Focus) -> Outcome<()> {
        Ok(())
    }

    /// Whether the device under it takes no time, if it is a modelled one: for what is not
    /// measured.
    fn hurry(&self, _hurry: bool) {}

    /// Writes out what is buffered and waits until background work is done.
    fn settle(&self) -> Outcome<()>;

    /// Bytes that the engine itself says it holds, if it does.
    fn memory_used(&self) -> Option<u64> {
        None
    }

    /// Counters of the engine that explain its numbers, by name.
    fn counters(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    /// Closes it properly.
    fn close(self) -> Outcome<()>;
}

/// An end of the order of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The smallest key.
    First,
    /// The largest.
    Last,
}

/// What one thread works through.
pub trait Session {
    /// Puts `value` at `key`, new or not.
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<()>;

    /// Shows the value of `key` to `see`.
    fn get<R>(&mut self, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>>;

    /// As [`Session::get`] if that takes no wait; else `None`, the key is being read, and
    /// [`Session::fetched`] shows its value by `token`.
    fn get_or_begin<R>(
        &mut self,
        key: &[u8],
        _token: usize,
        see: impl FnOnce(&[u8]) -> R,
    ) -> Outcome<Option<Option<R>>> {
        self.get(key, see).map(Some)
    }

    /// Shows the value that was begun to be read first, with its token, if it is there; with
    /// `wait`, waits for it.
    fn fetched<R>(
        &mut self,
        _wait: bool,
        _see: impl FnOnce(usize, Option<&[u8]>) -> R,
    ) -> Outcome<Option<R>> {
        Ok(None)
    }

    /// Shows the values of `keys`, by index, in any order; absent ones are shown as none.
    fn multi_get(
        &mut self,
        keys: &[&[u8]],
        mut see: impl FnMut(usize, Option<&[u8]>),
    ) -> Outcome<()> {
        for (index, key) in keys.iter().enumerate() {
            if self.get(key, |value| see(index, Some(value)))?.is_none() {
                see(index, None);
            }
        }
        Ok(())
    }

    /// Removes `key` if it is there.
    fn remove(&mut self, key: &[u8]) -> Outcome<()>;

    /// Shows up to `count` entries from `from` on, in key order; returns how many.
    fn scan(&mut self, from: &[u8], count: usize, see: impl FnMut(&[u8], &[u8])) -> Outcome<usize>;

    /// Removes the entry at `end` and shows its key; false if there is none.
    fn pop(&mut self, _end: End, _see: impl FnOnce(&[u8])) -> Outcome<bool> {
        Err("takes nothing from its ends".into())
    }

    /// Makes what this session wrote visible to others; called at the end of a phase.
    fn finish(&mut self) -> Outcome<()> {
        Ok(())
    }
}
