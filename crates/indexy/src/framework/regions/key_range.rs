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

/// The same keys in ranges that ascend and do not touch.
pub(crate) fn united<K: Ord>(mut ranges: Vec<(K, Option<K>)>) -> Vec<(K, Option<K>)> {
    ranges.retain(|(from, to)| to.as_ref().is_none_or(|to| from < to));
    ranges.sort();
    let mut united: Vec<(K, Option<K>)> = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        match united.last_mut() {
            Some((_, end)) if end.as_ref().is_none_or(|end| from <= *end) => {
                if end.is_some() && (to.is_none() || to > *end) {
                    *end = to;
                }
            }
            _ => united.push((from, to)),
        }
    }
    united
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

    #[test]
    fn ranges_are_united_where_they_overlap_or_touch() {
        let range = |from: &str, to: &str| {
            let to = (to != "end").then(|| to.to_string());
            (from.to_string(), to)
        };
        for (ranges, expected) in [
            (vec![], vec![]),
            (vec![range("b", "b"), range("c", "a")], vec![]),
            (
                vec![range("d", "f"), range("a", "b")],
                vec![range("a", "b"), range("d", "f")],
            ),
            (
                vec![range("b", "d"), range("a", "b"), range("c", "c1")],
                vec![range("a", "d")],
            ),
            (
                vec![range("a", "end"), range("b", "c")],
                vec![range("a", "end")],
            ),
            (
                vec![range("a", "c"), range("b", "end")],
                vec![range("a", "end")],
            ),
        ] {
            assert_eq!(united(ranges), expected);
        }
    }
}
