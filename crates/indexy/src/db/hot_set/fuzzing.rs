//! What the fuzz target needs to see of a hot set; see `crate::fuzzing`.

#![forbid(unsafe_code)]

use super::{
    file::{self, Reader, Writer},
    format::{BlockBuilder, BlockHeader, Keys, Kind, LONGEST_KEY_BYTES, Totals, encode_header},
};
use crate::{
    framework::hot::HotKey,
    storage::{Storage, sim::Sim},
};
use std::path::Path;

const DIR: &str = "/db";
const DATABASE_ID: u128 = 7;

/// Reads `bytes` as a file, and as a payload behind good checksums.
pub(crate) fn hot_set(bytes: &[u8]) {
    read(bytes);
    let mut block = BlockBuilder::new(Kind::Tier(0));
    let (count, payload) = bytes.split_first().unwrap_or((&0, &[]));
    block.tree = 1;
    block.keys = u32::from(*count);
    block.set_payload(payload);
    let mut file = encode_header(DATABASE_ID);
    let totals = Totals {
        keys: block.keys.into(),
        blocks: 1,
    };
    for mut block in [block, BlockBuilder::end(totals)] {
        let sealed = block.seal(DATABASE_ID, file.len() as u64).to_vec();
        file.extend(sealed);
    }
    read(&file);
}

fn read(bytes: &[u8]) {
    let sim = Sim::default();
    let _ = sim.create_dir_all(Path::new(DIR));
    sim.tamper(&file::path(Path::new(DIR)), bytes.to_vec());
    let Ok(Some((mut file, totals))) = Reader::open(&sim, Path::new(DIR), DATABASE_ID, &|| false)
    else {
        return;
    };
    file.rewind();
    let mut keys = 0;
    while let Ok(Some(block)) = file.next(|_| true) {
        keys += u64::from(block.keys);
        take_apart(&block, file.payload());
    }
    assert_eq!(keys, totals.keys);
}

/// Takes the keys of a block apart; none is longer than a key may be.
fn take_apart(block: &BlockHeader, payload: &[u8]) {
    let mut keys = Keys::new(block, payload);
    while let Ok(Some((key, _))) = keys.next() {
        assert!(key.len() <= LONGEST_KEY_BYTES);
    }
}

/// A file of two trees.
pub(crate) fn sample() -> Vec<u8> {
    let sim = Sim::default();
    let dir = Path::new(DIR);
    let written = sim
        .create_dir_all(dir)
        .and_then(|()| Writer::begin(&sim, dir, DATABASE_ID))
        .and_then(|mut file| {
            for (tree, key) in [(1, "apple"), (1, "apply"), (2, ""), (2, "a"), (1, "zebra")] {
                let entry = HotKey {
                    key: key.as_bytes(),
                    value_bytes: 300,
                    tier: key.len() % 3,
                };
                file.push(tree, &entry)?;
            }
            file.finish()
        });
    let file = sim.contents().remove(&file::path(dir));
    written.ok().and(file).unwrap_or_default()
}
