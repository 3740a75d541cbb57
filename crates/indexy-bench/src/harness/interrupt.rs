//! Ctrl-C: the phase under way ends early, and what was measured is kept.

use crate::stderr::tell;
use std::sync::{
    Arc, Once,
    atomic::{AtomicUsize, Ordering},
};

/// How often the user has interrupted.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    count: Arc<AtomicUsize>,
}

impl Interrupt {
    /// One that only [`raise`](Self::raise) sets, for tests.
    pub fn detached() -> Self {
        Self::default()
    }

    /// The one that the process's signals (INT, TERM, HUP) set. The handler is installed once;
    /// where that fails the process simply ends on a signal, as it would have.
    pub fn of_process() -> Self {
        static INSTALL: Once = Once::new();
        static COUNT: std::sync::OnceLock<Arc<AtomicUsize>> = std::sync::OnceLock::new();
        let count = COUNT.get_or_init(Arc::default).clone();
        INSTALL.call_once(|| {
            let count = count.clone();
            let installed = ctrlc::set_handler(move || {
                count.fetch_add(1, Ordering::Relaxed);
            });
            if let Err(error) = installed {
                tell!("warning: an interrupt will lose partial results: {error}");
            }
        });
        Self { count }
    }

    /// Counts one interrupt.
    pub fn raise(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// True once the user wants an end.
    pub fn is_raised(&self) -> bool {
        self.count() > 0
    }

    /// How often: a second time means at once.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}
