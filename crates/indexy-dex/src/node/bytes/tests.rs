//! Slotted leaves and inner nodes against a `BTreeMap`, and nodes that are damaged.

use super::*;
use crate::node::{NODE_BYTES, NODE_WORDS, SWIZZLED};
use proptest::prelude::*;
use std::collections::{BTreeMap, btree_map::Entry};

type Key = Bytes<16>;
type Long = Bytes<128>;

fn at(i: u64) -> Address {
    Address::new(0, 4096 + i * NODE_BYTES)
}

/// Few bytes and long tails, so that keys have much in common.
fn bytes(limit: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(vec![0_u8, 0, 1, 2, 127, 254, 255]);
    let free = prop::collection::vec(byte.clone(), 0..=limit);
    let tail = prop::collection::vec(byte, 0..6).prop_map(move |tail| {
        let mut key = vec![7; limit - 6];
        key.extend(tail);
        key
    });
    prop_oneof![free, tail]
}

fn edit() -> impl Strategy<Value = Edit<Stored>> {
    let value = prop::collection::vec(any::<u8>(), 0..=MAX_INLINE_BYTES);
    prop_oneof![
        3 => value.prop_map(|value| Edit::Put(Stored::inline(&value).unwrap())),
        1 => (any::<u64>(), any::<u64>())
            .prop_map(|(at, number)| Edit::Put(Stored::far(Address::new(3, at >> 16), number))),
        2 => Just(Edit::Remove),
        1 => Just(Edit::Get),
    ]
}

fn all<const N: usize>(leaf: &Image) -> Vec<(Bytes<N>, Stored)> {
    Bytes::<N>::entries(leaf, Bytes::<N>::MIN).collect()
}

fn leaf_is_a_sorted_map<const N: usize>(edits: Vec<(Vec<u8>, Edit<Stored>)>, low: Vec<u8>) {
    let low = Bytes::<N>::cut(&low);
    let mut leaf = Bytes::<N>::new_leaf(at(0), low, Bytes::<N>::MAX);
    let mut model: BTreeMap<Bytes<N>, Stored> = BTreeMap::new();
    for (key, edit) in edits {
        let key = Bytes::<N>::cut(&key).max(low);
        let refused = Bytes::<N>::needs_split(&leaf, key, edit);
        let change = Bytes::<N>::apply(&mut leaf, key, edit);
        assert_eq!(change == Change::Full, refused);
        if refused {
            // T: what does not fit can be split.
            assert!(Bytes::<N>::may_split(&leaf) && Bytes::<N>::is_full(&leaf));
            continue;
        }
        let old = model.get(&key).copied();
        match edit {
            Edit::Put(value) => drop(model.insert(key, value)),
            Edit::Remove => drop(model.remove(&key)),
            Edit::Get => {}
        }
        let changed = match edit {
            Edit::Get => false,
            Edit::Put(_) => true,
            Edit::Remove => old.is_some(),
        };
        assert_eq!(change, Change::Done { old, changed });
        Bytes::<N>::check(&leaf, at(0)).unwrap();
    }
    let expected: Vec<_> = model.clone().into_iter().collect();
    assert_eq!(all(&leaf), expected);
    if model.len() < 2 {
        return;
    }
    let mut left = leaf.clone();
    let (separator, right) = Bytes::<N>::split(&mut left, at(1));
    Bytes::<N>::check(&left, at(0)).unwrap();
    Bytes::<N>::check(&right, at(1)).unwrap();
    assert_eq!(Some(Bytes::<N>::high(&left)), separator.before());
    assert_eq!(
        (Bytes::<N>::low(&right), Bytes::<N>::high(&right)),
        (separator, Bytes::<N>::MAX)
    );
    assert_eq!([all(&left), all(&right)].concat(), expected);
    // Each half has room for the longest entry, or can be split again.
    for half in [&left, &right] {
        let longest = Edit::Put(Stored::inline(&[1; MAX_INLINE_BYTES]).unwrap());
        let key = Bytes::<N>::high(half);
        assert!(!Bytes::<N>::needs_split(half, key, longest) || Bytes::<N>::may_split(half));
    }
    let mut trimmed = leaf.clone();
    assert!(Bytes::<N>::trim(&mut trimmed, low, Bytes::<N>::high(&left)));
    Bytes::<N>::check(&trimmed, at(0)).unwrap();
    assert_eq!(all::<N>(&trimmed), all(&left));
    if Bytes::<N>::merge(&mut left, &right) {
        assert_eq!(all(&left), expected);
        Bytes::<N>::check(&left, at(0)).unwrap();
    }
}

