//! When a phase ends by itself: at its time cap or, where it is to see memory released, once that
//! happened often enough. An engine that does not count releases takes all the time that such a
//! phase may take: whether its memory has been replaced earlier is not known.

use super::job::Phase;
use std::time::Duration;

/// See the module header. Times are since the phase began.
#[derive(Debug)]
pub(super) struct Ending {
    cap: Option<Duration>,
    turnover: Option<Turnover>,
}

#[derive(Debug)]
struct Turnover {
    /// What the counter has to come to, if there is one.
    releases: Option<f64>,
    most: Option<Duration>,
}

fn duration(seconds: f64) -> Option<Duration> {
    let some = Some(seconds).filter(|&seconds| seconds > 0.0);
    some.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

impl Ending {
    /// Of a phase that begins now; `releases`: the counter, if the engine has it.
    pub(super) fn of(phase: &Phase, releases: impl FnOnce() -> Option<f64>) -> Self {
        let turnover = phase.turnover.map(|turnover| Turnover {
            releases: releases().map(|seen| seen + turnover.releases as f64),
            most: duration(turnover.most_seconds),
        });
        Self {
            cap: duration(phase.max_seconds),
            // What counts nothing and may go on for any time has to end at its cap.
            turnover: turnover.filter(|it| it.releases.is_some() || it.most.is_some()),
        }
    }

    /// When to look again, which is at `next` at the latest.
    pub(super) fn wake(&self, now: Duration, next: Duration) -> Duration {
        let most = self.turnover.as_ref().and_then(|turnover| turnover.most);
        let ahead = [self.cap, most]
            .into_iter()
            .flatten()
            .filter(|&at| now < at);
        ahead.fold(next, Duration::min)
    }

    /// Whether the phase is over; `releases` is asked for beyond the cap alone.
    pub(super) fn is_over(&self, now: Duration, releases: impl FnOnce() -> Option<f64>) -> bool {
        if self.cap.is_none_or(|cap| now < cap) {
            return false;
        }
        self.turnover.as_ref().is_none_or(|turnover| {
            let enough = |wanted| releases().is_none_or(|seen| seen >= wanted);
            turnover.most.is_some_and(|most| now >= most) || turnover.releases.is_some_and(enough)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        contender::Focus,
        harness::{Turnover, Work},
    };

    const SECOND: Duration = Duration::from_secs(1);

    fn phase(turnover: Option<Turnover>) -> Phase {
        let phase = Phase::new("read", 1, Focus::Reads, Work::Settle);
        phase.capped(2.0).turned_over(turnover)
    }

    #[test]
    fn without_a_turnover_the_cap_ends_it() {
        let ending = Ending::of(&phase(None), || panic!("no counter is needed"));
        assert_eq!(ending.wake(SECOND, 5 * SECOND), 2 * SECOND);
        assert!(!ending.is_over(SECOND, || None));
        assert!(ending.is_over(2 * SECOND, || None));
        let endless = Phase::new("settle", 1, Focus::Writes, Work::Settle);
        let ending = Ending::of(&endless, || None);
        assert_eq!(ending.wake(SECOND, 5 * SECOND), 5 * SECOND);
        assert!(!ending.is_over(9999 * SECOND, || None));
    }

    #[test]
    fn a_turnover_ends_it_beyond_the_cap() {
        let turnover = Turnover {
            releases: 20,
            most_seconds: 10.0,
        };
        let ending = Ending::of(&phase(Some(turnover)), || Some(7.0));
        assert!(!ending.is_over(SECOND, || panic!("too early to ask")));
        assert!(!ending.is_over(3 * SECOND, || Some(26.0)));
        assert!(ending.is_over(3 * SECOND, || Some(27.0)));
        // Memory that is not full is never released.
        assert!(ending.is_over(10 * SECOND, || Some(7.0)));
        // Nobody is woken for a cap that has passed.
        assert_eq!(ending.wake(3 * SECOND, 4 * SECOND), 4 * SECOND);
        assert_eq!(ending.wake(9 * SECOND, 12 * SECOND), 10 * SECOND);
    }

    #[test]
    fn an_engine_that_counts_no_releases_takes_the_whole_time() {
        let turnover = |most_seconds| Turnover {
            releases: 20,
            most_seconds,
        };
        let peer = Ending::of(&phase(Some(turnover(10.0))), || None);
        assert!(!peer.is_over(9 * SECOND, || None));
        assert!(peer.is_over(10 * SECOND, || None));
        assert_eq!(peer.wake(9 * SECOND, 12 * SECOND), 10 * SECOND);
        let without_most = Ending::of(&phase(Some(turnover(0.0))), || None);
        assert!(without_most.is_over(2 * SECOND, || None));
    }
}
