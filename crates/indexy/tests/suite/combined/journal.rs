//! What a writer has done: for messages, and in a file for who looks after a kill.
//!
//! The file is written by plain writes: it survives the death of the process, not of the machine.

use super::model::Effect;
use serde::{Deserialize, Serialize};
use std::{collections::VecDeque, fmt::Write as _, fs::File, io::Write as _, path::Path};

/// Calls that are kept for messages.
const KEPT: usize = 30_000;
/// Calls that a message shows.
const SHOWN: usize = 12;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
enum Line {
    /// A call is about to be made.
    Began(Vec<Effect>),
    /// It has returned; false: it has done nothing.
    Ended(bool),
    /// What has ended before is durable.
    Durable,
}

#[derive(Default)]
pub struct Journal {
    file: Option<File>,
    calls: VecDeque<(String, Vec<Effect>)>,
}

impl Journal {
    /// Goes on with the journal at `path`.
    pub fn at(path: &Path) -> Self {
        let file = File::options().create(true).append(true).open(path);
        Self {
            file: Some(file.unwrap()),
            calls: VecDeque::new(),
        }
    }

    fn note(&mut self, line: &Line) {
        if let Some(file) = &mut self.file {
            let mut text = serde_json::to_string(line).unwrap();
            text.push('\n');
            file.write_all(text.as_bytes()).unwrap();
        }
    }

    /// Before the call `what`.
    pub fn begin(&mut self, what: String, effects: &[Effect]) {
        if self.file.is_some() {
            self.note(&Line::Began(effects.to_vec()));
        }
        if self.calls.len() == KEPT {
            self.calls.pop_front();
        }
        self.calls.push_back((what, effects.to_vec()));
    }

    /// After it.
    pub fn end(&mut self, done: bool) {
        self.note(&Line::Ended(done));
        if !done && let Some((what, _)) = self.calls.back_mut() {
            what.push_str(", which did nothing");
        }
    }

    pub fn durable(&mut self) {
        self.note(&Line::Durable);
    }

    /// The last calls, and those that touched `key`.
    pub fn tell(&self, tree: usize, key: &[u8]) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "last calls of key {key:?} of tree {tree}, newest first:"
        );
        let touching = self.calls.iter().enumerate().rev();
        let touching = touching.filter(|(_, (_, all))| all.iter().any(|e| e.touches(tree, key)));
        for (n, (what, effects)) in touching.take(SHOWN) {
            let own = effects.iter().filter(|e| e.touches(tree, key));
            let _ = writeln!(text, "  {n}: {what}: {:?}", own.collect::<Vec<_>>());
        }
        let _ = writeln!(text, "last calls of the writer, newest first:");
        for (n, (what, effects)) in self.calls.iter().enumerate().rev().take(SHOWN) {
            let _ = writeln!(text, "  {n}: {what}, {} effects", effects.len());
        }
        text
    }
}

/// What a journal says after a kill.
#[derive(Default)]
pub struct Record {
    /// Calls that have done something, or may have.
    pub calls: Vec<Vec<Effect>>,
    /// So many of them are durable for certain, if every acknowledged one is, or else.
    pub acknowledged: usize,
    pub durable: usize,
}

impl Record {
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut record = Self::default();
        for line in text.lines() {
            // The last one may have been cut off: what it was about has not begun.
            let Ok(line) = serde_json::from_str(line) else {
                break;
            };
            match line {
                Line::Began(effects) => record.calls.push(effects),
                Line::Ended(true) => record.acknowledged = record.calls.len(),
                Line::Ended(false) => drop(record.calls.pop()),
                Line::Durable => record.durable = record.acknowledged,
            }
        }
        record
    }

    /// Begins the journal anew, with the effects of one call that is durable.
    pub fn begin_with(path: &Path, effects: Vec<Effect>) {
        let lines = [Line::Began(effects), Line::Ended(true), Line::Durable];
        let lines = lines.map(|line| serde_json::to_string(&line).unwrap());
        let next = path.with_extension("next");
        std::fs::write(&next, lines.join("\n") + "\n").unwrap();
        std::fs::rename(next, path).unwrap();
    }
}
