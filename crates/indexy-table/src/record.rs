//! Rows as callers see them: by column, as values, or as a structure of their own.

use crate::{
    error::{Error, Result},
    schema::Schema,
    value::{Timestamp, Type, Value},
};
use std::sync::Arc;

/// The columns of one row that were asked for, in the order asked.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
/// # use indexy_table::{Schema, Tables, Type, Value};
/// # let schema = Schema::new("people").column("id", Type::U64).column("name", Type::Text);
/// # let people = Tables::open(&db)?.create_table(schema.primary_key(["id"]))?;
/// people.insert((1u64, "Ada"))?;
/// let ada = people.get(1u64)?.unwrap();
/// assert_eq!(ada.get("name"), Some(&Value::from("Ada")));
/// assert_eq!(ada.values(), [Value::U64(1), "Ada".into()]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    columns: Arc<[String]>,
    values: Vec<Value>,
}

impl Record {
    pub(crate) fn new(columns: &Arc<[String]>, values: Vec<Value>) -> Self {
        Self {
            columns: columns.clone(),
            values,
        }
    }

    /// The value of a column; `None` if it was not asked for. [`Record`] has an example.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<&Value> {
        let at = self.columns.iter().position(|name| name == column)?;
        self.values.get(at)
    }

    /// The values. [`Record`] has an example.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The names of the columns.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let schema = Schema::new("people").column("id", Type::U64).primary_key(["id"]);
    /// # let people = Tables::open(&db)?.create_table(schema)?;
    /// people.insert(1u64)?;
    /// assert_eq!(people.get(1u64)?.unwrap().columns(), ["id"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The values, without a copy.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type, Value};
    /// # let schema = Schema::new("people").column("id", Type::U64).primary_key(["id"]);
    /// # let people = Tables::open(&db)?.create_table(schema)?;
    /// people.insert(1u64)?;
    /// assert_eq!(people.get(1u64)?.unwrap().into_values(), [Value::U64(1)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn into_values(self) -> Vec<Value> {
        self.values
    }

    /// It as a structure of the caller's. All columns must have been asked for.
    ///
    /// Errors: `WrongType`, `NotNull`, `UnknownColumn`.
    ///
    /// ```
    /// use indexy_table::Row;
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// #[derive(Row, Debug, PartialEq)]
    /// struct Person {
    ///     #[row(primary_key)]
    ///     id: u64,
    ///     name: String,
    /// }
    /// let people = indexy_table::Tables::open(&db)?.create_table(Person::schema())?;
    /// let ada = Person { id: 1, name: "Ada".into() };
    /// people.insert(&ada)?;
    /// assert_eq!(people.get(1u64)?.unwrap().to::<Person>()?, ada);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to<R: Row>(self) -> Result<R> {
        R::from_record(self)
    }

    /// Takes the value of `column` out, for implementers of [`Row`]; the derive macro calls it.
    ///
    /// Errors: `UnknownColumn`, `NotNull`, `WrongType`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # use indexy_table::{Schema, Tables, Type};
    /// # let schema = Schema::new("people").column("id", Type::U64).primary_key(["id"]);
    /// # let people = Tables::open(&db)?.create_table(schema)?;
    /// people.insert(1u64)?;
    /// let mut record = people.get(1u64)?.unwrap();
    /// assert_eq!(record.take::<u64>("people", "id")?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take<C: Cell>(&mut self, table: &str, column: &str) -> Result<C> {
        let at = self.columns.iter().position(|name| name == column);
        let Some(value) = at.and_then(|at| self.values.get_mut(at)) else {
            return Err(Error::UnknownColumn {
                table: table.into(),
                column: column.into(),
            });
        };
        let value = std::mem::take(value);
        let null = value.is_null();
        C::from_value(value).map_err(|value| match null {
            true => Error::NotNull {
                table: table.into(),
                column: column.into(),
            },
            false => Error::WrongType {
                table: table.into(),
                column: column.into(),
                expected: C::TYPE,
                found: value.to_string(),
            },
        })
    }
}

/// A structure that is a row of a table. Derive it:
///
/// ```
/// use indexy_table::Row;
/// #[derive(Row)]
/// #[row(table = "people", index(name = "by_name", on(last, first), unique, include(city)))]
/// struct Person {
///     #[row(primary_key)]
///     id: u64,
///     first: String,
///     last: String,
///     /// An index of its own, `by_city`.
///     #[row(index)]
///     city: Option<String>,
///     #[row(column = "n", default = 0)]
///     visits: i64,
/// }
/// let schema = Person::schema();
/// assert_eq!(schema.name(), "people");
/// assert_eq!(schema.indexes().count(), 2);
/// ```
///
/// Without `table`, the name is the structure's in lower case. `#[row(unique)]` of a field is an
/// index `by_field` that is unique; `#[row(index = "name")]` and `#[row(unique = "name")]` give the
/// name. A field has one such index. `on` and `include` name columns. Fields are of the types that
/// are a [`Cell`].
pub trait Row: Sized {
    /// The table.
    fn schema() -> Schema;
    /// The values, in the order of the schema's columns.
    fn to_values(&self) -> Vec<Value>;
    /// The row of a record that has all columns. Errors: those of [`Record::take`].
    fn from_record(record: Record) -> Result<Self>;
}

