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
fn the_search_agrees_with_a_plain_one() {
    let mut rng = StdRng::seed_from_u64(1);
    for cap in [1, 7, 16, 17, 40, 64, 100, 256] {
        let buffer: Vec<AtomicU64> = (0..array_bytes(cap) / 8)
            .map(|_| AtomicU64::new(0))
            .collect();
        let first = NonNull::from(&buffer[..]).cast();
        // SAFETY: the buffer outlives the words and is accessed through them only.
        let words = unsafe { Words::new(first, buffer.len() * 8) };
        let heads = Heads::new(words, 0, cap);
        heads.refresh_hints(0, 0);
        let mut model: Vec<u32> = vec![];
        for _ in 0..2000 {
            // Every other head is one of three: long runs of equal ones, the greatest number among them.
            let wanted = match rng.random_range(0..2) {
                0 => [0, 7, u32::MAX][rng.random_range(0..3)],
                _ => rng.random_range(0..300) * (u32::MAX / 299),
            };
            let at = model.partition_point(|&h| h < wanted);
            assert_eq!(heads.count_below(model.len(), wanted), at);
            let end = model.partition_point(|&h| h <= wanted);
            assert_eq!(heads.equal(model.len(), wanted), at..end);
            if heads.has_hints() {
                let plain = count_plainly(words, 0, wanted);
                assert_eq!(count_hints_below(words, 0, wanted), plain);
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
}
