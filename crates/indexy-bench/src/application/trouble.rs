//! Why a step of the workload ended.

use super::table::TableId;
use crate::contender::Fault;

/// Why a transaction, a load or a check ended.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The engine returned an error.
    #[error(transparent)]
    Engine(#[from] Fault),
    /// It answered with something that was never written, or not with what was.
    #[error("{0}")]
    Wrong(String),
}

impl Trouble {
    /// A row that must be there and is not.
    #[cold]
    pub(crate) fn missing(table: impl TableId, key: &[u8]) -> Self {
        let key: String = key.iter().map(|b| format!("{b:02x}")).collect();
        Self::Wrong(format!("{}: row {key} is not there", table.name()))
    }

    /// A row that was never written so.
    #[cold]
    pub(crate) fn garbled(table: impl TableId) -> Self {
        Self::Wrong(format!("{}: a row that was never written", table.name()))
    }
}

/// What the steps of the workload return.
pub type Done<T> = Result<T, Trouble>;
