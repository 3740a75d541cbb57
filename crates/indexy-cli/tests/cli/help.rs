//! Help fits a terminal of 80 columns.

use crate::Place;

const COMMANDS: [&str; 17] = [
    "load",
    "get",
    "put",
    "del",
    "remove-range",
    "scan",
    "dump",
    "stats",
    "verify",
    "salvage",
    "checkpoint",
    "convert",
    "rename",
    "drop",
    "compact",
    "demo",
    "completions",
];

#[test]
fn help_is_80_columns_wide() {
    let place = Place::new();
    for command in COMMANDS.iter().map(Some).chain([None]) {
        for flag in ["-h", "--help"] {
            let args: Vec<&str> = command.copied().into_iter().chain([flag]).collect();
            let ran = place.run(&args).succeeds();
            for line in ran.stdout().lines() {
                assert!(line.chars().count() <= 80, "{args:?}: {line}");
            }
        }
    }
}

#[test]
fn the_help_names_every_command_for_users_only() {
    let place = Place::new();
    let help = place.run(&["--help"]).succeeds().stdout();
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command}");
    }
    assert!(!help.contains("victim"));
    assert_eq!(place.run(&["help"]).succeeds().stdout(), help);
    let version = place.run(&["--version"]).succeeds().stdout();
    assert!(version.starts_with("indexy "));
}

#[test]
fn help_is_also_a_command() {
    let place = Place::new();
    for command in COMMANDS {
        let asked = place.run(&["help", command]).succeeds().stdout();
        let flag = place.run(&[command, "--help"]).succeeds().stdout();
        assert_eq!(asked, flag, "{command}");
    }
    place.run(&["help", "frobnicate"]).exits(2);
}

#[test]
fn every_exit_code_is_explained() {
    let place = Place::new();
    let help = place.run(&["--help"]).succeeds().stdout();
    for code in ["0", "1", "2", "129", "130", "143", "128 + n"] {
        let explained = |line: &str| line.trim_start().starts_with(&format!("{code} "));
        let found = help.lines().any(explained) || help.contains(&format!("gives {code}"));
        assert!(found, "{code}: {help}");
    }
}

#[test]
fn formats_are_explained_where_they_are_chosen() {
    let place = Place::new();
    for command in ["load", "scan", "dump"] {
        let help = place.run(&[command, "--help"]).succeeds().stdout();
        for format in [
            "\n  tsv    key TAB value",
            "\n  jsonl  {",
            "\n  lines  one key",
        ] {
            assert!(help.contains(format), "{command}: {format}: {help}");
        }
    }
}
