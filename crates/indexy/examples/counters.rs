//! Counters that several threads increase at once: `update` is atomic, so no count is lost. Where
//! the new count is not needed, `merge` does the same without a read (`merge_counters.rs`).
//!
//!     cargo run --release -p indexy --example counters

use indexy::{Db, Options, Result, Tree};

const THREADS: u64 = 4;
const VISITS: u64 = 50_000;
const PAGES: u64 = 1_000;

/// Adds one to the counter of `page`; returns the new count.
fn count(visits: &Tree, page: &str) -> Result<u64> {
    let mut now = 0;
    visits.update(page, |old| {
        now = old.map_or(0, to_number) + 1;
        Some(now.to_be_bytes().to_vec())
    })?;
    Ok(now)
}

fn to_number(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_be_bytes)
}

/// A page for the `n`th visit of `thread`: low numbers are the popular ones.
fn page(thread: u64, n: u64) -> String {
    let random = ((thread << 32) | n).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let popular = (random * random) >> 32;
    format!("/page/{}", (popular * PAGES) >> 32)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let db = Db::open(dir.path(), Options::new(16 << 20))?;
    let visits = db.tree("visits")?;

    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let visits = &visits;
                scope.spawn(move || -> Result<()> {
                    for n in 0..VISITS {
                        count(visits, &page(thread, n))?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("a counting thread panicked"))
    })?;

    let mut counts = Vec::new();
    for entry in visits.iter() {
        let (page, value) = entry?;
        counts.push((
            to_number(&value),
            String::from_utf8_lossy(&page).into_owned(),
        ));
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    for (count, page) in counts.iter().take(5) {
        println!("{count:>6}  {page}");
    }
    let total: u64 = counts.iter().map(|(count, _)| count).sum();
    println!("{total:>6}  visits of {} pages", counts.len());
    assert_eq!(total, THREADS * VISITS);
    db.close()?;
    Ok(())
}
