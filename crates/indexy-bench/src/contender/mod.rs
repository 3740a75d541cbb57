//! The seam between the harness and an engine.
//!
//! A [`Contender`] is an open engine, shared by threads; a [`Session`] is what one thread works
//! through (a transaction, a guard, a buffer). The driver's loops are generic over both, so that no
//! virtual call is between the clock and the engine; the choice by name happens once, in
//! [`crate::registry`].
//! Not here: engines other than ours and the standard library's (`indexy-bench-peers`).

mod about;
mod btreemap;
mod cold;
mod contract;
mod device;
mod indexy;
mod null;
mod opened;
mod tables;

pub use about::{About, KeyShape, PageCache, Storage};
pub use btreemap::StdBTreeMap;
pub use cold::{Cold, Device};
pub use contract::{Contender, Durability, End, Fault, Focus, Outcome, Session, Setup};
pub use device::DeviceAlone;
pub use indexy::Indexy;
pub(crate) use indexy::{TRANSACTIONS, is_pair, only_if_named};
pub use null::Null;
pub use tables::{
    BTreeTables, IndexyTables, IndexyTransactions, Others, Placed, Placement, TableBatch,
    TableSetup, Tables,
};
