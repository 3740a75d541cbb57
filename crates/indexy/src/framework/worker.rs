//! The threads of the framework: cleaner, releaser, compactor, spiller, fetchers as they are
//! needed, the builder of filters with the first of them, and one of the database's own, if it asks
//! for it.
//!
//! Source: IndeXY II-B, II-C. A database that is open read-only has the releaser and fetchers
//! alone. They stop and are joined by [`Background::stop`], which whoever owns [`Background`] calls
//! before anything that they use goes away. Where that is one of the threads itself (a fetcher that
//! wakes the last owner of a handle), it joins the others and ends by itself. A panic in one
//! poisons the database, and whoever waits for it hears of that.

#![forbid(unsafe_code)]

use super::{
    clean::cleaner::Cleaner,
    compactor::Compactor,
    fetch::{
        fetcher,
        queue::{Fetches, Pushed},
        slot::Slot,
    },
    filter_builder,
    host::Host,
    memory::Holdings,
    release::releaser::Releaser,
    shared::Shared,
    signal::Stop,
    spiller::Spiller,
    tree::Joined,
};
use parking_lot::Mutex;
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Weak, atomic::Ordering::Relaxed},
    thread::JoinHandle,
    time::Duration,
};

/// Threads that are to stop are woken again this often until they have.
const STOP_POLL: Duration = Duration::from_micros(200);

type Body = Box<dyn FnOnce() + Send>;

thread_local! {
    /// Address of what the threads of a database share, on these threads; 0 on all others. A thread
    /// works for one database, and holds what the address is of.
    static WORKS_FOR: Cell<usize> = const { Cell::new(0) };
}

/// The running threads.
pub(crate) struct Background {
    stop: Stop,
    shared: Arc<Shared>,
    host: Arc<dyn Host>,
    fetches: Arc<Fetches>,
    /// `None` once they were stopped: none begins any more.
    threads: Mutex<Option<Vec<JoinHandle<()>>>>,
}

impl Background {
    /// `read_only`: nothing is written, so that only the releaser runs.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        host: &Arc<dyn Host>,
        read_only: bool,
    ) -> std::io::Result<Self> {
        let holdings: Arc<dyn Holdings> = host.clone();
        shared
            .room
            .watch(Arc::downgrade(&holdings) as Weak<dyn Holdings>);
        let background = Self {
            stop: Stop::new(shared.poison.clone()),
            shared: shared.clone(),
            host: host.clone(),
            fetches: Arc::new(Fetches::new(Arc::clone(&shared.budget))),
            threads: Mutex::new(Some(Vec::new())),
        };
        let (stop, shared, host) = (
            || background.stop.clone(),
            || background.shared.clone(),
            || background.host.clone(),
        );
        let releaser = Releaser {
            stop: stop(),
            shared: shared(),
            host: host(),
            read_only,
        };
        background.spawn("indexy-release", Box::new(move || releaser.run()))?;
        if !read_only {
            let cleaner = Cleaner {
                stop: stop(),
                shared: shared(),
                host: host(),
            };
            background.spawn("indexy-clean", Box::new(move || cleaner.run()))?;
            let compactor = Compactor {
                stop: stop(),
                shared: shared(),
                host: host(),
            };
            background.spawn("indexy-compact", Box::new(move || compactor.run()))?;
            let spiller = Spiller {
                stop: stop(),
                shared: shared(),
                host: host(),
            };
            background.spawn("indexy-spill", Box::new(move || spiller.run()))?;
        }
        Ok(background)
    }

    /// Runs one more thread, of the database's own, until [`Background::stop`], which wakes it by
    /// [`Shared::wake_keeper`].
    pub(crate) fn run_beside(
        &self,
        name: &'static str,
        body: impl FnOnce(&Stop) + Send + 'static,
    ) -> std::io::Result<()> {
        let stop = self.stop.clone();
        self.spawn(name, Box::new(move || body(&stop)))
    }

    /// Runs the thread that builds filters, unless it runs. It looks around now.
    pub(crate) fn build_filters(&self) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        if !shared.has_builder.swap(true, Relaxed) {
            let (of, host) = (Arc::clone(&shared), Arc::clone(&self.host));
            let body = move |stop: &Stop| filter_builder::run(&of, &*host, stop);
            self.run_beside("indexy-filter", body)
                .inspect_err(|_| shared.has_builder.store(false, Relaxed))?;
        }
        shared.wake_builder.notify();
        Ok(())
    }

    /// Leaves `key` of `tree` to be read; `None` if there is no room for it, and the caller reads
    /// it itself.
    pub(crate) fn fetch(&self, tree: &Arc<Joined>, key: &[u8]) -> Option<Arc<Slot>> {
        let Pushed::Queued { slot, start } = self.fetches.push(tree, key) else {
            return None;
        };
        let begin = || {
            let fetches = Arc::clone(&self.fetches);
            let fetcher = move || fetcher::run(&fetches);
            self.spawn("indexy-fetch", Box::new(fetcher)).is_ok()
        };
        if start && !begin() {
            fetcher::stand_in(&self.fetches, begin);
        }
        Some(slot)
    }

    /// Nothing is left to be read any more, and what waits for that is answered with `Closed`.
    pub(crate) fn close_fetches(&self) {
        self.fetches.close();
    }

    /// Fails where no thread is to be had, or where all were stopped.
    fn spawn(&self, name: &'static str, body: Body) -> std::io::Result<()> {
        let mut threads = self.threads.lock();
        let Some(threads) = &mut *threads else {
            return Err(std::io::Error::other("the database has ended"));
        };
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || run(name, body, &shared))?;
        threads.push(thread);
        Ok(())
    }

    /// This thread is one of those that [`Background::stop`] joins.
    pub(crate) fn owns_this_thread(&self) -> bool {
        WORKS_FOR.get() == address(&self.shared)
    }

    /// Stops and joins the threads, but for the one that calls. Idempotent.
    pub(crate) fn stop(&self) {
        self.stop.set();
        self.fetches.close();
        for tree in self.host.trees() {
            tree.y.interrupt();
        }
        // A thread that is joined may want to start another one, which fails from here on.
        let threads = self.threads.lock().take();
        for thread in threads.into_iter().flatten() {
            if thread.thread().id() == std::thread::current().id() {
                continue;
            }
            while !thread.is_finished() {
                self.shared.wake_cleaner.notify();
                self.shared.room.wake_releaser.notify();
                self.shared.wake_compactor.notify();
                self.shared.wake_spiller.notify();
                self.shared.wake_keeper.notify();
                self.shared.wake_builder.notify();
                self.shared.maintained.advance();
                std::thread::sleep(STOP_POLL);
            }
            let _ = thread.join();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

fn address(shared: &Shared) -> usize {
    std::ptr::from_ref(shared).addr()
}

/// A thread's life.
fn run(name: &str, body: Body, shared: &Shared) {
    WORKS_FOR.set(address(shared));
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        let what = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        shared
            .poison
            .set(&format!("thread {name} panicked: {what}"));
        shared.room.announce_freed();
    }
}
