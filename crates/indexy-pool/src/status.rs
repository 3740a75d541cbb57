//! `status`: one line for each memory server, and one for each session.

use crate::{
    args::{Place, Status},
    secret,
};
use anyhow::{Context, Result};
use indexy_dex::remote::{PoolStatus, shm, tcp};
use std::{
    io::{self, Write},
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn run(status: &Status) -> Result<()> {
    let secret = secret::read(&status.secret)?;
    let mut out = io::stdout().lock();
    for place in &status.places {
        let asked = match place {
            Place::Address(address) => tcp::status(*address, &secret, PATIENCE),
            Place::Path(path) => shm::status(path, &secret, PATIENCE),
        };
        let answer = asked.with_context(|| place.to_string())?;
        print(&mut out, place, &answer)?;
    }
    Ok(())
}

fn print(out: &mut impl Write, place: &Place, status: &PoolStatus) -> Result<()> {
    let percent = 100.0 * status.used_bytes as f64 / status.bytes.max(1) as f64;
    writeln!(
        out,
        "{place}: {} of {} bytes used ({percent:.1} %), {} connections, leases of {} ms",
        status.used_bytes,
        status.bytes,
        status.connections,
        status.lease.as_millis(),
    )?;
    for session in &status.sessions {
        let left = session.lease_left.as_millis();
        let lease = match left {
            0 => "lease lapsed".to_string(),
            left => format!("lease ends in {left} ms"),
        };
        writeln!(
            out,
            "  owner {}: session {}, {lease}",
            session.owner, session.session
        )?;
    }
    Ok(())
}
