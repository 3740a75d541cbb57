//! Random calls against maps: a table with a unique and a covering index, columns and indexes that
//! come while it lives, snapshots, and databases that are opened again.

use crate::support::{assert_sound, open, rows};
use indexy::Db;
use indexy_table::{
    Column, Error, Index, Query, Schema, Table, TableSnapshot, Tables, Type, Value,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// By primary key (`a`, `b`): all columns.
type Model = BTreeMap<(Value, Value), Vec<Value>>;

#[derive(Debug, Clone)]
enum Call {
    Insert(Vec<Value>),
    Upsert(Vec<Value>),
    /// Column (0 to 4) of a key is changed.
    Update((Value, Value), usize, Value),
    Delete((Value, Value)),
    /// By which order, how many leading columns of which row, reversed, only covered columns.
    Scan(usize, usize, Vec<Value>, bool, bool),
    /// Some calls in one transaction, which is committed or not.
    Together(Vec<Call>, bool),
    AddColumn,
    /// Drops the index on `d` if it is there, else builds it.
    Index,
    Snapshot,
    Reopen,
}

fn small() -> impl Strategy<Value = Value> {
    (-3i64..4).prop_map_into()
}

fn word() -> impl Strategy<Value = Value> {
    prop_oneof![Just(Value::Null), "[\u{0}\u{1}ab]{0,2}".prop_map_into()]
}

/// `a`: i64, `b`: text, both the key; `c`: unique with `d`, may be NULL; `d`; `e`: may be NULL.
fn row() -> impl Strategy<Value = Vec<Value>> {
    let key = prop_oneof!["", "x", "x\u{0}"].prop_map(Value::from);
    let unique = prop_oneof![Just(Value::Null), (0i64..20).prop_map_into()];
    (small(), key, unique, small(), word()).prop_map(|(a, b, c, d, e)| vec![a, b, c, d, e])
}

fn key_of(row: &[Value]) -> (Value, Value) {
    (row[0].clone(), row[1].clone())
}

fn single() -> impl Strategy<Value = Call> {
    prop_oneof![
        5 => row().prop_map(Call::Insert),
        3 => row().prop_map(Call::Upsert),
        3 => (row(), row(), 0usize..5)
            .prop_map(|(of, new, at)| Call::Update(key_of(&of), at, new[at].clone())),
        2 => row().prop_map(|row| Call::Delete(key_of(&row))),
        4 => (0usize..4, 0usize..4, row(), any::<bool>(), any::<bool>())
            .prop_map(|(by, many, row, rev, covered)| Call::Scan(by, many, row, rev, covered)),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let together = (prop::collection::vec(single(), 1..5), any::<bool>());
    prop_oneof![
        40 => single(),
        6 => together.prop_map(|(calls, commit)| Call::Together(calls, commit)),
        1 => Just(Call::AddColumn),
        2 => Just(Call::Index),
        2 => Just(Call::Snapshot),
        1 => Just(Call::Reopen),
    ]
}

fn schema() -> Schema {
    Schema::new("t")
        .column("a", Type::I64)
        .column("b", Type::Text)
        .column("c", Column::new(Type::I64).nullable())
        .column("d", Type::I32)
        .column("e", Column::new(Type::Text).nullable())
        .primary_key(["a", "b"])
        .index("by_c", Index::on(["c", "d"]).unique().include(["e"]))
        .index("by_e", Index::on(["e", "a"]).include(["d"]))
}

/// The row as the table has it: `d` is an i32, and added columns are 7.
fn stored(row: &[Value], added: usize) -> Vec<Value> {
    let mut row = row.to_vec();
    if let Value::I64(d) = row[3] {
        row[3] = Value::I32(i32::try_from(d).unwrap());
    }
    row.resize(5 + added, Value::from(7i64));
    row
}

struct World {
    db: Db,
    table: Table,
    model: Model,
    added: usize,
    indexed: bool,
    /// A table as it was, with what it had.
    snapshot: Option<(TableSnapshot, Model)>,
}

/// Another row has the same `c` and `d`, and no NULL is among them.
fn taken(model: &Model, row: &[Value], but: Option<&(Value, Value)>) -> bool {
    let same = |other: &Vec<Value>| other[2] == row[2] && other[3] == row[3];
    let mut others = model.iter().filter(|(key, _)| Some(*key) != but);
    !row[2].is_null() && others.any(|(_, other)| same(other))
}

/// What a call does to the model; `None`: it is a duplicate. Else whether there was a row.
fn apply(model: &mut Model, call: &Call, added: usize) -> Option<bool> {
    match call {
        Call::Insert(row) => {
            let (key, row) = (key_of(row), stored(row, added));
            if model.contains_key(&key) || taken(model, &row, None) {
                return None;
            }
            model.insert(key, row);
            Some(false)
        }
        Call::Upsert(row) => {
            let (key, row) = (key_of(row), stored(row, added));
            if taken(model, &row, Some(&key)) {
                return None;
            }
            Some(model.insert(key, row).is_some())
        }
        Call::Update(key, at, value) => {
            let Some(old) = model.get(key) else {
                return Some(false);
            };
            let mut row = old.clone();
            row[*at] = value.clone();
            let row = stored(&row, added);
            let new = key_of(&row);
            if (new != *key && model.contains_key(&new)) || taken(model, &row, Some(key)) {
                return None;
            }
            model.remove(key);
            model.insert(new, row);
            Some(true)
        }
        Call::Delete(key) => Some(model.remove(key).is_some()),
        _ => panic!("no single write: {call:?}"),
    }
}

/// The same on the table, within a transaction.
fn write(
    table: &mut indexy_table::TableTransaction<'_>,
    call: &Call,
    added: usize,
) -> Option<bool> {
    let names = ["a", "b", "c", "d", "e"];
    let done = match call {
        Call::Insert(row) => table.insert(stored(row, added)).map(|()| false),
        Call::Upsert(row) => table.upsert(stored(row, added)),
        Call::Update((a, b), at, value) => {
            table.update((a.clone(), b.clone()), [(names[*at], value.clone())])
        }
        Call::Delete((a, b)) => table.delete((a.clone(), b.clone())),
        _ => panic!("no single write: {call:?}"),
    };
    match done {
        Ok(existed) => Some(existed),
        Err(Error::DuplicateKey { .. }) => None,
        Err(error) => panic!("{call:?}: {error}"),
    }
}

/// A query, and the rows of the model that it asks for.
fn asked(world: &World, model: &Model, call: &Call) -> Option<(Query, Vec<Vec<Value>>)> {
    let Call::Scan(by, many, row, reversed, covered) = call else {
        return None;
    };
    let row = stored(row, 0);
    // Order, and what the index covers.
    let (query, order, columns): (Query, &[usize], &[usize]) = match by {
        0 => (Query::all(), &[0, 1], &[4, 3, 2, 1, 0]),
        1 => (Query::index("by_c"), &[2, 3], &[4, 0, 1, 2]),
        2 => (Query::index("by_e"), &[4, 0, 1], &[3, 1]),
        _ if world.indexed => (Query::index("by_d"), &[3, 0, 1], &[0, 3, 1]),
        _ => return None,
    };
    let many = (*many).min(order.len());
    let prefix: Vec<Value> = order[..many].iter().map(|&at| row[at].clone()).collect();
    let mut rows: Vec<&Vec<Value>> = model.values().collect();
    rows.retain(|row| {
        order[..many]
            .iter()
            .zip(&prefix)
            .all(|(&at, value)| row[at] == *value)
    });
    let place = |row: &[Value]| -> Vec<Value> {
        order
            .iter()
            .chain(&[0, 1])
            .map(|&at| row[at].clone())
            .collect()
    };
    rows.sort_by_key(|row| place(row));
    let mut query = query.prefix(prefix);
    if *reversed {
        rows.reverse();
        query = query.rev();
    }
    let names = ["a", "b", "c", "d", "e"];
    if *covered {
        query = query.columns(columns.iter().map(|&at| names[at]));
        let of = |row: &&Vec<Value>| columns.iter().map(|&at| row[at].clone()).collect();
        return Some((query, rows.iter().map(of).collect()));
    }
    Some((query, rows.into_iter().cloned().collect()))
}

impl World {
    fn run(&mut self, call: &Call, path: &std::path::Path) {
        match call {
            Call::Scan(..) => {
                if let Some((query, expected)) = asked(self, &self.model, call) {
                    assert_eq!(rows(self.table.scan(&query)), expected, "{query:?}");
                }
            }
            Call::Together(calls, commit) => self.together(calls, *commit),
            Call::AddColumn if self.added < 3 => {
                let name = format!("added {}", self.added);
                self.table
                    .add_column(&name, Column::new(Type::I64).default(7))
                    .unwrap();
                self.added += 1;
                for row in self.model.values_mut() {
                    row.push(Value::from(7i64));
                }
            }
            Call::AddColumn => {}
            Call::Index => {
                // What a snapshot may not read after it is dropped.
                self.snapshot = None;
                match self.indexed {
                    true => self.table.drop_index("by_d").unwrap(),
                    false => self.table.create_index("by_d", Index::on(["d"])).unwrap(),
                }
                self.indexed = !self.indexed;
            }
            Call::Snapshot => {
                self.check_snapshot();
                let now = self.table.at(&self.db.snapshot().unwrap()).unwrap();
                self.snapshot = Some((now, self.model.clone()));
            }
            Call::Reopen => self.reopen(path),
            write_call => {
                let expected = apply(&mut self.model, write_call, self.added);
                let tables = Tables::open(&self.db).unwrap();
                let done = tables
                    .transact(|tx| Ok(write(&mut self.table.within(tx)?, write_call, self.added)));
                assert_eq!(done.unwrap(), expected, "{write_call:?}");
            }
        }
    }

    fn together(&mut self, calls: &[Call], commit: bool) {
        let mut model = self.model.clone();
        let mut tx = self.db.begin().unwrap();
        let mut table = self.table.within(&mut tx).unwrap();
        for call in calls {
            if let Some((query, expected)) = asked(self, &model, call) {
                assert_eq!(rows(table.scan(&query)), expected, "{query:?}");
            } else if !matches!(call, Call::Scan(..)) {
                let expected = apply(&mut model, call, self.added);
                assert_eq!(write(&mut table, call, self.added), expected, "{call:?}");
            }
        }
        if commit {
            tx.commit().unwrap();
            self.model = model;
        }
    }

    fn check_snapshot(&self) {
        if let Some((then, model)) = &self.snapshot {
            let expected: Vec<Vec<Value>> = model.values().cloned().collect();
            assert_eq!(rows(then.scan(&Query::all())), expected);
            let by_e = Query::index("by_e").columns(["a"]);
            assert_eq!(rows(then.scan(&by_e)).len(), expected.len());
        }
    }

    fn reopen(&mut self, path: &std::path::Path) {
        self.check_snapshot();
        self.snapshot = None;
        self.db.close().unwrap();
        self.db = open(path);
        self.table = Tables::open(&self.db).unwrap().table("t").unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: crate::support::setting("INDEXY_TABLE_CASES", 60) as u32,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    })]

    #[test]
    fn i14_random_calls_agree_with_a_model(calls in prop::collection::vec(call(), 1..120)) {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let db = open(dir.path());
        let table = Tables::open(&db).unwrap().create_table(schema()).unwrap();
        let mut world = World {
            db,
            table,
            model: Model::new(),
            added: 0,
            indexed: false,
            snapshot: None,
        };
        for call in &calls {
            world.run(call, dir.path());
        }
        world.check_snapshot();
        assert_sound(&world.table);
        let expected: Vec<Vec<Value>> = world.model.values().cloned().collect();
        assert_eq!(rows(world.table.scan(&Query::all())), expected);
    }
}
