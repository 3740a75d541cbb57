//! Preloaded (`LD_PRELOAD`) into a test process: makes calls of the C library on files fail on
//! command, and keeps a journal of what they did to a directory (`journal.rs`).
//!
//! A command is an attempt to open a path that does not exist:
//! `/indexy-fault/arm/<op>/<kind>/<skip>/<once|forever>/<filter>`, `/indexy-fault/disarm`,
//! `/indexy-fault/struck`, which fails with EEXIST instead of ENOENT if the fault has struck, and
//! `/indexy-fault/mark/<text>`, which puts the text into the journal. `op`: write, sync, create,
//! open (creating or not), rename, read, truncate, allocate, remove, link, copy, mkdir. `kind`:
//! eio, enospc, emfile; short: half of a write, then ENOSPC; slow: succeeds after a while.
//! `filter`: a part of the file's path; after a `$`, its end. `skip`: calls that still succeed.

#![allow(unused_unsafe)]

mod faults;
mod journal;

use faults::{Verdict, fail, verdict};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

pub const RTLD_NEXT: *mut c_void = -1isize as *mut c_void;
const ENOSPC: c_int = 28;
const O_CREAT: c_int = 0o100;
const O_TRUNC: c_int = 0o1000;
const AT_FDCWD: c_int = -100;
const AT_REMOVEDIR: c_int = 0x200;

unsafe extern "C" {
    pub fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void;
}

/// The C library's own function.
macro_rules! real {
    ($name:literal, $type:ty) => {{
        use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
        static ADDRESS: AtomicUsize = AtomicUsize::new(0);
        let mut address = ADDRESS.load(SeqCst);
        if address == 0 {
            // SAFETY: the name ends with a zero byte.
            address =
                unsafe { crate::dlsym(crate::RTLD_NEXT, concat!($name, "\0").as_ptr().cast()) }
                    as usize;
            ADDRESS.store(address, SeqCst);
        }
        assert!(address != 0, $name);
        // SAFETY: it is the function of that name, which has this type.
        unsafe { std::mem::transmute::<usize, $type>(address) }
    }};
}
pub(crate) use real;

type Open = unsafe extern "C" fn(*const c_char, c_int, c_uint) -> c_int;
type OpenAt = unsafe extern "C" fn(c_int, *const c_char, c_int, c_uint) -> c_int;
type Write = unsafe extern "C" fn(c_int, *const c_void, usize) -> isize;
pub type WriteAt = unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize;
type WriteParts = unsafe extern "C" fn(c_int, *const c_void, c_int) -> isize;
type WritePartsAt = unsafe extern "C" fn(c_int, *const c_void, c_int, i64) -> isize;
type Copy = unsafe extern "C" fn(c_int, *mut i64, c_int, *mut i64, usize, c_uint) -> isize;
type Send = unsafe extern "C" fn(c_int, c_int, *mut i64, usize) -> isize;
type OfFd = unsafe extern "C" fn(c_int) -> c_int;
type SetLen = unsafe extern "C" fn(c_int, i64) -> c_int;
type Allocate = unsafe extern "C" fn(c_int, c_int, i64, i64) -> c_int;
type OfPath = unsafe extern "C" fn(*const c_char) -> c_int;
type OfTwo = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
type OfTwoAt = unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char, c_int) -> c_int;
type OfTwoAtPlain = unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char) -> c_int;
type OfPathAt = unsafe extern "C" fn(c_int, *const c_char, c_int) -> c_int;
type Mkdir = unsafe extern "C" fn(*const c_char, c_uint) -> c_int;
type MkdirAt = unsafe extern "C" fn(c_int, *const c_char, c_uint) -> c_int;

