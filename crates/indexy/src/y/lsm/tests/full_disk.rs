//! A device that is full in the middle of a run or a compaction: a small file system in memory,
//! mounted where this test alone sees it. That needs root; without it the test says that it was
//! skipped. (`tests/suite/faults.rs` does without.)

use super::*;
use std::process::Command;

/// Tells the child where the small file system is.
const DISK: &str = "INDEXY_TEST_FULL_DISK";
const DISK_BYTES: usize = 14 << 20;
/// What libtest ends with when a test fails.
const TEST_FAILED: i32 = 101;

#[test]
fn a_full_disk_costs_the_run_or_the_step_and_nothing_else() {
    if let Some(disk) = std::env::var_os(DISK) {
        return fill(Path::new(&disk));
    }
    let dir = TempDir::new().unwrap();
    let (_, module) = module_path!().split_once("::").unwrap();
    let name = format!("{module}::a_full_disk_costs_the_run_or_the_step_and_nothing_else");
    let mount = format!(r#"mount -t tmpfs -o size={DISK_BYTES} none "$0" && exec "$@""#);
    let ended = Command::new("unshare")
        .args(["--mount", "--", "sh", "-c", &mount])
        .arg(dir.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture", "--test-threads=1"])
        .env(DISK, dir.path())
        .status();
    match ended {
        Ok(status) if status.success() => {}
        Ok(status) if matches!(status.code(), None | Some(TEST_FAILED)) => {
            panic!("see above: {status}")
        }
        other => println!("skipped: no file system can be mounted here: {other:?}"),
    }
}

fn fill(disk: &Path) {
    let path = disk.join("tree");
    let shared = Arc::new(LsmShared::new(1 << 20, false));
    let open = || LsmY::open(&path, &shared, false).unwrap();
    let mut y = open();
    let mut model = Model::new();
    let mut rng = StdRng::seed_from_u64(31);
    let (mut refused_runs, mut refused_steps) = (0, 0);
    for round in 0u32..60 {
        let entries = random_run(&mut rng, 60_000, 20_000, &[round as u8; 100]);
        match conformance::write(&y, &entries) {
            Ok(()) => {
                for (key, value) in &entries {
                    match value {
                        Some(value) => model.insert(key.clone(), value.clone()),
                        None => model.remove(key),
                    };
                }
            }
            Err(e) => {
                assert!(matches!(e, Error::OutOfSpace { .. }), "{e:?}");
                refused_runs += 1;
            }
        }
        let idle = loop {
            match y.maintain() {
                Ok(Maintained::More) => {}
                Ok(Maintained::Idle) => break true,
                Err(e) => {
                    assert!(matches!(e, Error::OutOfSpace { .. }), "{e:?}");
                    refused_steps += 1;
                    break false;
                }
            }
        };
        let tables = files(&path.join(manifest::TABLES)).len();
        let used = y.snapshot().tables().count();
        // What a refused step left goes with the next one, if something was still read.
        assert!(
            tables >= used && (tables == used || !idle),
            "round {round}: {tables} {used}"
        );
        if round % 10 == 9 {
            conformance::check(&y, &model);
        }
        if round % 20 == 19 {
            drop(y);
            y = open();
            conformance::check(&y, &model);
        }
    }
    println!("{refused_runs} runs and {refused_steps} steps refused");
    assert!(refused_runs + refused_steps > 3);
}
