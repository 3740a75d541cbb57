//! `dex` from outside: its report, and what it refuses.

use std::process::{Command, Output};

fn dex(arguments: &[&str]) -> (Output, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_indexy-bench"));
    let command = command.current_dir(&dir).arg("dex").args(arguments);
    (command.output().unwrap(), dir)
}

#[track_caller]
fn refused(arguments: &[&str], says: &str) {
    let (output, dir) = dex(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains(says), "{text}");
    assert!(!dir.path().join("indexy-bench-results").exists());
}

#[test]
fn wrong_flags_are_usage_errors() {
    refused(&["--only", "fig5"], "fig6, fig7");
    refused(&["--only", "fig6,figures"], "\"figures\"");
    refused(&["--preset", "paper"], "smoke, laptop, evening");
    refused(&["fig6"], "unexpected argument");
    refused(&["--threads", "2"], "unexpected argument");
}

#[cfg(not(feature = "dex"))]
#[test]
fn a_program_without_the_tree_says_how_to_get_one_with_it() {
    refused(&["--only", "fig11"], "--features dex");
}

#[cfg(feature = "dex")]
#[test]
fn a_figure_is_printed_and_written() {
    let (output, dir) = dex(&["--only", "fig11,fig9", "--out", "here"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let written = std::fs::read_to_string(dir.path().join("here/dex.md")).unwrap();
    assert_eq!(said.replace("report: here/dex.md\n", ""), written);
    let titles: Vec<&str> = written.lines().filter(|l| l.starts_with("# ")).collect();
    assert_eq!(titles.len(), 2);
    assert!(titles[0].starts_with("# Figure 9: ") && titles[1].starts_with("# Figure 11: "));
    assert_eq!(written.matches("Paper: ").count(), 3);
    assert!(written.contains(" of 3 claims hold."));
    // Counts repeat.
    let (again, _dir) = dex(&["--only", "fig11,fig9", "--out", "here"]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), said);
}

#[cfg(feature = "dex")]
#[test]
fn a_folder_that_cannot_be_made_is_an_error() {
    let (output, _dir) = dex(&["--only", "fig11", "--out", "/proc/none"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("/proc/none"), "{said}");
}
