//! Schemas: what a caller says of a table.

use crate::value::{Type, Value};

/// The name of the primary key where an index is named.
pub const PRIMARY: &str = "primary key";

/// A table: its columns, its primary key and its indexes.
///
/// ```
/// use indexy_table::{Column, Index, Schema, Type};
/// let people = Schema::new("people")
///     .column("id", Type::U64)
///     .column("name", Type::Text)
///     .column("city", Column::new(Type::Text).nullable())
///     .column("visits", Column::new(Type::I64).default(0))
///     .primary_key(["id"])
///     .index("by_name", Index::on(["name"]).unique())
///     .index("by_city", Index::on(["city"]).include(["name"]));
/// assert_eq!(people.name(), "people");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    pub(crate) name: String,
    pub(crate) columns: Vec<(String, Column)>,
    pub(crate) primary_key: Vec<String>,
    pub(crate) indexes: Vec<(String, Index)>,
}

impl Schema {
    /// A table without columns. `name`: 1 to 100 bytes.
    ///
    /// ```
    /// let schema = indexy_table::Schema::new("people");
    /// ```
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            columns: Vec::new(),
            primary_key: Vec::new(),
            indexes: Vec::new(),
        }
    }

    /// Adds a column: a [`Type`], for one that is not NULL and has no default, or a [`Column`].
    ///
    /// ```
    /// use indexy_table::{Schema, Type};
    /// let schema = Schema::new("people").column("id", Type::U64);
    /// ```
    #[must_use]
    pub fn column(mut self, name: impl Into<String>, column: impl Into<Column>) -> Self {
        self.columns.push((name.into(), column.into()));
        self
    }

    /// The columns of the primary key, none of them NULL. Rows lie in its order.
    ///
    /// ```
    /// use indexy_table::{Schema, Type};
    /// let schema = Schema::new("people").column("id", Type::U64).primary_key(["id"]);
    /// ```
    #[must_use]
    pub fn primary_key<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> Self {
        self.primary_key = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Adds an index.
    ///
    /// ```
    /// use indexy_table::{Index, Schema, Type};
    /// let schema = Schema::new("people")
    ///     .column("id", Type::U64)
    ///     .column("name", Type::Text)
    ///     .primary_key(["id"])
    ///     .index("by_name", Index::on(["name"]));
    /// ```
    #[must_use]
    pub fn index(mut self, name: impl Into<String>, index: Index) -> Self {
        self.indexes.push((name.into(), index));
        self
    }

    /// Its name.
    ///
    /// ```
    /// assert_eq!(indexy_table::Schema::new("people").name(), "people");
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The columns, in order.
    ///
    /// ```
    /// use indexy_table::{Schema, Type};
    /// let schema = Schema::new("people").column("id", Type::U64);
    /// assert_eq!(schema.columns().next().unwrap().0, "id");
    /// ```
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.columns
            .iter()
            .map(|(name, column)| (&name[..], column))
    }

    /// The columns of the primary key.
    ///
    /// ```
    /// let schema = indexy_table::Schema::new("people").primary_key(["id"]);
    /// assert_eq!(schema.key(), ["id"]);
    /// ```
    #[must_use]
    pub fn key(&self) -> &[String] {
        &self.primary_key
    }

    /// The indexes.
    ///
    /// ```
    /// assert_eq!(indexy_table::Schema::new("people").indexes().count(), 0);
    /// ```
    pub fn indexes(&self) -> impl Iterator<Item = (&str, &Index)> {
        self.indexes.iter().map(|(name, index)| (&name[..], index))
    }
}

/// A column of a [`Schema`].
///
/// ```
/// use indexy_table::{Column, Type};
/// let city = Column::new(Type::Text).nullable();
/// assert_eq!(city.ty(), Type::Text);
/// assert!(city.is_nullable());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub(crate) ty: Type,
    pub(crate) nullable: bool,
    pub(crate) default: Option<Value>,
}

