//! Standard output: buffered, and quiet when the reader goes away (`indexy scan db | head -1`).

use std::{
    fmt,
    io::{self, StdoutLock, Write},
};

const BUFFER_BYTES: usize = 64 << 10;

/// The reader of standard output is gone: nobody is left to tell anything.
#[derive(Debug)]
pub struct ReaderGone;

impl fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reader of standard output is gone")
    }
}

impl std::error::Error for ReaderGone {}

/// Standard output of a command that writes much.
#[derive(Debug)]
pub struct Out {
    stdout: StdoutLock<'static>,
    buffer: Vec<u8>,
}

impl Out {
    /// Takes standard output.
    pub fn new() -> Self {
        Self {
            stdout: io::stdout().lock(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
        }
    }

    /// Lets `write` append to the buffer; writes it out when it is full.
    pub fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> anyhow::Result<()> {
        write(&mut self.buffer);
        if self.buffer.len() >= BUFFER_BYTES {
            self.write_out()?;
            self.buffer.shrink_to(2 * BUFFER_BYTES);
        }
        Ok(())
    }

    /// Writes what is left. Without it, output is lost.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.write_out()
    }

    /// The same when what was to be written is `written`, or failed half way: what came before the
    /// failure is worth having.
    pub fn finish_after(mut self, written: anyhow::Result<()>) -> anyhow::Result<()> {
        let rest = self.write_out();
        written.and(rest)
    }

    fn write_out(&mut self) -> anyhow::Result<()> {
        let result = self
            .stdout
            .write_all(&self.buffer)
            .and_then(|()| self.stdout.flush());
        self.buffer.clear();
        result.map_err(explain)
    }
}

/// Writes a short result.
pub fn print(text: impl fmt::Display) -> anyhow::Result<()> {
    let mut out = Out::new();
    out.append(|buffer| buffer.extend_from_slice(format!("{text}\n").as_bytes()))?;
    out.finish()
}

/// The same for a command that answers by its exit code, too: that does not depend on whether
/// somebody reads this.
pub fn print_if_read(text: impl fmt::Display) -> anyhow::Result<()> {
    match print(text) {
        Err(error) if error.is::<ReaderGone>() => Ok(()),
        printed => printed,
    }
}

fn explain(error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::BrokenPipe {
        ReaderGone.into()
    } else {
        anyhow::Error::new(error).context("cannot write to standard output")
    }
}

/// Says something on standard error; if nobody hears it, that is no failure.
pub fn say(text: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
