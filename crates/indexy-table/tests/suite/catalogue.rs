//! The catalogue: schemas that do not fit, damage, orphans, read-only databases.

use crate::support::{assert_sound, open, options, people, people_schema, scan};
use indexy::{
    Admission, Change, Compression, Db, Doubtful, Evicted, IndexXKind, IndexYKind, TreeOptions,
    Ttl, error::ErrorKind,
};
use indexy_table::{Column, Error, Index, Query, Schema, Tables, Type, Value};

#[test]
fn a_table_is_there_after_it_was_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    people(&db).insert((1u64, "Ada", "London", 36)).unwrap();
    db.close().unwrap();
    let db = open(dir.path());
    let tables = Tables::open(&db).unwrap();
    assert_eq!(tables.names().unwrap(), ["people"]);
    let people = tables.table("people").unwrap();
    assert_eq!(people.schema().unwrap(), people_schema());
    assert_eq!(
        scan(&people, &Query::index("by_city").prefix("London")).len(),
        1
    );
}

#[test]
fn another_schema_does_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    people(&db);
    let tables = Tables::open(&db).unwrap();
    let reason = |schema: Schema| match tables.create_table(schema) {
        Err(Error::SchemaMismatch { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    let more = reason(people_schema().column("height", Type::I32));
    assert_eq!(more, "4 columns, not 5");
    let index = reason(people_schema().index("by_age", Index::on(["age"])));
    assert_eq!(index, "index by_age does not exist");
    let base = || {
        Schema::new("people")
            .column("id", Type::U64)
            .column("name", Column::new(Type::Text).nullable())
            .column("city", Column::new(Type::Text).nullable())
    };
    let ty = reason(base().column("age", Type::I32).primary_key(["id"]));
    assert_eq!(ty, "column age is age i64, not age i32");
    let key = reason(base().column("age", Type::I64).primary_key(["age"]));
    assert_eq!(key, "another primary key");
    let fewer = reason(base().column("age", Type::I64).primary_key(["id"]));
    assert_eq!(fewer, "there is also an index by_name");
}

#[test]
fn a_schema_that_cannot_work_is_refused_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let tables = Tables::open(&db).unwrap();
    let id = || Schema::new("t").column("id", Type::U64);
    let bad = [
        Schema::new("").column("id", Type::U64).primary_key(["id"]),
        Schema::new("n".repeat(101))
            .column("id", Type::U64)
            .primary_key(["id"]),
        id(),
        id().primary_key(["other"]),
        id().primary_key(["id", "id"]),
        id().column("id", Type::Text).primary_key(["id"]),
        Schema::new("t")
            .column("id", Column::new(Type::U64).nullable())
            .primary_key(["id"]),
        id().column("n", Column::new(Type::U64).default(-1))
            .primary_key(["id"]),
        id().column("n", Column::new(Type::F64).default(f64::NAN))
            .primary_key(["id"]),
        id().column("n", Column::new(Type::F64).default(Value::Null))
            .primary_key(["id"]),
        id().primary_key(["id"]).index("i", Index::on(["other"])),
        id().primary_key(["id"])
            .index("i", Index::on(["id"]).include(["other"])),
        id().primary_key(["id"])
            .index("i", Index::on(["id"]))
            .index("i", Index::on(["id"])),
    ];
    for schema in bad {
        let refused = tables.create_table(schema.clone());
        assert!(
            matches!(refused, Err(Error::InvalidSchema { .. })),
            "{schema:?}"
        );
    }
    assert_eq!(db.tree_names(), ["indexy.tables"]);
}

/// Keys of the catalogue and what they are made to say, `None`: nothing; `text` is what the
/// definition said.
fn damage(text: &str) -> Vec<(&'static [u8], Option<String>)> {
    vec![
        (b"format", None),
        (b"format", Some("12345".into())),
        (b"tpeople", Some("{}".into())),
        (b"tpeople", Some(text[1..].into())),
        (b"tpeople", Some("[".repeat(10_000))),
        (
            b"tpeople",
            Some(text.replace("\"primary_key\":[0]", "\"primary_key\":[9]")),
        ),
        (
            b"tpeople",
            Some(text.replace("\"primary_key\":[0]", "\"primary_key\":[]")),
        ),
        (
            b"tpeople",
            Some(text.replace("\"columns\":[1]", "\"columns\":[77]")),
        ),
        (
            b"tpeople",
            Some(text.replace("\"version\":1", "\"version\":0")),
        ),
        (
            b"tpeople",
            Some(text.replace("\"version\":1", "\"version\":65535")),
        ),
        (b"tpeople", Some(text.replace("\"since\":1", "\"since\":2"))),
        (
            b"tpeople",
            Some(text.replace("\"generation\":", "\"generation\":1")),
        ),
        (b"tpeople", Some(text.replace("\"id\":1,", "\"id\":8,"))),
        (b"tother", Some(text.into())),
        (b"t\xff", Some(text.into())),
        (b"g\0\0\0\0\0\0\0\x01", Some("short".into())),
        (b"g\0\0\0\0\0\0\0\x01", None),
    ]
}

/// Whatever the catalogue is made to say, opening it is a typed error.
#[test]
fn a_damaged_catalogue_is_a_typed_error() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    people(&db).insert((1u64, "Ada", "London", 36)).unwrap();
    let catalogue = db.tree("indexy.tables").unwrap();
    let good: Vec<_> = catalogue.iter().collect::<indexy::Result<_>>().unwrap();
    let text = catalogue.get("tpeople").unwrap().unwrap();
    let text = String::from_utf8(text.to_vec()).unwrap();
    let damage = damage(&text);
    db.close().unwrap();
    for (key, value) in damage {
        let db = open(dir.path());
        let catalogue = db.tree("indexy.tables").unwrap();
        assert!(
            key != b"tpeople" || value.as_ref() != Some(&text),
            "nothing is damaged"
        );
        match &value {
            Some(value) => catalogue.insert(key, value).unwrap(),
            None => catalogue.remove(key).unwrap(),
        }
        let error = Tables::open(&db).map(drop).unwrap_err();
        let typed = matches!(error, Error::Corrupt { .. }) && error.kind() == ErrorKind::Damaged;
        assert!(typed, "{}: {value:?}: {error}", key.escape_ascii());
        // Nothing was removed on that ground.
        assert!(db.tree_names().len() >= 4);
        catalogue.clear().unwrap();
        for (key, value) in &good {
            catalogue.insert(key, value).unwrap();
        }
        db.close().unwrap();
    }
    let db = open(dir.path());
    assert_eq!(
        scan(
            &Tables::open(&db).unwrap().table("people").unwrap(),
            &Query::all()
        )
        .len(),
        1
    );
    db.close().unwrap();
    let db = open(dir.path());
    db.tree("indexy.tables")
        .unwrap()
        .insert("format", 2u32.to_le_bytes())
        .unwrap();
    let newer = Tables::open(&db).unwrap_err();
    assert!(matches!(
        newer,
        Error::CatalogueVersion {
            found: 2,
            supported: 1
        }
    ));
}

