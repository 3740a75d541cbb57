//! A file that is read and never written: what redb writes stays in memory.
//!
//! redb opens a file read-only only if it was closed in good order. After a kill it has to repair
//! it first, which takes a few pages (`engine.rs` has it save its free space with every durable
//! commit). Here they go.

use redb::StorageBackend;
use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::File,
    io::{self, ErrorKind},
    os::unix::fs::FileExt,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

const PAGE_BYTES: usize = 4096;

#[derive(Debug)]
pub(crate) struct Overlay {
    file: File,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    len: u64,
    /// Pages that were written, by number.
    pages: BTreeMap<u64, Box<[u8; PAGE_BYTES]>>,
}

impl Overlay {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        if len == 0 {
            // redb would make a new database of it.
            return Err(io::Error::new(ErrorKind::InvalidData, "the file is empty"));
        }
        let pages = BTreeMap::new();
        Ok(Self {
            file,
            state: Mutex::new(State { len, pages }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills `out` from the file, with zeros beyond its end.
    fn read_file(&self, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
        while !out.is_empty() {
            match self.file.read_at(out, offset) {
                Ok(0) => break,
                Ok(n) => {
                    out = &mut out[n..];
                    offset += n as u64;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        out.fill(0);
        Ok(())
    }
}

/// Parts of `[offset, offset + len)`: number of a page, where in it, and how many bytes.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let (mut at, end) = (offset, offset + len as u64);
    std::iter::from_fn(move || {
        let within = (at % PAGE_BYTES as u64) as usize;
        let bytes = (PAGE_BYTES - within).min((end - at) as usize);
        let part = (bytes > 0).then_some((at / PAGE_BYTES as u64, within, bytes));
        at += bytes as u64;
        part
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if offset.saturating_add(out.len() as u64) > self.state().len {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.read_file(offset, out)?;
        let state = self.state();
        let mut done = 0;
        for (page, within, bytes) in parts(offset, out.len()) {
            if let Some(written) = state.pages.get(&page) {
                out[done..done + bytes].copy_from_slice(&written[within..within + bytes]);
            }
            done += bytes;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        if len < state.len {
            return Err(io::Error::new(
                ErrorKind::Unsupported,
                "the file is read-only",
            ));
        }
        state.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let mut done = 0;
        for (number, within, bytes) in parts(offset, data.len()) {
            let page = match state.pages.entry(number) {
                Entry::Occupied(page) => page.into_mut(),
                Entry::Vacant(place) => {
                    let mut page = Box::new([0; PAGE_BYTES]);
                    self.read_file(number * PAGE_BYTES as u64, &mut page[..])?;
                    place.insert(page)
                }
            };
            page[within..within + bytes].copy_from_slice(&data[done..done + bytes]);
            done += bytes;
        }
        Ok(())
    }
}
