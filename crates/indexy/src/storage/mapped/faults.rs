//! A fault of a mapping is no signal that ends the process.
//!
//! Where the device cannot give a page of a mapped file, or the file ends before it, the system
//! sends `SIGBUS` to the thread that looked. The handler finds the address among the ranges that
//! are watched, says that the range is broken, and puts a page of zeros there: the thread goes on,
//! and its answer is thrown away by whoever asks whether views hold. A signal for any other address
//! goes to the handler that was there before, or does what the system would do.
//!
//! The handler is installed with the first mapped file and stays; each further one sees to it that
//! it is still there. A program that installs one of its own for `SIGBUS` later must pass on what
//! it does not know. A thread that blocks `SIGBUS` is ended by a fault whatever the handler, and so
//! is the process where the system maps no page more.
//!
//! Who may do what: slots are taken, set and given back by any thread, and only read by the
//! handler, in any thread at any moment. It takes no lock and no memory. A slot's version is odd
//! while it changes. The handler passes over such a slot: it is not that of the faulting address,
//! whose mapping is there, and with it its slot, from before the first look to after the last.

#![allow(unsafe_code)]

use parking_lot::Mutex;
use std::{
    cell::Cell,
    mem::MaybeUninit,
    ptr,
    sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        fence,
    },
};

/// A range of addresses that is watched, until [`end`](Self::end).
pub(super) struct Watched {
    slot: &'static Slot,
}

/// What is watched; used again when it is given back, and never freed.
struct Slot {
    taken: AtomicBool,
    version: AtomicU64,
    start: AtomicUsize,
    end: AtomicUsize,
    broken: AtomicPtr<AtomicBool>,
    next: Option<&'static Slot>,
}

/// The newest slot.
static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());
/// What the process did with `SIGBUS` before; null: nobody has asked. Never freed.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

impl Watched {
    /// Watches `bytes` from address `start` on: a fault there sets `broken`, which stays where it
    /// is for as long as anybody looks there.
    pub(super) fn new(start: usize, bytes: usize, broken: &AtomicBool) -> Self {
        let slot = free_slot();
        slot.set(start, start + bytes, ptr::from_ref(broken).cast_mut());
        Self { slot }
    }

    /// Watches it no more.
    pub(super) fn end(&self) {
        self.slot.set(0, 0, ptr::null_mut());
        self.slot.taken.store(false, Release);
    }
}

impl Slot {
    /// By the thread that has taken it.
    fn set(&self, start: usize, end: usize, broken: *mut AtomicBool) {
        let version = self.version.load(Relaxed);
        self.version.store(version + 1, Relaxed);
        fence(Release);
        self.start.store(start, Relaxed);
        self.end.store(end, Relaxed);
        self.broken.store(broken, Relaxed);
        self.version.store(version + 2, Release);
    }

    /// What says that the range of `address` is broken, if it is this one.
    fn broken_for(&self, address: usize) -> Option<*mut AtomicBool> {
        let version = self.version.load(Acquire);
        let range = self.start.load(Relaxed)..self.end.load(Relaxed);
        let broken = self.broken.load(Relaxed);
        fence(Acquire);
        let same = version.is_multiple_of(2) && self.version.load(Relaxed) == version;
        (same && range.contains(&address)).then_some(broken)
    }
}

fn slots() -> impl Iterator<Item = &'static Slot> {
    // SAFETY: null, or a slot that was leaked.
    let first = unsafe { SLOTS.load(Acquire).as_ref() };
    std::iter::successors(first, |slot| slot.next)
}

fn free_slot() -> &'static Slot {
    let take = |slot: &&Slot| {
        slot.taken
            .compare_exchange(false, true, Acquire, Relaxed)
            .is_ok()
    };
    if let Some(slot) = slots().find(take) {
        return slot;
    }
    let slot = Box::leak(Box::new(Slot {
        taken: AtomicBool::new(true),
        version: AtomicU64::new(0),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        broken: AtomicPtr::new(ptr::null_mut()),
        next: None,
    }));
    loop {
        let first = SLOTS.load(Acquire);
        // SAFETY: as in `slots`.
        slot.next = unsafe { first.as_ref() };
        if SLOTS
            .compare_exchange(first, ptr::from_mut(slot), AcqRel, Relaxed)
            .is_ok()
        {
            return slot;
        }
    }
}

/// Sees to it that the handler is the one that the process has. Each call counts: somebody else may
/// have installed one meanwhile, which then comes after ours.
pub(super) fn catch() {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    PAGE_BYTES.store(rustix::param::page_size(), Relaxed);
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the structure is ours; all zeros is one: the default, an empty mask.
    let before = unsafe {
        libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr());
        before.assume_init()
    };
    if before.sa_sigaction != on_bus_error as Handler as usize {
        // The handler needs it as soon as it is there, and at any moment after.
        BEFORE.store(Box::leak(Box::new(before)), Release);
        install();
    }
}