/// A type of the caller's that is one value: `bool`, `i32`, `i64`, `u32`, `u64`, `f64`, `String`,
/// `Vec<u8>`, [`Timestamp`], and `Option` of these for what may be NULL.
///
/// ```
/// use indexy_table::{Cell, Type};
/// assert_eq!(<Option<u32> as Cell>::TYPE, Type::I64);
/// assert!(<Option<u32> as Cell>::NULLABLE);
/// ```
pub trait Cell: Sized {
    /// The type of its column.
    const TYPE: Type;
    /// Whether it may be NULL.
    const NULLABLE: bool = false;
    /// It as a value.
    fn to_value(&self) -> Value;
    /// It from a value; the value itself if that does not fit.
    fn from_value(value: Value) -> Result<Self, Value>;
}

macro_rules! cells {
    ($($cell:ty => $ty:ident),* $(,)?) => {
        $(impl Cell for $cell {
            const TYPE: Type = Type::$ty;
            fn to_value(&self) -> Value {
                self.clone().into()
            }
            fn from_value(value: Value) -> Result<Self, Value> {
                match value {
                    Value::$ty(value) => Ok(value),
                    other => Err(other),
                }
            }
        })*
    };
}

cells! {
    bool => Bool, i32 => I32, i64 => I64, u64 => U64, f64 => F64,
    String => Text, Vec<u8> => Bytes, Timestamp => Timestamp,
}

impl Cell for u32 {
    const TYPE: Type = Type::I64;
    fn to_value(&self) -> Value {
        (*self).into()
    }
    fn from_value(value: Value) -> Result<Self, Value> {
        match value {
            Value::I64(number) => Self::try_from(number).map_err(|_| value),
            other => Err(other),
        }
    }
}

impl<C: Cell> Cell for Option<C> {
    const TYPE: Type = C::TYPE;
    const NULLABLE: bool = true;
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, Cell::to_value)
    }
    fn from_value(value: Value) -> Result<Self, Value> {
        match value {
            Value::Null => Ok(None),
            value => C::from_value(value).map(Some),
        }
    }
}

/// Several values: of a row, or of a key. A single value, a tuple, an array or a vector of values,
/// or a reference to a [`Row`].
///
/// ```
/// use indexy_table::{IntoValues, Value};
/// assert_eq!(1u64.into_values(), [Value::U64(1)]);
/// assert_eq!((1u64, "Ada").into_values(), [Value::U64(1), "Ada".into()]);
/// assert_eq!(["a", "b"].into_values(), [Value::from("a"), "b".into()]);
/// ```
pub trait IntoValues {
    /// The values, in order.
    fn into_values(self) -> Vec<Value>;
}

impl IntoValues for Vec<Value> {
    fn into_values(self) -> Vec<Value> {
        self
    }
}

impl IntoValues for &[Value] {
    fn into_values(self) -> Vec<Value> {
        self.to_vec()
    }
}

impl<V: Into<Value>, const N: usize> IntoValues for [V; N] {
    fn into_values(self) -> Vec<Value> {
        self.map(Into::into).into()
    }
}

impl<R: Row> IntoValues for &R {
    fn into_values(self) -> Vec<Value> {
        self.to_values()
    }
}

macro_rules! single {
    ($($one:ty),* $(,)?) => {
        $(impl IntoValues for $one {
            fn into_values(self) -> Vec<Value> {
                vec![self.into()]
            }
        })*
    };
}

single!(
    Value,
    bool,
    i32,
    i64,
    u32,
    u64,
    f64,
    &str,
    String,
    &[u8],
    Vec<u8>,
    Timestamp
);

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<$($name: Into<Value>),*> IntoValues for ($($name,)*) {
            #[allow(non_snake_case, reason = "a variable for each type")]
            fn into_values(self) -> Vec<Value> {
                let ($($name,)*) = self;
                vec![$($name.into()),*]
            }
        }
    };
}

impl IntoValues for () {
    fn into_values(self) -> Vec<Value> {
        Vec::new()
    }
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
tuples!(A B C D E F G H I);
tuples!(A B C D E F G H I J);
tuples!(A B C D E F G H I J K);
tuples!(A B C D E F G H I J K L);
