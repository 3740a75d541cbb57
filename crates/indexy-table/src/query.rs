//! Queries: which rows, in which order, which columns; and the plan of one.

use crate::{
    entry::Entries,
    error::{Error, Result},
    key,
    layout::{IndexLayout, Layout},
    record::IntoValues,
    value::Value,
};
use std::sync::Arc;

/// Which rows a scan returns, in which order, and which columns of them.
///
/// Rows come in the order of the primary key, or of an index. All bounds are beginnings of that
/// order's columns, those of the primary key behind an index's own included, but where the index is
/// unique: of an index on `(city, age)`, `prefix("Paris")` is everybody in Paris and
/// `prefix("Paris").from(30)` those of at least 30 years. NULL comes before all values, and
/// `prefix(Value::Null)` is where the column is NULL.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
/// use indexy_table::{Index, Query, Schema, Tables, Type, Value};
/// let people = Tables::open(&db)?.create_table(
///     Schema::new("people")
///         .column("id", Type::U64)
///         .column("city", Type::Text)
///         .column("age", Type::I64)
///         .primary_key(["id"])
///         .index("by_city", Index::on(["city", "age"])),
/// )?;
/// for row in [(1u64, "Paris", 36), (2, "Paris", 25), (3, "Rome", 36), (4, "Paris", 30)] {
///     people.insert(row)?;
/// }
/// let oldest_first = Query::index("by_city").prefix("Paris").from(30).rev().columns(["id"]);
/// let ids: Vec<_> = people.scan(&oldest_first)?.collect::<Result<_, _>>()?;
/// assert_eq!(ids[0].values(), [Value::U64(1)]);
/// assert_eq!(ids[1].values(), [Value::U64(4)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    index: Option<String>,
    prefix: Vec<Value>,
    from: Option<Bound>,
    to: Option<Bound>,
    reversed: bool,
    columns: Option<Vec<String>>,
    limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    values: Vec<Value>,
    /// What begins with the values belongs to it.
    inclusive: bool,
}

impl Query {
    /// All rows, by the primary key.
    ///
    /// ```
    /// let query = indexy_table::Query::all();
    /// ```
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// All rows, by an index; [`Query`] has an example.
    #[must_use]
    pub fn index(name: impl Into<String>) -> Self {
        Self {
            index: Some(name.into()),
            ..Self::default()
        }
    }

    /// Only rows whose first columns are these; [`Query`] has an example.
    #[must_use]
    pub fn prefix(mut self, values: impl IntoValues) -> Self {
        self.prefix = values.into_values();
        self
    }

    /// Only rows from these values on, in the columns behind the prefix.
    ///
    /// ```
    /// let adults = indexy_table::Query::index("by_age").from(18);
    /// ```
    #[must_use]
    pub fn from(mut self, values: impl IntoValues) -> Self {
        self.from = Some(Bound::new(values, true));
        self
    }

    /// Only rows after these values, in the columns behind the prefix.
    ///
    /// ```
    /// let older = indexy_table::Query::index("by_age").after(18);
    /// ```
    #[must_use]
    pub fn after(mut self, values: impl IntoValues) -> Self {
        self.from = Some(Bound::new(values, false));
        self
    }

    /// Only rows up to these values, these included, in the columns behind the prefix.
    ///
    /// ```
    /// let younger = indexy_table::Query::index("by_age").up_to(17);
    /// ```
    #[must_use]
    pub fn up_to(mut self, values: impl IntoValues) -> Self {
        self.to = Some(Bound::new(values, true));
        self
    }

    /// Only rows before these values, in the columns behind the prefix.
    ///
    /// ```
    /// let children = indexy_table::Query::index("by_age").before(18);
    /// ```
    #[must_use]
    pub fn before(mut self, values: impl IntoValues) -> Self {
        self.to = Some(Bound::new(values, false));
        self
    }

    /// In the opposite order.
    ///
    /// ```
    /// let oldest_first = indexy_table::Query::index("by_age").rev();
    /// ```
    #[must_use]
    pub fn rev(mut self) -> Self {
        self.reversed = !self.reversed;
        self
    }

    /// Only these columns, in this order. If the index has all of them, no row is looked up.
    ///
    /// ```
    /// let ids = indexy_table::Query::all().columns(["id"]);
    /// ```
    #[must_use]
    pub fn columns<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> Self {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Not more rows than these.
    ///
    /// ```
    /// let first = indexy_table::Query::all().limit(1);
    /// ```
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = Some(rows);
        self
    }
}

