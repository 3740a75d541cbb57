//! A checkpoint opens by itself and only goes where nothing is.

use crate::{Place, is_empty};

#[test]
fn a_checkpoint_holds_what_the_database_held() {
    let place = Place::with_records("a\t1\nb\t2\n");
    place.run(&["checkpoint", "db", "copy"]).succeeds();
    place.run(&["put", "db", "c", "3"]).succeeds();
    place
        .run(&["scan", "copy"])
        .succeeds()
        .prints("a\t1\nb\t2\n");
    place.run(&["verify", "copy"]).succeeds();
    std::fs::create_dir(place.path("empty")).unwrap();
    place.run(&["checkpoint", "db", "empty"]).succeeds();
    place
        .run(&["scan", "empty", "--count"])
        .succeeds()
        .prints("3\n");
}

#[test]
fn a_directory_with_something_in_it_is_refused() {
    let place = Place::with_records("a\t1\n");
    std::fs::create_dir(place.path("full")).unwrap();
    place.write("full/precious", "x");
    place
        .run(&["checkpoint", "db", "full"])
        .exits(1)
        .says("exists and is not empty");
    assert_eq!(std::fs::read(place.path("full/precious")).unwrap(), b"x");
    assert_eq!(place.path("full").read_dir().unwrap().count(), 1);
}

#[test]
fn of_nothing_there_is_none() {
    let place = Place::new();
    place
        .run(&["checkpoint", "db", "copy"])
        .exits(1)
        .says("no such directory: db");
    assert!(is_empty(place.0.path()));
}
