//! The orders in which a table can be read: its primary key, and each of its indexes.

use crate::condition::Columns;
use indexy_table::{Index, Query, Schema};

/// One order.
#[derive(Debug)]
pub(crate) struct Path {
    /// `None`: the rows themselves, by their primary key.
    pub index: Option<String>,
    /// Columns that bounds may name, in order.
    pub key: Vec<usize>,
    /// Columns by which entries are ordered: those of `key`, and of an index what they lack of the
    /// primary key.
    pub order: Vec<usize>,
    /// At most one row has given values of `key`, none of which is NULL.
    pub unique: bool,
    /// By column: whether entries have it.
    has: Vec<bool>,
}

impl Path {
    /// All of a table; the primary key first.
    pub(crate) fn all(schema: &Schema, columns: &Columns) -> Vec<Self> {
        let numbers = |names: &[String]| -> Vec<usize> {
            names
                .iter()
                .filter_map(|name| columns.number(name))
                .collect()
        };
        let primary = numbers(schema.key());
        let rows = Self {
            index: None,
            key: primary.clone(),
            order: primary.clone(),
            unique: true,
            has: vec![true; columns.len()],
        };
        let of_index = |(name, index): (&str, &Index)| {
            let named = numbers(index.columns());
            let rest = primary.iter().filter(|at| !named.contains(at));
            let order: Vec<usize> = named.iter().chain(rest).copied().collect();
            let mut has = vec![false; columns.len()];
            for at in order.iter().copied().chain(numbers(index.included())) {
                has[at] = true;
            }
            Self {
                index: Some(name.to_owned()),
                key: if index.is_unique() {
                    named
                } else {
                    order.clone()
                },
                order,
                unique: index.is_unique(),
                has,
            }
        };
        std::iter::once(rows)
            .chain(schema.indexes().map(of_index))
            .collect()
    }

    pub(crate) fn is_primary(&self) -> bool {
        self.index.is_none()
    }

    /// Whether entries have all of these columns.
    pub(crate) fn covers(&self, mut columns: impl Iterator<Item = usize>) -> bool {
        columns.all(|at| self.has[at])
    }

    /// All rows in this order.
    pub(crate) fn query(&self) -> Query {
        self.index.as_ref().map_or_else(Query::all, Query::index)
    }

    pub(crate) fn name(&self) -> &str {
        self.index.as_deref().unwrap_or("primary key")
    }
}
