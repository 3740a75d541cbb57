//! The library as a program sees it, one behaviour a file. One binary, because linking takes longer
//! than most tests.

mod alone;
mod api;
mod bank;
mod batches;
mod budget;
mod checkpoint;
mod compression;
mod concurrency;
mod custom_y;
mod disk_image;
mod drop_tree;
mod errors;
mod fault_sites;
mod faults;
mod flip;
mod forked;
mod history;
mod image_memory;
mod kill;
mod lifecycle;
mod load_sorted;
mod log_limit;
mod long_keys;
mod moved;
mod neighbours;
mod no_permission;
mod owner;
#[path = "../pairs/mod.rs"]
mod pairs;
mod power_loss;
mod ranges;
mod read_only;
mod rename;
mod reopen;
mod room;
mod salvage;
mod scan;
mod serializable;
mod snapshots;
mod stress;
mod stuck;
mod support;
mod tombstones;
mod transactions;
mod updates;
