//! The naive baseline: a Redis or Valkey server as the pool, with its range commands. No cache and
//! no partitions.
//!
//! A hash has the values, a sorted set of equal scores the keys in bytewise order. What a key has
//! and where it is in the order change together, in one transaction. Each trip is a call; its bytes
//! are those of the commands and of the answers as the protocol writes them.

use super::resp::{Answer, Connection, command};
use crate::{
    error::{Error, Result},
    remote::Counts,
};
use parking_lot::Mutex;
use std::{io, net::SocketAddr, time::Duration};

/// Keys and values of a tree in one server.
pub struct Redis {
    inner: Mutex<Inner>,
    values: Vec<u8>,
    order: Vec<u8>,
}

struct Inner {
    connection: Connection,
    counts: Counts,
}

fn lost(source: io::Error) -> Error {
    Error::Lost { server: 0, source }
}

fn unexpected() -> Error {
    lost(io::Error::other("an answer is not what its command gives"))
}

/// A range's end, which is included.
fn end(key: u64) -> Vec<u8> {
    [&b"["[..], &key.to_be_bytes()].concat()
}

fn word(answer: &Answer) -> Result<u64> {
    let bytes = match answer {
        Answer::String(bytes) => <[u8; 8]>::try_from(&bytes[..]).ok(),
        _ => None,
    };
    bytes.map(u64::from_be_bytes).ok_or_else(unexpected)
}

fn optional(answer: &Answer) -> Result<Option<u64>> {
    match answer {
        Answer::Nil => Ok(None),
        answer => word(answer).map(Some),
    }
}

impl Inner {
    /// One trip; the last answer.
    fn call(&mut self, commands: &[&[&[u8]]]) -> Result<Answer> {
        let mut request = Vec::new();
        commands
            .iter()
            .for_each(|words| command(words, &mut request));
        let done = self.connection.ask(&request, commands.len());
        let (mut answers, bytes) = done.map_err(lost)?;
        self.counts.calls += 1;
        self.counts.call_bytes += bytes;
        answers.pop().ok_or_else(unexpected)
    }

    /// One trip, and nothing in between; the first command's answer.
    fn transaction(&mut self, [one, two, three]: [&[&[u8]]; 3]) -> Result<Answer> {
        match self.call(&[&[b"MULTI"], one, two, three, &[b"EXEC"]])? {
            Answer::List(answers) => answers.into_iter().next().ok_or_else(unexpected),
            _ => Err(unexpected()),
        }
    }
}

impl Redis {
    /// A tree of this name at a server. An answer may take as long as `patience`; after an error
    /// of the connection all calls fail.
    pub fn connect(server: SocketAddr, name: &str, patience: Duration) -> Result<Self> {
        let connection = Connection::open(server, patience).map_err(lost)?;
        let counts = Counts::default();
        Ok(Self {
            inner: Mutex::new(Inner { connection, counts }),
            values: format!("{name}/values").into_bytes(),
            order: format!("{name}/order").into_bytes(),
        })
    }

    /// The value of `key`: one trip.
    pub fn get(&self, key: u64) -> Result<Option<u64>> {
        let key = key.to_be_bytes();
        optional(&self.inner.lock().call(&[&[b"HGET", &self.values, &key]])?)
    }

    /// Sets the value of `key`; returns the one before. One trip.
    pub fn put(&self, key: u64, value: u64) -> Result<Option<u64>> {
        let (key, value) = (key.to_be_bytes(), value.to_be_bytes());
        let old = self.inner.lock().transaction([
            &[b"HGET", &self.values, &key],
            &[b"HSET", &self.values, &key, &value],
            &[b"ZADD", &self.order, b"0", &key],
        ])?;
        optional(&old)
    }

    /// Removes `key`; returns its value. One trip.
    pub fn remove(&self, key: u64) -> Result<Option<u64>> {
        let key = key.to_be_bytes();
        let old = self.inner.lock().transaction([
            &[b"HGET", &self.values, &key],
            &[b"HDEL", &self.values, &key],
            &[b"ZREM", &self.order, &key],
        ])?;
        optional(&old)
    }

    /// Up to `most` entries with keys from `from` to `to` (included), in order. Two trips; a key
    /// that is removed between them is left out.
    pub fn scan(&self, from: u64, to: u64, most: usize) -> Result<Vec<(u64, u64)>> {
        let (from, to, most) = (end(from), end(to), most.to_string());
        let limit: [&[u8]; 3] = [b"LIMIT", b"0", most.as_bytes()];
        let range = [&[b"ZRANGEBYLEX", &self.order[..], &from, &to][..], &limit].concat();
        let mut inner = self.inner.lock();
        let Answer::List(keys) = inner.call(&[&range])? else {
            return Err(unexpected());
        };
        let keys: Vec<u64> = keys.iter().map(word).collect::<Result<_>>()?;
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let bytes: Vec<[u8; 8]> = keys.iter().map(|key| key.to_be_bytes()).collect();
        let mut get: Vec<&[u8]> = vec![b"HMGET", &self.values];
        get.extend(bytes.iter().map(|key| &key[..]));
        let Answer::List(values) = inner.call(&[&get])? else {
            return Err(unexpected());
        };
        let mut entries = Vec::new();
        for (key, value) in keys.into_iter().zip(&values) {
            entries.extend(optional(value)?.map(|value| (key, value)));
        }
        Ok(entries)
    }

    /// Trips, as calls, and their bytes.
    pub fn counts(&self) -> Counts {
        self.inner.lock().counts
    }
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").finish_non_exhaustive()
    }
}
