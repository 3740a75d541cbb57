use super::*;
use crate::value::Timestamp;
use proptest::prelude::*;

type Columns = Vec<(Type, bool, u16)>;

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

/// Columns that came with versions 1 to 4.
fn columns() -> impl Strategy<Value = Columns> {
    let column = (0..TYPES.len(), any::<bool>(), 1u16..5);
    prop::collection::vec(column, 0..12).prop_map(|columns| {
        let mut columns: Columns = columns
            .into_iter()
            .map(|(ty, n, v)| (TYPES[ty], n, v))
            .collect();
        columns.sort_by_key(|column| column.2);
        columns
    })
}

fn value(ty: Type, nullable: bool) -> BoxedStrategy<Value> {
    let values: BoxedStrategy<Value> = match ty {
        Type::Bool => any::<bool>().prop_map_into().boxed(),
        Type::I32 => any::<i32>().prop_map_into().boxed(),
        Type::I64 => any::<i64>().prop_map_into().boxed(),
        Type::U64 => any::<u64>().prop_map_into().boxed(),
        Type::F64 => any::<f64>().prop_map_into().boxed(),
        Type::Text => ".{0,8}".prop_map_into().boxed(),
        Type::Bytes => prop_oneof![
            20 => prop::collection::vec(any::<u8>(), 0..9),
            1 => Just(vec![7; 70_000]),
        ]
        .prop_map_into()
        .boxed(),
        Type::Timestamp => any::<i64>().prop_map(|at| Timestamp(at).into()).boxed(),
    };
    match nullable {
        true => prop_oneof![Just(Value::Null), values].boxed(),
        false => values,
    }
}

fn columns_and_row() -> impl Strategy<Value = (Columns, Vec<Value>)> {
    columns().prop_flat_map(|columns| {
        let row: Vec<_> = columns
            .iter()
            .map(|&(ty, nullable, _)| value(ty, nullable))
            .collect();
        (Just(columns), row)
    })
}

fn format(columns: &Columns, newest: u16) -> RowFormat {
    let known = columns.iter().filter(|column| column.2 <= newest);
    RowFormat::new(known.copied(), newest)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// A row of each version is read with its columns by every later version, and by no earlier.
    #[test]
    fn rows_of_all_versions_come_back((columns, row) in columns_and_row()) {
        for written in 1..=4 {
            let known = columns.iter().filter(|column| column.2 <= written).count();
            let bytes = format(&columns, written).encode(row[..known].iter());
            prop_assert_eq!(RowFormat::version_of(&bytes), Some(written));
            for read in 1..=4 {
                let format = format(&columns, read);
                let found = format.read(&bytes);
                if read < written {
                    prop_assert!(found.is_err());
                    continue;
                }
                let found = found.unwrap();
                for (at, value) in row.iter().enumerate() {
                    let expected = (at < known).then(|| value.clone());
                    let found = found.get(at).unwrap().map(Borrowed::into_value);
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }

    /// Whatever a row is changed to, it is read or refused, and its end is where it says.
    #[test]
    fn damaged_rows_are_safe(
        (columns, row) in columns_and_row(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let format = format(&columns, 4);
        let mut bytes = format.encode(row.iter());
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(row) = format.read(&bytes) {
            for (at, &(ty, nullable, _)) in columns.iter().enumerate() {
                if let Ok(Some(value)) = row.get(at) {
                    let value = value.into_value();
                    prop_assert!(value.ty() == Some(ty) || (nullable && value.is_null()));
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_safe(
        columns in columns(),
        bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        if let Ok(row) = format(&columns, 4).read(&bytes) {
            for at in 0..columns.len() + 1 {
                let _ = row.get(at);
            }
        }
    }
}

/// The example of `docs/formats/rows.md`.
#[test]
fn golden_bytes_are_those_of_the_document() {
    let columns = vec![
        (Type::Text, false, 1),
        (Type::I32, true, 1),
        (Type::Bytes, true, 1),
        (Type::Bool, false, 2),
    ];
    let row = ["Ada".into(), Value::from(258), Value::Null, true.into()];
    let bytes = format(&columns, 2).encode(row.iter());
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let document = include_str!("../../../../docs/formats/rows.md");
    assert!(
        document.contains(&format!("`{}`", hex.join(" "))),
        "{}",
        hex.join(" ")
    );
}

#[test]
fn each_kind_of_damage_is_found() {
    let columns = vec![
        (Type::Text, false, 1),
        (Type::Bool, false, 1),
        (Type::Bytes, true, 1),
    ];
    let format = format(&columns, 1);
    let row = [Value::from("Ada"), true.into(), Value::from(b"xy")];
    let good = format.encode(row.iter());
    let damage = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        let read = format.read(&bytes);
        read.and_then(|row| (0..3).try_for_each(|at| row.get(at).map(drop)))
            .unwrap_err()
    };
    let version = "a version that its table does not have";
    assert_eq!(damage(&|row| row[0] = 2), version);
    assert_eq!(damage(&|row| row[0] = 0), version);
    assert_eq!(damage(&|row| row[2] = 1), "NULL in a column that has none");
    assert_eq!(damage(&|row| row[3] = 2), "a bool that is neither");
    assert_eq!(damage(&|row| row[4] = 9), "a column ends before it begins");
    assert_eq!(damage(&|row| row[8] = 0xff), "text that is not UTF-8");
    assert_eq!(
        damage(&|row| row.truncate(4)),
        "a row ends before its columns"
    );
    let end = "a row does not end where its last column does";
    assert_eq!(damage(&|row| row.push(0)), end);
    assert_eq!(damage(&|row| row.truncate(12)), end);
}
