//! A run on its way: the backing gets it, and it is kept until the pool may have it too (I5: nobody
//! sees it before the log has it).
//!
//! The first 256 KiB are kept in memory, the rest in a file without a name. An entry is the lengths
//! of key and value (4 bytes each; the value's is `u32::MAX` for a delete), the checksum of both
//! (4), and their bytes.

use indexy::{
    Error, Result,
    index_y::{RunEntry, RunSource},
};
use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, Read, Seek, Write},
    path::{Path, PathBuf},
};

/// What a run takes while it is written, with the buffers of its file.
pub(crate) const MEMORY_BYTES: usize = KEPT_BYTES + 2 * BUFFER_BYTES;
const KEPT_BYTES: usize = 256 << 10;
const BUFFER_BYTES: usize = 64 << 10;
const FILE: &str = "run.staged";
const DELETE: u32 = u32::MAX;
const HEAD_BYTES: usize = 12;

/// Passes a run on, and keeps it.
pub(crate) struct Staged<'a> {
    source: &'a mut dyn RunSource,
    max_key_bytes: usize,
    /// `None`: nobody wants it.
    kept: Option<Result<Kept>>,
}

/// The entries of a run.
pub(crate) struct Kept {
    path: PathBuf,
    memory: Vec<u8>,
    file: Option<BufWriter<File>>,
}

fn checksum(key: &[u8], value: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key), value)
}

impl<'a> Staged<'a> {
    /// `keeps`: somebody wants the entries afterwards.
    pub(crate) fn new(
        source: &'a mut dyn RunSource,
        max_key_bytes: usize,
        dir: &Path,
        keeps: bool,
    ) -> Self {
        let kept = || Kept {
            path: dir.join(FILE),
            memory: Vec::new(),
            file: None,
        };
        Self {
            source,
            max_key_bytes,
            kept: keeps.then(|| Ok(kept())),
        }
    }

    /// `None`: nobody wanted them. An error: they could not be kept; the backing has them.
    pub(crate) fn into_kept(self) -> Option<Result<Kept>> {
        self.kept
    }
}

impl RunSource for Staged<'_> {
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
        let (limit, kept) = (self.max_key_bytes, &mut self.kept);
        self.source.drain(&mut |(key, value)| {
            if key.len() > limit {
                let len = key.len();
                return Err(Error::KeyTooLong { len, limit });
            }
            if let Some(Ok(entries)) = kept
                && let Err(error) = entries.add(key, value)
            {
                *kept = Some(Err(error));
            }
            sink((key, value))
        })
    }

    fn before_publish(&mut self) -> Result<()> {
        self.source.before_publish()
    }
}

impl Kept {
    fn add(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let length = value.map_or(DELETE, |value| value.len() as u32);
        let value = value.unwrap_or(&[]);
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&(key.len() as u32).to_le_bytes());
        head[4..8].copy_from_slice(&length.to_le_bytes());
        head[8..].copy_from_slice(&checksum(key, value).to_le_bytes());
        let parts = [&head[..], key, value];
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if self.file.is_none() && self.memory.len() + bytes <= KEPT_BYTES {
            self.memory.reserve(bytes);
            parts
                .iter()
                .for_each(|part| self.memory.extend_from_slice(part));
            return Ok(());
        }
        let path = &self.path;
        let file = match &mut self.file {
            Some(file) => file,
            None => self
                .file
                .insert(create(path).map_err(|e| Error::io("create", path, e))?),
        };
        let written = parts.iter().try_for_each(|part| file.write_all(part));
        written.map_err(|e| Error::io("write", path, e))
    }

    /// Gives the entries in order. An error: what was kept cannot be read again.
    pub(crate) fn each(self, mut apply: impl FnMut(&[u8], Option<&[u8]>)) -> io::Result<()> {
        read(&self.memory[..], &mut apply)?;
        let Some(file) = self.file else {
            return Ok(());
        };
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        read(BufReader::with_capacity(BUFFER_BYTES, file), &mut apply)
    }
}

