//! Arbitrary bytes: no decoder panics, whatever the checksums say.

use super::*;
use crate::y::conformance::{Entries, put, write};
use crate::y::page::{build, leaf_builder};
use node::Node;
use proptest::prelude::*;

/// Goes through everything that a page can be asked.
fn read_all(page: &[u8]) {
    let _ = node::split(page);
    let Some(node) = Node::of_page(page) else {
        return;
    };
    let fetch = |_| Err(Error::Closed);
    for key in [&b""[..], b"abc", &[0xff; 40]] {
        let _ = node.search(key, &fetch);
        let _ = node.child_for(key, &fetch);
    }
    for i in 0..node.keys().min(3000) + 1 {
        let _ = (
            node.child(i),
            node.value(i),
            build::bound(&node, i, &mut Vec::new()),
        );
    }
    let _ = build::entries(&node);
    let _ = build::children(&node, build::Bound::default());
}

/// A leaf of fixed form, or one with slots.
fn a_leaf(fixed: bool) -> Vec<u8> {
    let value = |i: u32| match fixed {
        true => vec![7; 20],
        false => vec![7; i as usize],
    };
    let entries: Vec<build::Entry> = (0u32..40)
        .map(|i| build::Entry {
            key: build::Bound {
                stub: (i << 12).to_be_bytes()[..].into(),
                far: None,
            },
            value: build::Content::Near(value(i).into()),
        })
        .collect();
    let mut page = vec![0; 4096];
    leaf_builder::leaf(&mut page, &entries);
    let kind = if fixed {
        page::Kind::FixedLeaf
    } else {
        page::Kind::Leaf
    };
    assert_eq!(page[32], kind as u8);
    page
}

proptest! {
    #[test]
    fn arbitrary_pages(
        kind in 0u8..11,
        level in 0u8..3,
        page in prop::collection::vec(any::<u8>(), 0..4096),
    ) {
        let mut page = page;
        let link = (40..48).map(|at| (at, 0));
        for (at, byte) in [(32, kind), (33, level)].into_iter().chain(link) {
            if let Some(to) = page.get_mut(at) {
                *to = byte;
            }
        }
        read_all(&page);
    }

    #[test]
    fn pages_with_a_few_wrong_bytes(
        fixed in any::<bool>(),
        changes in prop::collection::vec((0usize..500, any::<u8>()), 1..8),
    ) {
        let mut page = a_leaf(fixed);
        for (at, byte) in changes {
            page[at] = byte;
        }
        read_all(&page);
    }

    #[test]
    fn arbitrary_superblocks(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = bytes;
        let _ = Superblock::decode(&bytes, Path::new("p"), 0);
        if bytes.len() > 88 {
            page::put(&mut bytes, 0, b"indexyBP");
            page::put(&mut bytes, 8, &1u32.to_le_bytes());
            let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..80]);
            page::put(&mut bytes, 80, &sum.to_le_bytes());
            let _ = Superblock::decode(&bytes, Path::new("p"), 0);
        }
    }

    /// Nodes of every shape: what goes in comes out, at any key length.
    #[test]
    fn trees_of_odd_keys(
        keys in prop::collection::btree_set(prop::collection::vec(0u8..3, 0..900), 1..60),
    ) {
        let store = OnDisk::new(4096, 0);
        let y = crate::y::conformance::Store::open(&store);
        let run: Entries = keys.iter().map(|k| put(k, &k[..k.len() / 2])).collect();
        write(&y, &run).unwrap();
        let model = keys.iter().map(|k| (k.clone(), k[..k.len() / 2].to_vec())).collect();
        crate::y::conformance::check(&y, &model);
    }
}
