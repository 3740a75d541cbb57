//! The framework: joins an Index X and an Index Y into one index under one memory budget.
//!
//! Source: IndeXY section II. Which X and which Y is none of its business.
//! `joined` is one tree; `shared` what all trees of a database have in common; `regions`, `preclean` and
//! `density` choose, `transfer`, `release` and `truncate` act, `background` says when.

mod audit;
pub(crate) mod background;
pub(crate) mod batches;
pub(crate) mod counters;
pub(crate) mod density;
pub(crate) mod joined;
mod preclean;
mod pressure;
mod regions;
mod release;
mod sample;
pub(crate) mod scan_merge;
pub(crate) mod shared;
mod survey;
mod transfer;
pub(crate) mod truncate;
pub(crate) mod watermark;

#[cfg(test)]
mod tests;