#[test]
fn a_damaged_row_is_a_typed_error_and_verify_lists_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let people = people(&db);
    for id in 0..3u64 {
        people.insert((id, format!("{id}"), "Rome", 1)).unwrap();
    }
    // The names have the numbers that the catalogue gave.
    let tree = |name: &str| {
        let names = db.tree_names();
        assert!(names.iter().any(|other| other == name), "{names:?}");
        db.tree(name).unwrap()
    };
    let (rows, by_name, by_city) = (
        tree("indexy.table.1"),
        tree("indexy.table.1.2"),
        tree("indexy.table.1.3"),
    );
    // A row that does not end, an entry that is gone, one too many, and one that says another city.
    rows.insert(1u64.to_be_bytes(), [1, 0, 0]).unwrap();
    assert!(matches!(people.get(1u64), Err(Error::Corrupt { .. })));
    assert!(matches!(
        people.update(1u64, [("age", 2)]),
        Err(Error::Corrupt { .. })
    ));
    assert!(people.scan(&Query::all()).unwrap().any(|row| row.is_err()));
    let first = by_name.first().unwrap().unwrap().0;
    by_name.remove(&first).unwrap();
    by_name.insert("\u{3}x\0", 9u64.to_be_bytes()).unwrap();
    let (key, _) = by_city.last().unwrap().unwrap();
    by_city.insert(&key, "").unwrap();
    let report = people.verify().unwrap();
    assert_eq!(report.rows, 3);
    assert_eq!(report.problem_count, 5, "{report:?}");
    let orphan = people.scan(&Query::index("by_name").prefix("x").columns(["age"]));
    assert!(matches!(
        orphan.unwrap().next(),
        Some(Err(Error::Corrupt { .. }))
    ));
}