impl Bound {
    fn new(values: impl IntoValues, inclusive: bool) -> Self {
        Self {
            values: values.into_values(),
            inclusive,
        }
    }
}

/// How a query is answered.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Number of the index among those of the layout; `None`: the rows.
    index: Option<usize>,
    /// `[from, to)`; `None`: to the end.
    pub(crate) from: Vec<u8>,
    pub(crate) to: Option<Vec<u8>>,
    /// There is at most one entry, and its key is `from`.
    pub(crate) single: bool,
    pub(crate) reversed: bool,
    pub(crate) wanted: Vec<usize>,
    pub(crate) names: Arc<[String]>,
    /// The entries have all that is wanted.
    pub(crate) covered: bool,
    pub(crate) limit: u64,
}

impl Plan {
    pub(crate) fn new(layout: &Layout, query: &Query) -> Result<Self> {
        let index = match &query.index {
            None => None,
            Some(name) => Some(ready(layout, layout.index(name)?)?),
        };
        let (wanted, names) = match &query.columns {
            None => ((0..layout.columns.len()).collect(), layout.columns.clone()),
            Some(names) => {
                let numbers: Result<Vec<usize>> =
                    names.iter().map(|name| layout.column(name)).collect();
                (numbers?, names.clone().into())
            }
        };
        let ordered = ordered_by(layout, index);
        let fit = |offset: usize, values: &[Value]| -> Result<Vec<u8>> {
            let columns = ordered.get(offset..).unwrap_or_default();
            let Some(columns) = columns.get(..values.len()) else {
                return Err(Error::WrongCount {
                    table: layout.name.clone(),
                    expected: columns.len(),
                    found: values.len(),
                });
            };
            let fitted = columns.iter().zip(values);
            let fitted = fitted.map(|(&at, value)| layout.fit(at, value.clone()));
            Ok(layout.encode(columns, &fitted.collect::<Result<Vec<_>>>()?))
        };
        let prefix = fit(0, &query.prefix)?;
        let bound = |bound: &Bound| -> Result<Vec<u8>> {
            let key = fit(query.prefix.len(), &bound.values)?;
            Ok([&prefix[..], &key].concat())
        };
        let mut empty = false;
        let from = match &query.from {
            None => prefix.clone(),
            Some(from) if from.inclusive => bound(from)?,
            Some(from) => key::prefix_end(&bound(from)?).unwrap_or_else(|| {
                empty = true;
                Vec::new()
            }),
        };
        let to = match &query.to {
            None => key::prefix_end(&prefix),
            Some(to) if to.inclusive => key::prefix_end(&bound(to)?),
            Some(to) => Some(bound(to)?),
        };
        empty |= to.as_ref().is_some_and(|to| *to <= from);
        let unbounded = query.from.is_none() && query.to.is_none();
        // Not with NULL: then others may have the same columns.
        let whole = query.prefix.len() == ordered.len();
        let null = query.prefix.iter().any(Value::is_null);
        let entries = entries(layout, index);
        Ok(Self {
            index,
            from,
            to,
            single: unbounded && whole && !null,
            reversed: query.reversed,
            covered: entries.has_all(&wanted),
            wanted,
            names,
            limit: if empty {
                0
            } else {
                query.limit.unwrap_or(u64::MAX)
            },
        })
    }

    pub(crate) fn entries<'a>(&self, layout: &'a Layout) -> &'a Entries {
        entries(layout, self.index)
    }
}

/// Number of `index`, if it may be read.
fn ready(layout: &Layout, index: &IndexLayout) -> Result<usize> {
    let at = layout.indexes.iter().position(|other| other.id == index.id);
    match at.filter(|_| index.ready) {
        Some(at) => Ok(at),
        None => Err(Error::IndexNotReady {
            table: layout.name.clone(),
            index: index.name.clone(),
        }),
    }
}

fn entries(layout: &Layout, index: Option<usize>) -> &Entries {
    index.map_or(&layout.rows, |at| &layout.indexes[at].entries)
}

/// The columns in whose order the entries are.
fn ordered_by(layout: &Layout, index: Option<usize>) -> &[usize] {
    &entries(layout, index).key
}
