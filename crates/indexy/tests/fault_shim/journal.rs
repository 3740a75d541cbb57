//! The journal: everything that was done to the files below a directory, in the order in which it
//! was done.
//!
//! `INDEXY_JOURNAL=<file>:<directory>`. With it a sync does nothing but appear in the journal: what
//! is durable is for who reads it to say (`tests/suite/disk_image.rs`). Calls on these files are
//! serial, so that the order is the true one.
//!
//! A record: operation (1 byte), two numbers (8 bytes each), two strings (4 bytes of length each),
//! all little-endian.
//!
//! | op | meaning | numbers | strings |
//! |---|---|---|---|
//! | c | a file was created | inode | path |
//! | d | a directory was made | inode | path |
//! | w | written | inode, offset | bytes |
//! | t | the length was set | inode, length | |
//! | s | file or directory synced | inode | |
//! | r, l | renamed, linked | | from, to |
//! | u, x | file, directory removed | | path |
//! | m | a mark of the test | | text |

use crate::{WriteAt, path_of, real};
use std::{
    ffi::{c_char, c_int, c_uint, c_void},
    os::unix::fs::MetadataExt,
    sync::{Mutex, OnceLock},
};

type Open = unsafe extern "C" fn(*const c_char, c_int, c_uint) -> c_int;
type Close = unsafe extern "C" fn(c_int) -> c_int;
type Seek = unsafe extern "C" fn(c_int, i64, c_int) -> i64;
type Write = unsafe extern "C" fn(c_int, *const c_void, usize) -> isize;

// Write-only, create, append, close-on-exec.
const O_JOURNAL: c_int = 0o1 | 0o100 | 0o2000 | 0o2000000;
const O_READ: c_int = 0o2000000;
const SEEK_CUR: c_int = 1;

struct Journal {
    fd: c_int,
    root: String,
}

static JOURNAL: OnceLock<Option<Journal>> = OnceLock::new();
/// Held while a call is made and noted.
static ORDER: Mutex<()> = Mutex::new(());

fn journal() -> Option<&'static Journal> {
    let open = || {
        let setting = std::env::var("INDEXY_JOURNAL").ok()?;
        let (file, root) = setting.split_once(':')?;
        let fd = open_real(file, O_JOURNAL);
        assert!(fd >= 0, "cannot open {file}");
        Some(Journal {
            fd,
            root: format!("{root}/"),
        })
    };
    JOURNAL.get_or_init(open).as_ref()
}

fn open_real(path: &str, flags: c_int) -> c_int {
    let path = format!("{path}\0");
    // SAFETY: it ends with a zero byte.
    unsafe { real!("open64", Open)(path.as_ptr().cast(), flags, 0o644) }
}

impl Journal {
    /// `path` below the directory.
    fn inside<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(&self.root)
    }

    fn note(&self, op: u8, a: u64, b: u64, first: &[u8], second: &[u8]) {
        let mut record = vec![op];
        record.extend(a.to_le_bytes());
        record.extend(b.to_le_bytes());
        for text in [first, second] {
            record.extend((text.len() as u32).to_le_bytes());
            record.extend(text);
        }
        let mut rest = &record[..];
        while !rest.is_empty() {
            // SAFETY: the bytes of a slice.
            let n = unsafe { real!("write", Write)(self.fd, rest.as_ptr().cast(), rest.len()) };
            assert!(n > 0, "the journal cannot be written");
            rest = &rest[n as usize..];
        }
    }
}

fn inode_and_len(path: &str) -> (u64, u64) {
    std::fs::metadata(path).map_or((0, 0), |meta| (meta.ino(), meta.len()))
}

fn of_fd(fd: c_int) -> String {
    format!("/proc/self/fd/{fd}")
}

