//! Help fits a terminal of 80 columns.

use crate::Place;

const COMMANDS: [&str; 11] = [
    "load",
    "get",
    "put",
    "del",
    "scan",
    "stats",
    "verify",
    "checkpoint",
    "convert",
    "dump",
    "demo",
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
    let version = place.run(&["--version"]).succeeds().stdout();
    assert!(version.starts_with("indexy "));
}
