//! JSON lines: fields, values that are no strings, and bytes that are no text.

use crate::Place;

#[test]
fn fields_are_chosen_and_values_keep_their_text() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        "{\"id\": 7, \"doc\": {\"b\": 1.0, \"a\": [true, null]}, \"more\": 1}\n\n\
         {\"doc\": \"text\", \"id\": \"8\"}\n",
    );
    place
        .run(&[
            "load",
            "db",
            "in.jsonl",
            "--key-field",
            "id",
            "--value-field",
            "doc",
        ])
        .succeeds();
    place
        .run(&["scan", "db"])
        .succeeds()
        .prints("7\t{\"b\":1.0,\"a\":[true,null]}\n8\ttext\n");
    place
        .run(&["dump", "db", "-f", "jsonl", "--key-field", "k"])
        .succeeds()
        .prints(
            "{\"k\":\"7\",\"value\":\"{\\\"b\\\":1.0,\\\"a\\\":[true,null]}\"}\n\
             {\"k\":\"8\",\"value\":\"text\"}\n",
        );
}

#[test]
fn bytes_that_are_no_text_are_hex_fields() {
    let place = Place::new();
    place.run(&["put", "db", "--hex", "ff00", "61"]).succeeds();
    let dump = place
        .run(&["dump", "db", "-f", "jsonl"])
        .succeeds()
        .prints("{\"key_hex\":\"ff00\",\"value\":\"a\"}\n");
    place
        .run_with_input(&["load", "again", "-f", "jsonl"], &dump.0.stdout)
        .succeeds();
    place
        .run(&["get", "again", "--hex", "ff00"])
        .succeeds()
        .prints("61\n");
}

/// Whatever texts are encoded in.
#[test]
fn fields_in_hex_are_bytes() {
    for (encoding, line) in [
        ("-e", r#"{"key":"a","value_hex":"5c6e"}"#),
        ("--hex", r#"{"key":"61","value_hex":"5c6e"}"#),
    ] {
        let place = Place::new();
        place
            .run_with_input(&["load", "db", "-f", "jsonl", encoding], line.as_bytes())
            .succeeds();
        place
            .run(&["get", "db", "a", "--raw"])
            .succeeds()
            .prints("\\n");
    }
}
