//! Pools for tests, on every transport.
#![allow(dead_code, reason = "each test file uses a part")]

use indexy_dex::{
    Address, Result, offload,
    remote::{
        Counts, Latency, Model, Part, Region, RemoteMemory, Secret,
        shm::{Shm, ShmServer},
        tcp::{Tcp, TcpServer},
    },
};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(10);

pub fn secret() -> Secret {
    Secret::new(*b"sixteen letters.").unwrap()
}

pub fn region(bytes: u64) -> Arc<Region> {
    Arc::new(Region::create(bytes).unwrap())
}

/// A pool that any number of compute servers connect to.
pub trait Pool {
    type Memory: RemoteMemory + 'static;

    fn connect(&self) -> Self::Memory;
}

pub struct ModelPool(Model);

impl ModelPool {
    pub fn new(servers: usize, bytes: u64) -> Self {
        Self::with(servers, bytes, Latency::rdma())
    }

    pub fn with(servers: usize, bytes: u64, latency: Latency) -> Self {
        let regions = (0..servers).map(|_| region(bytes)).collect();
        Self(Model::new(regions, offload::serve, latency))
    }
}

impl Pool for ModelPool {
    type Memory = Model;

    fn connect(&self) -> Model {
        self.0.another()
    }
}

pub struct TcpPool(Vec<TcpServer>);

impl TcpPool {
    pub fn new(servers: usize, bytes: u64) -> Self {
        let start = |_| {
            let any = ([127, 0, 0, 1], 0).into();
            TcpServer::start(any, region(bytes), offload::serve, secret(), 2).unwrap()
        };
        Self((0..servers).map(start).collect())
    }
}

impl Pool for TcpPool {
    type Memory = Tcp;

    fn connect(&self) -> Tcp {
        let addresses: Vec<_> = self.0.iter().map(TcpServer::address).collect();
        Tcp::connect(&addresses, &secret(), PATIENCE).unwrap()
    }
}

pub struct ShmPool {
    paths: Vec<PathBuf>,
    _servers: Vec<ShmServer>,
    _folder: TempDir,
}

impl ShmPool {
    pub fn new(servers: usize, bytes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |i: usize| folder.path().join(i.to_string());
        let paths: Vec<_> = (0..servers).map(path).collect();
        let start = |path: &PathBuf| {
            ShmServer::start(path, region(bytes), offload::serve, secret(), 2).unwrap()
        };
        Self {
            _servers: paths.iter().map(start).collect(),
            paths,
            _folder: folder,
        }
    }
}

impl Pool for ShmPool {
    type Memory = Shm;

    fn connect(&self) -> Shm {
        Shm::connect(&self.paths, &secret(), PATIENCE).unwrap()
    }
}

/// A model whose verbs take real time now and then, so that threads meet in the middle of them.
pub struct UnsteadyPool(pub ModelPool);

pub struct Unsteady {
    model: Model,
    verbs: AtomicU64,
}

impl Pool for UnsteadyPool {
    type Memory = Unsteady;

    fn connect(&self) -> Unsteady {
        let model = self.0.connect();
        let verbs = AtomicU64::new(0);
        Unsteady { model, verbs }
    }
}

impl Unsteady {
    fn pause(&self) {
        let verb = self.verbs.fetch_add(1, Relaxed);
        match Dice(verb).roll(16) {
            0 => thread::sleep(Duration::from_micros(20)),
            1..6 => thread::yield_now(),
            _ => {}
        }
    }
}

impl RemoteMemory for Unsteady {
    fn servers(&self) -> usize {
        self.model.servers()
    }

    fn read(&self, at: Address, into: &mut [u64]) -> Result<()> {
        self.pause();
        let result = self.model.read(at, into);
        self.pause();
        result
    }

    fn read_many(&self, parts: &mut [Part<'_>]) -> Result<()> {
        self.pause();
        let result = self.model.read_many(parts);
        self.pause();
        result
    }

    /// In two halves, as a network card may write.
    fn write(&self, at: Address, words: &[u64]) -> Result<()> {
        self.pause();
        let (first, second) = words.split_at(words.len() / 2);
        if !first.is_empty() {
            self.model.write(at, first)?;
            self.pause();
        }
        let result = self.model.write(at.plus(8 * first.len() as u64), second);
        self.pause();
        result
    }

    fn cas(&self, at: Address, expected: u64, new: u64) -> Result<u64> {
        self.pause();
        self.model.cas(at, expected, new)
    }

    fn call(&self, server: u16, request: &[u64]) -> Result<Vec<u64>> {
        self.pause();
        let result = self.model.call(server, request);
        self.pause();
        result
    }

    fn counts(&self) -> Counts {
        self.model.counts()
    }

    fn now_ns(&self) -> u64 {
        self.model.now_ns()
    }
}

/// Numbers that repeat.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(0x1405_7B7E_F767_814F);
        let high = self.0 ^ (self.0 >> 33);
        ((u128::from(high.wrapping_mul(0x9E37_79B9_7F4A_7C15)) * u128::from(end)) >> 64) as u64
    }
}
