//! Completions for every shell, without what is not for users.

use crate::Place;
use std::process::Command;

#[test]
fn every_shell_gets_a_script() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.run(&["completions", shell]).succeeds().stdout();
        assert!(script.contains("remove-range"), "{shell}");
        assert!(!script.contains("victim"), "{shell}");
    }
    place
        .run(&["completions", "tcsh"])
        .exits(2)
        .says("possible values");
}

#[test]
fn bash_reads_its_script_and_completes() {
    let place = Place::new();
    let script = place.run(&["completions", "bash"]).succeeds().stdout();
    place.write("script", &script);
    let program = "source ./script; COMP_WORDS=(indexy rem); COMP_CWORD=1; \
                   _indexy indexy rem indexy; echo \"${COMPREPLY[@]}\"";
    let Ok(output) = Command::new("bash")
        .current_dir(place.0.path())
        .args(["--norc", "-c", program])
        .output()
    else {
        // A machine without bash.
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "remove-range", "{output:?}");
}
