//! What an operation costs, and what an entry takes. Ignored by default; run in release mode:
//! `cargo test --release -p indexy --lib x::art::bench -- --ignored --nocapture --test-threads 1`.

use super::Art;
use crate::{
    mem::{Memory, budget::Budget},
    x::{Chunk, IndexX, Lookup, Order, ScanLimits},
};
use std::{sync::Arc, time::Instant};

fn count() -> u64 {
    let given = std::env::var("KEYS").ok().and_then(|n| n.parse().ok());
    given.unwrap_or(10_000_000)
}

fn tree() -> Art {
    Art::new(Memory::new(Arc::new(Budget::new(8 << 30))), false)
}

fn spread(n: u64) -> [u8; 8] {
    let mut z = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z ^ (z >> 27)).to_be_bytes()
}

/// Time that passed, and time that this thread had a processor: on a busy machine only the second means
/// something.
struct Clock {
    wall: Instant,
    on_cpu: u64,
}

impl Clock {
    fn start() -> Self {
        Self {
            wall: Instant::now(),
            on_cpu: on_cpu_ns(),
        }
    }

    fn report(&self, what: &str, n: u64) {
        let wall = self.wall.elapsed().as_nanos() as f64 / n as f64;
        let cpu = (on_cpu_ns() - self.on_cpu) as f64 / n as f64;
        println!(
            "{what:28} {cpu:8.1} ns on the processor ({:6.2} M/s), {wall:8.1} ns in all",
            1e3 / cpu
        );
    }
}

/// Nanoseconds that this thread has run; 0 where the system does not say.
fn on_cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ')
        .next()
        .and_then(|ns| ns.parse().ok())
        .unwrap_or(0)
}

fn insert_all<K: AsRef<[u8]>>(art: &Art, what: &str, n: u64, key: impl Fn(u64) -> K) {
    let since = Clock::start();
    for i in 0..n {
        let put = art.put(key(i).as_ref(), Some(&i.to_le_bytes()), || Ok::<(), ()>(()));
        assert!(put.is_ok());
    }
    since.report(what, n);
    let stats = art.stats();
    println!(
        "{:28} {:8.2} B/key in blocks, {:8.2} in slabs",
        "",
        stats.bytes as f64 / n as f64,
        art.memory.slab_bytes() as f64 / n as f64
    );
}

fn get_all<K: AsRef<[u8]>>(art: &Art, what: &str, n: u64, key: impl Fn(u64) -> K) {
    let since = Clock::start();
    let mut sum = 0;
    for i in 0..n {
        let i = i.wrapping_mul(7_368_787) % n;
        let got = art.get(key(i).as_ref(), |v| v.first().copied());
        assert!(matches!(got, Lookup::Found(_)));
        sum += 1;
    }
    assert_eq!(sum, n);
    since.report(what, n);
}

fn scan_all(art: &Art, n: u64) {
    let since = Clock::start();
    let limits = ScanLimits {
        bytes: 256 << 10,
        entries: 4096,
        leaves: 4096,
    };
    let mut chunk = Chunk::default();
    let (mut from, mut seen) = (Vec::new(), 0);
    loop {
        art.scan(&from, None, Order::Ascending, limits, &mut chunk);
        seen += chunk.entries.len() as u64;
        match chunk.resume.take() {
            Some(resume) => from = resume,
            None => break,
        }
    }
    assert_eq!(seen, n);
    since.report("scan", n);
}

#[test]
#[ignore = "measures"]
fn random_keys() {
    let (art, n) = (tree(), count());
    insert_all(&art, "insert random", n, spread);
    get_all(&art, "get random", n, spread);
    let since = Clock::start();
    for i in 0..n {
        let absent = art.get(&spread(i + (1 << 40)), |_| ());
        assert_eq!(absent, Lookup::Absent);
    }
    since.report("get absent", n);
    insert_all(&art, "overwrite random", n, spread);
    scan_all(&art, n);
}

#[test]
#[ignore = "measures"]
fn ascending_keys() {
    let (art, n) = (tree(), count());
    insert_all(&art, "insert ascending", n, u64::to_be_bytes);
    get_all(&art, "get (dense)", n, u64::to_be_bytes);
    scan_all(&art, n);
}

#[test]
#[ignore = "measures"]
fn long_keys() {
    let (art, n) = (tree(), count() / 4);
    let key = |i: u64| {
        let h = u64::from_be_bytes(spread(i));
        format!(
            "https://example.org/{:04}/articles/{:03}/{i:08}",
            h % 5000,
            h % 997
        )
    };
    insert_all(&art, "insert 44-byte keys", n, key);
    get_all(&art, "get 44-byte keys", n, key);
    scan_all(&art, n);
}

#[test]
#[ignore = "measures"]
fn two_threads() {
    let (art, n) = (tree(), count());
    let since = Clock::start();
    std::thread::scope(|scope| {
        for t in 0..2 {
            let art = &art;
            scope.spawn(move || {
                for i in (t..n).step_by(2) {
                    let put = art.put(&spread(i), Some(&i.to_le_bytes()), || Ok::<(), ()>(()));
                    assert!(put.is_ok());
                }
            });
        }
    });
    since.report("insert random, 2 threads", n);
    let since = Clock::start();
    std::thread::scope(|scope| {
        for t in 0..2 {
            let art = &art;
            scope.spawn(move || {
                for i in (t..n).step_by(2) {
                    assert!(matches!(art.get(&spread(i), |_| ()), Lookup::Found(())));
                }
            });
        }
    });
    since.report("get random, 2 threads", n);
}
