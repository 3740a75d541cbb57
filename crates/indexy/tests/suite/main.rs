//! The library as a program sees it, one behaviour a file. One binary, because linking takes longer than most tests.

mod checkpoint;
mod concurrency;
mod errors;
mod lifecycle;
mod read_only;
mod reopen;
mod scan;
mod support;