/// What a crash leaves between the trees and the catalogue. What has entries, and of which nothing
/// says that it may go, stays.
#[test]
fn trees_that_nobody_will_lack_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    people(&db).insert((1u64, "Ada", "London", 36)).unwrap();
    let mut expected = db.tree_names();
    for (name, full, stays) in [
        // A creation that did not come to its end.
        ("indexy.table.77", false, false),
        ("indexy.table.77.78", false, false),
        // An index that the table does not have.
        ("indexy.table.1.99", true, false),
        // A table that was dropped.
        ("indexy.table.80", true, false),
        ("indexy.table.80.81", true, false),
        ("indexy.table.82", false, true),
        ("indexy.table.82.83", true, true),
        ("indexy.table.x", true, true),
        ("indexy.table.1.099", true, true),
        ("mine", true, true),
    ] {
        let tree = db.tree(name).unwrap();
        if full {
            tree.insert("key", "value").unwrap();
        }
        expected.extend(stays.then(|| name.to_string()));
    }
    let dropped = [&b"d"[..], &80u64.to_be_bytes()].concat();
    let catalogue = db.tree("indexy.tables").unwrap();
    catalogue.insert(&dropped, "").unwrap();
    db.close().unwrap();
    let db = open(dir.path());
    let tables = Tables::open(&db).unwrap();
    assert_eq!(db.tree_names(), expected);
    let catalogue = db.tree("indexy.tables").unwrap();
    assert!(!catalogue.contains_key(&dropped).unwrap());
    assert_eq!(
        scan(&tables.table("people").unwrap(), &Query::all()).len(),
        1
    );
}

/// A tree that is missing is not made anew, and the open changes nothing before it knows.
#[test]
fn where_a_tree_is_missing_nothing_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    people(&db).insert((1u64, "Ada", "London", 36)).unwrap();
    // Work for the open: two orphans, a record of a drop, the next number, an index half built.
    for name in ["indexy.table.1.99", "indexy.table.80"] {
        db.tree(name).unwrap().insert("key", "value").unwrap();
    }
    let catalogue = db.tree("indexy.tables").unwrap();
    let dropped = [&b"d"[..], &80u64.to_be_bytes()].concat();
    catalogue.insert(&dropped, "").unwrap();
    catalogue.remove("next").unwrap();
    let definition = catalogue.get("tpeople").unwrap().unwrap();
    let definition = String::from_utf8(definition.to_vec()).unwrap();
    let half_built = definition.replacen("\"ready\"", "\"building\"", 1);
    assert_ne!(half_built, definition);
    catalogue.insert("tpeople", half_built).unwrap();
    db.drop_tree("indexy.table.1.3").unwrap();
    db.close().unwrap();

    let db = open(dir.path());
    let names = db.tree_names();
    let said = || -> Vec<_> {
        let catalogue = db.tree("indexy.tables").unwrap();
        catalogue.iter().map(Result::unwrap).collect()
    };
    let before = said();
    let lost = Tables::open(&db).unwrap_err();
    assert!(lost.to_string().contains("indexy.table.1.3"), "{lost}");
    assert!(matches!(lost, Error::Corrupt { .. }), "{lost}");
    assert_eq!(db.tree_names(), names);
    assert_eq!(said(), before);

    // Nobody needs that of an index that is taken back.
    db.tree("indexy.table.1.3").unwrap();
    db.drop_tree("indexy.table.1.2").unwrap();
    let people = Tables::open(&db).unwrap().table("people").unwrap();
    let schema = people.schema().unwrap();
    let indexes: Vec<_> = schema.indexes().map(|(name, _)| name.to_string()).collect();
    assert_eq!(indexes, ["by_city"]);
    assert!(said().iter().all(|(key, _)| key[..] != dropped));
}

