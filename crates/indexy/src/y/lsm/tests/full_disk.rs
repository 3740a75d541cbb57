//! A device that is full in the middle of a run or a compaction. Mounts a small file system, so it needs root.

use super::*;
use std::process::Command;

/// A file system of a few MiB in a directory.
struct Mounted(TempDir);

impl Mounted {
    fn new(mib: usize) -> Self {
        let dir = TempDir::new().unwrap();
        let image = dir.path().join("image");
        fs::File::create(&image)
            .unwrap()
            .set_len((mib << 20) as u64)
            .unwrap();
        fs::create_dir(dir.path().join("at")).unwrap();
        run(Command::new("mkfs.ext4").arg("-qF").arg(&image));
        run(Command::new("mount")
            .arg("-oloop")
            .arg(&image)
            .arg(dir.path().join("at")));
        Self(dir)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("at")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run(Command::new("umount").arg(self.path()));
    }
}

fn run(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

#[test]
#[ignore = "mounts a file system: needs root"]
fn a_full_disk_costs_the_run_or_the_step_and_nothing_else() {
    let disk = Mounted::new(32);
    let path = disk.path().join("tree");
    let shared = Arc::new(LsmShared::new(1 << 20));
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
        loop {
            match y.maintain() {
                Ok(Maintained::More) => {}
                Ok(Maintained::Idle) => break,
                Err(e) => {
                    assert!(matches!(e, Error::OutOfSpace { .. }), "{e:?}");
                    refused_steps += 1;
                    break;
                }
            }
        }
        let tables = files(&path.join(manifest::TABLES)).len();
        assert_eq!(tables, y.snapshot().tables().count(), "round {round}");
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
