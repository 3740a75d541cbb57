//! What goes into a leaf comes out of it, and no leaf is too full.

use super::{
    Identity,
    build::{Bound, Content, Entry, entries, separator},
    filling::{capacity, filled_bytes},
    leaf_builder::{LeafBuilder, leaf},
    leaf_entries::LeafEntries,
    node::{Far, Fetch, Node, ValueAt, max_near, max_stub},
    seal,
};
use crate::error::{Error, Result};
use proptest::prelude::*;
use std::{collections::BTreeMap, ops::Range};

const PAGE: usize = 4096;

/// Keys and values; what is `None` is deleted, what is longer than lies near is far.
type Model = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Far bytes are found again by what stands in `first`: their place in a list.
#[derive(Default)]
struct FarBytes(Vec<Vec<u8>>);

impl FarBytes {
    fn put(&mut self, bytes: &[u8]) -> Far {
        self.0.push(bytes.to_vec());
        Far {
            bytes: bytes.len() as u32,
            first: self.0.len() as u64,
        }
    }

    fn get(&self, far: Far) -> Result<Vec<u8>> {
        let bytes = self.0.get(far.first as usize - 1).cloned();
        bytes.ok_or(Error::Closed)
    }
}

/// Leaves of all of `model`, each as full as it can be.
fn build_all(model: &Model, far: &mut FarBytes) -> Vec<Vec<u8>> {
    let mut pages = Vec::new();
    let mut builder = LeafBuilder::new(PAGE);
    let mut dirty = vec![0xaa; PAGE];
    for (key, value) in model {
        let stub = Bound::stub_of(key, PAGE);
        let far_key = (stub.len() < key.len()).then(|| far.put(key));
        let value = match value {
            None => ValueAt::Deleted,
            Some(value) if stub.len() + value.len() <= max_near(PAGE) => ValueAt::Near(value),
            Some(value) => ValueAt::Far(far.put(value)),
        };
        if !builder.add(stub, far_key, value) {
            assert!(builder.filled() <= capacity(PAGE));
            builder.finish(&mut dirty);
            pages.push(dirty.clone());
            assert!(builder.is_empty() && builder.last().is_none());
            assert!(builder.add(stub, far_key, value), "a page has room for one");
        }
        assert_eq!(builder.last(), Some(stub));
    }
    if !builder.is_empty() {
        builder.finish(&mut dirty);
        pages.push(dirty);
    }
    pages
}

fn check(model: &Model) {
    let mut far = FarBytes::default();
    let mut pages = build_all(model, &mut far);
    let fetch = |at| far.get(at);
    let mut left = model.iter();
    let mut decoded = LeafEntries::default();
    for page in &mut pages {
        let identity = Identity {
            number: 1,
            tree: 1,
            birth: 1,
        };
        seal(page, identity);
        let node = Node::of_page(page).unwrap();
        decoded.read(&node).unwrap();
        assert_eq!(decoded.len(), node.keys());
        for i in 0..node.keys() {
            let (key, value) = left.next().unwrap();
            let entry = decoded.get(i, page).unwrap();
            let found = entry
                .far_key
                .map_or(entry.stub.to_vec(), |at| fetch(at).unwrap());
            assert_eq!(&found, key);
            let of = |value: ValueAt<'_>| match value {
                ValueAt::Near(bytes) => Some(bytes.to_vec()),
                ValueAt::Far(at) => Some(fetch(at).unwrap()),
                ValueAt::Deleted => None,
            };
            assert_eq!(&of(entry.value), value);
            assert_eq!(&of(node.value(i).unwrap()), value);
            assert_eq!(
                node.search(key, &fetch).unwrap(),
                Some((i, true)),
                "{key:?}"
            );
            let mut behind = key.clone();
            behind.push(0);
            if i + 1 == node.keys() || Some(&behind) != left.clone().next().map(|(k, _)| k) {
                assert_eq!(node.search(&behind, &fetch).unwrap(), Some((i + 1, false)));
            }
        }
        assert!(decoded.get(node.keys(), page).is_none());
        check_search(&node, model, &fetch);
        // The other way to build and to read a leaf, and its count of bytes.
        let listed = entries(&node).unwrap();
        assert!(filled_bytes(&listed) <= capacity(PAGE));
        let mut again = vec![0; PAGE];
        leaf(&mut again, &listed);
        seal(&mut again, identity);
        assert_eq!(&again, page);
    }
    assert!(left.next().is_none());
}

/// Keys that are not there, shorter and longer ones, are found where they would be.
fn check_search(leaf: &Node<'_>, model: &Model, fetch: Fetch<'_>) {
    let keys = entries(leaf).unwrap().into_iter();
    let keys: Vec<_> = keys.map(|entry| entry.key.whole(fetch).unwrap()).collect();
    let cut = |key: &Vec<u8>| {
        let cut: Vec<_> = (0..=key.len().min(12))
            .map(|n| key[..key.len() - n].to_vec())
            .collect();
        cut.into_iter()
    };
    let higher = |key: &Vec<u8>| key.iter().map(|byte| byte + 1).collect::<Vec<u8>>();
    let probes = model.keys().step_by(5).flat_map(|key| {
        let ends = [0, 2, 255].map(|end| [key.as_slice(), &[end]].concat());
        cut(key).chain(ends).chain([higher(key)])
    });
    for probe in probes {
        let at = keys.partition_point(|key| *key < probe);
        let expected = (at, keys.get(at) == Some(&probe));
        assert_eq!(
            leaf.search(&probe, fetch).unwrap(),
            Some(expected),
            "{probe:?}"
        );
    }
}

