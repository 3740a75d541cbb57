//! `indexy get`: prints the value of a key; exit code 1 if there is none.

use crate::{
    args::Get,
    exit,
    stdout::{Out, say},
    store::{self, Access},
};
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: &Get) -> anyhow::Result<ExitCode> {
    let key = args.encoding.bytes("KEY", &args.key)?;
    let db = store::open(&args.database, Access::Read)?;
    let tree = store::tree(&db, &args.tree, Access::Read)?;
    let Some(value) = tree.get(&key)? else {
        let shown = args.encoding.encoding().shown(&key);
        say(format_args!("key not found: {shown}"));
        return Ok(ExitCode::from(exit::FAILED));
    };
    let mut out = Out::new();
    out.append(|text| {
        if args.raw {
            text.extend_from_slice(&value);
        } else {
            args.encoding.encoding().show_into(text, &value);
            text.push(b'\n');
        }
    })?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}
