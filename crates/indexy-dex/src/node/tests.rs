//! Leaves and inner nodes against a `BTreeMap`.

use super::*;
use crate::address::Address;
use proptest::prelude::*;
use std::collections::BTreeMap;

const AT: u64 = 4096;

fn at(i: u64) -> Address {
    Address::new(0, AT + i * NODE_BYTES)
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        3 => any::<u64>().prop_map(Edit::Put),
        1 => Just(Edit::Remove),
        1 => Just(Edit::Get),
    ]
}

proptest! {
    #[test]
    fn a_leaf_is_a_sorted_map(edits in prop::collection::vec((10_u64..90, edit()), 0..300)) {
        let mut leaf = new_leaf(at(0), 10, 90);
        let mut model = BTreeMap::new();
        for (key, edit) in edits {
            let full = model.len() == CAPACITY && !model.contains_key(&key);
            let expected = match edit {
                Edit::Put(_) if full => Change::Full,
                Edit::Put(value) => Change::Done { old: model.insert(key, value), changed: true },
                Edit::Get => Change::Done { old: model.get(&key).copied(), changed: false },
                Edit::Remove => {
                    let old = model.remove(&key);
                    Change::Done { old, changed: old.is_some() }
                }
            };
            prop_assert_eq!(apply(&mut leaf, key, edit), expected);
        }
        let all: Vec<_> = entries(&leaf, 0).collect();
        prop_assert_eq!(&all, &model.clone().into_iter().collect::<Vec<_>>());
        check(&leaf, at(0)).unwrap();
        if model.len() >= 2 {
            let mut left = leaf.clone();
            let (separator, right) = split_leaf(&mut left, at(1));
            check(&left, at(0)).unwrap();
            check(&right, at(1)).unwrap();
            prop_assert_eq!((low(&left), high(&left)), (10, separator - 1));
            prop_assert_eq!((low(&right), high(&right)), (separator, 90));
            let both: Vec<_> = entries(&left, 0).chain(entries(&right, 0)).collect();
            prop_assert_eq!(&both, &all);
            if merge(&mut left, &right) {
                prop_assert_eq!(&entries(&left, 0).collect::<Vec<_>>(), &all);
                check(&left, at(0)).unwrap();
                prop_assert_eq!(high(&left), 90);
            }
        }
    }

    #[test]
    fn an_inner_node_routes_by_its_separators(
        separators in prop::collection::btree_set(11_u64..900, 1..CAPACITY),
        removed in any::<prop::sample::Index>(),
        wanted in 10_u64..1000,
    ) {
        let mut inner = new_inner(at(0), 2, &[(10, at(1).word())], 1000);
        let mut model = BTreeMap::from([(10, at(1).word())]);
        for (i, &separator) in separators.iter().rev().enumerate() {
            insert_child(&mut inner, separator, at(2 + i as u64).word());
            model.insert(separator, at(2 + i as u64).word());
        }
        let check_route = |inner: &Image, model: &BTreeMap<u64, u64>| {
            let (low, word) = model.range(..=wanted).next_back().unwrap();
            let above = model.range(wanted + 1..).next().map_or(1000, |(key, _)| key - 1);
            let found = route(inner, wanted);
            assert_eq!((found.word, found.low, found.high), (*word, *low, above));
            assert_eq!(slot_of(inner, *word), Some(found.slot));
            check(inner, at(0)).unwrap();
        };
        check_route(&inner, &model);
        let slot = 1 + removed.index(separators.len());
        remove_child(&mut inner, slot);
        model.remove(separators.iter().nth(slot - 1).unwrap());
        check_route(&inner, &model);
        if count(&inner) >= 2 {
            let mut left = inner.clone();
            let (separator, right) = split_inner(&mut left, at(99));
            check(&left, at(0)).unwrap();
            check(&right, at(99)).unwrap();
            let half = if wanted < separator { &left } else { &right };
            prop_assert_eq!(route(half, wanted).word, route(&inner, wanted).word);
            if merge(&mut left, &right) {
                check_route(&left, &model);
            }
        }
    }
}
