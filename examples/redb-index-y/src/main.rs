//! A database over redb, larger than its memory, in the directory given (default: a temporary one).
//!
//!     cargo run --release -- /tmp/redb-demo

use indexy::{Db, IndexYKind, Options, Result};

const KEYS: u64 = 300_000;

fn main() -> Result<()> {
    let dir = std::env::args_os().nth(1).map_or_else(
        || std::env::temp_dir().join(format!("redb-index-y-{}", std::process::id())),
        Into::into,
    );
    let options = redb_index_y::register(Options::new(8 << 20))?
        .index_y(IndexYKind::custom(redb_index_y::NAME)?);

    let db = Db::open(&dir, options.clone())?;
    let orders = db.tree("orders")?;
    for i in 0..KEYS {
        let key = i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        orders.insert(key, [i as u8; 100])?;
    }
    let stats = db.stats();
    println!(
        "{KEYS} orders: {} KiB of memory used of {}, {} KiB on disk, {} runs, {} regions released",
        stats.memory_used_bytes >> 10,
        stats.memory_budget_bytes >> 10,
        stats.y_bytes_on_disk >> 10,
        stats.cleaned_runs,
        stats.released_regions,
    );
    // No close: what the log has is replayed.
    drop((orders, db));

    let db = Db::open(&dir, options)?;
    let (x, y) = db.tree("orders")?.pair();
    let found = db.tree("orders")?.len()?;
    println!("reopened as {x} over {y}: {found} orders");
    assert!(db.verify()?.is_ok() && found == KEYS);
    db.close()?;
    println!("the database is in {}", dir.display());
    Ok(())
}