fn path_of(fd: c_int) -> String {
    let link = std::fs::read_link(format!("/proc/self/fd/{fd}"));
    link.map(|p| p.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// `path` as the caller gives it, made absolute.
fn absolute(dir: c_int, path: *const c_char) -> String {
    // SAFETY: a path as the caller gives it to the system.
    let path = unsafe { CStr::from_ptr(path) }
        .to_string_lossy()
        .into_owned();
    if path.starts_with('/') {
        return path;
    }
    if dir == AT_FDCWD {
        let here = std::env::current_dir().unwrap_or_default();
        return here.join(path).to_string_lossy().into_owned();
    }
    format!("{}/{path}", path_of(dir))
}

fn opened(dir: c_int, path: *const c_char, flags: c_int, open: impl FnOnce() -> c_int) -> c_int {
    let path = absolute(dir, path);
    if let Some(errno) = faults::command(&path) {
        return fail(errno) as c_int;
    }
    if let Verdict::Fail(errno) = verdict("open", || path.clone()) {
        return fail(errno) as c_int;
    }
    if flags & O_CREAT != 0 {
        if let Verdict::Fail(errno) = verdict("create", || path.clone()) {
            return fail(errno) as c_int;
        }
    }
    if flags & (O_CREAT | O_TRUNC) == 0 {
        return open();
    }
    journal::opened(&path, flags & O_TRUNC != 0, open)
}

/// `at`: where, unless it is the file's own position. `write` gets how much it may write.
fn written(fd: c_int, at: Option<i64>, len: usize, write: impl FnOnce(usize) -> isize) -> isize {
    let len = match verdict("write", || path_of(fd)) {
        Verdict::Go => len,
        Verdict::Half if len > 1 => len / 2,
        Verdict::Half => return fail(ENOSPC),
        Verdict::Fail(errno) => return fail(errno),
    };
    journal::written(fd, at, || write(len))
}

fn of_fd(op: &str, fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
    match verdict(op, || path_of(fd)) {
        Verdict::Fail(errno) => fail(errno) as c_int,
        _ => call(),
    }
}

fn read_from(fd: c_int, read: impl FnOnce() -> isize) -> isize {
    match verdict("read", || path_of(fd)) {
        Verdict::Fail(errno) => fail(errno),
        _ => read(),
    }
}

fn of_two(op: &str, from: String, to: String, call: impl FnOnce() -> c_int) -> c_int {
    match verdict(op, || to.clone()) {
        Verdict::Fail(errno) => fail(errno) as c_int,
        _ => journal::of_two(if op == "link" { b'l' } else { b'r' }, &from, &to, call),
    }
}

fn removed(path: String, dir: bool, call: impl FnOnce() -> c_int) -> c_int {
    match verdict("remove", || path.clone()) {
        Verdict::Fail(errno) => fail(errno) as c_int,
        _ => journal::of_path(if dir { b'x' } else { b'u' }, &path, call),
    }
}

fn made_dir(path: String, call: impl FnOnce() -> c_int) -> c_int {
    match verdict("mkdir", || path.clone()) {
        Verdict::Fail(errno) => fail(errno) as c_int,
        _ => journal::of_path(b'd', &path, call),
    }
}

// SAFETY of all that follow: arguments are handed on as they came, but for a shorter length.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    opened(AT_FDCWD, path, flags, || unsafe {
        real!("open64", Open)(path, flags, mode)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    opened(AT_FDCWD, path, flags, || unsafe {
        real!("open", Open)(path, flags, mode)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat64(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    opened(dir, path, flags, || unsafe {
        real!("openat64", OpenAt)(dir, path, flags, mode)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    opened(dir, path, flags, || unsafe {
        real!("openat", OpenAt)(dir, path, flags, mode)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, from: *const c_void, len: usize) -> isize {
    written(fd, None, len, |len| unsafe {
        real!("write", Write)(fd, from, len)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(fd: c_int, from: *const c_void, len: usize, at: i64) -> isize {
    written(fd, Some(at), len, |len| unsafe {
        real!("pwrite64", WriteAt)(fd, from, len, at)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, parts: *const c_void, n: c_int) -> isize {
    // Half of the parts is a short write too.
    written(fd, None, n as usize, |n| unsafe {
        real!("writev", WriteParts)(fd, parts, n as c_int)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev64(fd: c_int, parts: *const c_void, n: c_int, at: i64) -> isize {
    written(fd, Some(at), n as usize, |n| unsafe {
        real!("pwritev64", WritePartsAt)(fd, parts, n as c_int, at)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn copy_file_range(
    from: c_int,
    from_at: *mut i64,
    to: c_int,
    to_at: *mut i64,
    len: usize,
    flags: c_uint,
) -> isize {
    if let Verdict::Fail(errno) = verdict("copy", || path_of(to)) {
        return fail(errno);
    }
    // SAFETY: null, or an offset of the caller.
    let at = unsafe { to_at.as_ref() }.copied();
    journal::written(to, at, || unsafe {
        real!("copy_file_range", Copy)(from, from_at, to, to_at, len, flags)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(to: c_int, from: c_int, at: *mut i64, len: usize) -> isize {
    if let Verdict::Fail(errno) = verdict("copy", || path_of(to)) {
        return fail(errno);
    }
    journal::written(to, None, || unsafe {
        real!("sendfile64", Send)(to, from, at, len)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, to: *mut c_void, len: usize) -> isize {
    read_from(fd, || unsafe { real!("read", Write)(fd, to, len) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pread64(fd: c_int, to: *mut c_void, len: usize, at: i64) -> isize {
    read_from(fd, || unsafe { real!("pread64", WriteAt)(fd, to, len, at) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn preadv64(fd: c_int, parts: *const c_void, n: c_int, at: i64) -> isize {
    read_from(fd, || unsafe {
        real!("preadv64", WritePartsAt)(fd, parts, n, at)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    of_fd("sync", fd, || {
        journal::synced(fd, || unsafe { real!("fsync", OfFd)(fd) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    of_fd("sync", fd, || {
        journal::synced(fd, || unsafe { real!("fdatasync", OfFd)(fd) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate64(fd: c_int, len: i64) -> c_int {
    of_fd("truncate", fd, || {
        journal::resized(fd, || unsafe { real!("ftruncate64", SetLen)(fd, len) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fallocate64(fd: c_int, mode: c_int, at: i64, len: i64) -> c_int {
    of_fd("allocate", fd, || {
        journal::resized(fd, || unsafe {
            real!("fallocate64", Allocate)(fd, mode, at, len)
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    let (old, new) = (absolute(AT_FDCWD, from), absolute(AT_FDCWD, to));
    of_two("rename", old, new, || unsafe {
        real!("rename", OfTwo)(from, to)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat(
    from_dir: c_int,
    from: *const c_char,
    to_dir: c_int,
    to: *const c_char,
) -> c_int {
    let (old, new) = (absolute(from_dir, from), absolute(to_dir, to));
    of_two("rename", old, new, || unsafe {
        real!("renameat", OfTwoAtPlain)(from_dir, from, to_dir, to)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat2(
    from_dir: c_int,
    from: *const c_char,
    to_dir: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    let (old, new) = (absolute(from_dir, from), absolute(to_dir, to));
    of_two("rename", old, new, || unsafe {
        real!("renameat2", OfTwoAt)(from_dir, from, to_dir, to, flags)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn linkat(
    from_dir: c_int,
    from: *const c_char,
    to_dir: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    let (old, new) = (absolute(from_dir, from), absolute(to_dir, to));
    of_two("link", old, new, || unsafe {
        real!("linkat", OfTwoAt)(from_dir, from, to_dir, to, flags)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    removed(absolute(AT_FDCWD, path), false, || unsafe {
        real!("unlink", OfPath)(path)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlinkat(dir: c_int, path: *const c_char, flags: c_int) -> c_int {
    let is_dir = flags & AT_REMOVEDIR != 0;
    removed(absolute(dir, path), is_dir, || unsafe {
        real!("unlinkat", OfPathAt)(dir, path, flags)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmdir(path: *const c_char) -> c_int {
    removed(absolute(AT_FDCWD, path), true, || unsafe {
        real!("rmdir", OfPath)(path)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkdir(path: *const c_char, mode: c_uint) -> c_int {
    made_dir(absolute(AT_FDCWD, path), || unsafe {
        real!("mkdir", Mkdir)(path, mode)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mkdirat(dir: c_int, path: *const c_char, mode: c_uint) -> c_int {
    made_dir(absolute(dir, path), || unsafe {
        real!("mkdirat", MkdirAt)(dir, path, mode)
    })
}
