//! The range of keys that `--prefix`, `--from` and `--to` have in common.

use crate::args::{EncodingArgs, Usage};
use indexy::{Range, Tree};
use std::{ffi::OsString, ops::Bound};

/// First key and end of a range.
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Keys that fit all options that were given.
#[derive(Debug)]
pub struct KeyRange {
    prefix: Option<Vec<u8>>,
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
}

impl KeyRange {
    /// Reads the options.
    pub fn of(
        encoding: &EncodingArgs,
        prefix: Option<&OsString>,
        from: Option<&OsString>,
        to: Option<&OsString>,
    ) -> Result<Self, Usage> {
        Ok(Self {
            prefix: encoding.optional("--prefix", prefix)?,
            from: encoding.optional("--from", from)?,
            to: encoding.optional("--to", to)?,
        })
    }

    /// First key (inclusive) and end (exclusive); `None` if no key fits.
    pub fn bounds(&self) -> Option<Bounds> {
        let prefix_end = self.prefix.as_deref().and_then(after_prefix);
        let start = self.prefix.iter().chain(&self.from).max().cloned();
        let end = prefix_end.into_iter().chain(self.to.clone()).min();
        if let (Some(start), Some(end)) = (&start, &end)
            && start >= end
        {
            return None;
        }
        Some((
            start.map_or(Bound::Unbounded, Bound::Included),
            end.map_or(Bound::Unbounded, Bound::Excluded),
        ))
    }

    /// The records of the range; `None` if no key fits.
    pub fn of_tree(&self, tree: &Tree) -> Option<Range> {
        self.bounds().map(|bounds| tree.range::<Vec<u8>>(bounds))
    }

    /// For people: `keys that begin with "a", from "ab", before "ac"`.
    pub fn described(&self, encoding: &EncodingArgs) -> String {
        let quoted = |words: &str, key: &Option<Vec<u8>>| {
            key.as_deref()
                .map(|key| format!("{words} \"{}\"", encoding.encoding().shown(key)))
        };
        let parts = [
            quoted("that begin with", &self.prefix),
            quoted("from", &self.from),
            quoted("before", &self.to),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        format!("keys {}", parts.join(", "))
    }
}

/// The smallest byte string above all that begin with `prefix`, if there is one.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&b| b != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_intersected() {
        let bounds = |prefix: Option<&str>, from: Option<&str>, to: Option<&str>| {
            let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
            KeyRange {
                prefix: bytes(prefix),
                from: bytes(from),
                to: bytes(to),
            }
            .bounds()
        };
        let range = |start: &str, end: &str| {
            let bound = |text: &str| text.as_bytes().to_vec();
            Some((Bound::Included(bound(start)), Bound::Excluded(bound(end))))
        };
        let all = Some((Bound::Unbounded, Bound::Unbounded));
        assert_eq!(bounds(None, None, None), all);
        assert_eq!(bounds(Some("ab"), None, None), range("ab", "ac"));
        assert_eq!(bounds(Some("ab"), Some("aa"), Some("b")), range("ab", "ac"));
        assert_eq!(
            bounds(Some("ab"), Some("abc"), Some("abd")),
            range("abc", "abd")
        );
        assert_eq!(bounds(None, Some("z"), Some("a")), None);
        assert_eq!(bounds(None, Some("a"), Some("a")), None);
        assert_eq!(bounds(Some("a"), Some("b"), None), None);
        assert_eq!(after_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(after_prefix(b"\xff"), None);
        assert_eq!(after_prefix(b""), None);
    }
}
