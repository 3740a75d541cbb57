//! `indexy-bench` with the contenders that need no other engine.

use std::process::ExitCode;

fn main() -> ExitCode {
    indexy_bench::main_with(&indexy_bench::registry::Registry::with_own())
}
