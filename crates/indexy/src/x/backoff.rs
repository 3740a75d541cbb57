//! Waiting between two attempts of something optimistic.

#![forbid(unsafe_code)]

use crate::sync::{spin_loop, yield_now};

/// Restarts that only spin; later ones give the processor away.
const SPINS: u32 = 32;

/// Waits a little longer each time that something has to be tried again.
#[derive(Default)]
pub(crate) struct Backoff(u32);

impl Backoff {
    #[cold]
    pub(crate) fn wait(&mut self) {
        if self.0 < SPINS {
            self.0 += 1;
            spin_loop();
        } else {
            yield_now();
        }
    }
}
