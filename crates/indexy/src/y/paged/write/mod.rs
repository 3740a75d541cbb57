//! Writes: a run makes pages and a version of its own, a commit makes a version durable.
//!
//! `run.rs` goes through the run and the leaves, `path.rs` closes inner pages, `pages.rs` reads old
//! pages and makes keys and values for new ones, `output.rs` has what is on its way to the file,
//! `removal.rs` removes ranges, `load.rs` has the leaves of a sorted load, `graft.rs` takes them
//! into the tree, `compact.rs` moves pages to the front of the file, `shrink.rs` gives free space
//! at its end back.

mod commit;
mod compact;
mod graft;
mod load;
mod output;
mod pages;
mod path;
mod removal;
mod run;
mod shrink;

pub(super) use load::Load;
#[cfg(test)]
pub(super) use output::Output;
pub(super) use removal::Removal;