/// A crash between any two steps of a drop: the trees that are left go with the next open.
#[test]
fn a_drop_that_a_crash_ended_is_done_by_the_next_open() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let people = people(&db);
    people.insert((1u64, "Ada", "London", 36)).unwrap();
    let all = db.tree_names();
    let tables = Tables::open(&db).unwrap();
    let before = db.newest_change().unwrap();
    tables.drop_table("people").unwrap();
    assert_eq!(db.tree_names(), ["indexy.tables"]);
    let catalogue = db.tree("indexy.tables").unwrap();
    assert_eq!(catalogue.prefix("d").count(), 0);
    // Name and record change as one.
    db.sync().unwrap();
    let set = db.changes(before).unwrap().next().unwrap().unwrap();
    let mut keys: Vec<(&[u8], bool)> = Vec::new();
    for change in set.iter() {
        match change {
            Change::Insert { key, .. } => keys.push((key, true)),
            Change::Remove { key, .. } => keys.push((key, false)),
            other => panic!("{other:?}"),
        }
    }
    assert!(keys.contains(&(b"tpeople", false)), "{keys:?}");
    assert!(keys.contains(&(b"d\0\0\0\0\0\0\0\x01", true)), "{keys:?}");
    drop((people, tables));
    db.close().unwrap();
    for done in 1..all.len() {
        let db = open(dir.path());
        let dropped = [&b"d"[..], &1u64.to_be_bytes()].concat();
        let catalogue = db.tree("indexy.tables").unwrap();
        catalogue.insert(&dropped, "").unwrap();
        for name in &all[done..] {
            db.tree(name).unwrap().insert("key", "value").unwrap();
        }
        assert!(Tables::open(&db).unwrap().names().unwrap().is_empty());
        assert_eq!(db.tree_names(), ["indexy.tables"]);
        assert!(!catalogue.contains_key(&dropped).unwrap());
        db.close().unwrap();
    }
}

/// A definition that is lost takes no rows with it.
#[test]
fn trees_of_a_table_whose_definition_is_lost_stay() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    people(&db).insert((1u64, "Ada", "London", 36)).unwrap();
    let names = db.tree_names();
    let catalogue = db.tree("indexy.tables").unwrap();
    let number = [&b"g"[..], &1u64.to_be_bytes()].concat();
    assert!(catalogue.contains_key(&number).unwrap());
    catalogue.remove("tpeople").unwrap();
    catalogue.remove("next").unwrap();
    db.close().unwrap();
    let db = open(dir.path());
    let lost = Tables::open(&db).unwrap_err();
    assert!(matches!(lost, Error::Corrupt { .. }), "{lost}");
    assert_eq!(db.tree_names(), names);
    // Nothing says any more that there was a table, nor which numbers were given.
    let catalogue = db.tree("indexy.tables").unwrap();
    catalogue.remove(&number).unwrap();
    db.close().unwrap();
    let db = open(dir.path());
    let people = people(&db);
    assert_eq!(db.tree_names()[..names.len()], names);
    assert_eq!(db.tree_names().len(), 2 * names.len() - 1);
    assert!(people.get(1u64).unwrap().is_none());
    let rows = db.tree("indexy.table.1").unwrap();
    assert_eq!(rows.len().unwrap(), 1);
}