/// A file that goes when it is closed.
fn create(path: &Path) -> io::Result<BufWriter<File>> {
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(true);
    let file = options.open(path)?;
    fs::remove_file(path)?;
    Ok(BufWriter::with_capacity(BUFFER_BYTES, file))
}

fn read(mut from: impl Read, apply: &mut impl FnMut(&[u8], Option<&[u8]>)) -> io::Result<()> {
    let damaged = || io::Error::from(io::ErrorKind::InvalidData);
    let (mut head, mut bytes) = ([0; HEAD_BYTES], Vec::new());
    loop {
        // The end is where a head would begin.
        if from.read(&mut head[..1])? == 0 {
            return Ok(());
        }
        from.read_exact(&mut head[1..])?;
        let (words, _) = head.as_chunks::<4>();
        let [key, value, sum] = *words else {
            return Err(damaged());
        };
        let [key, value, sum] = [key, value, sum].map(u32::from_le_bytes);
        let stored = if value == DELETE { 0 } else { value };
        let bytes_in_all = u64::from(key) + u64::from(stored);
        bytes.clear();
        if (&mut from).take(bytes_in_all).read_to_end(&mut bytes)? as u64 != bytes_in_all {
            return Err(damaged());
        }
        let (key, stored) = bytes.split_at(key as usize);
        if checksum(key, stored) != sum {
            return Err(damaged());
        }
        apply(key, (value != DELETE).then_some(stored));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbers(u32);

    fn entry(i: u32) -> (Vec<u8>, Option<Vec<u8>>) {
        let value = (!i.is_multiple_of(5)).then(|| vec![i as u8; (i % 300) as usize]);
        (i.to_be_bytes().to_vec(), value)
    }

    impl RunSource for Numbers {
        fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
            (0..self.0)
                .map(entry)
                .try_for_each(|(key, value)| sink((&key, value.as_deref())))
        }

        fn before_publish(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn runs_of_any_size_come_back() {
        let dir = tempfile::tempdir().unwrap();
        for entries in [0, 10, 20_000] {
            let mut source = Numbers(entries);
            let mut staged = Staged::new(&mut source, 16, dir.path(), true);
            let mut passed = 0;
            let mut count = |_: RunEntry<'_>| {
                passed += 1;
                Ok(())
            };
            staged.drain(&mut count).unwrap();
            let kept = staged.into_kept().unwrap().unwrap();
            assert_eq!(kept.file.is_some(), entries > 10);
            assert!(kept.memory.len() <= KEPT_BYTES);
            let mut i = 0;
            let each = kept.each(|key, value| {
                let (expected, with) = entry(i);
                assert_eq!((key, value), (&expected[..], with.as_deref()));
                i += 1;
            });
            each.unwrap();
            assert_eq!((i, passed), (entries, entries));
        }
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            0,
            "the file has no name"
        );
    }

    /// The backing gets all of it.
    #[test]
    fn a_run_that_cannot_be_kept_is_passed_on() {
        let missing = Path::new("/proc/no such directory");
        for keeps in [false, true] {
            let mut source = Numbers(20_000);
            let mut staged = Staged::new(&mut source, 16, missing, keeps);
            let mut passed = 0;
            let mut count = |_: RunEntry<'_>| {
                passed += 1;
                Ok(())
            };
            staged.drain(&mut count).unwrap();
            assert_eq!(passed, 20_000);
            let kept = staged.into_kept();
            assert_eq!(kept.is_some_and(|kept| kept.is_err()), keeps);
        }
    }

    #[test]
    fn what_is_damaged_is_an_error() {
        let mut whole = Kept {
            path: PathBuf::new(),
            memory: Vec::new(),
            file: None,
        };
        whole.add(b"key", Some(b"value")).unwrap();
        for at in 0..whole.memory.len() {
            let mut bytes = whole.memory.clone();
            bytes[at] ^= 1;
            assert!(read(&bytes[..], &mut |_, _| {}).is_err(), "byte {at}");
            assert!(
                at == 0 || read(&whole.memory[..at], &mut |_, _| {}).is_err(),
                "cut at {at}"
            );
        }
    }
}
