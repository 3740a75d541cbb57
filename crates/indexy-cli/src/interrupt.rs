//! Ctrl-C, SIGTERM and a closed terminal: the first one asks to stop in good order, the second one
//! kills, unless it comes with the first. What cannot look for a signal while it works is undone by
//! a thread that does.
//!
//! Threads: one that waits for the first signal, until then or to the end of the process.

use anyhow::Context as _;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
    iterator::Signals,
};
use std::{
    fs, io,
    process::{ExitCode, exit},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};

/// Shells report the death by signal n as 128 + n.
const SIGNAL_EXIT_BASE: u8 = 128;
/// What comes so soon after the first signal is the same wish: `timeout` sends SIGTERM to its child
/// and then to its group, which the child is in.
const ONE_WISH: Duration = Duration::from_millis(300);
/// How long after a signal [`Interrupt::undo`] may begin.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Whether, and by which signal, the user asked to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Takes over the signals of this process.
    pub fn install() -> anyhow::Result<Self> {
        let this = Self::default();
        let again = Arc::new(AtomicBool::new(false));
        let mut signals = vec![SIGINT, SIGTERM, SIGHUP];
        signals.retain(|&signal| !is_ignored(signal));
        for &signal in &signals {
            let register = || {
                flag::register_conditional_shutdown(signal, exit_status(signal), again.clone())?;
                let number = usize::try_from(signal).unwrap_or_default();
                flag::register_usize(signal, this.0.clone(), number)
            };
            register().context("cannot handle signals")?;
        }
        set_after_first(&signals, again).context("cannot handle signals")?;
        Ok(this)
    }

    /// True once the user asked to stop. Cost: one relaxed load.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    /// The exit code of a command that stopped because of it.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status())
    }

    fn status(&self) -> u8 {
        SIGNAL_EXIT_BASE + u8::try_from(self.0.load(Relaxed)).unwrap_or_default()
    }

    /// Does `work`, which does not look for signals. When one comes before it has ended, `undo`
    /// takes away what it has made so far, beside it, and the process ends.
    pub fn undo<T>(&self, undo: impl FnOnce() + Send, work: impl FnOnce() -> T) -> T {
        // One of both comes to its end, not both.
        let ended = Mutex::new(false);
        let (over, wait) = channel::<()>();
        let (ended, this) = (&ended, self.clone());
        thread::scope(|scope| {
            scope.spawn(move || {
                while wait.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    if !this.is_set() {
                        continue;
                    }
                    let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                    if !*ended {
                        undo();
                        exit(i32::from(this.status()));
                    }
                    return;
                }
            });
            let done = work();
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
            drop(over);
            done
        })
    }
}

/// Sets `again` when the first of `signals` has come, and what comes with it.
fn set_after_first(signals: &[i32], again: Arc<AtomicBool>) -> io::Result<()> {
    let mut signals = Signals::new(signals)?;
    let wait = move || {
        if signals.forever().next().is_some() {
            thread::sleep(ONE_WISH);
            again.store(true, Relaxed);
        }
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(wait)
        .map(drop)
}

/// True if our parent chose that this signal does nothing (`nohup`, `cmd &` in a script).
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

fn exit_status(signal: i32) -> i32 {
    i32::from(SIGNAL_EXIT_BASE) + signal
}
