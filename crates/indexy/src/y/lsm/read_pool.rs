//! Threads that overlap the device reads of one `multi_get`.
//!
//! Threads: up to [`MAX_THREADS`], started when first needed, shared by the trees of a database, joined
//! on drop. The calling thread works too, so a batch ends even when no thread could be
//! started. A helper holds a lock only to take work from the queue.

#![forbid(unsafe_code)]

use parking_lot::{Condvar, Mutex};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread::JoinHandle,
};

/// Reads in flight at once, at most; devices gain little beyond.
const MAX_THREADS: usize = 32;
/// Stack of a reading thread: a get needs a few KiB.
const STACK_BYTES: usize = 256 << 10;

/// Reads number `0..len()` of one caller.
pub(super) trait Reads: Send + Sync + 'static {
    fn len(&self) -> usize;
    /// Does read `i` and keeps its outcome. Must not panic.
    fn read(&self, i: usize);
}

struct Batch {
    reads: Arc<dyn Reads>,
    next: AtomicUsize,
    left: Mutex<usize>,
    all_done: Condvar,
}

impl Batch {
    /// Does reads until none is left to take.
    fn work(&self) {
        let mut done = 0;
        loop {
            let i = self.next.fetch_add(1, Relaxed);
            if i >= self.reads.len() {
                break;
            }
            self.reads.read(i);
            done += 1;
        }
        if done > 0 {
            let mut left = self.left.lock();
            *left -= done;
            if *left == 0 {
                self.all_done.notify_all();
            }
        }
    }
}

#[derive(Default)]
struct Queue {
    batches: VecDeque<Arc<Batch>>,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    stopping: bool,
}

#[derive(Default)]
struct Inner {
    queue: Mutex<Queue>,
    work: Condvar,
    started: AtomicUsize,
}

/// See the module header.
pub(super) struct ReadPool(Arc<Inner>);

impl ReadPool {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    /// Does all `reads`, overlapped, and returns when they are done.
    pub(super) fn run(&self, reads: Arc<dyn Reads>) {
        let batch = Arc::new(Batch {
            next: AtomicUsize::new(0),
            left: Mutex::new(reads.len()),
            all_done: Condvar::new(),
            reads,
        });
        self.ask_for_help(&batch);
        batch.work();
        let mut left = batch.left.lock();
        while *left > 0 {
            batch.all_done.wait(&mut left);
        }
    }

    fn ask_for_help(&self, batch: &Arc<Batch>) {
        let helpers = batch.reads.len().saturating_sub(1).min(MAX_THREADS);
        let mut queue = self.0.queue.lock();
        for _ in 0..helpers {
            queue.batches.push_back(Arc::clone(batch));
            if queue.idle < queue.batches.len() && queue.threads.len() < MAX_THREADS {
                self.start_thread(&mut queue);
            }
        }
        drop(queue);
        for _ in 0..helpers {
            self.0.work.notify_one();
        }
    }

    fn start_thread(&self, queue: &mut Queue) {
        let inner = Arc::clone(&self.0);
        let n = self.0.started.fetch_add(1, Relaxed);
        let thread = std::thread::Builder::new()
            .name(format!("indexy-read-{n}"))
            .stack_size(STACK_BYTES)
            .spawn(move || inner.help());
        // Out of threads: the others, and the caller, do the work.
        if let Ok(thread) = thread {
            queue.threads.push(thread);
        }
    }

    #[cfg(test)]
    pub(super) fn threads_started(&self) -> usize {
        self.0.started.load(Relaxed)
    }
}

impl Inner {
    fn help(&self) {
        let mut queue = self.queue.lock();
        loop {
            if let Some(batch) = queue.batches.pop_front() {
                drop(queue);
                batch.work();
                queue = self.queue.lock();
            } else if queue.stopping {
                return;
            } else {
                queue.idle += 1;
                self.work.wait(&mut queue);
                queue.idle -= 1;
            }
        }
    }
}

impl Drop for ReadPool {
    fn drop(&mut self) {
        let threads = {
            let mut queue = self.0.queue.lock();
            queue.stopping = true;
            std::mem::take(&mut queue.threads)
        };
        self.0.work.notify_all();
        for thread in threads {
            // A helper cannot panic (see `Reads::read`); if one did, its batch's caller hung before us.
            let _ = thread.join();
        }
    }
}
