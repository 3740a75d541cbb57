//! When a call is faster than the reads that it saves. Source: DEX section 6.1.

use parking_lot::Mutex;

/// Samples that an average covers.
const WINDOW: usize = 50;
/// How often the contrary is done, so that both averages stay fresh.
const CONTRARY: f64 = 0.01;
/// What the cache costs beside a read, as a factor.
const CACHE_FACTOR: f64 = 1.2;
/// The search in a node that was read.
const SEARCH_NS: f64 = 40.0;

/// Whether operations are offloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offloading {
    /// Never.
    Never,
    /// When it is estimated to be faster.
    Measured,
    /// Wherever it can be.
    Always,
}

/// The last samples of one kind.
#[derive(Default)]
struct Window {
    samples: Vec<u64>,
    next: usize,
    sum: u64,
}

impl Window {
    fn add(&mut self, ns: u64) {
        self.sum += ns;
        if self.samples.len() < WINDOW {
            self.samples.push(ns);
        } else {
            self.sum -= std::mem::replace(&mut self.samples[self.next], ns);
            self.next = (self.next + 1) % WINDOW;
        }
    }

    fn average(&self) -> Option<f64> {
        let samples = self.samples.len();
        (samples > 0).then(|| self.sum as f64 / samples as f64)
    }
}

/// Averages of reads and calls.
pub struct Policy {
    offloading: Offloading,
    reads: Mutex<Window>,
    calls: Mutex<Window>,
}

impl Policy {
    /// Without samples: reads until the contrary is tried.
    pub fn new(offloading: Offloading) -> Self {
        Self {
            offloading,
            reads: Mutex::default(),
            calls: Mutex::default(),
        }
    }

    /// A node was read in `ns`. A sample is dropped when another thread adds one.
    pub fn note_read(&self, ns: u64) {
        if let Some(mut reads) = self.reads.try_lock() {
            reads.add(ns);
        }
    }

    /// A call was answered after `ns`.
    pub fn note_call(&self, ns: u64) {
        if let Some(mut calls) = self.calls.try_lock() {
            calls.add(ns);
        }
    }

    /// An operation that would read `nodes` more nodes is offloaded. `random`: from 0 to below 1.
    pub fn offloads(&self, nodes: u8, random: f64) -> bool {
        match self.offloading {
            Offloading::Never => false,
            Offloading::Always => true,
            Offloading::Measured => {
                let read = self.reads.lock().average();
                let call = self.calls.lock().average();
                let is_faster = match (read, call) {
                    (Some(read), Some(call)) => {
                        call < CACHE_FACTOR * f64::from(nodes) * (read + SEARCH_NS)
                    }
                    _ => false,
                };
                is_faster != (random < CONTRARY)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(read_ns: u64, call_ns: u64) -> Policy {
        let policy = Policy::new(Offloading::Measured);
        for _ in 0..WINDOW {
            policy.note_read(read_ns);
            policy.note_call(call_ns);
        }
        policy
    }

    #[test]
    fn a_call_is_made_when_it_beats_the_reads() {
        // 1.2 x 2 x 2,040 ns are 4,896 ns.
        assert!(measured(2_000, 4_895).offloads(2, 0.5));
        assert!(!measured(2_000, 4_897).offloads(2, 0.5));
        assert!(measured(2_000, 4_897).offloads(3, 0.5));
    }

    #[test]
    fn the_contrary_is_done_now_and_then() {
        assert!(!measured(2_000, 1_000).offloads(2, 0.009));
        assert!(measured(2_000, 9_000).offloads(2, 0.009));
        assert!(Policy::new(Offloading::Measured).offloads(2, 0.0));
        assert!(!Policy::new(Offloading::Measured).offloads(2, 0.5));
    }

    #[test]
    fn old_samples_leave_the_average() {
        let policy = measured(2_000, 1_000);
        for _ in 0..WINDOW {
            policy.note_call(50_000);
        }
        assert!(!policy.offloads(2, 0.5));
    }
}
