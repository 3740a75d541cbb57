//! The JSON of a whole run, and the directory that its files go to.

use crate::{measure::RunResult, suite::core::Row};
use indexy_report::machine::{Machine, commit, now_utc};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The version of this JSON; readers refuse others.
pub const FORMAT: u32 = 1;

/// Everything that a run of the tool found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Version of this shape.
    pub format: u32,
    /// What was run: `core`, `figures`, `ycsb`.
    pub kind: String,
    /// The command line.
    pub command: Vec<String>,
    /// When it began, in UTC.
    pub started: String,
    /// The commit that the program was built from.
    pub commit: String,
    /// Where it ran.
    pub machine: Machine,
    /// True if it was interrupted.
    pub interrupted: bool,
    /// Goals and verdicts, if the suite has them.
    pub rows: Vec<Row>,
    /// Every run.
    pub results: Vec<RunResult>,
}

/// Why a document could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Not one of our results.
    #[error("{}: not a result of indexy-bench: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What does not parse.
        source: serde_json::Error,
    },
    /// Written by another version.
    #[error("{}: has format {found}, this program reads {FORMAT}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
    },
}

impl Document {
    /// An empty document of this moment; `data` is where the contenders write.
    pub fn begin(kind: &str, data: &Path) -> Self {
        Self {
            format: FORMAT,
            kind: kind.to_owned(),
            command: command_line(),
            started: now_utc(),
            commit: commit().to_owned(),
            machine: Machine::here(data),
            interrupted: false,
            rows: Vec::new(),
            results: Vec::new(),
        }
    }

    /// Reads a document.
    pub fn read(path: &Path) -> Result<Self, DocumentError> {
        let io = |source| DocumentError::Io {
            path: path.to_path_buf(),
            source,
        };
        let text = fs::read_to_string(path).map_err(io)?;
        let json = |source| DocumentError::Json {
            path: path.to_path_buf(),
            source,
        };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(json)?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(found) if found != u64::from(FORMAT) => Err(DocumentError::Format {
                path: path.to_path_buf(),
                found: found as u32,
            }),
            _ => serde_json::from_value(value).map_err(json),
        }
    }

    /// Names of the scenarios, in the order of their first run.
    pub fn scenarios(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for result in &self.results {
            if !names.contains(&result.scenario) {
                names.push(result.scenario.clone());
            }
        }
        names
    }
}

/// The arguments, and the program by its name alone: where it lies says nothing about the result.
fn command_line() -> Vec<String> {
    let mut words: Vec<String> = std::env::args().collect();
    if let Some(program) = words.first_mut() {
        let name = Path::new(program.as_str()).file_name();
        *program = name.map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    }
    words
}