/// Any keys and values, with and without deletes.
fn any_model(
    keys: Range<usize>,
    values: Range<usize>,
    deletes: bool,
) -> impl Strategy<Value = Model> {
    let key = prop::collection::vec(0u8..3, keys);
    let value = prop::collection::vec(any::<u8>(), values);
    let value = prop::option::weighted(if deletes { 0.7 } else { 0.5 }, value);
    let value = value.prop_map(move |value| {
        if deletes {
            value
        } else {
            value.or(Some(vec![7; 8]))
        }
    });
    prop::collection::btree_map(key, value, 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn leaves_of_odd_lengths(model in any_model(0..12, 0..40, true)) {
        check(&model);
    }

    #[test]
    fn leaves_of_equal_lengths(model in any_model(9..10, 8..9, false)) {
        check(&model);
    }

    #[test]
    fn leaves_of_equal_lengths_with_deletes(model in any_model(9..10, 8..9, true)) {
        check(&model);
    }

    #[test]
    fn leaves_of_equal_short_lengths(model in any_model(4..5, 0..1, true)) {
        check(&model);
    }

    #[test]
    fn leaves_of_short_keys(model in any_model(0..4, 0..1, true)) {
        check(&model);
    }

    #[test]
    fn leaves_of_long_keys_and_values(
        model in any_model(max_stub(PAGE) - 6..max_stub(PAGE) + 6, 0..1200, true),
    ) {
        check(&model);
    }

    #[test]
    fn separators(
        a in prop::collection::vec(0u8..3, 0..8),
        b in prop::collection::vec(0u8..3, 0..8),
    ) {
        prop_assume!(a < b);
        let at = separator(&a, &b);
        prop_assert!(a.as_slice() < at && at <= b.as_slice());
    }
}

/// What `keys`, ascending, with values of `value` bytes and now and then a delete, take a page.
fn entries_in_a_page(keys: impl Iterator<Item = u64>, value: usize, deletes: bool) -> usize {
    let value = vec![7; value];
    let mut builder = LeafBuilder::new(PAGE);
    for (i, key) in keys.enumerate() {
        let value = match deletes && i % 7 == 0 {
            true => ValueAt::Deleted,
            false => ValueAt::Near(&value),
        };
        if !builder.add(&key.to_be_bytes(), None, value) {
            break;
        }
    }
    builder.len()
}

/// Heads of four bytes, no slots, no lengths.
#[test]
fn leaves_of_equal_lengths_are_dense() {
    // The steps of 30 M random keys: five bytes of a key are told apart behind the prefix.
    let sparse = || (0..).map(|i: u64| (1 << 60) + i * ((u64::MAX - 1) / 30_000_000 / 2));
    assert!(entries_in_a_page(sparse(), 8, false) >= 285);
    assert!(entries_in_a_page(sparse(), 8, true) >= 280);
    assert!(entries_in_a_page(0.., 8, false) >= 330);
    assert!(entries_in_a_page(sparse(), 100, false) >= 38);
}

/// Four bytes beside a key and its value, whose lengths differ; keys share most of their bytes.
#[test]
fn leaves_of_odd_lengths_are_dense() {
    let mut builder = LeafBuilder::new(PAGE);
    let (mut bytes, mut entries) = (0, 0);
    let mut keys: Vec<String> = (0..2000u32).map(|i| format!("user{}", i * 7919)).collect();
    keys.sort();
    for key in &keys {
        if !builder.add(key.as_bytes(), None, ValueAt::Near(&[7; 8])) {
            break;
        }
        entries += 1;
        bytes += key.len() - "user".len() + 8;
    }
    let beside = builder.filled() - bytes;
    assert!(
        beside <= entries * 4 + 40,
        "{beside} bytes beside {entries} entries"
    );
    assert!(entries >= 200, "{entries}");
}

#[test]
fn an_entry_may_have_any_content() {
    let entry = |content| Entry {
        key: Bound {
            stub: b"k"[..].into(),
            far: None,
        },
        value: content,
    };
    let far = Far { bytes: 9, first: 7 };
    for content in [
        Content::Near([][..].into()),
        Content::Far(far),
        Content::Deleted,
    ] {
        let mut page = vec![0; PAGE];
        leaf(&mut page, &[entry(content.clone())]);
        let node = Node::of_page(&page).unwrap();
        match (node.value(0), content) {
            (Some(ValueAt::Near(found)), Content::Near(_)) => assert!(found.is_empty()),
            (Some(ValueAt::Far(found)), Content::Far(_)) => assert_eq!(found, far),
            (Some(ValueAt::Deleted), Content::Deleted) => {}
            _ => panic!("another value"),
        }
    }
}
