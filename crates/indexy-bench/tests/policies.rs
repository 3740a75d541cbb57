//! `policies` from outside: the same table each time, files, and what it refuses.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

fn policies(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_indexy-bench"));
    let command = command.current_dir(dir).arg("policies").args(arguments);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_seed_makes_the_same_table_and_another_one_another() {
    let dir = tempfile::tempdir().unwrap();
    let table = |seed: &str, out: &str| {
        let arguments = ["--scale", "0.01", "--only", "zipf-0.99,order-line"];
        let more = [
            "--policies",
            "density,lru,belady",
            "--seed",
            seed,
            "--out",
            out,
        ];
        let output = policies(dir.path(), &[&arguments[..], &more].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let json = fs::read_to_string(dir.path().join(out).join("policies.json")).unwrap();
        (text(&output.stdout).replace(out, "OUT"), json)
    };
    let (first, again, other) = (
        table("1", "results-one"),
        table("1", "results-two"),
        table("2", "results-three"),
    );
    assert_eq!(first, again);
    assert_ne!(first.1, other.1);
    for name in ["policies.csv", "policies.html", "hits-by-trace.svg"] {
        assert!(dir.path().join("results-one").join(name).exists(), "{name}");
    }
    assert!(
        first.0.contains("density") && first.0.contains("5592 entries"),
        "{}",
        first.0
    );
}

#[test]
fn a_trace_of_ones_own_is_replayed_alone() {
    let dir = tempfile::tempdir().unwrap();
    let lines: String = (0..6000u64)
        .map(|n| format!("{}\n", n * n % 5003 * 1000))
        .collect();
    fs::write(dir.path().join("mine"), lines).unwrap();
    let arguments = [
        "--trace",
        "mine",
        "--bytes",
        "64KiB",
        "--policies",
        "coldest,sieve",
    ];
    let output = policies(dir.path(), &arguments);
    let out = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        out.contains("mine") && out.contains("sieve") && !out.contains("tatp"),
        "{out}"
    );
}

#[test]
fn what_nobody_knows_is_refused_before_anything_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bad"), "1\ntwo\n").unwrap();
    fs::write(dir.path().join("bad.u64"), [0; 9]).unwrap();
    for (arguments, says) in [
        (
            &["--only", "zipf"][..],
            "unknown trace \"zipf\"; the valid ones are: zipf-0.5,",
        ),
        (
            &["--policies", "density+hot"],
            "unknown policy \"density+hot\": \"hot\" is none of plain,",
        ),
        (&["--trace", "bad"], "bad:2: \"two\" is no access"),
        (
            &["--trace", "bad.u64"],
            "9 bytes are no whole number of 8-byte keys",
        ),
        (&["--trace", "none"], "none: "),
        (
            &["--bytes", "20KiB"],
            "hold 853 entries; at least 2000 are needed",
        ),
        (&["--scale", "101"], "replayed up to 100"),
        (&["--entry", "0"], "--entry"),
    ] {
        let output = policies(dir.path(), arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(says), "{arguments:?}: {error}");
    }
    assert!(!dir.path().join("indexy-bench-results").exists());
}
