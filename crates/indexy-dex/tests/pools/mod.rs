//! Pools for tests, on every transport.
#![allow(dead_code, reason = "each test file uses a part")]

use indexy_dex::{
    offload,
    remote::{
        Latency, Model, Region, RemoteMemory, Secret,
        shm::{Shm, ShmServer},
        tcp::{Tcp, TcpServer},
    },
};
use std::{path::PathBuf, sync::Arc, time::Duration};
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