/// A handler may call it.
fn install() {
    // SAFETY: the structure is ours, and all zeros is one; the handler does only what a handler
    // may.
    unsafe {
        let mut ours = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        ours.sa_sigaction = on_bus_error as Handler as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &ours, ptr::null_mut());
    }
}

type Handler = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
type ShortHandler = unsafe extern "C" fn(libc::c_int);

/// The handler of `SIGBUS`. Called by the system, with what it says about the signal.
unsafe extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the system's `info` is valid, and that of a signal of this kind has an address unless
    // a process sent it, whose codes are not positive.
    let (is_fault, address) = unsafe { ((*info).si_code > 0, (*info).si_addr().addr()) };
    if is_fault && mend(address) {
        return;
    }
    // A handler that came after ours, and was there when we looked again, passes what we pass on
    // back to us. That is done as if nobody had been there before.
    if PASSING.get() != Passing::Nothing {
        PASSING.set(Passing::Default);
        // SAFETY: sets a signal to its default, and sends it.
        unsafe { do_default(signal, is_fault) };
        return;
    }
    PASSING.set(Passing::On);
    // SAFETY: what the process wanted done before, called as the system would.
    unsafe { pass_on(signal, info, context, is_fault) };
    PASSING.set(Passing::Nothing);
}

/// What a thread does with a signal that is not ours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passing {
    Nothing,
    /// Passes it on.
    On,
    /// It came back, and is to do what it does by default.
    Default,
}

thread_local! {
    /// A constant without a destructor: to look at it takes no lock and no memory.
    static PASSING: Cell<Passing> = const { Cell::new(Passing::Nothing) };
}

/// Lets a signal do what it does by default. A fault comes again, to that; what was sent is sent
/// again.
unsafe fn do_default(signal: libc::c_int, is_fault: bool) {
    // SAFETY: both may be called by a handler.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        if !is_fault {
            libc::raise(signal);
        }
    }
}

/// Puts zeros in the place of the page at `address`, if that is watched.
fn mend(address: usize) -> bool {
    let Some(broken) = slots().find_map(|slot| slot.broken_for(address)) else {
        return false;
    };
    // SAFETY: the faulting thread holds a view, so its mapping is there, and with it the flag.
    if let Some(broken) = unsafe { broken.as_ref() } {
        broken.store(true, Release);
    }
    let page_bytes = PAGE_BYTES.load(Relaxed);
    let page = ptr::without_provenance_mut::<libc::c_void>(address / page_bytes * page_bytes);
    // SAFETY: a page of a mapping that is ours and only read. `mmap` is a system call and no more.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let put = libc::mmap(page, page_bytes, libc::PROT_READ, flags, -1, 0);
        *errno = kept;
        put != libc::MAP_FAILED
    }
}

/// Does what the process did before with a signal that is not ours.
unsafe fn pass_on(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
    is_fault: bool,
) {
    // SAFETY: null, or leaked.
    let before = unsafe { BEFORE.load(Acquire).as_ref() };
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    match handler {
        // The system does not let a fault be ignored.
        libc::SIG_IGN if !is_fault => {}
        // SAFETY: sets a signal to its default, and sends it.
        libc::SIG_DFL | libc::SIG_IGN => unsafe { do_default(signal, is_fault) },
        // SAFETY: it was installed as a handler of the kind that its flags say.
        _ => unsafe {
            let long = before.is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0);
            if long {
                std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
            } else {
                std::mem::transmute::<usize, ShortHandler>(handler)(signal);
            }
            // The one of Rust's runtime gives way to the default when it does not know an address.
            // A fault comes again, to that; after a signal that was sent the process lives on.
            if !is_fault && PASSING.get() != Passing::Default {
                install();
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_used_again_and_knows_its_range_alone() {
        let (first, second) = (AtomicBool::new(false), AtomicBool::new(false));
        let start = usize::MAX / 2;
        let watched = Watched::new(start, 100, &first);
        let flag = |address| slots().find_map(|slot| slot.broken_for(address));
        assert_eq!(flag(start + 99), Some(ptr::from_ref(&first).cast_mut()));
        assert_eq!(flag(start + 100), None);
        watched.end();
        assert_eq!(flag(start), None);
        let watched = Watched::new(start + 50, 100, &second);
        assert_eq!(flag(start + 100), Some(ptr::from_ref(&second).cast_mut()));
        assert_eq!(flag(start + 49), None);
        watched.end();
    }
}