fn inner_routes<const N: usize>(separators: Vec<Vec<u8>>, wanted: Vec<u8>, removed: usize) {
    let mut inner = Bytes::<N>::new_inner(
        at(0),
        2,
        &[(Bytes::<N>::MIN, at(1).word())],
        Bytes::<N>::MAX,
    );
    let mut model = BTreeMap::from([(Bytes::<N>::MIN, at(1).word())]);
    for (i, separator) in separators.iter().enumerate() {
        let separator = Bytes::<N>::cut(separator);
        let word = at(2 + i as u64).word();
        if Bytes::<N>::is_full(&inner) {
            assert!(Bytes::<N>::may_split(&inner));
            break;
        }
        if let Entry::Vacant(place) = model.entry(separator) {
            Bytes::<N>::insert_child(&mut inner, separator, word);
            place.insert(word);
        }
    }
    let wanted = Bytes::<N>::cut(&wanted);
    let check = |inner: &Image, model: &BTreeMap<Bytes<N>, u64>| {
        let (low, word) = model.range(..=wanted).next_back().unwrap();
        let next = model.keys().find(|key| **key > wanted);
        let high = next.map_or(Bytes::<N>::MAX, |key| key.before().unwrap());
        let found = Bytes::<N>::route(inner, wanted);
        assert_eq!((found.word, found.low, found.high), (*word, *low, high));
        assert_eq!(Bytes::<N>::slot_of(inner, *word), Some(found.slot));
        Bytes::<N>::check(inner, at(0)).unwrap();
    };
    check(&inner, &model);
    if model.len() > 1 {
        let slot = 1 + removed % (model.len() - 1);
        let gone = *model.keys().nth(slot).unwrap();
        Bytes::<N>::remove_child(&mut inner, slot);
        model.remove(&gone);
        check(&inner, &model);
    }
    if Bytes::<N>::count(&inner) >= 2 {
        let mut left = inner.clone();
        let (separator, right) = Bytes::<N>::split(&mut left, at(99));
        Bytes::<N>::check(&left, at(0)).unwrap();
        Bytes::<N>::check(&right, at(99)).unwrap();
        let half = if wanted < separator { &left } else { &right };
        assert_eq!(
            Bytes::<N>::route(half, wanted).word,
            Bytes::<N>::route(&inner, wanted).word
        );
        let mut trimmed = inner.clone();
        assert!(Bytes::<N>::trim(&mut trimmed, separator, Bytes::<N>::MAX));
        Bytes::<N>::check(&trimmed, at(0)).unwrap();
        let words = |node: &Image| -> Vec<u64> {
            let slots = 0..=Bytes::<N>::count(node);
            slots.map(|slot| Bytes::<N>::child(node, slot)).collect()
        };
        assert_eq!(words(&trimmed), words(&right));
        if Bytes::<N>::merge(&mut left, &right) {
            check(&left, &model);
        }
    }
}

