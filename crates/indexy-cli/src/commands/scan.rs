//! `indexy scan`: prints or counts the records of a range, in either order.

use crate::{
    args::Scan,
    format::{Purpose, Writer, jsonl::Fields},
    stdout::{self, Out},
    store::{self, Access},
};
use indexy::{Range, Tree};
use std::{ops::Bound, process::ExitCode};

/// Runs the command.
pub fn run(args: &Scan) -> anyhow::Result<ExitCode> {
    let prefix = args.encoding.optional("--prefix", args.prefix.as_ref())?;
    let from = args.encoding.optional("--from", args.from.as_ref())?;
    let to = args.encoding.optional("--to", args.to.as_ref())?;
    let db = store::open(&args.database, Access::Read)?;
    let tree = store::tree(&db, &args.tree, Access::Read)?;
    let (start, end) = bounds(prefix, from, to);
    let limit = args.limit.unwrap_or(u64::MAX);
    let mut entries = Limited {
        range: range(&tree, start, end),
        reverse: args.reverse,
        left: limit,
    };
    if args.count {
        let mut n = 0_u64;
        while let Some(entry) = entries.next() {
            entry?;
            n += 1;
        }
        stdout::print(n)?;
        return Ok(ExitCode::SUCCESS);
    }
    let fields = Fields::new("key", "value");
    let mut writer = Writer::new(args.format, Purpose::Show, args.encoding.hex, fields);
    let mut out = Out::new();
    while let Some(entry) = entries.next() {
        let (key, value) = entry?;
        out.append(|text| writer.write(text, &key, (!args.keys).then_some(&value)))?;
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

struct Limited {
    range: Option<Range>,
    reverse: bool,
    left: u64,
}

impl Limited {
    fn next(&mut self) -> Option<indexy::Result<(indexy::Key, indexy::Value)>> {
        self.left = self.left.checked_sub(1)?;
        let range = self.range.as_mut()?;
        if self.reverse {
            range.next_back()
        } else {
            range.next()
        }
    }
}

/// The range, unless it cannot hold a key.
fn range(tree: &Tree, start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Option<Range> {
    if let (Bound::Included(start), Bound::Excluded(end)) = (&start, &end)
        && start >= end
    {
        return None;
    }
    Some(tree.range::<Vec<u8>>((start, end)))
}

/// What `--prefix`, `--from` and `--to` have in common.
fn bounds(
    prefix: Option<Vec<u8>>,
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let prefix_end = prefix.as_deref().and_then(after_prefix);
    let start = prefix.into_iter().chain(from).max();
    let end = prefix_end.into_iter().chain(to).min();
    (
        start.map_or(Bound::Unbounded, Bound::Included),
        end.map_or(Bound::Unbounded, Bound::Excluded),
    )
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
        let some = |text: &str| Some(text.as_bytes().to_vec());
        let included = |text: &str| Bound::Included(text.as_bytes().to_vec());
        let excluded = |text: &str| Bound::Excluded(text.as_bytes().to_vec());
        assert_eq!(
            bounds(None, None, None),
            (Bound::Unbounded, Bound::Unbounded)
        );
        assert_eq!(
            bounds(some("ab"), None, None),
            (included("ab"), excluded("ac"))
        );
        assert_eq!(
            bounds(some("ab"), some("aa"), some("b")),
            (included("ab"), excluded("ac"))
        );
        assert_eq!(
            bounds(some("ab"), some("abc"), some("abd")),
            (included("abc"), excluded("abd"))
        );
        assert_eq!(
            bounds(None, some("z"), some("a")),
            (included("z"), excluded("a"))
        );
        assert_eq!(after_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(after_prefix(b"\xff"), None);
        assert_eq!(after_prefix(b""), None);
    }
}
