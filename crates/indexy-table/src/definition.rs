//! What the catalogue stores of a table, and when it is sound.
//!
//! A definition is read from disk and trusted only after `check`: every number of a column is one
//! of a column, names are different, versions ascend.

use crate::{
    error::{Error, Result},
    row::MAX_VERSION,
    schema::{Column, Index, Schema},
    value::{Borrowed, Type, Value},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Longest name of a table, a column or an index, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 100;
/// Most columns of a table.
pub(crate) const MAX_COLUMNS: usize = 1024;
/// Most indexes of a table.
pub(crate) const MAX_INDEXES: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Definition {
    /// Of the table: in the names of its trees.
    pub id: u64,
    /// Another one with every change; never used twice.
    pub generation: u64,
    /// Of the schema: one more with every change of the columns.
    pub version: u16,
    pub columns: Vec<StoredColumn>,
    /// Numbers of columns.
    pub primary_key: Vec<usize>,
    pub indexes: Vec<StoredIndex>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub ty: Type,
    pub nullable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The version of the schema with which it came.
    pub since: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredIndex {
    /// In the name of its tree.
    pub id: u64,
    pub name: String,
    pub unique: bool,
    /// Numbers of columns.
    pub columns: Vec<usize>,
    pub include: Vec<usize>,
    pub state: IndexState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IndexState {
    Ready,
    /// Writes keep it; a build brings in the rows from before.
    Building,
}

/// What is wrong with a name, if anything.
fn check_name(what: &str, name: &str) -> Result<(), String> {
    match name.len() {
        1..=MAX_NAME_BYTES => Ok(()),
        len => Err(format!(
            "a name of {len} bytes for {what}: 1 to {MAX_NAME_BYTES} are allowed"
        )),
    }
}

impl Definition {
    /// Of a schema; its numbers are 0.
    pub(crate) fn of(schema: &Schema) -> Result<Self> {
        let wrong = |reason: String| Error::InvalidSchema {
            table: schema.name.clone(),
            reason,
        };
        check_name("a table", &schema.name).map_err(wrong)?;
        let mut definition = Self {
            id: 0,
            generation: 0,
            version: 1,
            columns: Vec::new(),
            primary_key: Vec::new(),
            indexes: Vec::new(),
        };
        for (name, column) in &schema.columns {
            let column = StoredColumn::of(name, column, 1).map_err(wrong)?;
            definition.columns.push(column);
        }
        definition.primary_key = definition.numbers(&schema.primary_key).map_err(wrong)?;
        for (name, index) in &schema.indexes {
            let index = definition.stored_index(name, index, IndexState::Ready);
            definition.indexes.push(index.map_err(wrong)?);
        }
        definition.check().map_err(wrong)?;
        Ok(definition)
    }

    /// The schema of which it is.
    pub(crate) fn schema(&self, name: &str) -> Schema {
        let named = |numbers: &[usize]| {
            let names = numbers.iter().map(|&at| self.columns[at].name.clone());
            names.collect::<Vec<_>>()
        };
        let mut schema = Schema::new(name).primary_key(named(&self.primary_key));
        for column in &self.columns {
            let stored = Column {
                ty: column.ty,
                nullable: column.nullable,
                default: column.default.clone(),
            };
            schema = schema.column(&column.name, stored);
        }
        for index in &self.indexes {
            let stored = Index {
                columns: named(&index.columns),
                unique: index.unique,
                include: named(&index.include),
            };
            schema = schema.index(&index.name, stored);
        }
        schema
    }

    pub(crate) fn stored_index(
        &self,
        name: &str,
        index: &Index,
        state: IndexState,
    ) -> Result<StoredIndex, String> {
        Ok(StoredIndex {
            id: 0,
            name: name.into(),
            unique: index.unique,
            columns: self.numbers(&index.columns)?,
            include: self.numbers(&index.include)?,
            state,
        })
    }

    /// The first index that is being built.
    pub(crate) fn unready_index(&self) -> Option<&str> {
        let unready = |index: &&StoredIndex| index.state != IndexState::Ready;
        self.indexes
            .iter()
            .find(unready)
            .map(|index| &index.name[..])
    }

    fn numbers(&self, names: &[String]) -> Result<Vec<usize>, String> {
        let number = |name: &String| {
            let found = self.columns.iter().position(|column| column.name == *name);
            found.ok_or_else(|| format!("no column {name}"))
        };
        names.iter().map(number).collect()
    }

    /// What does not hold, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.columns.len() > MAX_COLUMNS || self.indexes.len() > MAX_INDEXES {
            return Err(format!(
                "more than {MAX_COLUMNS} columns or {MAX_INDEXES} indexes"
            ));
        }
        if self.version == 0 || self.version > MAX_VERSION {
            return Err(format!(
                "version {}: 1 to {MAX_VERSION} exist",
                self.version
            ));
        }
        let mut names = BTreeSet::new();
        let mut since = 1;
        for column in &self.columns {
            check_name("a column", &column.name)?;
            if !names.insert(&column.name) {
                return Err(format!("two columns {}", column.name));
            }
            if column.since < since || column.since > self.version {
                return Err(format!("column {} is out of order", column.name));
            }
            since = column.since;
            column.check()?;
        }
        if self.primary_key.is_empty() {
            return Err("no primary key".into());
        }
        self.check_numbers("the primary key", &self.primary_key)?;
        for &at in &self.primary_key {
            let column = &self.columns[at];
            if column.nullable || column.since != 1 {
                return Err(format!(
                    "column {} cannot be in the primary key",
                    column.name
                ));
            }
        }
        let (mut names, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for index in &self.indexes {
            check_name("an index", &index.name)?;
            if !names.insert(&index.name) || (index.id != 0 && !ids.insert(index.id)) {
                return Err(format!("two indexes {}", index.name));
            }
            if index.columns.is_empty() {
                return Err(format!("index {} has no columns", index.name));
            }
            self.check_numbers(&index.name, &index.columns)?;
            self.check_numbers(&index.name, &index.include)?;
        }
        Ok(())
    }

    fn check_numbers(&self, of: &str, numbers: &[usize]) -> Result<(), String> {
        let different: BTreeSet<_> = numbers.iter().collect();
        match numbers.iter().find(|&&at| at >= self.columns.len()) {
            Some(at) => Err(format!("no column of number {at}, which {of} names")),
            None if different.len() < numbers.len() => Err(format!("{of} names a column twice")),
            None => Ok(()),
        }
    }

    /// The first difference between the schema that is stored and the one asked for.
    pub(crate) fn differs(&self, asked: &Self) -> Option<String> {
        let columns = |definition: &Self| definition.columns.len();
        for (here, there) in self.columns.iter().zip(&asked.columns) {
            let same = |a: &StoredColumn, b: &StoredColumn| {
                (&a.name, a.ty, a.nullable, &a.default) == (&b.name, b.ty, b.nullable, &b.default)
            };
            if !same(here, there) {
                return Some(format!("column {} is {here}, not {there}", here.name));
            }
        }
        if columns(self) != columns(asked) {
            return Some(format!("{} columns, not {}", columns(self), columns(asked)));
        }
        if self.primary_key != asked.primary_key {
            return Some("another primary key".into());
        }
        for index in &asked.indexes {
            let same = |other: &&StoredIndex| {
                (other.unique, &other.columns, &other.include)
                    == (index.unique, &index.columns, &index.include)
            };
            let known = self.indexes.iter().find(|known| known.name == index.name);
            if known.filter(same).is_none() {
                let differs = known.map_or("does not exist", |_| "is another one");
                return Some(format!("index {} {differs}", index.name));
            }
        }
        let asked_for = |name: &str| asked.indexes.iter().any(|index| index.name == name);
        let more = self.indexes.iter().find(|index| !asked_for(&index.name));
        more.map(|index| format!("there is also an index {}", index.name))
    }
}

impl std::fmt::Display for StoredColumn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name, self.ty)?;
        if self.nullable {
            f.write_str(" nullable")?;
        }
        match &self.default {
            Some(value) => write!(f, " default {value}"),
            None => Ok(()),
        }
    }
}

