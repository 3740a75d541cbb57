//! Why the figures ended early.

use std::{
    io,
    path::{Path, PathBuf},
};

/// See the module header.
#[derive(Debug, thiserror::Error)]
pub enum DexError {
    /// The tree, or memory for it.
    #[error("the tree: {0}")]
    Tree(#[from] indexy_dex::Error),
    /// The tree in this process's memory, which it is compared with.
    #[error("the local tree: {0}")]
    Local(#[from] indexy::Error),
    /// The report, a socket, or a folder of a local tree.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
}

impl DexError {
    /// Of the file or folder `path`.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        |source| Self::Io { path, source }
    }
}
