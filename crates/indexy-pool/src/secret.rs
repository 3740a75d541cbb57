//! The secret that all servers of a pool share: from a file, or from the environment.

use crate::args::{SECRET_VARIABLE, Secrets};
use anyhow::{Context, Result, bail};
use indexy_dex::remote::Secret;
use std::fs;

/// Longest file that is read for a secret.
const MAX_BYTES: u64 = 4096;

pub(crate) fn read(from: &Secrets) -> Result<Secret> {
    let Some(path) = &from.secret_file else {
        let Ok(word) = std::env::var(SECRET_VARIABLE) else {
            bail!("no secret: pass --secret-file FILE, or set {SECRET_VARIABLE}");
        };
        return Secret::new(word).context(SECRET_VARIABLE);
    };
    let shown = path.display();
    let length = fs::metadata(path).with_context(|| format!("the secret's file {shown}"))?;
    if length.len() > MAX_BYTES {
        bail!("the secret's file {shown} is larger than {MAX_BYTES} bytes");
    }
    let mut bytes = fs::read(path).with_context(|| format!("the secret's file {shown}"))?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Secret::new(bytes).with_context(|| format!("the secret's file {shown}"))
}
