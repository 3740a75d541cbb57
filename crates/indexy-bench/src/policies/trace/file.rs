//! A trace from a file of the user's.
//!
//! A name that ends in `.u64`: numbers of eight bytes, little-endian, each the key of a read. Any
//! other file is text, an access a line: a number (decimal, up to 2^64 - 1), alone or after `r`
//! (read), `u` (read to be written) or `w` (written) and a space. Empty lines and those that begin
//! with `#` mean nothing.
//!
//! Numbers are keys in their order. They are packed: the k-th least number of the file becomes k.

use super::sequence::{Access, MOST_KEYS, Trace};
use std::{fs, io, path::Path};

/// Why a file is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A line that is no access.
    #[error(
        "{path}:{line}: {text:?} is no access: write a number up to 18446744073709551615, alone or \
         after `r`, `u` or `w` and a space"
    )]
    Line {
        /// The file.
        path: String,
        /// The line, from 1 on.
        line: usize,
        /// What it holds, its first 40 characters.
        text: String,
    },
    /// A file of numbers that ends within one.
    #[error("{path}: {bytes} bytes are no whole number of 8-byte keys")]
    Length {
        /// The file.
        path: String,
        /// Its length.
        bytes: usize,
    },
    /// Nothing is accessed.
    #[error("{path}: no accesses")]
    Empty {
        /// The file.
        path: String,
    },
    /// More accesses or distinct keys than a replay takes.
    #[error("{path}: {count} {what}; at most {most} are replayed")]
    TooMany {
        /// The file.
        path: String,
        /// How many there are.
        count: u64,
        /// Of what.
        what: &'static str,
        /// The limit.
        most: u64,
    },
}

/// A replay numbers accesses in 32 bits.
const MOST_ACCESSES: u64 = u32::MAX as u64 - 1;

/// The trace in the file at `path`.
pub fn read_file(path: &Path) -> Result<Trace, TraceError> {
    let shown = path.display().to_string();
    let bytes = fs::read(path).map_err(|source| TraceError::Io {
        path: shown.clone(),
        source,
    })?;
    let accesses = if path.extension().is_some_and(|e| e == "u64") {
        numbers(&shown, &bytes)?
    } else {
        lines(&shown, &bytes)?
    };
    packed(&shown, &accesses)
}

fn numbers(path: &str, bytes: &[u8]) -> Result<Vec<(u64, Access)>, TraceError> {
    let (words, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(TraceError::Length {
            path: path.to_owned(),
            bytes: bytes.len(),
        });
    }
    let keys = words.iter().map(|word| u64::from_le_bytes(*word));
    Ok(keys.map(|key| (key, Access::Read)).collect())
}

fn lines(path: &str, bytes: &[u8]) -> Result<Vec<(u64, Access)>, TraceError> {
    let mut accesses = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let access = access(line).ok_or_else(|| TraceError::Line {
            path: path.to_owned(),
            line: index + 1,
            text: String::from_utf8_lossy(line).chars().take(40).collect(),
        })?;
        accesses.push(access);
    }
    Ok(accesses)
}

fn access(line: &[u8]) -> Option<(u64, Access)> {
    let text = std::str::from_utf8(line).ok()?;
    let (access, number) = match text.split_once(' ') {
        None => (Access::Read, text),
        Some(("r", number)) => (Access::Read, number),
        Some(("u", number)) => (Access::Update, number),
        Some(("w", number)) => (Access::Write, number),
        Some(_) => return None,
    };
    let number = number.trim_start();
    // `parse` would take a sign.
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    Some((number.parse().ok().filter(|_| digits)?, access))
}

fn packed(path: &str, accesses: &[(u64, Access)]) -> Result<Trace, TraceError> {
    let path = path.to_owned();
    if accesses.is_empty() {
        return Err(TraceError::Empty { path });
    }
    let too_many = |count: usize, what, most| {
        let (path, count) = (path.clone(), count as u64);
        let error = TraceError::TooMany {
            path,
            count,
            what,
            most,
        };
        (count > most).then_some(error).map_or(Ok(()), Err)
    };
    too_many(accesses.len(), "accesses", MOST_ACCESSES)?;
    let mut keys: Vec<u64> = accesses.iter().map(|access| access.0).collect();
    keys.sort_unstable();
    keys.dedup();
    too_many(keys.len(), "distinct keys", MOST_KEYS)?;
    let name = Path::new(&path).file_stem();
    let name = name.map_or_else(|| "trace".into(), |name| name.to_string_lossy());
    let mut trace = Trace::new(&name, keys.len() as u32);
    for (key, access) in accesses {
        trace.push(keys.partition_point(|known| known < key) as u32, *access);
    }
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, bytes: &[u8]) -> Result<Trace, TraceError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        read_file(&path)
    }

    #[test]
    fn text_and_numbers_are_read_and_packed_in_order() {
        let text = b"# a trace\n700\r\n\n  r 5\nu 18446744073709551615\nw 700\n";
        let trace = read("mine.txt", text).unwrap();
        assert_eq!((trace.name.as_str(), trace.keys), ("mine", 3));
        let seen: Vec<_> = trace.iter().collect();
        let expected = [
            (1, Access::Read),
            (0, Access::Read),
            (2, Access::Update),
            (1, Access::Write),
        ];
        assert_eq!(seen, expected);
        let bytes: Vec<u8> = [9u64, 3, 9].iter().flat_map(|n| n.to_le_bytes()).collect();
        let keys: Vec<u32> = read("mine.u64", &bytes)
            .unwrap()
            .iter()
            .map(|a| a.0)
            .collect();
        assert_eq!(keys, [1, 0, 1]);
    }

    #[test]
    fn what_is_no_access_is_refused_with_its_line() {
        for bad in [
            "x",
            "-1",
            "+1",
            "1 2",
            "r",
            "r x",
            "18446744073709551616",
            "d 1",
        ] {
            let error = read("t", format!("1\n\n{bad}\n2\n").as_bytes()).unwrap_err();
            let line = matches!(error, TraceError::Line { line: 3, .. });
            assert!(
                line && error.to_string().contains("t:3: "),
                "{bad}: {error}"
            );
        }
        let error = read("t", b"1\n\xff\xfe\n").unwrap_err();
        assert!(matches!(error, TraceError::Line { line: 2, .. }));
        let error = read("t.u64", &[0; 15]).unwrap_err();
        assert!(matches!(error, TraceError::Length { bytes: 15, .. }));
        for (name, bytes) in [("t", &b"# nothing\n"[..]), ("t.u64", b"")] {
            let error = read(name, bytes).unwrap_err();
            assert!(matches!(error, TraceError::Empty { .. }));
        }
        let none = read_file(Path::new("/nowhere/t")).unwrap_err();
        assert!(matches!(none, TraceError::Io { .. }));
    }
}
