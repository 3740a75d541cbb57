//! `indexy scan`: prints or counts the records of a range, in either order.

use crate::{
    args::Scan,
    format::{Purpose, Writer, jsonl::Fields},
    range::KeyRange,
    stdout::{self, Out},
    store::{self, Access},
};
use indexy::Range;
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: &Scan) -> anyhow::Result<ExitCode> {
    let range = KeyRange::of(
        &args.encoding,
        args.prefix.as_ref(),
        args.from.as_ref(),
        args.to.as_ref(),
    )?;
    let db = store::open(&args.database, Access::Read)?;
    let tree = store::tree(&db, &args.tree, Access::Read)?;
    let mut entries = Limited {
        range: range.of_tree(&tree),
        reverse: args.reverse,
        left: args.limit.unwrap_or(u64::MAX),
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
    let written = std::iter::from_fn(|| entries.next()).try_for_each(|entry| {
        let (key, value) = entry?;
        out.append(|text| writer.write(text, &key, (!args.keys).then_some(&value)))
    });
    out.finish_after(written)?;
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
