//! Presets for devices: what they set, what wins over them, and that nothing of it is stored.

use super::support::{MIB, child, child_argument, shim, tell, wait};
use crate::places::fast_dir;
use indexy::{
    Admission, Db, DeviceProfile, Error, IndexXKind, IndexYKind, Options, Tree, TreeOptions,
};
use std::{path::Path, time::Duration};

const TOP: Admission = Admission::Top { percent: 5 };

fn paged(page_bytes: u32) -> IndexYKind {
    IndexYKind::BPlus { page_bytes }
}

fn options(profile: DeviceProfile) -> Options {
    Options::new(4 * MIB).device(profile)
}

fn tree(db: &Db, name: &str, options: TreeOptions) -> Tree {
    db.tree_with(name, options).unwrap()
}

#[test]
fn a_profile_sets_pages_and_admission_of_new_trees() {
    use DeviceProfile::{Hdd, Nvram, Smr, Ssd, Xpoint};
    for (profile, page_bytes) in [
        (Hdd, 16384),
        (Smr, 16384),
        (Ssd, 4096),
        (Xpoint, 4096),
        (Nvram, 4096),
    ] {
        let dir = fast_dir();
        let db = Db::open(dir.path(), options(profile)).unwrap();
        assert_eq!(db.device(), Some(profile));
        let tree = db.tree("t").unwrap();
        assert_eq!((tree.pair().1, tree.admission()), (paged(page_bytes), TOP));
    }
}

#[test]
fn what_is_set_explicitly_wins() {
    let dir = fast_dir();
    for options in [
        options(DeviceProfile::Hdd).index_y(IndexYKind::Lsm),
        Options::new(4 * MIB)
            .index_y(IndexYKind::Lsm)
            .device(DeviceProfile::Hdd),
    ] {
        let db = Db::open(dir.path(), options).unwrap();
        assert_eq!(db.tree("lsm").unwrap().pair().1, IndexYKind::Lsm);
        let small = tree(&db, "small", TreeOptions::new().index_y(paged(4096)));
        assert_eq!(small.pair().1, paged(4096));
        let all = tree(&db, "all", TreeOptions::new().admission(Admission::Always));
        assert_eq!(all.admission(), Admission::Always);
        // What was opened with another one keeps it.
        assert_eq!(db.tree("all").unwrap().admission(), Admission::Always);
        db.close().unwrap();
    }
}

/// They keep all, or nothing, of what they read.
#[test]
fn trees_that_cannot_admit_some_admit_all() {
    let dir = fast_dir();
    let db = Db::open(dir.path(), options(DeviceProfile::Ssd)).unwrap();
    let resident = tree(&db, "resident", TreeOptions::new().resident(true));
    let none = tree(&db, "none", TreeOptions::new().index_x(IndexXKind::None));
    for tree in [resident, none] {
        assert_eq!(tree.admission(), Admission::Always);
        tree.insert("key", "value").unwrap();
    }
}

#[test]
fn nothing_of_a_profile_is_stored() {
    let dir = fast_dir();
    let db = Db::open(dir.path(), options(DeviceProfile::Smr)).unwrap();
    db.tree("t").unwrap().insert("key", "value").unwrap();
    db.close().unwrap();
    let db = Db::open(dir.path(), Options::new(4 * MIB)).unwrap();
    assert_eq!(db.device(), None);
    let tree = db.tree("t").unwrap();
    // The size of its pages is the tree's own, as ever.
    assert_eq!(
        (tree.pair().1, tree.admission()),
        (paged(16384), Admission::Always)
    );
    assert_eq!(tree.get("key").unwrap().unwrap(), b"value");
    db.close().unwrap();
    // Trees that exist keep what they have under another profile.
    let db = Db::open(dir.path(), options(DeviceProfile::Ssd)).unwrap();
    let tree = db.tree("t").unwrap();
    assert_eq!((tree.pair().1, tree.admission()), (paged(16384), TOP));
    assert_eq!(db.tree("new").unwrap().pair().1, paged(4096));
}

#[test]
fn a_device_is_measured_at_open_and_leaves_nothing() {
    let dir = fast_dir();
    for _ in 0..2 {
        let db = Db::open(dir.path(), options(DeviceProfile::Auto)).unwrap();
        let found = db.device().unwrap();
        assert_ne!(found, DeviceProfile::Auto);
        assert_eq!(db.tree("t").unwrap().admission(), TOP);
        db.close().unwrap();
        assert!(!dir.path().join("images").join("device").exists());
    }
    let read_only = options(DeviceProfile::Auto).read_only(true);
    let refused = Db::open(dir.path(), read_only).unwrap_err();
    assert!(
        matches!(
            refused,
            Error::InvalidOption {
                option: "device",
                ..
            }
        ),
        "{refused}"
    );
    // A named one writes nothing.
    let named = options(DeviceProfile::Ssd).read_only(true);
    let db = Db::open(dir.path(), named).unwrap();
    assert_eq!(db.tree("t").unwrap().admission(), TOP);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn full_measured_child() {
    let Some(argument) = child_argument() else {
        return;
    };
    let path = Path::new(&argument).join("db");
    drop(Db::open(&path, Options::new(4 * MIB)).unwrap());
    for op in ["write", "create"] {
        std::fs::create_dir_all(path.join("images")).unwrap();
        let left = path.join("images/left");
        std::fs::write(&left, "of a process that is gone").unwrap();
        tell(&format!("arm/{op}/enospc/0/forever//images/"));
        let db = Db::open(&path, options(DeviceProfile::Auto)).unwrap();
        assert!(tell("struck"), "nothing was measured");
        assert_eq!(db.device(), Some(DeviceProfile::Ssd));
        assert!(!left.exists());
        tell("disarm");
        db.tree("t").unwrap().insert("key", "value").unwrap();
    }
}

/// What images left fills the device no more when it is measured; and where there is no room to
/// measure, the database opens all the same.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn a_full_device_is_not_measured_and_opens() {
    let dir = fast_dir();
    let shim = shim(dir.path());
    let argument = dir.path().display().to_string();
    let child = child("device_profiles::full_measured_child", &argument)
        .env("LD_PRELOAD", &shim)
        .spawn();
    assert!(wait(child.unwrap(), Duration::from_secs(60)), "see above");
}
