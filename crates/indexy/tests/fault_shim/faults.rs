//! The fault that is armed, and which calls it hits.

use std::{
    ffi::c_int,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

const ENOENT: c_int = 2;
const EIO: c_int = 5;
const EEXIST: c_int = 17;
const EMFILE: c_int = 24;
const ENOSPC: c_int = 28;

/// What a slow call takes longer.
const SLOW: Duration = Duration::from_millis(20);

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
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

pub enum Verdict {
    Go,
    Fail(c_int),
    Half,
}

pub fn fail(errno: c_int) -> isize {
    // SAFETY: the C library's errno of this thread.
    unsafe { *__errno_location() = errno };
    -1
}

pub fn verdict(op: &str, path: impl FnOnce() -> String) -> Verdict {
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
    if plan.kind == "slow" {
        drop(guard);
        std::thread::sleep(SLOW);
        return Verdict::Go;
    }
    let errno = match plan.kind.as_str() {
        "eio" => EIO,
        "emfile" => EMFILE,
        _ => ENOSPC,
    };
    plan.half = false;
    if !plan.forever {
        ARMED.store(false, SeqCst);
        *guard = None;
    }
    Verdict::Fail(errno)
}

/// The answer to a command; `None` if `path` is none.
pub fn command(path: &str) -> Option<c_int> {
    let words: Vec<&str> = path
        .strip_prefix("/indexy-fault/")?
        .splitn(6, '/')
        .collect();
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
        ["mark", ref text @ ..] => crate::journal::mark(&text.join("/")),
        _ => {}
    }
    Some(ENOENT)
}
