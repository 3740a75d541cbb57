use super::*;
use crate::value::Timestamp;
use proptest::prelude::*;
use std::cmp::Ordering;

fn encoded(values: &[(Value, bool)]) -> Vec<u8> {
    let mut key = Vec::new();
    for (value, nullable) in values {
        encode(&mut key, value, *nullable);
    }
    key
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The rows of the tables in the document whose cells are `value | bytes`.
fn golden() -> Vec<(String, String)> {
    let document = include_str!("../../../../docs/formats/keys.md");
    let cells = document.lines().filter_map(|line| {
        let mut cells = line
            .strip_prefix("| `")?
            .strip_suffix("` |")?
            .split("` | `");
        let (value, bytes) = (cells.next()?, cells.next()?);
        Some((value.to_string(), bytes.replace(' ', "")))
    });
    cells.collect()
}

/// The bytes are a format: they are those of the document, of each value.
#[test]
fn golden_bytes_are_those_of_the_document() {
    let text = |text: &str| Value::from(text);
    let one = |value: Value| vec![(value, false)];
    let maybe = |value: Value| vec![(value, true)];
    let values: Vec<(&str, Vec<(Value, bool)>)> = vec![
        ("false", one(false.into())),
        ("true", one(true.into())),
        ("i32 -2147483648", one(i32::MIN.into())),
        ("i32 -1", one((-1i32).into())),
        ("i32 0", one(0i32.into())),
        ("i64 -1", one((-1i64).into())),
        ("i64 258", one(258i64.into())),
        ("u64 0", one(0u64.into())),
        ("u64 258", one(258u64.into())),
        ("f64 -inf", one(f64::NEG_INFINITY.into())),
        ("f64 -1.5", one((-1.5).into())),
        ("f64 0.0", one(0.0.into())),
        ("f64 1.5", one(1.5.into())),
        ("f64 NaN", one(f64::NAN.into())),
        ("timestamp 1", one(Timestamp(1).into())),
        ("text empty", one(text(""))),
        ("text ab", one(text("ab"))),
        ("bytes 00 01 02 ff", one(Value::from(&[0, 1, 2, 255]))),
        ("NULL", maybe(Value::Null)),
        ("i32 0, nullable", maybe(0i32.into())),
        ("text ab, nullable", maybe(text("ab"))),
        (
            "text ab, i32 1",
            vec![(text("ab"), false), (1i32.into(), false)],
        ),
    ];
    let expected: Vec<(String, String)> = values
        .iter()
        .map(|(name, values)| (name.to_string(), hex(&encoded(values))))
        .collect();
    assert_eq!(golden(), expected);
}

fn column() -> impl Strategy<Value = (Type, bool)> {
    let ty = prop_oneof![
        Just(Type::Bool),
        Just(Type::I32),
        Just(Type::I64),
        Just(Type::U64),
        Just(Type::F64),
        Just(Type::Text),
        Just(Type::Bytes),
        Just(Type::Timestamp),
    ];
    (ty, any::<bool>())
}

/// Values that lie close together, and any others.
fn value((ty, nullable): (Type, bool)) -> BoxedStrategy<Value> {
    let bytes = || prop::collection::vec(prop_oneof![0u8..4, Just(255), any::<u8>()], 0..6);
    let values: BoxedStrategy<Value> = match ty {
        Type::Bool => any::<bool>().prop_map_into().boxed(),
        Type::I32 => prop_oneof![-3i32..3, any::<i32>()].prop_map_into().boxed(),
        Type::I64 => prop_oneof![-3i64..3, any::<i64>()].prop_map_into().boxed(),
        Type::U64 => prop_oneof![0u64..3, any::<u64>()].prop_map_into().boxed(),
        Type::F64 => prop_oneof![-1.0..1.0, any::<f64>(), Just(-0.0), Just(f64::NAN)]
            .prop_map_into()
            .boxed(),
        Type::Text => "[\u{0}\u{1}\u{2}ab\u{10ffff}]{0,5}".prop_map_into().boxed(),
        Type::Bytes => bytes().prop_map_into().boxed(),
        Type::Timestamp => any::<i64>().prop_map(|at| Timestamp(at).into()).boxed(),
    };
    let fitted = values.prop_map(move |value: Value| value.fit(ty).unwrap());
    match nullable {
        true => prop_oneof![1 => Just(Value::Null), 4 => fitted].boxed(),
        false => fitted.boxed(),
    }
}

type Columns = Vec<(Type, bool)>;

/// Columns, and two rows of them of which the second often begins as the first does.
fn two_rows() -> impl Strategy<Value = (Columns, Vec<Value>, Vec<Value>)> {
    let columns = prop::collection::vec(column(), 1..5);
    columns.prop_flat_map(|columns| {
        let row = || {
            columns
                .iter()
                .map(|&column| value(column))
                .collect::<Vec<_>>()
        };
        (Just(columns.clone()), row(), row(), 0..=columns.len()).prop_map(
            |(columns, a, mut b, same)| {
                b[..same].clone_from_slice(&a[..same]);
                (columns, a, b)
            },
        )
    })
}

fn key_of(columns: &Columns, values: &[Value]) -> Vec<u8> {
    let values = values.iter().cloned().zip(columns.iter().map(|c| c.1));
    encoded(&values.collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Keys are ordered as rows are, and equal when they are.
    #[test]
    fn order_is_that_of_the_values((columns, a, b) in two_rows()) {
        prop_assert_eq!(key_of(&columns, &a).cmp(&key_of(&columns, &b)), a.cmp(&b));
    }

    #[test]
    fn values_come_back((columns, a, _) in two_rows()) {
        let key = key_of(&columns, &a);
        let mut reader = BorrowReader::new(&key);
        for (at, &(ty, nullable)) in columns.iter().enumerate() {
            let len = skip(&mut reader, ty, nullable).unwrap();
            prop_assert_eq!(len, encoded(&[(a[at].clone(), nullable)]).len());
        }
        prop_assert!(reader.is_empty());
        let mut reader = BorrowReader::new(&key);
        for (&(ty, nullable), value) in columns.iter().zip(&a) {
            let read = decode(&mut reader, ty, nullable).unwrap();
            prop_assert_eq!(&read.into_value(), value);
        }
        prop_assert!(reader.is_empty());
    }

    /// A key begins with another one's leading columns exactly if it has the same.
    #[test]
    fn equal_leading_columns_are_equal_beginnings((columns, a, b) in two_rows()) {
        for count in 0..=columns.len() {
            let prefix = key_of(&columns, &a[..count]);
            let begins = key_of(&columns, &b).starts_with(&prefix);
            prop_assert_eq!(begins, a[..count] == b[..count]);
            // And everything that begins so lies before its end.
            if let (true, Some(end)) = (begins, prefix_end(&prefix)) {
                prop_assert_eq!(key_of(&columns, &b).cmp(&end), Ordering::Less);
            }
        }
    }

    /// Any bytes are read as something or refused.
    #[test]
    fn any_bytes_are_safe(
        bytes in prop::collection::vec(prop_oneof![0u8..5, any::<u8>()], 0..40),
        columns in prop::collection::vec(column(), 1..6),
    ) {
        let mut skipped = BorrowReader::new(&bytes);
        for &(ty, nullable) in &columns {
            if skip(&mut skipped, ty, nullable).is_err() {
                break;
            }
        }
        let mut reader = BorrowReader::new(&bytes);
        for (ty, nullable) in columns {
            match decode(&mut reader, ty, nullable) {
                Ok(value) => {
                    let value = value.into_value();
                    prop_assert!(value.is_null() || value.ty() == Some(ty));
                }
                Err(_) => break,
            }
        }
    }
}

#[test]
fn the_end_of_a_prefix_is_after_all_that_begin_with_it() {
    assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
    assert_eq!(prefix_end(b"a\xff\xff"), Some(b"b".to_vec()));
    assert_eq!(prefix_end(b"\xff"), None);
    assert_eq!(prefix_end(b""), None);
}
