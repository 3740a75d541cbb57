//! What every Index Y must do: over a modelled pool and over shared memory, with next to no cache,
//! with everything offloaded, with pools that are full in the middle of a run, and with none.

use indexy::{Result, index_y::conformance::Store};
use indexy_dex::{
    Options,
    offload::{self, Offloading},
    remote::{
        Latency, Model, Region, Secret,
        shm::{Shm, ShmServer},
    },
};
use indexy_dex_y::{DexFactory, DexShared, DexY, Pools};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};
use tempfile::TempDir;

/// Untouched memory of a region costs nothing.
const POOL_BYTES: u64 = 1 << 30;

fn region(bytes: u64) -> indexy_dex::Result<Arc<Region>> {
    Region::create(bytes).map(Arc::new)
}

fn model(bytes: u64) -> indexy_dex::Result<Model> {
    Ok(Model::new(
        vec![region(bytes)?],
        offload::serve,
        Latency::rdma(),
    ))
}

fn modelled(_: &Path) -> indexy_dex::Result<Model> {
    model(POOL_BYTES)
}

fn none(_: &Path) -> indexy_dex::Result<Model> {
    Err(indexy_dex::Error::Options("there is no pool today".into()))
}

/// Pools of 2 to 200 nodes, in turn.
#[derive(Default)]
struct Small(AtomicU64);

impl Pools for Small {
    type Memory = Model;

    fn empty(&self, _: &Path) -> indexy_dex::Result<Model> {
        let turn = self.0.fetch_add(1, SeqCst);
        model(4096 * (2 + turn * 7 % 50))
    }

    fn gave_up(&self, _: &Path, why: &indexy_dex::Error) {
        assert!(matches!(why, indexy_dex::Error::PoolFull { .. }), "{why}");
    }
}

/// A memory server for each tree, in this process, behind a Unix socket.
struct Servers {
    folder: TempDir,
    running: Mutex<Vec<ShmServer>>,
}

impl Servers {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            running: Mutex::default(),
        }
    }
}

impl Pools for Servers {
    type Memory = Shm;

    fn empty(&self, _: &Path) -> indexy_dex::Result<Shm> {
        let mut running = self.running.lock().unwrap();
        let path = self.folder.path().join(running.len().to_string());
        let secret = Secret::new(*b"sixteen letters.").unwrap();
        let region = region(POOL_BYTES)?;
        let server = ShmServer::start(&path, region, offload::serve, secret.clone(), 2).unwrap();
        running.push(server);
        Shm::connect(&[path], &secret, Duration::from_secs(10))
    }
}

/// A tree in a temporary directory.
struct OnDisk<P, const N: usize> {
    dir: TempDir,
    shared: DexShared<P, N>,
}

impl<P: Pools, const N: usize> OnDisk<P, N> {
    fn new(pools: P, tune: fn(Options) -> Options, cache_bytes: usize) -> Self {
        let factory = DexFactory::new(pools).tune(tune);
        Self {
            dir: tempfile::tempdir().unwrap(),
            shared: factory.share_of(cache_bytes).unwrap(),
        }
    }
}

impl<P: Pools, const N: usize> Store for OnDisk<P, N> {
    type Y = DexY<P, N>;

    fn open(&self) -> Self::Y {
        self.open_copy(&self.dir.path().join("tree"))
    }

    fn open_copy(&self, dir: &Path) -> Self::Y {
        self.shared.open_tree(dir, false).unwrap()
    }

    fn copy_dir(&self) -> PathBuf {
        self.dir.path().join("copy")
    }

    fn dir(&self) -> Option<PathBuf> {
        Some(self.dir.path().join("tree"))
    }

    fn open_read_only(&self, dir: &Path) -> Option<Result<Self::Y>> {
        Some(self.shared.open_tree(dir, true))
    }
}

mod suite {
    use super::*;
    indexy::index_y::conformance::conformance_tests!(OnDisk::<_, 128>::new(
        modelled,
        |options| options,
        4 << 20
    ));
}

mod short_keys_next_to_no_cache {
    use super::*;
    indexy::index_y::conformance::conformance_tests!(OnDisk::<_, 16>::new(
        modelled,
        |_| Options::new(0, 16)
            .leaf_admission(0.3)
            .offloading(Offloading::Never),
        0
    ));
}

mod all_offloaded {
    use super::*;
    indexy::index_y::conformance::conformance_tests!(OnDisk::<_, 64>::new(
        modelled,
        |options| options.offloading(Offloading::Always),
        1 << 20
    ));
}

mod over_shared_memory {
    use super::*;
    indexy::index_y::conformance::conformance_tests!(OnDisk::<_, 128>::new(
        Servers::new(),
        |options| options,
        1 << 20
    ));
}

mod with_pools_that_are_too_small {
    use super::*;
    indexy::index_y::conformance::conformance_tests!(OnDisk::<_, 128>::new(
        Small::default(),
        |options| options,
        1 << 20
    ));
}

mod without_a_pool {
    use super::*;
    indexy::index_y::conformance::conformance_tests!(OnDisk::<_, 128>::new(
        none,
        |options| options,
        1 << 20
    ));
}
