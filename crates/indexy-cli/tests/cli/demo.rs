//! The demo without a terminal: it ends, its report is there, nothing else is.

use crate::{Place, is_empty, send};
use std::{
    process::Stdio,
    time::{Duration, Instant},
};

#[test]
fn a_short_demo_finishes_and_leaves_only_its_report() {
    let place = Place::new();
    std::fs::create_dir(place.path("tmp")).unwrap();
    let output = place
        .command(&[
            "demo",
            "--seconds",
            "4",
            "--budget",
            "4M",
            "--report",
            "out.html",
        ])
        .env("TMPDIR", place.path("tmp"))
        .output()
        .unwrap();
    let ran = crate::Ran(output).succeeds();
    assert!(ran.stdout().contains("out.html"), "{}", ran.all());
    assert!(
        ran.stdout().contains("acknowledged as durable"),
        "{}",
        ran.all()
    );
    assert!(
        !ran.stderr().contains('\u{1b}'),
        "terminal codes without a terminal: {}",
        ran.all()
    );
    let html = std::fs::read_to_string(place.path("out.html")).unwrap();
    assert!(html.ends_with("</html>\n") && html.contains("<svg"));
    assert!(is_empty(&place.path("tmp")));
    assert_eq!(place.0.path().read_dir().unwrap().count(), 2);
}

#[test]
fn an_interrupted_demo_cleans_up() {
    let place = Place::new();
    std::fs::create_dir(place.path("tmp")).unwrap();
    let mut child = place
        .command_for_signals(&["demo", "--seconds", "60", "--budget", "4M"])
        .env("TMPDIR", place.path("tmp"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| !is_empty(&place.path("tmp")));
    std::thread::sleep(Duration::from_millis(500));
    send(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(is_empty(&place.path("tmp")));
    assert!(!place.path("indexy-demo.html").exists());
}

#[test]
fn too_little_space_is_refused_with_the_space_needed() {
    let place = Place::new();
    place
        .run(&["demo", "--budget", "64T", "--seconds", "3600"])
        .exits(1)
        .says("the demo needs")
        .says("TMPDIR");
}

#[test]
fn a_report_that_cannot_be_written_is_told_at_once() {
    let place = Place::new();
    let start = Instant::now();
    place
        .run(&["demo", "--report", "no/such/dir.html"])
        .exits(1)
        .says("cannot write the report");
    assert!(start.elapsed() < Duration::from_secs(20));
}

fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "it did not happen"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