impl Column {
    /// Not NULL, without a default.
    ///
    /// ```
    /// use indexy_table::{Column, Type};
    /// assert!(!Column::new(Type::Bool).is_nullable());
    /// ```
    #[must_use]
    pub fn new(ty: Type) -> Self {
        Self {
            ty,
            nullable: false,
            default: None,
        }
    }

    /// It may be NULL.
    ///
    /// ```
    /// use indexy_table::{Column, Type};
    /// assert!(Column::new(Type::Bool).nullable().is_nullable());
    /// ```
    #[must_use]
    pub fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// What it is where nothing is said: in [`Table::insert_named`](crate::Table::insert_named),
    /// and in rows that are older than the column.
    ///
    /// ```
    /// use indexy_table::{Column, Type, Value};
    /// let column = Column::new(Type::I64).default(7);
    /// assert_eq!(column.default_value(), Some(&Value::from(7)));
    /// ```
    #[must_use]
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// Its type.
    ///
    /// ```
    /// use indexy_table::{Column, Type};
    /// assert_eq!(Column::new(Type::Bool).ty(), Type::Bool);
    /// ```
    #[must_use]
    pub fn ty(&self) -> Type {
        self.ty
    }

    /// Whether it may be NULL.
    ///
    /// ```
    /// use indexy_table::{Column, Type};
    /// assert!(!Column::new(Type::Bool).is_nullable());
    /// ```
    #[must_use]
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// Its default.
    ///
    /// ```
    /// use indexy_table::{Column, Type};
    /// assert_eq!(Column::new(Type::Bool).default_value(), None);
    /// ```
    #[must_use]
    pub fn default_value(&self) -> Option<&Value> {
        self.default.as_ref()
    }
}

impl From<Type> for Column {
    fn from(ty: Type) -> Self {
        Self::new(ty)
    }
}

/// An index of a [`Schema`].
///
/// It is ordered by its columns, then by the primary key; where it is unique, by its columns, and
/// rows with a NULL there by the primary key, too. A query that needs no other columns than
/// these and the included ones is answered by the index alone.
///
/// ```
/// use indexy_table::Index;
/// let by_name = Index::on(["last", "first"]).unique().include(["city"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    pub(crate) columns: Vec<String>,
    pub(crate) unique: bool,
    pub(crate) include: Vec<String>,
}

impl Index {
    /// An index on these columns, in this order.
    ///
    /// ```
    /// let index = indexy_table::Index::on(["city"]);
    /// ```
    #[must_use]
    pub fn on<C: Into<String>>(columns: impl IntoIterator<Item = C>) -> Self {
        Self {
            columns: columns.into_iter().map(Into::into).collect(),
            unique: false,
            include: Vec::new(),
        }
    }

    /// No two rows are equal in its columns. As in SQL, NULL is not equal to NULL: any number of
    /// rows may have NULL in one of them.
    ///
    /// ```
    /// let index = indexy_table::Index::on(["name"]).unique();
    /// ```
    #[must_use]
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Keeps these columns in the index, too.
    ///
    /// ```
    /// let index = indexy_table::Index::on(["city"]).include(["name"]);
    /// ```
    #[must_use]
    pub fn include<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> Self {
        self.include = columns.into_iter().map(Into::into).collect();
        self
    }

    /// The columns by which it is ordered.
    ///
    /// ```
    /// assert_eq!(indexy_table::Index::on(["city"]).columns(), ["city"]);
    /// ```
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The columns that it keeps besides.
    ///
    /// ```
    /// assert!(indexy_table::Index::on(["city"]).included().is_empty());
    /// ```
    #[must_use]
    pub fn included(&self) -> &[String] {
        &self.include
    }

    /// Whether it is unique.
    ///
    /// ```
    /// assert!(!indexy_table::Index::on(["city"]).is_unique());
    /// ```
    #[must_use]
    pub fn is_unique(&self) -> bool {
        self.unique
    }
}
