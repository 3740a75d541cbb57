//! A destination that another program makes its own meanwhile.

use super::{Db, Doubtful, Error, MEANWHILE, Options};

/// It is refused, and neither written to nor removed, whether that program still has it or not.
#[test]
fn a_database_that_came_meanwhile_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (src, good) = (dir.path().join("src"), Options::new(4 << 20));
    let db = Db::open(&src, good.clone()).unwrap();
    db.tree("saved").unwrap().insert("key", "saved").unwrap();
    db.close().unwrap();
    for (n, options) in [good.clone(), Options::new(1)].into_iter().enumerate() {
        for stays_open in [false, true] {
            let dest = dir.path().join(format!("{n}.{stays_open}"));
            let (theirs, their_options) = (dest.clone(), good.clone());
            MEANWHILE.set(Some(Box::new(move || {
                let db = Db::open(theirs, their_options).unwrap();
                db.tree("t").unwrap().insert("key", "theirs").unwrap();
                db.sync().unwrap();
                match stays_open {
                    true => std::mem::forget(db),
                    false => db.close().unwrap(),
                }
            })));
            let refused = Db::salvage(&src, &dest, options.clone(), Doubtful::LeaveOut);
            assert!(
                matches!(refused, Err(Error::DestinationNotEmpty { .. })),
                "{refused:?}"
            );
            assert!(MEANWHILE.take().is_none() && dest.join("MANIFEST").exists());
            if !stays_open {
                let db = Db::open(&dest, good.clone()).unwrap();
                assert_eq!(db.tree_names(), ["t"]);
                assert_eq!(
                    db.tree("t").unwrap().get("key").unwrap().unwrap(),
                    *b"theirs"
                );
            }
        }
    }
}
