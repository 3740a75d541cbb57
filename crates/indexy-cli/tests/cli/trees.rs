//! `rename` and `drop`.

use crate::Place;

#[test]
fn a_renamed_tree_has_its_records_under_the_new_name() {
    let place = Place::with_records("a\t1\nb\t2\n");
    place
        .run(&["rename", "db", "default", "orders 2025"])
        .succeeds()
        .prints("renamed tree \"default\" to \"orders 2025\"\n");
    place
        .run(&["scan", "db", "--tree", "orders 2025"])
        .succeeds()
        .prints("a\t1\nb\t2\n");
    place
        .run(&["scan", "db"])
        .exits(1)
        .says("there is \"orders 2025\"");
    place.run(&["verify", "db"]).succeeds();
}

#[test]
fn a_rename_that_cannot_be_changes_nothing() {
    let place = Place::with_records("a\t1\n");
    place
        .run(&["put", "db", "b", "2", "--tree", "other"])
        .succeeds();
    place
        .run(&["rename", "db", "default", "other"])
        .exits(1)
        .says("\"other\"");
    place
        .run(&["rename", "db", "absent", "new"])
        .exits(1)
        .says("no tree named \"absent\"; there is \"default\", \"other\"");
    place
        .run(&["rename", "db", "default", ""])
        .exits(1)
        .says("1 to 255 bytes");
    place.run(&["scan", "db"]).succeeds().prints("a\t1\n");
    place
        .run(&["scan", "db", "--tree", "other"])
        .succeeds()
        .prints("b\t2\n");
}

#[test]
fn a_drop_needs_a_confirmation() {
    let place = Place::with_records("a\t1\n");
    place
        .run(&["put", "db", "b", "2", "--tree", "other"])
        .succeeds();
    place
        .run(&["drop", "db", "other"])
        .exits(2)
        .says("--yes")
        .prints("");
    // A pipe is no terminal: what it says is no answer.
    place
        .run_with_input(&["drop", "db", "other"], b"y\n")
        .exits(2);
    place
        .run(&["scan", "db", "--tree", "other", "--count"])
        .succeeds()
        .prints("1\n");
    place
        .run(&["drop", "db", "absent", "--yes"])
        .exits(1)
        .says("no tree named \"absent\"");
    place
        .run(&["drop", "db", "other", "--yes"])
        .succeeds()
        .prints("dropped tree \"other\"\n");
    place.run(&["scan", "db", "--tree", "other"]).exits(1);
    place.run(&["scan", "db"]).succeeds().prints("a\t1\n");
}
