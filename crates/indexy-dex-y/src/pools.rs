//! Where trees find memory: what a program tells.

use indexy_dex::remote::RemoteMemory;
use std::path::Path;

/// Where the trees of a database find memory.
pub trait Pools: Send + Sync + 'static {
    /// How its memory servers are reached.
    type Memory: RemoteMemory + 'static;

    /// A pool without a tree, for the tree in `dir`: its alone as long as it is open.
    ///
    /// Called when the tree is opened. After an error the tree works without a pool, from the disk.
    fn empty(&self, dir: &Path) -> indexy_dex::Result<Self::Memory>;

    /// The pool of the tree in `dir` is of no further use: it is full, lost, or never was. Reads
    /// go to the disk until the tree is opened again.
    ///
    /// Called once a tree, from the thread that noticed.
    fn gave_up(&self, dir: &Path, why: &indexy_dex::Error) {
        let _ = (dir, why);
    }
}

impl<M, F> Pools for F
where
    M: RemoteMemory + 'static,
    F: Fn(&Path) -> indexy_dex::Result<M> + Send + Sync + 'static,
{
    type Memory = M;

    fn empty(&self, dir: &Path) -> indexy_dex::Result<M> {
        self(dir)
    }
}
