//! The library as a program sees it, one behaviour a file. One binary, because linking takes longer than most tests.

mod alone;
mod api;
mod budget;
mod checkpoint;
mod concurrency;
mod custom_y;
mod errors;
mod faults;
mod flip;
mod history;
mod kill;
mod lifecycle;
#[path = "../pairs/mod.rs"]
mod pairs;
mod read_only;
mod reopen;
mod scan;
mod stress;
mod support;
