//! Asks before something is removed.

use crate::{args::Usage, stdout::say};
use anyhow::Context as _;
use std::io::{self, IsTerminal as _, Write as _};

/// True if the user says yes, by `--yes` or when asked on the terminal. The default is no.
///
/// `question` says what will be gone; it is built only if it is asked. Without a terminal nobody
/// can answer: that is a mistake of usage.
pub fn confirmed(
    yes: bool,
    question: impl FnOnce() -> anyhow::Result<String>,
) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    let (input, output) = (io::stdin(), io::stderr());
    if !input.is_terminal() || !output.is_terminal() {
        return Err(Usage(
            "nothing is removed without a confirmation; give --yes, because there is no \
             terminal to ask on"
                .into(),
        )
        .into());
    }
    let question = question()?;
    // A prompt that cannot be written is not answered either.
    let _ = write!(output.lock(), "{question}? [y/N] ");
    let mut answer = String::new();
    input
        .read_line(&mut answer)
        .context("cannot read the answer")?;
    let yes = is_yes(&answer);
    if !yes {
        say("nothing was removed");
    }
    Ok(yes)
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_yes_is_yes() {
        for yes in ["y", "Y\n", " yes\r\n", "YES"] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n", "no", "yess", "ye", "j"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }
}
