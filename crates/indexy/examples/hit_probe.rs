use indexy::{Admission, Db, Durability, IndexXKind, Options, Release, TreeOptions};
use std::time::Instant;
fn arg(n: usize, d: &str) -> String {
    std::env::args().nth(n).unwrap_or(d.into())
}
fn main() {
    let mib: usize = arg(1, "128").parse().unwrap();
    let n: u64 = arg(2, "30000000").parse().unwrap();
    let gets: u64 = arg(3, "20000000").parse().unwrap();
    let skew: f64 = arg(4, "0.99").parse().unwrap();
    let kind = arg(5, "art");
    let extra = arg(6, "");
    let dir = tempfile::tempdir_in("/work/data").unwrap();
    let mut o = Options::new(mib << 20)
        .durability(Durability::None)
        .direct_reads(false);
    if kind == "bptree" {
        o = o.index_x(IndexXKind::BPlus);
    }
    if kind == "bb" {
        o = o
            .index_x(IndexXKind::BPlus)
            .index_y(indexy::IndexYKind::BPlus { page_bytes: 4096 });
    }
    let mut to = TreeOptions::new();
    for e in extra.split(',') {
        if let Some(p) = e.strip_prefix("top") {
            to = to.admission(Admission::Top {
                percent: p.parse().unwrap(),
            });
        }
        if e == "plain" {
            o = o.second_chance(false);
        }
        if e == "fifo" {
            o = o.release(Release::Fifo);
        }
        if e == "random" {
            o = o.release(Release::Random);
        }
        if e == "coldest" {
            o = o.release(Release::Coldest);
        }
    }
    let db = Db::open(dir.path(), o).unwrap();
    let tree = db.tree_with("t", to).unwrap();
    let key = |r: u64| r.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut all: Vec<u64> = (0..n).map(key).collect();
    all.sort_unstable();
    tree.load_sorted(all.iter().map(|k| (k.to_be_bytes(), k.to_le_bytes())))
        .unwrap();
    drop(all);
    let mut s = 0x1234_5678_9ABC_DEF1u64;
    let flat = 1.0 - skew;
    let most = (n as f64).powf(flat);
    let mut next = || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        let unit = (s >> 11) as f64 / (1u64 << 53) as f64;
        let rank = (unit * (most - 1.0) + 1.0).powf(1.0 / flat);
        (rank as u64 - 1).min(n - 1)
    };
    let mut last = db.stats();
    let parts = 10;
    for p in 0..parts {
        let t = Instant::now();
        for _ in 0..gets / parts {
            let k = key(next());
            assert!(tree.get_with(k.to_be_bytes(), |_| ()).unwrap().is_some());
        }
        let now = db.stats();
        let (h, m) = (now.hits - last.hits, now.misses - last.misses);
        let held = now.x_keys as f64;
        let best = (held.powf(flat) - 1.0) / (most - 1.0);
        println!(
            "{p} hit {:.2} best {:.2} | x_keys {:.2}M x_bytes {:.1} M ({:.1} B) used {:.1} in_use {:.1} reserved {:.1} MiB | releases {} keys {} spared {} stalls {} | {:.0} k/s",
            100.0 * h as f64 / (h + m) as f64,
            100.0 * best,
            held / 1e6,
            now.x_bytes as f64 / 1048576.0,
            now.x_bytes as f64 / held,
            now.memory_used_bytes as f64 / 1048576.0,
            now.memory_in_use_bytes as f64 / 1048576.0,
            now.memory_reserved_bytes as f64 / 1048576.0,
            now.releases - last.releases,
            now.released_keys - last.released_keys,
            now.spared_keys - last.spared_keys,
            now.stalls - last.stalls,
            (gets / parts) as f64 / t.elapsed().as_secs_f64() / 1e3
        );
        last = now;
    }
}
