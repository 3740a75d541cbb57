//! Ranges of keys, `[from, to)`. Pure.

#![forbid(unsafe_code)]

/// `[from, to)`; `None`: to the end.
pub(crate) type KeyRange<'a> = (&'a [u8], Option<&'a [u8]>);

pub(crate) const EVERYTHING: KeyRange<'_> = (&[], None);

/// What `of` has of `within`.
pub(crate) fn part<'a>(within: KeyRange<'a>, of: KeyRange<'a>) -> KeyRange<'a> {
    let to = match (within.1, of.1) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    (within.0.max(of.0), to)
}

/// Whether all of `inner` lies within `outer`.
pub(crate) fn contains(outer: KeyRange<'_>, inner: KeyRange<'_>) -> bool {
    part(outer, inner) == inner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_whole_or_a_part() {
        let whole = (&b"c"[..], Some(&b"m"[..]));
        assert_eq!(part(EVERYTHING, whole), whole);
        assert_eq!(part(whole, EVERYTHING), whole);
        assert_eq!(
            part(whole, (b"a", Some(b"d"))),
            (&b"c"[..], Some(&b"d"[..]))
        );
        assert_eq!(part((b"d", None), whole), (&b"d"[..], Some(&b"m"[..])));
        assert!(contains(EVERYTHING, EVERYTHING) && contains(EVERYTHING, whole));
        assert!(contains(whole, whole) && contains(whole, (b"d", Some(b"e"))));
        assert!(!contains(whole, EVERYTHING) && !contains(whole, (b"c", None)));
        assert!(!contains(whole, (b"b", Some(b"d"))) && !contains(whole, (b"d", Some(b"n"))));
    }
}
