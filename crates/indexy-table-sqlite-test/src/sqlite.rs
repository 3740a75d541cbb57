//! A table of SQLite, index-organized as ours are.

use crate::schemas::Tabled;
use indexy_table::{Timestamp, Type, Value};
use rusqlite::{
    Connection, ErrorCode,
    types::{ToSqlOutput, ValueRef},
};

/// See the module header.
pub struct Sqlite {
    pub connection: Connection,
}

/// A value as SQLite takes it.
struct Bound<'a>(&'a Value);

impl rusqlite::ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Bool(v) => ValueRef::Integer((*v).into()),
            Value::I32(v) => ValueRef::Integer((*v).into()),
            Value::I64(v) => ValueRef::Integer(*v),
            Value::U64(v) => ValueRef::Integer(i64::try_from(*v).expect("not generated")),
            Value::F64(v) => ValueRef::Real(*v),
            Value::Text(v) => ValueRef::Text(v.as_bytes()),
            Value::Bytes(v) => ValueRef::Blob(v),
            Value::Timestamp(v) => ValueRef::Integer(v.0),
            other => panic!("a value that SQLite does not have: {other}"),
        }))
    }
}

fn sql_type(ty: Type) -> &'static str {
    match ty {
        Type::F64 => "REAL",
        Type::Text => "TEXT",
        Type::Bytes => "BLOB",
        _ => "INTEGER",
    }
}

/// What SQLite answers, as a value of a column.
fn typed(value: ValueRef<'_>, ty: Type) -> Value {
    match (value, ty) {
        (ValueRef::Null, _) => Value::Null,
        (ValueRef::Integer(v), Type::Bool) => (v != 0).into(),
        (ValueRef::Integer(v), Type::I32) => i32::try_from(v).expect("an i32").into(),
        (ValueRef::Integer(v), Type::I64) => v.into(),
        (ValueRef::Integer(v), Type::U64) => u64::try_from(v).expect("a u64").into(),
        (ValueRef::Integer(v), Type::Timestamp) => Timestamp(v).into(),
        (ValueRef::Real(v), Type::F64) => v.into(),
        (ValueRef::Text(v), Type::Text) => String::from_utf8(v.into()).expect("UTF-8").into(),
        (ValueRef::Blob(v), Type::Bytes) => v.into(),
        (value, ty) => panic!("{value:?} in a column of {ty}"),
    }
}

impl Sqlite {
    /// The same table, empty, with the same indexes.
    pub fn new(tabled: &Tabled) -> Self {
        let connection = Connection::open_in_memory().expect("SQLite opens");
        let sqlite = Self { connection };
        let columns = tabled.columns.iter().map(|(name, ty, nullable)| {
            let null = if *nullable { "" } else { " NOT NULL" };
            format!("{name} {}{null}", sql_type(*ty))
        });
        let columns: Vec<String> = columns.collect();
        let key = tabled.names(&tabled.key).join(", ");
        let columns = columns.join(", ");
        let create = format!("CREATE TABLE t ({columns}, PRIMARY KEY ({key})) WITHOUT ROWID");
        assert!(sqlite.run(&create, &[]).is_some(), "{create}");
        for at in 0..tabled.indexes.len() {
            assert!(
                sqlite.create_index(tabled, at),
                "an index of an empty table"
            );
        }
        sqlite
    }

    /// Runs a statement; number of rows that it changed, `None` where a constraint forbids it.
    pub fn run(&self, sql: &str, parameters: &[Value]) -> Option<usize> {
        let bound = rusqlite::params_from_iter(parameters.iter().map(Bound));
        let prepared = self.connection.prepare_cached(sql);
        match prepared.and_then(|mut statement| statement.execute(bound)) {
            Ok(changed) => Some(changed),
            Err(error) => {
                let code = error.sqlite_error_code();
                assert_eq!(code, Some(ErrorCode::ConstraintViolation), "{sql}: {error}");
                None
            }
        }
    }

    /// False if its rows are not unique.
    pub fn create_index(&self, tabled: &Tabled, at: usize) -> bool {
        let (name, columns, unique) = &tabled.indexes[at];
        let unique = if *unique { "UNIQUE " } else { "" };
        let columns = tabled.names(columns).join(", ");
        self.run(
            &format!("CREATE {unique}INDEX {name} ON t ({columns})"),
            &[],
        )
        .is_some()
    }

    /// Adds the last column of `tabled`, with a default.
    pub fn add_column(&self, tabled: &Tabled, default: &Value) {
        let (name, ty, nullable) = tabled.columns.last().expect("a column was added");
        let null = if *nullable { "" } else { " NOT NULL" };
        // SQLite takes no parameter here.
        let default = match default {
            Value::Null => "NULL".into(),
            Value::Bool(v) => i32::from(*v).to_string(),
            Value::Timestamp(v) => v.0.to_string(),
            Value::Text(v) => format!("'{}'", v.replace('\'', "''")),
            Value::Bytes(v) => {
                let hex: String = v.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("x'{hex}'")
            }
            Value::F64(v) if v.is_infinite() => format!("{}9e999", if *v < 0.0 { "-" } else { "" }),
            other => other.to_string(),
        };
        let ty = sql_type(*ty);
        let sql = format!("ALTER TABLE t ADD COLUMN {name} {ty}{null} DEFAULT {default}");
        assert!(self.run(&sql, &[]).is_some(), "{sql}");
    }

    /// The rows of a query whose columns have the names that `tabled` knows.
    pub fn ask(&self, tabled: &Tabled, sql: &str, parameters: &[Value]) -> Vec<Vec<Value>> {
        let mut statement = self.connection.prepare(sql).expect("a query is good");
        let types: Vec<Type> = statement
            .column_names()
            .iter()
            .map(|name| {
                let known = tabled.columns.iter().find(|(other, _, _)| other == name);
                known.expect("a known column").1
            })
            .collect();
        let bound = rusqlite::params_from_iter(parameters.iter().map(Bound));
        let mut rows = statement.query(bound).expect("a query runs");
        let mut found = Vec::new();
        while let Some(row) = rows.next().expect("a query goes on") {
            let value = |(at, ty): (usize, &Type)| typed(row.get_ref(at).expect("a column"), *ty);
            found.push(types.iter().enumerate().map(value).collect());
        }
        found
    }
}