proptest! {
    #[test]
    fn keys_have_neighbours_and_an_order(one in bytes(16), other in bytes(16)) {
        let (one, other) = (Key::cut(&one), Key::cut(&other));
        prop_assert_eq!(one.cmp(&other), one.as_slice().cmp(other.as_slice()));
        for key in [one, other] {
            if let Some(after) = key.after() {
                prop_assert!(after > key);
                prop_assert_eq!(after.before(), Some(key));
            } else {
                prop_assert_eq!(key, Key::MAX);
            }
            match key.before() {
                Some(before) => prop_assert_eq!(before.after(), Some(key)),
                None => prop_assert_eq!(key, Key::MIN),
            }
            // Nothing lies between neighbours.
            prop_assert!(key.after().is_none_or(|after| other <= key || other >= after));
            let (lowest, highest) = (Key::lowest(key.prefix()), Key::highest(key.prefix()));
            prop_assert!(lowest <= key && key <= highest);
            prop_assert_eq!((lowest.prefix(), highest.prefix()), (key.prefix(), key.prefix()));
            prop_assert!(lowest.before().is_none_or(|before| before.prefix() < key.prefix()));
            prop_assert!(highest.after().is_none_or(|after| after.prefix() > key.prefix()));
        }
        let (low, high) = (one.min(other), one.max(other));
        if low < high {
            let separator = low.separator(&high);
            prop_assert!(low < separator && separator <= high);
        }
    }

    #[test]
    fn a_leaf_of_short_keys_is_a_sorted_map(
        edits in prop::collection::vec((bytes(16), edit()), 0..120), low in bytes(2 + 6),
    ) {
        leaf_is_a_sorted_map::<16>(edits, low);
    }

    #[test]
    fn a_leaf_of_long_keys_is_a_sorted_map(
        edits in prop::collection::vec((bytes(128), edit()), 0..60), low in bytes(128),
    ) {
        leaf_is_a_sorted_map::<128>(edits, low);
    }

    #[test]
    fn inner_nodes_route_by_their_separators(
        short in prop::collection::vec(bytes(16), 0..90),
        long in prop::collection::vec(bytes(128), 0..30),
        wanted in bytes(128),
        removed in any::<usize>(),
    ) {
        inner_routes::<16>(short, wanted.clone(), removed);
        inner_routes::<128>(long, wanted, removed);
    }

    /// Whatever words come, reads stay inside, and what passes the check can be changed.
    #[test]
    fn damaged_words_are_found_or_harmless(
        edits in prop::collection::vec((bytes(16), edit()), 0..60),
        level in 0_u8..2,
        flips in prop::collection::vec((0..NODE_WORDS, any::<u64>(), 0_u32..64), 1..4),
        wanted in bytes(16),
    ) {
        let mut node = match level {
            0 => Key::new_leaf(at(0), Key::MIN, Key::MAX),
            _ => {
                let child = |i: u8| (Key::cut(&vec![i; usize::from(i)]), at(1).word());
                Key::new_inner(at(0), 1, &(0..12).map(child).collect::<Vec<_>>(), Key::MAX)
            }
        };
        for (key, edit) in edits.into_iter().filter(|_| level == 0) {
            Key::apply(&mut node, Key::cut(&key), edit);
        }
        for (word, value, bit) in flips {
            let flipped = if bit % 2 == 0 { value } else { node.get(word) ^ 1 << bit };
            node.set(word, flipped);
        }
        let wanted = Key::cut(&wanted);
        let is_whole = Key::check(&node, at(0)).is_ok();
        let _ = (Key::route(&node, wanted), Key::find(&node, wanted), Key::is_sparse(&node));
        let entries = Key::entries(&node, Key::MIN).count();
        let put = Edit::Put(Stored::inline(&[1; 40]).unwrap());
        if crate::node::level(&node) == 0 {
            let change = Key::apply(&mut node, wanted, put);
            if is_whole && Key::covers(&node, wanted) && change != Change::Full {
                Key::check(&node, at(0)).unwrap();
                prop_assert!(Key::entries(&node, Key::MIN).count() >= entries);
            }
        }
    }
}

#[test]
fn damage_is_found() {
    let mut leaf = Long::new_leaf(at(0), Long::MIN, Long::cut(b"z"));
    for key in [&b"abc"[..], b"abd", b"b"] {
        let value = Stored::inline(b"value").unwrap();
        Long::apply(&mut leaf, Long::cut(key), Edit::Put(value));
    }
    Long::check(&leaf, at(0)).unwrap();
    assert!(Key::check(&leaf, at(0)).is_err(), "another kind of keys");
    assert!(Long::check(&leaf, at(1)).is_err());
    let slots = slots::start(128);
    let damage = [
        // Level and count.
        (2, leaf.get(2) | 0x10),
        (2, leaf.get(2) | 0xff00),
        (2, leaf.get(2) & !(0xff << 8)),
        // Lengths: low, end, prefix, heap.
        (3, leaf.get(3) | 0xff),
        (3, leaf.get(3) & !0xff00),
        (3, leaf.get(3) | 1 << 16),
        (3, leaf.get(3) ^ 1 << 32),
        // The first two keys change places.
        (slots, leaf.get(slots).rotate_left(32)),
        // A slot names the head, or bytes behind the end.
        (slots, leaf.get(slots) & !0xffff),
        (slots, leaf.get(slots) | 0xffff),
        // A mark that is none.
        (slots, leaf.get(slots) | 0xf0 << 24),
    ];
    for (word, value) in damage {
        let mut damaged = leaf.clone();
        damaged.set(word, value);
        assert!(
            Long::check(&damaged, at(0)).is_err(),
            "word {word}: {value:#x}"
        );
    }
    let children = [(Long::MIN, at(1).word()), (Long::cut(b"m"), at(2).word())];
    let mut inner = Long::new_inner(at(0), 1, &children, Long::MAX);
    Long::check(&inner, at(0)).unwrap();
    inner.set(slots + 1, SWIZZLED);
    assert!(Long::check(&inner, at(0)).is_err());
}
