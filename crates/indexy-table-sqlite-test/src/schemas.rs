//! Random schemas and rows.

use crate::random::Random;
use indexy_table::{Column, Index, Schema, Timestamp, Type, Value};

const TYPES: [Type; 8] = [
    Type::Bool,
    Type::I32,
    Type::I64,
    Type::U64,
    Type::F64,
    Type::Text,
    Type::Bytes,
    Type::Timestamp,
];

/// A schema, taken apart.
#[derive(Debug, Clone)]
pub struct Tabled {
    /// Name, type, whether it may be NULL.
    pub columns: Vec<(String, Type, bool)>,
    /// Numbers of columns.
    pub key: Vec<usize>,
    /// Name and numbers of columns of each index, and whether it is unique.
    pub indexes: Vec<(String, Vec<usize>, bool)>,
    /// Of the next index.
    pub next_index: usize,
}

impl Tabled {
    pub fn names(&self, columns: &[usize]) -> Vec<String> {
        columns
            .iter()
            .map(|&at| self.columns[at].0.clone())
            .collect()
    }
}

/// A schema with its indexes, and the same taken apart.
pub fn schema(random: &mut Random) -> (Schema, Tabled) {
    let key = 1 + random.below(3);
    let more = random.below(6);
    let columns = (0..key + more).map(|at| {
        let nullable = at >= key && random.one_in(2);
        (format!("c{at}"), *random.of(&TYPES), nullable)
    });
    let mut tabled = Tabled {
        columns: columns.collect(),
        key: (0..key).collect(),
        indexes: Vec::new(),
        next_index: 0,
    };
    // The key is not always at the front, and not always in order.
    let mut order = random.different(key + more, key + more);
    order.truncate(key);
    for (at, &column) in order.iter().enumerate() {
        tabled.key[at] = column;
        tabled.columns[column].2 = false;
    }
    let mut schema = Schema::new("t").primary_key(tabled.names(&tabled.key));
    for (name, ty, nullable) in &tabled.columns {
        let column = Column::new(*ty);
        schema = schema.column(name, if *nullable { column.nullable() } else { column });
    }
    for _ in 0..random.below(4) {
        let (name, new) = index(random, &mut tabled);
        schema = schema.index(name, new);
    }
    (schema, tabled)
}

/// Another index, which `tabled` has from now on.
pub fn index(random: &mut Random, tabled: &mut Tabled) -> (String, Index) {
    let name = format!("i{}", tabled.next_index);
    tabled.next_index += 1;
    let all = tabled.columns.len();
    let count = 1 + random.below(3);
    let columns = random.different(all, count.min(all));
    let count = random.below(3);
    let include = random.different(all, count.min(all));
    let unique = random.one_in(3);
    let mut index = Index::on(tabled.names(&columns)).include(tabled.names(&include));
    if unique {
        index = index.unique();
    }
    tabled.indexes.push((name.clone(), columns, unique));
    (name, index)
}

/// A value of a column; the same ones come often.
pub fn value(random: &mut Random, ty: Type, nullable: bool) -> Value {
    if nullable && random.one_in(4) {
        return Value::Null;
    }
    let near = random.below(7) as i64 - 3;
    let far = random.one_in(8);
    match ty {
        Type::Bool => random.one_in(2).into(),
        Type::I32 if far => (random.word() as i32).into(),
        Type::I32 => (near as i32).into(),
        Type::I64 if far => (random.word() as i64).into(),
        Type::I64 => near.into(),
        Type::U64 if far => (random.word() >> 1).into(),
        Type::U64 => near.unsigned_abs().into(),
        Type::F64 => match random.below(10) {
            0 => f64::INFINITY.into(),
            1 => f64::NEG_INFINITY.into(),
            2 => Value::F64(-0.0),
            3 => ((random.word() as i64) as f64 / 3.0).into(),
            _ => (near as f64 / 2.0).into(),
        },
        Type::Text => {
            let letters = [
                "",
                "a",
                "b",
                "ab",
                "\u{1}",
                "A",
                "ä",
                "\u{ffff}",
                "\u{10ffff}",
            ];
            format!("{}{}", random.of(&letters), random.of(&letters)).into()
        }
        Type::Bytes => {
            let bytes = [0u8, 1, 2, 0x7f, 0xfe, 0xff];
            let len = random.below(4);
            (0..len)
                .map(|_| *random.of(&bytes))
                .collect::<Vec<u8>>()
                .into()
        }
        Type::Timestamp => Timestamp(if far { random.word() as i64 } else { near }).into(),
        other => panic!("a type that SQLite has no answer for: {other}"),
    }
}

pub fn row(random: &mut Random, tabled: &Tabled) -> Vec<Value> {
    let columns = tabled.columns.iter();
    columns
        .map(|&(_, ty, nullable)| value(random, ty, nullable))
        .collect()
}
