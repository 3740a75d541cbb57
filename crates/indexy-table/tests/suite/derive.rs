//! Structures as rows.

use crate::support::open;
use indexy_table::{Error, Query, Row, Schema, Tables, Timestamp, Type, Value};

#[derive(Row, Debug, Clone, PartialEq)]
#[row(
    table = "things",
    index(name = "by_size", on(size, at), include("text"))
)]
#[row(index(on(flag, number), unique))]
struct Thing {
    #[row(primary_key)]
    part: String,
    #[row(primary_key, column = "n")]
    number: u32,
    #[row(unique = "texts")]
    text: Option<String>,
    #[row(index)]
    size: f64,
    at: Timestamp,
    #[row(default = true)]
    flag: bool,
    data: Option<Vec<u8>>,
    small: i32,
    r#type: i64,
    big: u64,
}

fn thing(number: u32) -> Thing {
    Thing {
        part: "a".into(),
        number,
        text: (number > 1).then(|| format!("text {number}")),
        size: f64::from(number) / 2.0,
        at: Timestamp(i64::from(number)),
        flag: number.is_multiple_of(2),
        data: (number > 2).then(|| vec![0, 1, 2]),
        small: -1,
        r#type: i64::MIN,
        big: u64::MAX,
    }
}

#[test]
fn a_structure_says_its_schema() {
    // An index of the structure names columns.
    let error = Tables::open(&open(tempfile::tempdir().unwrap().path()))
        .unwrap()
        .create_table(Thing::schema());
    assert!(
        matches!(error, Err(Error::InvalidSchema { ref reason, .. }) if reason.contains("number"))
    );
    let schema = Thing::schema();
    assert_eq!(schema.name(), "things");
    assert_eq!(schema.key(), ["part", "n"]);
    let columns: Vec<_> = schema
        .columns()
        .map(|(name, column)| (name, column.ty()))
        .collect();
    assert_eq!(columns[1], ("n", Type::I64));
    assert_eq!(columns[8], ("type", Type::I64));
    let nullable: Vec<_> = schema
        .columns()
        .filter(|(_, column)| column.is_nullable())
        .collect();
    assert_eq!(nullable.len(), 2);
    let default = schema
        .columns()
        .find_map(|(_, column)| column.default_value());
    assert_eq!(default, Some(&Value::from(true)));
    let indexes: Vec<_> = schema
        .indexes()
        .map(|(name, index)| (name, index.is_unique()))
        .collect();
    let expected = [
        ("by_size", false),
        ("by_flag_number", true),
        ("texts", true),
        ("by_size", false),
    ];
    assert_eq!(indexes, expected);
}

#[derive(Row, Debug, Clone, PartialEq)]
struct Note {
    #[row(primary_key)]
    id: u64,
    #[row(index)]
    text: Option<String>,
    #[row(column = "n", default = 3)]
    number: u32,
}

#[test]
fn structures_go_in_and_come_out() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let tables = Tables::open(&db).unwrap();
    let notes = tables.create_table(Note::schema()).unwrap();
    assert_eq!(notes.name(), "note");
    let all: Vec<Note> = (0..5)
        .map(|id| Note {
            id,
            text: (id.is_multiple_of(2)).then(|| format!("text {id}")),
            number: id as u32,
        })
        .collect();
    for note in &all {
        notes.insert(note).unwrap();
    }
    let found = notes.scan(&Query::all()).unwrap();
    let found: Vec<Note> = found.map(|row| row.unwrap().to().unwrap()).collect();
    assert_eq!(found, all);
    notes.insert_named([("id", 9)]).unwrap();
    let note: Note = notes.get(9u64).unwrap().unwrap().to().unwrap();
    assert_eq!(
        note,
        Note {
            id: 9,
            text: None,
            number: 3
        }
    );
    notes.upsert(&Note { number: 4, ..note }).unwrap();

    // Not all columns, or another type, or what does not fit.
    let part = notes
        .scan(&Query::all().columns(["id"]))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert!(matches!(
        part.to::<Note>(),
        Err(Error::UnknownColumn { .. })
    ));
    let schema = Schema::new("other")
        .column("id", Type::U64)
        .column("text", Type::I64);
    let schema = schema.column("n", Type::I64).primary_key(["id"]);
    let other = tables.create_table(schema).unwrap();
    other.insert((1u64, 1, 1)).unwrap();
    let wrong = other.get(1u64).unwrap().unwrap().to::<Note>();
    assert!(matches!(wrong, Err(Error::WrongType { .. })));
    notes.update(1u64, [("n", -1)]).unwrap();
    let wrong = notes.get(1u64).unwrap().unwrap().to::<Note>();
    assert!(matches!(wrong, Err(Error::WrongType { ref column, .. }) if column == "n"));
    let thing = thing(3);
    assert_eq!(thing.to_values().len(), Thing::schema().columns().count());
}

#[derive(Row)]
struct Account {
    #[row(primary_key)]
    id: u64,
    #[row(unique, index = "mails")]
    mail: String,
    #[row(index = "phones", unique)]
    phone: String,
    #[row(index, column = "code")]
    #[row(unique)]
    zip: String,
    #[row(unique = "names", index = "names")]
    name: String,
    #[row(index = "towns", index)]
    town: String,
}

/// What several attributes of a field say of its index holds together.
#[test]
fn an_index_of_a_field_is_named_and_unique() {
    let schema = Account::schema();
    let indexes = schema
        .indexes()
        .map(|(name, index)| (name, index.is_unique()));
    let expected = [
        ("mails", true),
        ("phones", true),
        ("by_code", true),
        ("names", true),
        ("towns", false),
    ];
    assert_eq!(indexes.collect::<Vec<_>>(), expected);
    let (id, text) = (1, String::new);
    let account = Account {
        id,
        mail: text(),
        phone: text(),
        zip: text(),
        name: text(),
        town: text(),
    };
    assert_eq!(account.to_values().len(), 6);
}

#[derive(Row)]
#[row(index(on(r#type, id), include(r#match)))]
struct Raw {
    #[row(primary_key)]
    id: u64,
    r#type: String,
    r#match: bool,
}

#[test]
fn an_index_of_the_structure_names_raw_fields() {
    let schema = Raw::schema();
    let indexes: Vec<_> = schema.indexes().map(|(name, _)| name).collect();
    assert_eq!(indexes, ["by_type_id"]);
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let tables = Tables::open(&db).unwrap();
    let table = tables.create_table(schema).unwrap();
    let row = Raw {
        id: 1,
        r#type: "a".into(),
        r#match: true,
    };
    table.insert(&row).unwrap();
    let query = Query::index("by_type_id").prefix("a");
    assert_eq!(table.scan(&query).unwrap().count(), 1);
}
