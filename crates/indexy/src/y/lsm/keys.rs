//! Keys as the engine takes them. It refuses the empty key, so a key of only zero bytes
//! (the empty one included) gets one more zero byte; every other key stays as it is.
//!
//! The map keeps the order and is one to one: `0^n` becomes `0^(n+1)`, and what stands between
//! `0^n` and `0^(n+1)` in byte order is nothing at all. Range ends go through the same map.

#![forbid(unsafe_code)]

use std::borrow::Cow;

/// A caller's key as the engine stores it. Cost: one pass over the leading zero bytes.
pub(super) fn stored(key: &[u8]) -> Cow<'_, [u8]> {
    if key.iter().all(|&byte| byte == 0) {
        Cow::Owned(vec![0; key.len() + 1])
    } else {
        Cow::Borrowed(key)
    }
}

/// The caller's key of a stored one.
pub(super) fn original(stored: &[u8]) -> &[u8] {
    match stored.split_last() {
        Some((_, head)) if stored.iter().all(|&byte| byte == 0) => head,
        _ => stored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keeps_order_and_comes_back(
            a in prop::collection::vec(0u8..2, 0..6),
            b in prop::collection::vec(0u8..2, 0..6),
        ) {
            let there = stored(&a);
            prop_assert_eq!(original(&there), &a[..]);
            prop_assert!(!stored(&a).is_empty());
            prop_assert_eq!(a.cmp(&b), stored(&a).cmp(&stored(&b)));
        }
    }
}
