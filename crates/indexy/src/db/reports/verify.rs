//! `verify`: walks everything and reports what does not hold.
//!
//! Threads: readers and writers go on. Entries are counted through a snapshot, so that the numbers
//! of all trees are of one moment; where it is given up meanwhile, each tree is counted as a scan
//! finds it. The entries of X are compared with Y some at a time, each time under the run lock.

#![forbid(unsafe_code)]

use crate::{
    db::handle::{Core, Pinned, TreeCore},
    error::{Error, Result},
    framework::{expiry, scan::MergeLimits},
    x::{IndexX, Order},
};
use serde::{Deserialize, Serialize};

/// What [`Db::verify`](crate::Db::verify) found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// One report a tree, in order of creation.
    pub trees: Vec<TreeReport>,
}

/// What was found in one tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TreeReport {
    /// Name of the tree.
    pub name: String,
    /// Live entries that a scan shows; of one moment in all trees, unless the snapshot that
    /// it reads was given up. 0 where something on disk or in memory does not hold: they are not
    /// counted then, and `y_entries` neither, where that is on disk.
    pub entries: u64,
    /// Entries in memory, tombstones included.
    pub x_entries: u64,
    /// Entries on disk, superseded ones included.
    pub y_entries: u64,
    /// Entries of the memory index that were compared with the disk index.
    pub compared: u64,
    /// Damaged places of the disk index: pages, long values, parts of its own lists. Reading goes
    /// on behind each; of what is under a damaged inner page, that page alone counts.
    #[serde(default)]
    pub damaged: u64,
    /// What does not hold, each in a sentence. A hundred at most.
    pub problems: Vec<String>,
}

impl VerifyReport {
    /// True when everything holds.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// assert!(db.verify()?.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.trees.iter().all(|t| t.problems.is_empty())
    }
}

/// Problems listed per tree; more are only counted by the last one.
const MAX_PROBLEMS: usize = 100;

pub(crate) fn verify(core: &Core, pinned: &Pinned) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    for tree in core.all_trees() {
        let checked = verify_tree(&tree, pinned);
        // A tree that was dropped meanwhile has no files to hold against it.
        if tree.live().is_ok() {
            report.trees.push(checked?);
        }
    }
    Ok(report)
}

fn verify_tree(tree: &TreeCore, pinned: &Pinned) -> Result<TreeReport> {
    let joined = &tree.joined;
    let mut report = TreeReport {
        name: tree.name().to_string(),
        ..TreeReport::default()
    };
    if let Err(what) = joined.x.verify(false) {
        report.problems.push(format!("in memory: {what}"));
    }
    report.x_entries = joined.x.stats().keys as u64;
    match joined.y.verify() {
        Ok(entries) => report.y_entries = entries,
        Err(error) => list_damage(tree, &error, &mut report),
    }
    if report.problems.is_empty() {
        match check_order(tree, Some(pinned), &mut report) {
            Err(Error::SnapshotTooOld) => {
                report.entries = 0;
                check_order(tree, None, &mut report)?;
            }
            checked => checked?,
        }
    }
    let compared = joined
        .compare_clean_with_y(MAX_PROBLEMS, &mut report.compared, &mut report.problems)
        .and_then(|()| joined.compare_filter_with_y(MAX_PROBLEMS, &mut report.problems));
    match compared {
        // What could not be compared was told of.
        Err(_) if report.damaged > 0 => Ok(report),
        compared => compared.map(|()| report),
    }
}

/// `error` is the first thing that does not hold on disk: all that is damaged is counted.
fn list_damage(tree: &TreeCore, error: &Error, report: &mut TreeReport) {
    tree.joined.y.damage(&mut |error| {
        report.damaged += 1;
        if report.problems.len() < MAX_PROBLEMS {
            report.problems.push(format!("on disk: {error}"));
        }
    });
    if report.damaged == 0 {
        // No page is damaged: what they say does not go together.
        report.damaged = 1;
        report.problems.push(format!("on disk: {error}"));
    }
}

/// I9: a scan over everything ascends strictly.
fn check_order(tree: &TreeCore, pinned: Option<&Pinned>, report: &mut TreeReport) -> Result<()> {
    let limits = MergeLimits {
        bytes: 256 << 10,
        entries: 4096,
        at_hand: 4096,
    };
    let joined = &tree.joined;
    let now = || joined.shared.versions.time().now();
    let time = pinned.map_or_else(now, Pinned::time);
    // As long as an older snapshot sees it, it is there.
    let lives = |value: &[u8]| joined.expiry.is_none() || !expiry::is_over(value, time);
    let mut from = Some(Vec::new());
    let mut last: Option<crate::key::Key> = None;
    while let Some(at) = from {
        let chunk = match pinned {
            None => joined.scan_chunk(&at, None, Order::Ascending, limits)?,
            Some(pinned) => {
                let epoch = pinned.epoch();
                let chunk = joined.scan_chunk_at(&at, None, Order::Ascending, limits, epoch);
                pinned.checked(chunk)?
            }
        };
        for (key, value) in &chunk.entries {
            if last.as_ref().is_some_and(|last| last >= key) && report.problems.len() < MAX_PROBLEMS
            {
                report
                    .problems
                    .push(format!("I9: key {key:?} comes after {:?}", last.as_ref()));
            }
            last = Some(key.clone());
            report.entries += u64::from(lives(value));
        }
        from = chunk.resume;
    }
    Ok(())
}
