//! Tells the programs which commit they are built from, for the headers of their reports.

use std::{env, fs, path::Path, process::Command};

/// How many digits of a commit are shown.
const DIGITS: usize = 12;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// The commit that a package from a registry was made of.
fn packaged(manifest_dir: &Path) -> Option<String> {
    let info = fs::read_to_string(manifest_dir.join(".cargo_vcs_info.json")).ok()?;
    let (_, rest) = info.split_once("\"sha1\"")?;
    let commit = rest.split('"').nth(1)?;
    commit.get(..DIGITS).map(str::to_owned)
}

/// The commit of the repository that this crate is in; none if it lies in a stranger's.
fn checked_out(manifest_dir: &Path) -> Option<String> {
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let here = manifest_dir.strip_prefix(&top).ok()?;
    git(&[
        "ls-files",
        "--error-unmatch",
        "--",
        &format!(":/{}/Cargo.toml", here.display()),
    ])?;
    // The log of HEAD moves with every commit and checkout.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    git(&[
        "describe",
        "--always",
        "--dirty",
        &format!("--abbrev={DIGITS}"),
    ])
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let manifest_dir = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let manifest_dir = Path::new(&manifest_dir);
    if let Some(commit) = packaged(manifest_dir).or_else(|| checked_out(manifest_dir)) {
        println!("cargo:rustc-env=INDEXY_COMMIT={commit}");
    }
}
