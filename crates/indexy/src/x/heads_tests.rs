//! Heads order as keys do; the search agrees with a plain one.

use super::*;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{ptr::NonNull, sync::atomic::AtomicU64};

#[test]
fn heads_order_as_keys_do() {
    let keys: [&[u8]; 8] = [b"", b"\0", b"\0\0\0\0", b"a", b"ab", b"abc", b"abcd", b"b"];
    assert!(keys.is_sorted_by_key(|key| head(key)));
    assert_eq!(head(b"\x01\x02\x03\x04\x05"), 0x0102_0304);
    assert_eq!((rest(b"abc"), rest(b"abcde")), (&b""[..], &b"e"[..]));
}

#[test]
fn the_word_behind_a_head_has_all_there_is() {
    let key: [u8; 20] = std::array::from_fn(|i| i as u8 + 1);
    for len in 0..=key.len() {
        let mut eight = [0; 8];
        let behind = rest(&key[..len]);
        let behind = &behind[..behind.len().min(8)];
        eight[..behind.len()].copy_from_slice(behind);
        assert_eq!(rest_word(&key[..len]), u64::from_le_bytes(eight), "{len}");
    }
}

#[test]
fn the_search_agrees_with_a_plain_one() {
    for cap in [1, 7, 16, 17, 40, 64, 100, 255, 256] {
        check_search(cap, hinted_bytes(cap), |words| Heads::hinted(words, 0, cap));
    }
    for cap in [1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64] {
        check_search(cap, head_bytes(cap), |words| Heads::plain(words, 0));
        // With room behind the heads, so that whole groups can be loaded.
        check_search(cap, head_bytes(cap) + 64, |words| Heads::plain(words, 0));
    }
}

fn check_search(cap: usize, bytes: usize, heads: impl for<'w> Fn(Words<'w>) -> Heads<'w>) {
    let mut rng = StdRng::seed_from_u64(1);
    let buffer: Vec<AtomicU64> = (0..bytes / 8).map(|_| AtomicU64::new(0)).collect();
    let first = NonNull::from(&buffer[..]).cast();
    // SAFETY: the buffer outlives the words and is accessed through them only.
    let words = unsafe { Words::new(first, buffer.len() * 8) };
    let heads = heads(words);
    heads.refresh_hints(0, 0);
    let mut model: Vec<u32> = vec![];
    for _ in 0..2000 {
        // Every other head is one of three: long runs of equal ones, the greatest number among
        // them.
        let wanted = match rng.random_range(0..2) {
            0 => [0, 7, u32::MAX][rng.random_range(0..3)],
            _ => rng.random_range(0..300) * (u32::MAX / 299),
        };
        let at = model.partition_point(|&h| h < wanted);
        assert_eq!(heads.count_below(model.len(), wanted), at);
        let end = model.partition_point(|&h| h <= wanted);
        assert_eq!(heads.end_of_equal(at, model.len(), wanted), end);
        for at in (0..bytes).step_by(8) {
            // Both stop at the first that is not below; behind the end they may differ.
            let plain = count_plainly(words, at, wanted);
            if at + GROUP * HEAD_BYTES <= bytes {
                assert_eq!(count_ascending(words, at, wanted), plain);
            }
        }
        if model.len() < cap && rng.random_range(0..5) < 3 {
            heads.insert(at, model.len(), wanted);
            model.insert(at, wanted);
        } else if !model.is_empty() {
            let at = rng.random_range(0..model.len());
            heads.remove(at, model.len());
            model.remove(at);
        }
        assert_eq!(heads.check(model.len()), Ok(()));
        assert!((0..model.len()).all(|i| heads.get(i) == model[i]));
    }
}