/// Salvage leaves out what it cannot date, here the whole catalogue.
#[test]
fn a_salvaged_database_without_a_catalogue_keeps_its_trees() {
    let dir = tempfile::tempdir().unwrap();
    let (src, dest) = (dir.path().join("src"), dir.path().join("dest"));
    let db = open(&src);
    let people = people(&db);
    for id in 0..100u64 {
        people.insert((id, format!("{id}"), "Rome", 1)).unwrap();
        if id % 40 == 0 {
            db.flush().unwrap();
        }
    }
    let names = db.tree_names();
    assert_eq!(names[0], "indexy.tables");
    drop(people);
    db.close().unwrap();
    let versions = src.join("trees/1/versions");
    let len = std::fs::read(&versions).unwrap().len();
    std::fs::write(versions, vec![0; len]).unwrap();
    std::fs::remove_dir_all(src.join("log")).unwrap();
    let report = Db::salvage(&src, &dest, options(), Doubtful::LeaveOut).unwrap();
    assert!(!report.is_whole());
    for read_only in [true, false, true] {
        let db = Db::open(&dest, options().read_only(read_only)).unwrap();
        let lost = Tables::open(&db).unwrap_err();
        assert!(matches!(lost, Error::Corrupt { .. }), "{lost}");
        assert_eq!(db.tree_names(), names);
        assert_eq!(db.tree("indexy.table.1").unwrap().len().unwrap(), 100);
        db.close().unwrap();
    }
    // Nor if there is no such tree at all.
    let db = open(&dest);
    db.drop_tree("indexy.tables").unwrap();
    assert!(matches!(Tables::open(&db), Err(Error::Corrupt { .. })));
    assert_eq!(db.tree_names(), names[1..]);
}

/// Trees are durable at once, the first entry of the catalogue may not be.
#[test]
fn a_catalogue_that_a_crash_left_empty_beside_empty_trees_is_sound() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    for name in ["indexy.tables", "indexy.table.1", "indexy.table.1.2"] {
        db.tree(name).unwrap();
    }
    people(&db).insert((1u64, "Ada", "London", 36)).unwrap();
    assert_eq!(db.tree_names().len(), 4);
}

#[test]
fn a_database_that_is_read_only_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    db.tree("mine").unwrap();
    db.close().unwrap();
    let db = Db::open(dir.path(), options().read_only(true)).unwrap();
    let tables = Tables::open(&db).unwrap();
    assert!(tables.names().unwrap().is_empty());
    assert!(tables.table("people").is_err());
    assert!(tables.create_table(people_schema()).is_err());
    drop(tables);
    db.close().unwrap();

    let db = open(dir.path());
    people(&db).insert((1u64, "Ada", "London", 36)).unwrap();
    db.close().unwrap();
    let db = Db::open(dir.path(), options().read_only(true)).unwrap();
    let people = Tables::open(&db).unwrap().table("people").unwrap();
    assert_eq!(
        scan(&people, &Query::index("by_name").prefix("Ada")).len(),
        1
    );
    assert!(people.verify().unwrap().is_ok());
    let refused = people.insert((2u64, "Alan", "London", 41)).unwrap_err();
    assert!(
        matches!(refused, Error::Db(indexy::Error::ReadOnly)),
        "{refused}"
    );
}

/// Two handles are the same tables, from whichever call.
#[test]
fn all_handles_of_a_database_are_the_same_tables() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let (one, two) = (
        Tables::open(&db).unwrap(),
        Tables::open(&db.clone()).unwrap(),
    );
    let people = one.create_table(people_schema()).unwrap();
    let same = two.table("people").unwrap();
    people
        .add_column("height", Column::new(Type::I32).default(1))
        .unwrap();
    same.insert((1u64, "Ada", "London", 36, 165)).unwrap();
    same.create_index("by_height", Index::on(["height"]))
        .unwrap();
    assert_eq!(
        scan(&people, &Query::index("by_height").prefix(165)).len(),
        1
    );
}