/// What stands at `at` of a file that may be open for writing only.
fn bytes_of(fd: c_int, at: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let reader = open_real(&of_fd(fd), O_READ);
    let mut done = 0;
    while done < len {
        let rest = &mut bytes[done..];
        // SAFETY: room of a slice.
        let n = unsafe {
            real!("pread64", WriteAt)(
                reader,
                rest.as_mut_ptr().cast(),
                rest.len(),
                (at as usize + done) as i64,
            )
        };
        assert!(n > 0, "what was written cannot be read back");
        done += n as usize;
    }
    // SAFETY: ours.
    unsafe { real!("close", Close)(reader) };
    bytes
}

pub fn mark(text: &str) {
    if let Some(journal) = journal() {
        let _order = ORDER.lock().unwrap();
        journal.note(b'm', 0, 0, text.as_bytes(), &[]);
    }
}

pub fn opened(path: &str, truncates: bool, open: impl FnOnce() -> c_int) -> c_int {
    let Some((journal, inside)) = journal().and_then(|j| Some((j, j.inside(path)?))) else {
        return open();
    };
    let _order = ORDER.lock().unwrap();
    let was_there = std::fs::symlink_metadata(path).is_ok();
    let fd = open();
    if fd >= 0 {
        let (inode, _) = inode_and_len(&of_fd(fd));
        if !was_there {
            journal.note(b'c', inode, 0, inside.as_bytes(), &[]);
        } else if truncates {
            journal.note(b't', inode, 0, &[], &[]);
        }
    }
    fd
}

/// The journal, if `fd` is a file below its directory.
fn keeper(fd: c_int) -> Option<&'static Journal> {
    journal().filter(|journal| format!("{}/", path_of(fd)).starts_with(&journal.root))
}

pub fn written(fd: c_int, at: Option<i64>, write: impl FnOnce() -> isize) -> isize {
    let Some(journal) = keeper(fd) else {
        return write();
    };
    let _order = ORDER.lock().unwrap();
    let n = write();
    if n > 0 {
        // SAFETY: no memory is involved.
        let end = || unsafe { real!("lseek64", Seek)(fd, 0, SEEK_CUR) } as u64;
        let at = at.map_or_else(|| end() - n as u64, |at| at as u64);
        let (inode, _) = inode_and_len(&of_fd(fd));
        journal.note(b'w', inode, at, &bytes_of(fd, at, n as usize), &[]);
    }
    n
}

pub fn synced(fd: c_int, sync: impl FnOnce() -> c_int) -> c_int {
    let Some(journal) = keeper(fd) else {
        return sync();
    };
    let _order = ORDER.lock().unwrap();
    journal.note(b's', inode_and_len(&of_fd(fd)).0, 0, &[], &[]);
    0
}

pub fn resized(fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let Some(journal) = keeper(fd) else {
        return call();
    };
    let _order = ORDER.lock().unwrap();
    let result = call();
    if result == 0 {
        let (inode, len) = inode_and_len(&of_fd(fd));
        journal.note(b't', inode, len, &[], &[]);
    }
    result
}

pub fn of_two(op: u8, from: &str, to: &str, call: impl FnOnce() -> c_int) -> c_int {
    let inside = journal().and_then(|j| Some((j, j.inside(from)?, j.inside(to)?)));
    let Some((journal, from, to)) = inside else {
        return call();
    };
    let _order = ORDER.lock().unwrap();
    let result = call();
    if result == 0 {
        journal.note(op, 0, 0, from.as_bytes(), to.as_bytes());
    }
    result
}

/// A file or directory that is removed, or a directory that is made.
pub fn of_path(op: u8, path: &str, call: impl FnOnce() -> c_int) -> c_int {
    let Some((journal, inside)) = journal().and_then(|j| Some((j, j.inside(path)?))) else {
        return call();
    };
    let _order = ORDER.lock().unwrap();
    let result = call();
    if result == 0 {
        let inode = if op == b'd' { inode_and_len(path).0 } else { 0 };
        journal.note(op, inode, 0, inside.as_bytes(), &[]);
    }
    result
}
