//! The time by which entries expire.
//!
//! A handle's time never goes back: it is the largest that the clock has said so far. So nothing
//! that was absent because it had expired appears again while the database is open.
//!
//! Threads: any. The largest time is one word, which is written once a millisecond at most and else
//! only read.

#![forbid(unsafe_code)]

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A moment in milliseconds since 1970.
pub(crate) type Millis = u64;

/// Tells the time to trees whose entries expire; see [`Options::clock`](crate::Options::clock).
///
/// It is asked by readers and by threads of the database, with locks held: it must be quick, and
/// must not use the database.
///
/// ```
/// use indexy::Clock;
/// use std::time::{Duration, SystemTime};
/// /// Runs ten times as fast.
/// #[derive(Debug)]
/// struct Fast(SystemTime);
/// impl Clock for Fast {
///     fn now(&self) -> SystemTime {
///         let gone = self.0.elapsed().unwrap_or_default();
///         self.0 + gone * 10
///     }
/// }
/// let options = indexy::Options::new(4 << 20).clock(std::sync::Arc::new(Fast(SystemTime::now())));
/// ```
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time. Moments before 1970 count as 1970.
    fn now(&self) -> SystemTime;
}

/// The clock of the operating system.
#[derive(Debug)]
struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// See the module header.
#[derive(Debug)]
pub(crate) struct Time {
    clock: Arc<dyn Clock>,
    seen: AtomicU64,
}

impl Default for Time {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock))
    }
}

impl Time {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            seen: AtomicU64::new(0),
        }
    }

    /// The time of now.
    pub(crate) fn now(&self) -> Millis {
        let told = millis(self.clock.now());
        let seen = self.seen.load(SeqCst);
        // Read without a write where nothing changes: readers share the word.
        match told > seen {
            true => self.seen.fetch_max(told, SeqCst).max(told),
            false => seen,
        }
    }

    /// The largest time that anybody was told.
    pub(crate) fn seen(&self) -> Millis {
        self.seen.load(SeqCst)
    }
}

/// `moment` in whole milliseconds, rounded down.
pub(crate) fn millis(moment: SystemTime) -> Millis {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    whole_millis(since, 0)
}

/// `duration` in milliseconds, a part of one counted as `rounding` nanoseconds more.
fn whole_millis(duration: Duration, rounding: u32) -> Millis {
    let rounded = duration.saturating_add(Duration::from_nanos(u64::from(rounding)));
    u64::try_from(rounded.as_millis()).unwrap_or(u64::MAX)
}

/// `duration` in whole milliseconds, rounded up.
pub(crate) fn millis_up(duration: Duration) -> Millis {
    whole_millis(duration, 999_999)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    #[derive(Debug)]
    struct Told(Mutex<SystemTime>);

    impl Clock for Told {
        fn now(&self) -> SystemTime {
            *self.0.lock()
        }
    }

    #[test]
    fn time_never_goes_back() {
        let told = Arc::new(Told(Mutex::new(UNIX_EPOCH)));
        let time = Time::new(told.clone());
        let mut last = 0;
        for at in [0, 7, 3, 7, 8, 0, 1000, 999] {
            *told.0.lock() = UNIX_EPOCH + Duration::from_millis(at);
            let now = time.now();
            assert!(now >= last && now >= at, "{at}: {now} after {last}");
            last = now;
        }
        assert_eq!(last, 1000);
    }

    #[test]
    fn moments_and_durations_become_milliseconds() {
        assert_eq!(millis(UNIX_EPOCH - Duration::from_secs(1)), 0);
        assert_eq!(millis(UNIX_EPOCH + Duration::from_micros(1999)), 1);
        assert_eq!(millis_up(Duration::from_micros(1001)), 2);
        assert_eq!(millis_up(Duration::from_nanos(1)), 1);
        assert_eq!(millis_up(Duration::MAX), u64::MAX);
    }
}
