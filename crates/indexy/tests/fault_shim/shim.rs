//! Preloaded (`LD_PRELOAD`) into a test process: makes calls of the C library on files fail on command.
//!
//! A command is an attempt to open a path that does not exist:
//! `/indexy-fault/arm/<op>/<kind>/<skip>/<once|forever>/<filter>`, `/indexy-fault/disarm`, and
//! `/indexy-fault/struck`, which fails with EEXIST instead of ENOENT if the fault has struck.
//! `op`: write, sync, create, rename. `kind`: eio, enospc, or short: half of a write, then ENOSPC.
//! `filter`: a part of the file's path; after a `$`, its end. `skip`: calls that still succeed.

#![allow(unused_unsafe)]

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};

const ENOENT: c_int = 2;
const EIO: c_int = 5;
const EEXIST: c_int = 17;
const ENOSPC: c_int = 28;
const O_CREAT: c_int = 0o100;
const RTLD_NEXT: *mut c_void = -1isize as *mut c_void;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
}

/// The C library's own function.
macro_rules! real {
    ($name:literal, $type:ty) => {{
        static ADDRESS: AtomicUsize = AtomicUsize::new(0);
        let mut address = ADDRESS.load(SeqCst);
        if address == 0 {
            // SAFETY: the name ends with a zero byte.
            address = unsafe { dlsym(RTLD_NEXT, concat!($name, "\0").as_ptr().cast()) } as usize;
            ADDRESS.store(address, SeqCst);
        }
        assert!(address != 0, $name);
        // SAFETY: it is the function of that name, which has this type.
        unsafe { std::mem::transmute::<usize, $type>(address) }
    }};
}

struct Plan {
    op: String,
    kind: String,
    skip: u32,
    forever: bool,
    filter: String,
    /// Half of a write was done: the other half finds no room.
    half: bool,
}

static ARMED: AtomicBool = AtomicBool::new(false);
static STRUCK: AtomicBool = AtomicBool::new(false);
static PLAN: Mutex<Option<Plan>> = Mutex::new(None);

enum Verdict {
    Go,
    Fail(c_int),
    Half,
}

fn fail(errno: c_int) -> isize {
    // SAFETY: the C library's errno of this thread.
    unsafe { *__errno_location() = errno };
    -1
}

fn path_of(fd: c_int) -> String {
    let link = std::fs::read_link(format!("/proc/self/fd/{fd}"));
    link.map(|p| p.to_string_lossy().into_owned()).unwrap_or_default()
}

fn verdict(op: &str, path: impl FnOnce() -> String) -> Verdict {
    if !ARMED.load(SeqCst) {
        return Verdict::Go;
    }
    let path = path();
    let mut guard = PLAN.lock().unwrap();
    let Some(plan) = guard.as_mut() else {
        return Verdict::Go;
    };
    let here = match plan.filter.strip_prefix('$') {
        Some(end) => path.ends_with(end),
        None => path.contains(&plan.filter),
    };
    if plan.op != op || !here {
        return Verdict::Go;
    }
    if plan.skip > 0 {
        plan.skip -= 1;
        return Verdict::Go;
    }
    STRUCK.store(true, SeqCst);
    if plan.kind == "short" && !plan.half {
        plan.half = true;
        return Verdict::Half;
    }
    let errno = if plan.kind == "eio" { EIO } else { ENOSPC };
    plan.half = false;
    if !plan.forever {
        ARMED.store(false, SeqCst);
        *guard = None;
    }
    Verdict::Fail(errno)
}

fn command(path: &str) -> Option<c_int> {
    let words: Vec<&str> = path.strip_prefix("/indexy-fault/")?.splitn(6, '/').collect();
    match words[..] {
        ["arm", op, kind, skip, how, filter] => {
            STRUCK.store(false, SeqCst);
            *PLAN.lock().unwrap() = Some(Plan {
                op: op.into(),
                kind: kind.into(),
                skip: skip.parse().unwrap(),
                forever: how == "forever",
                filter: filter.into(),
                half: false,
            });
            ARMED.store(true, SeqCst);
        }
        ["struck"] if STRUCK.load(SeqCst) => return Some(EEXIST),
        ["disarm"] => {
            ARMED.store(false, SeqCst);
            *PLAN.lock().unwrap() = None;
        }
        _ => {}
    }
    Some(ENOENT)
}

fn opened(path: *const c_char, flags: c_int, open: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: a path as the caller gives it to `open`.
    let path = unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned();
    if let Some(errno) = command(&path) {
        return fail(errno) as c_int;
    }
    if flags & O_CREAT != 0 {
        if let Verdict::Fail(errno) = verdict("create", || path) {
            return fail(errno) as c_int;
        }
    }
    open()
}

fn written(fd: c_int, len: usize, write: impl FnOnce(usize) -> isize) -> isize {
    match verdict("write", || path_of(fd)) {
        Verdict::Go => write(len),
        Verdict::Half if len > 1 => write(len / 2),
        Verdict::Half => fail(ENOSPC),
        Verdict::Fail(errno) => fail(errno),
    }
}

fn synced(fd: c_int, sync: impl FnOnce() -> c_int) -> c_int {
    match verdict("sync", || path_of(fd)) {
        Verdict::Fail(errno) => fail(errno) as c_int,
        _ => sync(),
    }
}

type Open = unsafe extern "C" fn(*const c_char, c_int, c_uint) -> c_int;
type OpenAt = unsafe extern "C" fn(c_int, *const c_char, c_int, c_uint) -> c_int;
type Write = unsafe extern "C" fn(c_int, *const c_void, usize) -> isize;
type WriteAt = unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize;
type Sync = unsafe extern "C" fn(c_int) -> c_int;
type Rename = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;

// SAFETY of all that follow: arguments are handed on as they came, but for a shorter length.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    opened(path, flags, || unsafe { real!("open64", Open)(path, flags, mode) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    opened(path, flags, || unsafe { real!("open", Open)(path, flags, mode) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat64(dir: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    opened(path, flags, || unsafe { real!("openat64", OpenAt)(dir, path, flags, mode) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, from: *const c_void, len: usize) -> isize {
    written(fd, len, |len| unsafe { real!("write", Write)(fd, from, len) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(fd: c_int, from: *const c_void, len: usize, at: i64) -> isize {
    written(fd, len, |len| unsafe { real!("pwrite64", WriteAt)(fd, from, len, at) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    synced(fd, || unsafe { real!("fsync", Sync)(fd) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    synced(fd, || unsafe { real!("fdatasync", Sync)(fd) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: a path as the caller gives it to `rename`.
    let path = || unsafe { CStr::from_ptr(to) }.to_string_lossy().into_owned();
    match verdict("rename", path) {
        Verdict::Fail(errno) => fail(errno) as c_int,
        _ => unsafe { real!("rename", Rename)(from, to) },
    }
}
