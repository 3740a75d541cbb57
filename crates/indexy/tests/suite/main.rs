//! The library as a program sees it, one behaviour a file. One binary, because linking takes longer
//! than most tests.

mod access;
mod admission;
mod alone;
mod api;
mod bank;
mod batches;
mod budget;
mod changes;
mod checkpoint;
#[cfg(feature = "async")]
mod closing_in_wakers;
mod combined;
mod compression;
mod concurrency;
mod custom_y;
mod device_profiles;
mod disk_image;
mod drop_tree;
mod errors;
mod evicted;
mod expiry;
mod fault_sites;
mod faults;
mod fetch;
mod flip;
mod forked;
mod gated_y;
mod history;
mod hot_set;
mod image_memory;
mod kill;
mod lending;
mod lifecycle;
mod load_sorted;
mod log_limit;
mod long_keys;
mod merging;
mod moved;
mod neighbours;
mod no_permission;
mod owner;
#[path = "../pairs/mod.rs"]
mod pairs;
#[path = "../places/mod.rs"]
mod places;
mod policies;
#[path = "../policies/mod.rs"]
mod policy_choice;
mod popping;
mod power_loss;
mod radix;
mod ranges;
mod read_only;
mod release_by_hand;
mod rename;
mod renewed;
mod reopen;
mod room;
mod salvage;
mod scan;
mod serializable;
mod snapshots;
mod space;
mod spilled;
mod stress;
mod stuck;
mod support;
mod tombstones;
mod transactions;
mod updates;
