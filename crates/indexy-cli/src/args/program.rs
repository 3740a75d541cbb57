//! Commands that need no database: `completions` and `demo`.

use clap::Args;
use clap_complete::Shell;
use indexy_report::size::parse_size;
use std::path::PathBuf;

/// `completions`
#[derive(Debug, Args)]
#[command(after_help = "\
For instance, for the shell of the current user:
  bash  indexy completions bash > ~/.local/share/bash-completion/completions/indexy
  zsh   indexy completions zsh > ~/.zfunc/_indexy     (a directory of $fpath)
  fish  indexy completions fish > ~/.config/fish/completions/indexy.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// `demo`
#[derive(Debug, Args)]
pub struct Demo {
    /// How long it may take, about
    #[arg(
        long,
        value_name = "N",
        default_value_t = 75,
        value_parser = clap::value_parser!(u64).range(3..=3600)
    )]
    pub seconds: u64,
    /// Memory budget
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = parse_size)]
    pub budget: u64,
    /// Where the report goes
    #[arg(long, value_name = "PATH", default_value = "indexy-demo.html")]
    pub report: PathBuf,
}
