#![forbid(unsafe_code)]
//! Typed tables over [`indexy`]: schemas, secondary indexes, and rows that change together with
//! their index entries.
//!
//! A table is *index-organized*: its rows lie in a tree, in the order of the primary key. Each
//! index is a tree of its own, which may be unique, and may include further columns. A row and its
//! entries change in one transaction, which is one record of the log: with a log, indexes equal
//! rows whatever happens.
//!
//! ```
//! use indexy::{Db, Options};
//! use indexy_table::{Query, Row, Tables};
//!
//! #[derive(Row, Debug, PartialEq)]
//! #[row(table = "people")]
//! struct Person {
//!     #[row(primary_key)]
//!     id: u64,
//!     #[row(unique)]
//!     name: String,
//!     #[row(index)]
//!     city: Option<String>,
//! }
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path();
//! let db = Db::open(path, Options::new(16 << 20))?;
//! let tables = Tables::open(&db)?;
//! let people = tables.create_table(Person::schema())?;
//! let ada = Person { id: 1, name: "Ada".into(), city: Some("London".into()) };
//! people.insert(&ada)?;
//! for row in people.scan(&Query::index("by_city").prefix("London"))? {
//!     assert_eq!(row?.to::<Person>()?, ada);
//! }
//! // Several changes, of any tables and trees, as one:
//! tables.transact(|tx| {
//!     people.within(tx)?.update(1u64, [("city", "Paris")])?;
//!     people.within(tx)?.insert((2u64, "Alan", "London"))
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Where to look next: [`Schema`] for columns and indexes; [`Query`] for ranges, orders and
//! projections; [`Table`] for what one call does, [`Table::within`] for transactions, [`Table::at`]
//! for snapshots; [`Table::create_index`] and [`Table::add_column`] for tables that live.
//!
//! With the cargo feature `arrow`, `Table::batches` returns rows as Arrow record batches.
//!
//! # What it promises
//!
//! - A call that fails has changed nothing, in a transaction neither. With
//!   [`indexy::Durability::Sync`] a change is waited for when it was made: an `OutOfSpace`, `Io` or
//!   `Poisoned` of that wait leaves it, though it may not be durable.
//! - Unique keys are unique under snapshot isolation, too. NULL equals nothing.
//! - A transaction that wrote to a table does not commit if the table was changed meanwhile; a
//!   snapshot sees the columns and indexes of its moment.
//! - After a crash a table is there with all of its trees, or not at all; an index that was being
//!   built is gone.
//! - With a log, indexes equal rows after a crash, and what returned from a change of a schema is
//!   durable. Without one ([`indexy::Durability::None`]) each tree has what was flushed of it:
//!   after a crash [`Table::verify`] says whether they fit, and comes before any
//!   [`Table::add_column`]. Creations, changes and drops flush the database. A
//!   [`indexy::Db::checkpoint`] has each tree as of a moment of its own then: change no schema
//!   meanwhile.

mod ahead;
mod alter;
#[cfg(feature = "arrow")]
mod arrow;
mod catalogue;
mod definition;
mod entry;
mod error;
mod key;
mod layout;
mod orphans;
mod query;
mod record;
mod row;
mod scan;
mod schema;
mod shared;
mod table;
mod tables;
mod tree_names;
mod value;
mod verify;
mod view;
mod write;

#[cfg(feature = "arrow")]
pub use arrow::Batches;
pub use error::{Error, Result};
pub use indexy_derive::Row;
pub use query::Query;
pub use record::{Cell, IntoValues, Record, Row};
pub use scan::Rows;
pub use schema::{Column, Index, PRIMARY, Schema};
pub use table::Table;
pub use tables::Tables;
pub use value::{Timestamp, Type, Value};
pub use verify::TableReport;
pub use view::TableSnapshot;
pub use write::TableTransaction;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
