//! Two commits that meet where they could miss each other.

#![forbid(unsafe_code)]

use crate::{
    db::{
        database::Db,
        handle::TreeCore,
        options::Options,
        tree::{Condition, Tree},
    },
    error::{Error, Result},
    versions::Spared,
};
use std::sync::Barrier;

/// A condition that waits for another one before it looks at what was read.
struct Meeting<'a> {
    condition: &'a dyn Condition,
    at: &'a Barrier,
}

impl Condition for Meeting<'_> {
    fn spare(&self) -> Result<Spared<'_>> {
        self.condition.spare()
    }

    fn check_written(&self, tree: &TreeCore, key: &[u8]) -> Result<()> {
        self.condition.check_written(tree, key)
    }

    fn check_read(&self) -> Result<()> {
        self.at.wait();
        self.condition.check_read()
    }
}

/// Reads `read` and writes `written`, by key or by range.
fn skew(
    db: &Db,
    tree: &Tree,
    [read, written]: [&str; 2],
    by_range: bool,
    at: &Barrier,
) -> Result<()> {
    let mut tx = db.begin()?;
    match by_range {
        true => assert_eq!(tx.prefix(tree, read).count(), 0),
        false => assert_eq!(tx.get(tree, read)?, None),
    }
    tx.insert(tree, written, "")?;
    // Both have begun.
    at.wait();
    tx.commit_by(|batch, condition| batch.commit_if(Some(&Meeting { condition, at })))
}

/// Each reads what the other one writes. Both have left their images before one of them looks: so
/// one of them sees the other, however they meet.
#[test]
fn i13_two_commits_do_not_miss_each_other() {
    for round in 0..40 {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), Options::new(4 << 20)).unwrap();
        let tree = db.tree("t").unwrap();
        let at = Barrier::new(2);
        let by_range = round % 2 == 1;
        let results = std::thread::scope(|s| {
            let other = s.spawn(|| skew(&db, &tree, ["left", "right"], by_range, &at));
            [
                skew(&db, &tree, ["right", "left"], by_range, &at),
                other.join().unwrap(),
            ]
        });
        let committed = results.iter().filter(|result| result.is_ok()).count();
        assert!(committed < 2, "write skew");
        assert_eq!(tree.len().unwrap(), committed as u64);
        let conflicts = |result: &Result<()>| matches!(result, Err(Error::Conflict { .. }));
        assert_eq!(
            results.iter().filter(|r| conflicts(r)).count(),
            2 - committed
        );
    }
}
