//! The command line.

use clap::{Args, Parser, Subcommand};
use std::{net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

/// A memory server: memory that compute servers reach by verbs.
#[derive(Debug, Parser)]
#[command(
    name = "indexy-pool",
    version,
    after_help = "Exit codes: 0 done, or ended by SIGTERM or SIGINT; 1 failed; 2 wrong flags.\n\
                  The pool is memory: what it holds ends with the process."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serves a region of memory until SIGTERM or SIGINT.
    Serve(Serve),
    /// Prints how memory servers are: memory, connections, owners and their leases.
    Status(Status),
}

/// Serves a region.
#[derive(Debug, Args)]
pub struct Serve {
    /// Where to listen: an address and port (0: any), or the path of a Unix socket. Over a socket
    /// compute servers of this machine read the memory themselves.
    #[arg(value_name = "ADDRESS|PATH")]
    pub place: Place,
    /// Offloaded operations that run at a time.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = parse_threads)]
    pub threads: usize,
    /// What is served.
    #[command(flatten)]
    pub region: RegionFlags,
}

/// What every memory server has, whatever its network.
#[derive(Debug, Args)]
pub struct RegionFlags {
    /// Size of the region, for example 512MiB or 4GiB.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: u64,
    /// How long a compute server may be silent until others may replace it, in milliseconds. All
    /// memory servers of a pool have the same.
    #[arg(long, value_name = "MS", default_value = "2000", value_parser = parse_lease)]
    pub lease_ms: Duration,
    /// Where the secret is.
    #[command(flatten)]
    pub secret: Secrets,
}

/// Asks memory servers.
#[derive(Debug, Args)]
pub struct Status {
    /// Memory servers.
    #[arg(value_name = "ADDRESS|PATH", required = true)]
    pub places: Vec<Place>,
    /// Where the secret is.
    #[command(flatten)]
    pub secret: Secrets,
}

/// The environment variable with the secret, if no file has it. It is no flag: everyone on the
/// machine sees a command's flags.
pub const SECRET_VARIABLE: &str = "INDEXY_POOL_SECRET";

/// Where the secret is that all servers of a pool share.
#[derive(Debug, Args)]
pub struct Secrets {
    /// A file with the secret: 16 bytes or more; a newline at its end does not count. Without it
    /// the secret is what INDEXY_POOL_SECRET holds.
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
}

/// Where a memory server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// TCP.
    Address(SocketAddr),
    /// A Unix socket, over which the memory is shared.
    Path(PathBuf),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        if text.contains('/') {
            return Ok(Self::Path(text.into()));
        }
        let what = "neither an address with a port (127.0.0.1:7000) nor a path with a '/'";
        Err(format!("{what}: {text}"))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

/// Regions are multiples of this.
const PAGE: u64 = 4096;

fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let scale: u64 = match unit.trim() {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "" | "B" => 1,
        _ => return Err("a number with KiB, MiB or GiB, as in 512MiB".into()),
    };
    let number: u64 = number.parse().map_err(|_| "no number".to_string())?;
    let bytes = number.checked_mul(scale).ok_or("too large")?;
    match bytes.next_multiple_of(PAGE) {
        ..8192 => Err("a region has 8KiB or more".into()),
        bytes if bytes < 1 << 47 => Ok(bytes),
        _ => Err("a region is smaller than 128 TiB".into()),
    }
}

fn parse_threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=1024) => Ok(threads),
        _ => Err("1 to 1024".into()),
    }
}

fn parse_lease(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(ms @ 50..=4000) => Ok(Duration::from_millis(ms)),
        _ => Err("50 to 4000: compute servers wait 5 seconds for each other's locks".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_places_are_read() {
        assert_eq!(parse_size("1GiB"), Ok(1 << 30));
        assert_eq!(parse_size("10000"), Ok(12_288));
        for wrong in [
            "",
            "GiB",
            "1GB",
            "-1MiB",
            "4KiB",
            "99999999999GiB",
            "200000GiB",
        ] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        assert!(matches!("[::1]:7".parse(), Ok(Place::Address(_))));
        assert!(matches!("./pool".parse(), Ok(Place::Path(_))));
        assert!("pool".parse::<Place>().is_err());
    }
}