/// A default comes back bit by bit: entries of an index are computed from it again.
#[test]
fn defaults_of_floats_are_the_same_after_each_change_and_open() {
    let defaults = [
        1.9000000000000001,
        -2.0962010729287593e-206,
        0.1 + 0.2,
        5e-324,
    ];
    for default in defaults {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path());
        let schema = || {
            Schema::new("t")
                .column("id", Type::U64)
                .column("x", Column::new(Type::F64).default(default))
                .primary_key(["id"])
        };
        let tables = Tables::open(&db).unwrap();
        let table = tables.create_table(schema()).unwrap();
        tables.create_table(schema()).unwrap();
        table.insert((1u64, 0.0)).unwrap();
        table
            .add_column("y", Column::new(Type::F64).default(default))
            .unwrap();
        table.create_index("by_y", Index::on(["y"])).unwrap();
        table
            .add_column("z", Column::new(Type::I64).nullable())
            .unwrap();
        assert_sound(&table);
        drop((table, tables));
        db.close().unwrap();
        let db = open(dir.path());
        let table = Tables::open(&db).unwrap().table("t").unwrap();
        assert_sound(&table);
        let row = table.get(1u64).unwrap().unwrap();
        assert_eq!(row.get("y"), Some(&Value::F64(default)));
        assert!(table.delete(1u64).unwrap());
        assert_sound(&table);
    }
}

/// An entry that a change of its row leaves as it is would be gone before the row.
#[test]
fn rows_do_not_expire() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let tables = Tables::open(&db).unwrap();
    let trees = db.tree_names();
    let hour = Ttl::Default(std::time::Duration::from_secs(3600));
    for ttl in [hour, Ttl::PerEntry] {
        let options = TreeOptions::new().ttl(ttl);
        let refused = tables.create_table_with(people_schema(), options);
        assert!(
            matches!(
                refused,
                Err(Error::Db(indexy::Error::InvalidOption {
                    option: "ttl",
                    ..
                }))
            ),
            "{refused:?}"
        );
        assert_eq!(db.tree_names(), trees);
    }
}

/// An index that comes later has the options of the table.
#[test]
fn the_tree_of_an_index_is_as_that_of_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let tables = Tables::open(&db).unwrap();
    let schema = |name: &str| {
        Schema::new(name)
            .column("id", Type::U64)
            .primary_key(["id"])
    };
    let options = [
        TreeOptions::new()
            .index_x(IndexXKind::BPlus)
            .compression(Compression::Lz4)
            .admission(Admission::Top { percent: 10 })
            .evicted(Evicted::Filter { bits_per_key: 8 }),
        TreeOptions::new().resident(true),
        TreeOptions::new()
            .index_x(IndexXKind::None)
            .index_y(IndexYKind::BPlus { page_bytes: 8192 }),
        TreeOptions::new(),
    ];
    for (n, options) in options.into_iter().enumerate() {
        let table = tables.create_table_with(schema(&format!("t{n}")), options);
        let table = table.unwrap();
        table.insert(1u64).unwrap();
        table.create_index("i", Index::on(["id"])).unwrap();
        assert_sound(&table);
        let names = db.tree_names();
        let trees = names[names.len() - 2..].iter();
        let trees: Vec<_> = trees.map(|name| db.tree(name).unwrap()).collect();
        let told = |tree: &indexy::Tree| {
            let kept = (tree.pair(), tree.is_resident(), tree.compression());
            (kept, tree.admission(), tree.evicted())
        };
        assert_eq!(told(&trees[1]), told(&trees[0]));
    }
}

/// What a drop or a build of an index left behind that failed goes with its table.
#[test]
fn an_index_that_was_left_goes_with_its_table() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    people(&db).insert((1u64, "Ada", "London", 36)).unwrap();
    let left = db.tree("indexy.table.1.99").unwrap();
    left.insert("an", "entry").unwrap();
    let other = db.tree("indexy.table.17.99").unwrap();
    other.insert("of", "another table").unwrap();
    Tables::open(&db).unwrap().drop_table("people").unwrap();
    assert_eq!(db.tree_names(), ["indexy.tables", "indexy.table.17.99"]);
}
