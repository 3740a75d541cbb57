//! What the conformance suite cannot ask: bytes, shapes, and what comes back.

use super::Art;
use crate::{
    mem::{Memory, budget::Budget},
    x::{IndexX, Lookup},
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{ops::ControlFlow, sync::Arc};

fn memory() -> Arc<Memory> {
    Memory::new(Arc::new(Budget::new(64 << 20)))
}

fn put(art: &Art, key: &[u8], value: &[u8]) {
    assert!(art.put(key, Some(value), || Ok::<(), ()>(())).is_ok());
}

fn remove(art: &Art, key: &[u8]) {
    assert!(art.put(key, None, || Ok::<(), ()>(())).is_ok());
}

fn spread(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// Everything is clean and Y has it.
fn clean(art: &Art, run: u32) {
    let flow = art.clean(&[], None, run, &mut |_, _| ControlFlow::Continue(()));
    assert!(flow.is_continue());
    art.settle(&[], None, run);
}

#[test]
fn an_entry_of_two_words_takes_less_than_thirty_bytes() {
    let art = Art::new(memory(), false);
    for (n, most) in [(1_000, 30.0), (30_000, 26.0), (300_000, 26.0)] {
        for i in art.stats().keys as u64..n {
            put(&art, &spread(i), &i.to_le_bytes());
        }
        let each = art.stats().bytes as f64 / n as f64;
        assert!(each < most, "{each:.1} bytes per entry at {n}");
    }
    let dense = Art::new(memory(), false);
    for i in 0..100_000u64 {
        put(&dense, &i.to_be_bytes(), &i.to_le_bytes());
    }
    let each = dense.stats().bytes as f64 / 100_000.0;
    assert!(each < 20.0, "{each:.1} bytes per dense entry");
}

#[test]
fn bytes_are_exact_and_all_come_back() {
    let memory = memory();
    {
        let art = Art::new(memory.clone(), false);
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..20_000 {
            let len = rng.random_range(0..300);
            let key: Vec<u8> = (0..len).map(|_| rng.random_range(0..4)).collect();
            if rng.random_range(0..3) == 0 {
                remove(&art, &key[..len.min(6)]);
            } else {
                put(
                    &art,
                    &key[..rng.random_range(0..=len)],
                    &vec![1; rng.random_range(0..900)],
                );
            }
        }
        assert_eq!(art.verify(true), Ok(()));
        memory.collect();
        assert_eq!(art.stats().bytes, memory.live_bytes());
    }
    memory.collect();
    assert_eq!(memory.live_bytes(), 0);
}

/// Blocks of many sizes, of which few are left everywhere: what is left moves together and slabs go back.
#[test]
fn slabs_that_hold_little_are_emptied_without_losing_anything() {
    let memory = memory();
    let art = Art::new(memory.clone(), true);
    const KEYS: u64 = 60_000;
    let value = |i: u64| vec![i as u8; (i % 300) as usize];
    for i in 0..KEYS {
        put(&art, &spread(i), &value(i));
    }
    clean(&art, 1);
    // Two of three stretches of keys go.
    for at in (0..=u8::MAX).filter(|at| at % 3 != 0) {
        let to = at.checked_add(1).map(|to| [to]);
        art.cut(&[at], to.as_ref().map(|to| &to[..]), 1, false, usize::MAX);
    }
    memory.collect();
    let (stats, slabs) = (art.stats(), memory.slab_bytes());
    let holes = slabs - memory.live_bytes();
    assert!(
        holes > slabs / 3,
        "{holes} of {slabs}: the test needs holes"
    );
    for _ in 0..8 {
        memory.empty_slabs(slabs / 8, || art.relocate());
    }
    assert_eq!(art.stats(), stats);
    assert_eq!(art.verify(true), Ok(()));
    assert_eq!(memory.live_bytes(), stats.bytes);
    let left = memory.slab_bytes() - memory.live_bytes();
    assert!(left < holes / 2, "{left} of {holes} left");
    for i in 0..KEYS {
        let found = art.get(&spread(i), |v| v == value(i));
        match spread(i)[0] % 3 {
            0 => assert_eq!(found, Lookup::Found(true), "{i}"),
            _ => assert!(matches!(found, Lookup::AskY(_)), "{i}"),
        }
    }
}

#[test]
fn a_tree_that_was_emptied_takes_nothing() {
    for cut in [false, true] {
        let memory = memory();
        let art = Art::new(memory.clone(), false);
        for i in 0..50_000u64 {
            put(&art, &spread(i), b"value");
            put(
                &art,
                format!("some/longer/path/{:05}/{i}", i % 700).as_bytes(),
                b"value",
            );
        }
        if cut {
            clean(&art, 1);
            let freed = art.cut(&[], None, 1, false, usize::MAX).freed_bytes;
            assert!(freed > 100_000 * 20);
        } else {
            for i in 0..50_000u64 {
                remove(&art, &spread(i));
                remove(
                    &art,
                    format!("some/longer/path/{:05}/{i}", i % 700).as_bytes(),
                );
            }
        }
        let stats = art.stats();
        assert_eq!((stats.keys, stats.bytes), (0, 0));
        assert_eq!(stats.mounts, usize::from(cut), "one range is left");
        assert_eq!(art.verify(true), Ok(()));
        memory.collect();
        assert_eq!(memory.live_bytes(), 0);
    }
}

#[test]
fn what_a_cut_spares_is_packed_again() {
    let art = Art::new(memory(), false);
    let n = 200_000;
    for i in 0..n {
        put(&art, &spread(i), &i.to_le_bytes());
    }
    clean(&art, 1);
    art.track_references(true);
    for i in (0..n).step_by(20) {
        assert!(matches!(art.get(&spread(i), |_| ()), Lookup::Found(())));
    }
    let before = art.stats();
    let cut = art.cut(&[], None, 1, true, usize::MAX);
    let after = art.stats();
    assert_eq!(after.keys as u64, n / 20);
    assert_eq!(before.bytes - after.bytes, cut.freed_bytes);
    let each = after.bytes as f64 / after.keys as f64;
    assert!(each < 32.0, "{each:.1} bytes per spared entry");
    assert_eq!(art.verify(true), Ok(()));
}

#[test]
fn removals_give_leaves_back() {
    let art = Art::new(memory(), false);
    let n = 100_000;
    for i in 0..n {
        put(&art, &spread(i), &i.to_le_bytes());
    }
    for i in (0..n).filter(|i| i % 20 != 0) {
        remove(&art, &spread(i));
    }
    let stats = art.stats();
    let each = stats.bytes as f64 / stats.keys as f64;
    assert!(each < 60.0, "{each:.1} bytes per entry that is left");
    assert_eq!(art.verify(true), Ok(()));
}

#[test]
fn keys_nested_as_deep_as_keys_can_be() {
    let memory = memory();
    let art = Art::new(memory.clone(), false);
    let long = vec![7u8; crate::limits::MAX_KEY_BYTES];
    for len in (0..2000).chain([long.len() - 1, long.len()]) {
        put(&art, &long[..len], &(len as u64).to_le_bytes());
    }
    for len in (0..2000).chain([long.len() - 1, long.len()]) {
        let found = art.get(&long[..len], |v| v == (len as u64).to_le_bytes());
        assert_eq!(found, Lookup::Found(true));
    }
    assert_eq!(art.get(&long[..3000], |_| ()), Lookup::Absent);
    assert_eq!(art.verify(true), Ok(()));
    drop(art);
    memory.collect();
    assert_eq!(memory.live_bytes(), 0);
}
