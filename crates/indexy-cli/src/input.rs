//! Lines of a file or of standard input. Memory: the blocks read ahead, and one line.
//!
//! A thread reads blocks ahead, so that reading and writing overlap and so that a signal is noticed
//! while the input is silent. The thread ends with the input or when [`Lines`] is dropped; one that
//! is blocked on a silent terminal or pipe ends with the process.

use anyhow::Context as _;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    thread,
    time::Duration,
};

const BLOCK_BYTES: usize = 256 << 10;
/// Blocks that are read ahead.
const BLOCKS_AHEAD: usize = 4;
/// A line buffer above this is given back after its line.
const KEEP_LINE_BYTES: usize = 1 << 20;
/// How long to wait for input before [`Next::Silent`].
const SILENCE: Duration = Duration::from_millis(100);

/// Where lines come from.
#[derive(Debug)]
pub struct Source {
    /// For messages.
    pub name: String,
    /// Size in bytes, if it is known beforehand.
    pub size: Option<u64>,
    file: Option<File>,
}

impl Source {
    /// Opens `path`; `None` and `-` are standard input.
    pub fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path.filter(|p| *p != Path::new("-")) else {
            return Ok(Self {
                name: "standard input".into(),
                size: None,
                file: None,
            });
        };
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
        let meta = file
            .metadata()
            .with_context(|| format!("cannot read {name}"))?;
        anyhow::ensure!(!meta.is_dir(), "{name} is a directory");
        let size = meta.is_file().then_some(meta.len());
        Ok(Self {
            name,
            size,
            file: Some(file),
        })
    }

    /// Starts reading.
    pub fn lines(self) -> io::Result<Lines> {
        match self.file {
            Some(file) => Lines::new(file),
            None => Lines::new(io::stdin()),
        }
    }
}

/// What [`Lines::next`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A line without its line feed.
    Line(&'a [u8]),
    /// A line over the limit; it was skipped.
    TooLong,
    /// Nothing came for a moment; ask again.
    Silent,
    /// The end of the input.
    End,
}

/// Reads line by line.
#[derive(Debug)]
pub struct Lines {
    filled: Receiver<io::Result<Vec<u8>>>,
    empty: Sender<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
    carry: Vec<u8>,
    /// The beginning of the current line was thrown away.
    overlong: bool,
    /// The last line handed out was `carry`.
    carry_used: bool,
    consumed: u64,
    ended: bool,
}

impl Lines {
    fn new(mut input: impl Read + Send + 'static) -> io::Result<Self> {
        let (fill, filled) = bounded(BLOCKS_AHEAD);
        let (empty, emptied) = bounded::<Vec<u8>>(BLOCKS_AHEAD + 2);
        thread::Builder::new().name("input".into()).spawn(move || {
            loop {
                let mut block = emptied.try_recv().unwrap_or_default();
                block.resize(BLOCK_BYTES, 0);
                let result = read_block(&mut input, &mut block).map(|n| {
                    block.truncate(n);
                    block
                });
                let last = !matches!(&result, Ok(block) if !block.is_empty());
                if fill.send(result).is_err() || last {
                    return;
                }
            }
        })?;
        Ok(Self {
            filled,
            empty,
            block: Vec::new(),
            at: 0,
            carry: Vec::new(),
            overlong: false,
            carry_used: false,
            consumed: 0,
            ended: false,
        })
    }

    /// Bytes of the input that were handed out.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// The next line, or why there is none now. Of one that is longer than `longest` and than a
    /// block, nothing is kept.
    pub fn next(&mut self, longest: usize) -> io::Result<Next<'_>> {
        if std::mem::take(&mut self.carry_used) {
            self.carry.clear();
            self.carry.shrink_to(KEEP_LINE_BYTES);
        }
        loop {
            if let Some(n) = memchr::memchr(b'\n', &self.block[self.at..]) {
                let start = self.at;
                self.at += n + 1;
                self.consumed += n as u64 + 1;
                if self.carry.is_empty() && !self.overlong {
                    return Ok(Next::Line(&self.block[start..start + n]));
                }
                self.keep(start, n, longest);
                return Ok(self.hand_out());
            }
            let rest = self.block.len() - self.at;
            self.consumed += rest as u64;
            self.keep(self.at, rest, longest);
            self.at = self.block.len();
            if self.ended {
                return Ok(if self.carry.is_empty() && !self.overlong {
                    Next::End
                } else {
                    self.hand_out()
                });
            }
            match self.filled.recv_timeout(SILENCE) {
                Ok(block) => {
                    let old = std::mem::replace(&mut self.block, block?);
                    // The reader makes a new one if it cannot have this one.
                    let _ = self.empty.try_send(old);
                    self.at = 0;
                }
                Err(RecvTimeoutError::Timeout) => return Ok(Next::Silent),
                Err(RecvTimeoutError::Disconnected) => self.ended = true,
            }
        }
    }

    /// Adds part of the block to the line that began in an earlier one.
    fn keep(&mut self, start: usize, n: usize, longest: usize) {
        if self.overlong || self.carry.len() + n > longest {
            self.overlong = true;
            self.carry = Vec::new();
        } else {
            self.carry.extend_from_slice(&self.block[start..start + n]);
        }
    }

    fn hand_out(&mut self) -> Next<'_> {
        if std::mem::take(&mut self.overlong) {
            return Next::TooLong;
        }
        self.carry_used = true;
        Next::Line(&self.carry)
    }
}

/// One read; several would hold back the lines of a slow pipe.
fn read_block(input: &mut impl Read, block: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(block) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives `data` in pieces of `step` bytes.
    struct Pieces(Vec<u8>, usize, usize);

    impl Read for Pieces {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = self.2.min(self.0.len() - self.1).min(buf.len());
            buf[..n].copy_from_slice(&self.0[self.1..self.1 + n]);
            self.1 += n;
            Ok(n)
        }
    }

    fn all(data: &[u8], step: usize) -> Vec<Vec<u8>> {
        all_up_to(data, step, usize::MAX)
    }

    fn all_up_to(data: &[u8], step: usize, longest: usize) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(Pieces(data.to_vec(), 0, step)).unwrap();
        let mut out = Vec::new();
        loop {
            match lines.next(longest).unwrap() {
                Next::Line(line) => out.push(line.to_vec()),
                Next::Silent => {}
                Next::TooLong => out.push(b"too long".to_vec()),
                Next::End => break,
            }
        }
        assert_eq!(lines.consumed(), data.len() as u64);
        out
    }

    #[test]
    fn lines_do_not_depend_on_blocks() {
        for data in [
            &b""[..],
            b"\n",
            b"a",
            b"a\n",
            b"a\n\n",
            b"\na",
            b"one\ntwo\r\nthree\n\nfive",
        ] {
            let mut expected: Vec<_> = data.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
            if expected.last().is_some_and(Vec::is_empty) {
                expected.pop();
            }
            for step in [1, 2, 3, 1000] {
                assert_eq!(all(data, step), expected, "{data:?} by {step}");
            }
        }
    }

    #[test]
    fn a_line_longer_than_blocks() {
        let mut data = vec![b'x'; 3 * BLOCK_BYTES + 17];
        data.push(b'\n');
        data.extend_from_slice(b"end");
        let lines = all(&data, BLOCK_BYTES);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].len(), 3 * BLOCK_BYTES + 17);
        assert_eq!(lines[1], b"end");
        let lines = all_up_to(&data, BLOCK_BYTES, 2 * BLOCK_BYTES);
        assert_eq!(lines, [&b"too long"[..], b"end"]);
    }
}
