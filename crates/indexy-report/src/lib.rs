//! What the programs of IndeXY report with: charts as SVG, tables as text, sizes and rates for
//! people, and the machine that a result was measured on.
//!
//! Not here: what is measured, and the pages that show charts and tables.

#![forbid(unsafe_code)]

pub mod chart;
pub mod machine;
pub mod size;
mod table;

pub use table::text_table;
