//! The binary `indexy-sql`: one SQL query over the tables of a database.
//!
//! The exit codes are those of `indexy`; for users they stand at the end of `indexy-sql --help`.

#![forbid(unsafe_code)]

mod args;
mod output;
mod store;

use anyhow::Context as _;
use args::{Cli, Usage};
use clap::Parser as _;
use datafusion::{error::DataFusionError, execution::SendableRecordBatchStream};
use futures::StreamExt as _;
use indexy_datafusion::{Error, SqlDb, SqlOptions, datafusion};
use indexy_table::Tables;
use output::{Output, ReaderGone};
use std::{
    io::{IsTerminal as _, Read as _, Write as _},
    process::ExitCode,
};

/// A failure.
const FAILED: u8 = 1;
/// The command line makes no sense; nothing was done.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let Err(error) = run(&Cli::parse()) else {
        return ExitCode::SUCCESS;
    };
    if error.is::<ReaderGone>() {
        return ExitCode::SUCCESS;
    }
    // If nobody hears it, that is no failure.
    let _ = writeln!(std::io::stderr(), "error: {error:#}");
    ExitCode::from(if error.is::<Usage>() { USAGE } else { FAILED })
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    let statement = statement(cli)?;
    let db = store::open(&cli.path, cli.budget)?;
    let tables = Tables::open(&db)?;
    let mut options = SqlOptions::new();
    if let Some(threads) = cli.threads {
        options = options.threads(threads);
    }
    if let Some(bytes) = cli.memory {
        let bytes =
            usize::try_from(bytes).context("the memory is larger than the address space")?;
        options = options.memory_bytes(bytes);
    }
    let sql = SqlDb::with_options(&tables, &options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().build();
    let runtime = runtime.context("cannot start threads")?;
    runtime.block_on(async {
        let stream = sql.query(&statement).await?.execute_stream().await;
        print(cli, stream.map_err(Error::from)?).await
    })
}

/// The statement of the command line, or of standard input.
fn statement(cli: &Cli) -> anyhow::Result<String> {
    let given = cli.statement.as_deref().filter(|text| *text != "-");
    let statement = match given {
        Some(statement) => statement.to_owned(),
        None if cli.statement.is_none() && std::io::stdin().is_terminal() => {
            return Err(Usage("no statement; give one, or send it to standard input").into());
        }
        None => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.context("cannot read standard input")?;
            text
        }
    };
    match statement.trim().is_empty() {
        true => Err(Usage("an empty statement").into()),
        false => Ok(statement),
    }
}

async fn print(cli: &Cli, mut stream: SendableRecordBatchStream) -> anyhow::Result<()> {
    let mut output = Output::new(cli.format, stream.schema());
    while let Some(batch) = stream.next().await {
        output.write(batch.map_err(|error: DataFusionError| Error::from(error))?)?;
    }
    output.finish()
}
