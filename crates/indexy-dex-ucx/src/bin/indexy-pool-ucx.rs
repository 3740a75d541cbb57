//! A memory server over UCX. Exit codes: 0 ended by SIGTERM or SIGINT; 1 failed; 2 wrong flags.

#![forbid(unsafe_code)]

use anyhow::Context as _;
use clap::Parser;
use indexy_dex::offload;
use indexy_dex_ucx::UcxServer;
use indexy_pool::RegionFlags;
use std::{net::SocketAddr, process::ExitCode};

/// A memory server that compute servers reach by UCX. `indexy-pool status` asks it how it is.
#[derive(Debug, Parser)]
#[command(
    name = "indexy-pool-ucx",
    version,
    after_help = "UCX_TLS chooses UCX's transports: shm,self; tcp,self; or what the machine has.\n\
                  Over TCP, UCX checks no key: whoever reaches UCX's ports reaches the memory.\n\
                  Exit codes: 0 ended by SIGTERM or SIGINT; 1 failed; 2 wrong flags.\n\
                  The pool is memory: what it holds ends with the process."
)]
struct Cli {
    /// Where compute servers connect by TCP to prove themselves: an address and port (0: any).
    #[arg(value_name = "ADDRESS")]
    address: SocketAddr,
    /// What is served.
    #[command(flatten)]
    region: RegionFlags,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    indexy_pool::exit(indexy_pool::until_a_signal(
        &cli.region,
        |bytes, secret, lease| {
            let server = UcxServer::start(cli.address, bytes, offload::serve, secret, lease);
            let server = server.with_context(|| format!("cannot serve at {}", cli.address))?;
            let place = server.address().to_string();
            Ok((server, place))
        },
    ))
}
