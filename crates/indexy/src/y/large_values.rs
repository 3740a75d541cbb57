//! Large values of a damaged tree are read one at a time, whatever the disk index: as many as a
//! leaf names would not fit in memory. What is lost with one is told in its place, and once.

use super::{
    conformance::{put, write},
    contract::IndexY,
    salvaged::{Salvaged, Visit},
};
use crate::{error::Result, storage::sim::Sim};

/// Values, in two runs.
const VALUES: u8 = 20;
/// Of a value, which is read at once.
const BYTES: usize = 100_000;

fn is_damaged(n: u8) -> bool {
    n % 2 == 1
}

/// A disk with a tree that `open` opens, of which every second value is damaged.
fn sample<Y: IndexY>(open: impl Fn(&Sim) -> Result<Y>) -> Sim {
    let sim = Sim::default();
    let y = open(&sim).unwrap();
    for run in [1..=VALUES / 2, VALUES / 2 + 1..=VALUES] {
        let run = run.map(|n| put(&[n], &[n; BYTES]));
        write(&y, &run.collect()).unwrap();
    }
    y.make_durable().unwrap();
    drop(y);
    for (path, mut bytes) in sim.contents() {
        for page in bytes.chunks_mut(4096) {
            let n = page[0];
            if is_damaged(n) && page.iter().all(|byte| *byte == n) {
                page[100] ^= 2;
            }
        }
        sim.tamper(&path, bytes);
    }
    sim
}

/// There was I/O between each two: nothing was read long before it was told.
fn assert_read_in_turn(ios: &[u64]) {
    assert!(ios.windows(2).all(|two| two[0] < two[1]), "{ios:?}");
}

/// What salvage reads, and what a check of the tree reads.
pub(super) fn are_read_one_at_a_time<Y: IndexY>(
    open: impl Fn(&Sim) -> Result<Y>,
    salvage: impl Fn(&Sim, &mut Visit<'_>) -> Result<()>,
) {
    let sim = sample(&open);
    let (mut found, mut ios) = (Vec::new(), Vec::new());
    let mut visit = |salvaged| {
        let (key, is_lost) = match salvaged {
            Salvaged::Entry { key, value, .. } => {
                assert!(value == vec![key[0]; BYTES]);
                (key, false)
            }
            Salvaged::Lost(hole) => (hole.from, true),
        };
        // That a version log is lost is told first, of all keys.
        if let [n] = key[..] {
            found.push((n, is_lost));
            ios.push(sim.ios());
        }
        Ok(())
    };
    salvage(&sim, &mut visit).unwrap();
    let all = (1..=VALUES).map(|n| (n, is_damaged(n)));
    assert!(found.iter().copied().eq(all), "{found:?}");
    assert_read_in_turn(&ios);
    let y = open(&sim).unwrap();
    let mut ios = Vec::new();
    y.damage(&mut |_| ios.push(sim.ios()));
    assert_eq!(ios.len(), usize::from(VALUES) / 2);
    assert_read_in_turn(&ios);
}
