//! Figures for people and for programs.

use crate::Place;

#[test]
fn json_is_one_object() {
    let place = Place::with_records("a\t1\nb\t2\n");
    let out = place
        .run(&["stats", "db", "--json", "--budget", "64M"])
        .succeeds()
        .stdout();
    assert_eq!(out.lines().count(), 1);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["memory_budget_bytes"], 64 << 20);
    assert!(json["memory_used_bytes"].as_u64().unwrap() <= 64 << 20);
    let tree = &json["per_tree"][0];
    assert_eq!(tree["name"], "default");
    // The whole database is this tree.
    for bytes in ["y_bytes_on_disk", "y_dead_bytes"] {
        assert!(tree[bytes].is_u64() && tree[bytes] == json[bytes], "{out}");
    }
    assert!(tree["y_dead_bytes"].as_u64() <= tree["y_bytes_on_disk"].as_u64());
}

#[test]
fn for_people() {
    let place = Place::with_records("a\t1\nb\t2\n");
    let out = place
        .run(&["stats", "db", "--budget", "64M"])
        .succeeds()
        .stdout();
    assert!(
        out.contains("default") && out.contains("64.0 MiB") && out.contains("set aside"),
        "{out}"
    );
    assert!(
        out.contains("on disk") && out.contains("of no use"),
        "{out}"
    );
    // Two records are no megabytes in use.
    let in_use = out.lines().find(|line| line.contains("in use")).unwrap();
    assert!(in_use.contains(" B (") || in_use.contains("KiB ("), "{out}");
}

#[test]
fn names_of_trees_do_nothing_to_a_terminal() {
    let place = Place::new();
    let name = "red\u{1b}[31m";
    place
        .run(&["put", "db", "a", "1", "--tree", name])
        .succeeds();
    for args in [
        &["stats", "db"][..],
        &["verify", "db"],
        &["salvage", "db", "saved"],
        &["convert", "db", "new", "--index-x", "bplus"],
    ] {
        let out = place.run(args).succeeds().stdout();
        assert!(out.contains("red\\x1b[31m"), "{out}");
        assert!(!out.contains('\u{1b}'), "{out}");
    }
}
