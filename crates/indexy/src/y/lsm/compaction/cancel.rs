//! Ends a compaction early: the engine asks a filter about each entry, and an error of that gives
//! the compaction up.
//!
//! A compaction of a large level takes many seconds, and who closes a database should not wait for
//! it.

#![forbid(unsafe_code)]

use lsm_tree::compaction::{CompactionFilter, Factory, ItemAccessor, Verdict, filter::Context};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// Once set, no compaction of the tree goes on.
#[derive(Debug, Default, Clone)]
pub(crate) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub(crate) fn set(&self) {
        self.0.store(true, Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

impl Factory for Cancel {
    fn name(&self) -> &str {
        "cancel"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(self.clone())
    }
}

impl CompactionFilter for Cancel {
    fn filter_item(&mut self, _: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        if self.is_set() {
            let told = io::Error::new(io::ErrorKind::Interrupted, "the tree is being closed");
            return Err(lsm_tree::Error::Io(told));
        }
        Ok(Verdict::Keep)
    }
}
