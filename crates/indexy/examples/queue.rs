//! A queue on disk with several producers and consumers: each job is done by exactly one of them.
//!
//!     cargo run --release -p indexy --example queue

use indexy::{Db, Options, Result, Tree, Value};
use std::sync::atomic::{AtomicU64, Ordering};

const PRODUCERS: u64 = 2;
const CONSUMERS: u64 = 3;
const JOBS: u64 = 5_000;
const HANDFUL: usize = 32;

/// Jobs in the order of their numbers.
struct Queue {
    jobs: Tree,
    next: AtomicU64,
    /// Where `pop` begins. Jobs that were taken leave traces until they are merged away; a scan
    /// that begins behind them does not step over each.
    head: AtomicU64,
}

impl Queue {
    /// Goes on behind the last job that the tree holds.
    fn open(db: &Db, name: &str) -> Result<Self> {
        let jobs = db.tree(name)?;
        let last = jobs.last()?.and_then(|(key, _)| key[..].try_into().ok());
        let next = last.map_or(0, |key| u64::from_be_bytes(key) + 1);
        Ok(Self {
            jobs,
            next: AtomicU64::new(next),
            head: AtomicU64::new(0),
        })
    }

    fn push(&self, job: &str) -> Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.jobs.insert(number.to_be_bytes(), job)
    }

    /// Takes up to `most` of the oldest jobs. `take` gives a value to one caller only: who comes
    /// too late for one goes on to the next. A scan reads ahead, so that a handful from one scan
    /// costs little more than one job.
    fn pop(&self, most: usize) -> Result<Vec<Value>> {
        let head = self.head.load(Ordering::Relaxed);
        let mut taken = Vec::new();
        for entry in self.jobs.range(head.to_be_bytes()..) {
            let (key, _) = entry?;
            taken.extend(self.jobs.take(&key)?);
            if taken.len() == most {
                let number = key[..].try_into().map_or(head, u64::from_be_bytes);
                self.head.store(number, Ordering::Relaxed);
                return Ok(taken);
            }
        }
        // The end: whoever was slow to write a job may have left it behind the head.
        self.head.store(0, Ordering::Relaxed);
        Ok(taken)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let options = Options::new(16 << 20);
    let done = AtomicU64::new(0);
    {
        let db = Db::open(dir.path(), options.clone())?;
        let queue = Queue::open(&db, "jobs")?;
        std::thread::scope(|scope| {
            for producer in 0..PRODUCERS {
                let queue = &queue;
                scope.spawn(move || {
                    for n in 0..JOBS {
                        queue
                            .push(&format!("job {n} of producer {producer}"))
                            .unwrap();
                    }
                });
            }
            for _ in 0..CONSUMERS {
                // Half of the jobs: the others wait for the next start of the program.
                scope.spawn(|| {
                    while done.load(Ordering::Relaxed) < PRODUCERS * JOBS / 2 {
                        let jobs = queue.pop(HANDFUL).unwrap();
                        done.fetch_add(jobs.len() as u64, Ordering::Relaxed);
                    }
                });
            }
        });
        println!(
            "{} done, {} wait",
            done.load(Ordering::Relaxed),
            queue.jobs.len()?
        );
        db.close()?;
    }

    let db = Db::open(dir.path(), options)?;
    let queue = Queue::open(&db, "jobs")?;
    loop {
        let jobs = queue.pop(HANDFUL)?;
        let Some(last) = jobs.last() else { break };
        done.fetch_add(jobs.len() as u64, Ordering::Relaxed);
        if done.load(Ordering::Relaxed) == PRODUCERS * JOBS {
            println!("the last one: {}", String::from_utf8_lossy(last));
        }
    }
    println!("{} done after a restart", done.load(Ordering::Relaxed));
    assert_eq!(done.load(Ordering::Relaxed), PRODUCERS * JOBS);
    db.close()?;
    Ok(())
}
