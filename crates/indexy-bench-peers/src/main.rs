//! `indexy-bench` with other engines as contenders; the same commands.
//!
//! One file per engine; its header says how the engine is given the whole budget.

mod batch;
mod bftree;
mod congee;
mod fjall;
mod lmdb;
mod masstree;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocks;
mod skiplist;
mod sqlite;
mod tables;

use indexy_bench::registry::Registry;
use std::process::ExitCode;

fn main() -> ExitCode {
    indexy_bench::main_with(&registry())
}

/// Our own contenders, then the peers, the most telling first.
fn registry() -> Registry {
    let mut registry = Registry::with_own();
    registry.set_with_peers();
    congee::register(&mut registry);
    masstree::register(&mut registry);
    skiplist::register(&mut registry);
    #[cfg(feature = "rocksdb")]
    rocks::register(&mut registry);
    bftree::register(&mut registry);
    fjall::register(&mut registry);
    redb::register(&mut registry);
    lmdb::register(&mut registry);
    sqlite::register(&mut registry);
    #[cfg(feature = "rocksdb")]
    for name in ["rocksdb", "rocksdb-blocks", "rocksdb-cached"] {
        registry.add_tables::<tables::RocksTables>(name);
    }
    #[cfg(feature = "rocksdb")]
    registry.add_tables::<tables::RocksTransactions>(rocks::TRANSACTIONS);
    registry.add_tables::<tables::FjallTables>("fjall");
    registry.add_tables::<tables::FjallTransactions>(fjall::TRANSACTIONS);
    registry.add_tables::<tables::RedbTables>("redb");
    registry.add_tables::<tables::LmdbTables>("lmdb");
    registry.add_tables::<tables::SqliteTables>("sqlite");
    registry
}

#[cfg(test)]
mod tests;