impl StoredColumn {
    pub(crate) fn of(name: &str, column: &Column, since: u16) -> Result<Self, String> {
        let fitted = |value: Value| {
            let fitted = value.fit(column.ty);
            fitted.map_err(|value| format!("default {value} of column {name} is no {}", column.ty))
        };
        Ok(Self {
            name: name.into(),
            ty: column.ty,
            nullable: column.nullable,
            default: column.default.clone().map(fitted).transpose()?,
            since,
        })
    }

    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        match &self.default {
            Some(Value::Null) if !self.nullable => {
                Err(format!("column {name} is not NULL, but its default is"))
            }
            // JSON has no such numbers.
            Some(Value::F64(v)) if !v.is_finite() => {
                Err(format!("default {v} of column {name} is not finite"))
            }
            Some(value) if value.ty().is_some_and(|ty| ty != self.ty) => Err(format!(
                "default {value} of column {name} is no {}",
                self.ty
            )),
            None if self.since > 1 && !self.nullable => Err(format!(
                "column {name} is added, not NULL and without a default: what is it in older rows?"
            )),
            _ => Ok(()),
        }
    }

    /// What it is in rows older than it, and where nothing is said; `None`: it must be said.
    pub(crate) fn absent(&self) -> Option<Value> {
        match &self.default {
            Some(value) => Some(value.clone()),
            None => self.nullable.then_some(Value::Null),
        }
    }

    /// As `absent`, without a copy.
    pub(crate) fn absent_borrowed(&self) -> Option<Borrowed<'_>> {
        match &self.default {
            Some(value) => Some(value.into()),
            None => self.nullable.then_some(Borrowed::Null),
        }
    }
}
