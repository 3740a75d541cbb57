//! Results for people and for programs: tables, CSV, JSON, one HTML file with plots, comparisons.
//!
//! Not here: measuring (`measure/`), which rows a table has (`suite/`).

mod compare;
mod conditions;
mod csv;
mod document;
mod files;
mod html;
mod live;
mod outcomes;
mod table;
mod tpcc;

pub use compare::{Change, change_table, compare};
pub use conditions::condition_notes;
pub use csv::{csv_text, series_text};
pub use document::{Document, DocumentError};
pub use html::html_text;
pub(crate) use html::{Page, Section, page_text};
pub use live::Live;
pub use outcomes::{outcome_table, skew_plot};
pub use table::{Table, detail_table, goal_table};
pub use tpcc::{transaction_phases, transaction_plots, transaction_table};
