//! The atomics of protocols that are checked by a model: everything of them that synchronizes comes from here.
//!
//! In the library these are the standard ones. A model test compiles the protocol's file a
//! second time, in a crate whose own `sync` module has the checker's types
//! (`tests/latch_model.rs`), so that the library itself needs no switch and its
//! layouts stay what they are.
//!
//! Not here: the words of nodes (`mem/words.rs`), which lie over raw memory and are always the standard ones.

#![forbid(unsafe_code)]

pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, Ordering, fence},
    thread::yield_now,
};
