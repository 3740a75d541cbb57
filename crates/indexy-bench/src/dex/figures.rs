//! Each figure: its lines, the paper's claim, and what became of it here.

use super::{
    clock::clock,
    contender::{Contender, Cost, LATENCIES_US, PAPER_KEYS, Pool, measure, never},
    error::DexError,
    load::Mix,
    report::Report,
};
use indexy_dex::{Options, Tree, offload::Offloading, partition::Table, remote::RemoteMemory};

type Result<T> = std::result::Result<T, DexError>;
type Figure = fn(&mut Pool, u64, &mut Report) -> Result<()>;

/// In the order of [`FIGURES`](super::FIGURES).
pub(super) const ALL: [Figure; 9] = [fig6, fig7, fig8, fig9, fig10, fig11, fig12, fig13, clock];

/// The cache of the paper's default, in MiB.
const CACHE: u64 = 256;
/// The cache that triggers offloading: 1 % of the data.
const SMALL_CACHE: u64 = 31;

/// The trees of a mix; `None`: it has no such operation here.
fn contenders(pool: &Pool, mix: Mix) -> Vec<(&'static str, Contender)> {
    let pages = pool.pages(CACHE);
    let cache_bytes = 1024 * pages as u64;
    let mut all = vec![
        ("DEX", Contender::Dex(pool.options(CACHE))),
        ("after Sherman", Contender::Sherman(pages)),
        (
            "the same with partitions",
            Contender::Dex(never(pool.options(CACHE)).leaf_admission(0.0)),
        ),
    ];
    if matches!(
        mix,
        Mix::ReadOnly | Mix::ReadIntensive | Mix::WriteIntensive
    ) {
        for (name, partitioned) in [("after SMART", false), ("the same with partitions", true)] {
            all.push((
                name,
                Contender::Smart {
                    cache_bytes,
                    partitioned,
                },
            ));
        }
    }
    all
}

fn compare(
    pool: &Pool,
    operations: u64,
    mix: Mix,
    paper: &[f64],
    report: &mut Report,
) -> Result<()> {
    report.head(mix.name());
    let mut costs = Vec::new();
    for (name, contender) in contenders(pool, mix) {
        let cost = measure(pool, &contender, mix, operations)?;
        report.cost(name, &cost);
        costs.push(cost);
    }
    let times = |cost: &Cost| {
        cost.us
            .iter()
            .zip(costs[0].us)
            .map(|(us, dex)| us / dex)
            .collect::<Vec<_>>()
    };
    let shown: Vec<String> = costs[1..]
        .iter()
        .map(|cost| {
            times(cost)
                .iter()
                .map(|x| format!("{x:.1}"))
                .collect::<Vec<_>>()
                .join("/")
        })
        .collect();
    let said: Vec<String> = paper.iter().map(|x| format!("{x}")).collect();
    let holds = costs[1..]
        .iter()
        .all(|cost| times(cost).iter().all(|x| *x > 1.0));
    let paper = match said.is_empty() {
        true => "as write-intensive.".to_string(),
        false => format!("DEX is {} times as fast as each.", said.join(", ")),
    };
    report.claim(
        &paper,
        &format!(
            "{} times in modelled time at 2/3/8 us; the order, at every latency:",
            shown.join(", ")
        ),
        holds,
    );
    Ok(())
}

/// Skewed workloads.
fn fig6(pool: &mut Pool, operations: u64, report: &mut Report) -> Result<()> {
    let paper: [&[f64]; 5] = [
        &[3.6, 2.5, 9.6, 7.1],
        &[3.4, 2.5, 8.2, 5.3],
        &[9.6, 7.0, 7.0, 4.4],
        &[],
        &[2.8],
    ];
    for (mix, paper) in Mix::ALL.into_iter().zip(paper) {
        compare(pool, operations, mix, paper, report)?;
    }
    Ok(())
}

/// Uniform workloads.
fn fig7(pool: &mut Pool, operations: u64, report: &mut Report) -> Result<()> {
    pool.load.zipf = None;
    for mix in [Mix::ReadOnly, Mix::WriteIntensive] {
        report.head(mix.name());
        let mut costs = Vec::new();
        for (name, contender) in contenders(pool, mix) {
            let cost = measure(pool, &contender, mix, operations)?;
            report.cost(name, &cost);
            costs.push(cost);
        }
        let ratio = costs[2].us[0] / costs[0].us[0];
        report.claim(
            "about as fast as Sherman with partitions.",
            &format!("{ratio:.2} times at 2 us; within 0.9 to 1.3:"),
            (0.9..1.3).contains(&ratio),
        );
    }
    Ok(())
}

/// What each part brings.
fn fig8(pool: &mut Pool, operations: u64, report: &mut Report) -> Result<()> {
    for zipf in ["skewed", "uniform"] {
        report.head(zipf);
        let small = || pool.options(SMALL_CACHE);
        let steps = [
            ("one-sided", Contender::OneSided),
            (
                "and partitions",
                Contender::Dex(never(Options::new(0, 8)).leaf_admission(0.0)),
            ),
            ("and the cache", Contender::Dex(never(small()))),
            ("and offloading", Contender::Dex(small())),
        ];
        let mut costs = Vec::new();
        for (name, contender) in steps {
            let some = if costs.is_empty() {
                operations / 10
            } else {
                operations
            };
            let cost = measure(pool, &contender, Mix::WriteIntensive, some)?;
            report.cost(name, &cost);
            costs.push(cost);
        }
        let gain = |from: usize, at: usize| costs[from].us[at] / costs[from + 1].us[at];
        let paper = if zipf == "skewed" { "+55 %" } else { "+34 %" };
        let by: Vec<_> = (0..3)
            .map(|at| format!("{:+.0} %", 100.0 * (gain(2, at) - 1.0)))
            .collect();
        let fewer = 100.0 * (1.0 - costs[3].verbs() / costs[2].verbs());
        report.claim(
            &format!("partitions 2.4 times; offloading {paper}."),
            &format!(
                "partitions {:.1} times, the cache {:.1} times at 2 us; offloading {} at 2/3/8 us, \
                 {fewer:.0} % fewer verbs; each is faster at 3 us:",
                gain(0, 0),
                gain(1, 0),
                by.join("/")
            ),
            (0..3).all(|step| gain(step, 1) > 1.0),
        );
        pool.load.zipf = None;
    }
    Ok(())
}

/// Lazy admission. The cooling map saves waiting of many threads, which two cores cannot show.
fn fig9(pool: &mut Pool, operations: u64, report: &mut Report) -> Result<()> {
    for mib in [64, CACHE] {
        report.head(&format!("{mib} MiB, read-intensive, no offloading"));
        let with = |share| Contender::Dex(never(pool.options(mib)).leaf_admission(share));
        let always = measure(pool, &with(1.0), Mix::ReadIntensive, operations)?;
        report.cost("every leaf is admitted", &always);
        let lazy = measure(pool, &with(0.1), Mix::ReadIntensive, operations)?;
        report.cost("one of ten", &lazy);
        let fewer = 100.0 * (1.0 - lazy.reads / always.reads);
        let goal = if mib == 64 { 10.0 } else { 0.0 };
        report.claim(
            "lazy admission is faster.",
            &format!("{fewer:.0} % fewer reads; {goal} % or more:"),
            fewer >= goal,
        );
    }
    Ok(())
}

/// A quarter of a partition goes to another owner.
fn fig10(pool: &mut Pool, operations: u64, report: &mut Report) -> Result<()> {
    report.line(
        "\n| cache | pages | dirty pages of the range | verbs of the giver | of the taker \
         | modelled, 2 us | paper's size |",
    );
    report.line("|---|---|---|---|---|---|---|");
    let (mut few, mut slowest) = (true, 0.0_f64);
    for mib in [CACHE, 512, 1024] {
        let memory = pool.memory(2);
        let table = Table::load(&memory)?;
        let (low, high, _) = table.segments().find(|s| s.2 == 0).unwrap_or((0, 0, 0));
        let giver = Tree::open(pool.memory(2), never(pool.options(mib)))?;
        let taker = Tree::open(pool.memory(2).another(), Options::new(1, 64))?;
        taker.get(high + 1)?;
        let put = |key: u64| giver.put(2 * key, key).map(drop);
        let below = (high / 2).min(pool.load.own_keys);
        pool.load
            .run(3, operations, Mix::WriteIntensive, below, |_, key| put(key))?;
        let start = giver.leaf_start(low + (high - low) / 4 * 3)?;
        let (before, started) = (giver.counts(), giver.memory().now_ns());
        giver.release(start, high, 1)?;
        let given = giver.counts() - before;
        let us = (giver.memory().now_ns() - started) as f64 / 1_000.0;
        let before = taker.counts();
        taker.adopt_table()?;
        let taken = taker.counts() - before;
        // The table is locked, written and unlocked.
        let dirty = given.writes - 2;
        few &= given.verbs() + taken.verbs() <= dirty + 50;
        let scale = PAPER_KEYS as f64 / pool.load.keys as f64;
        let seconds = us * scale / 1e6;
        slowest = slowest.max(seconds);
        report.line(&format!(
            "| {mib} MiB | {} | {dirty} | {} | {} | {:.1} ms | {seconds:.2} s |",
            pool.pages(mib),
            given.verbs(),
            taken.verbs(),
            us / 1_000.0
        ));
        // Back again, so that the next cache starts from the same table.
        giver.flush()?;
        taker.release(start, high, 0)?;
        giver.adopt_table()?;
        giver.flush()?;
    }
    report.claim(
        "2 seconds at most, for caches of 256 to 1024 MiB.",
        &format!("{slowest:.2} s at the paper's size; verbs at most dirty pages + 50: {few};"),
        few && slowest <= 2.0,
    );
    Ok(())
}

/// Everything is cached.
fn fig11(pool: &mut Pool, operations: u64, report: &mut Report) -> Result<()> {
    let pages = (pool.load.keys / 41 + pool.load.keys / 1_000) as usize * 5 / 4;
    report.head("read-intensive, one compute server");
    let options = Options::new(0, pages).leaf_admission(1.0);
    // Warm: the partition is read once.
    let cost = measure(
        pool,
        &Contender::Dex(options),
        Mix::ReadIntensive,
        4 * operations,
    )?;
    report.cost("DEX", &cost);
    report.claim(
        "about 0.01 verbs an operation.",
        &format!(
            "{:.3}; 0.02 at most (a longer warm-up has fewer):",
            cost.verbs()
        ),
        cost.verbs() <= 0.02,
    );
    Ok(())
}

/// Cache sizes.
fn fig12(pool: &mut Pool, operations: u64, report: &mut Report) -> Result<()> {
    for mix in [Mix::ReadIntensive, Mix::WriteIntensive] {
        report.head(mix.name());
        let mut verbs = Vec::new();
        for percent in [1, 2, 4, 8, 16, 32] {
            // The paper's data is 2.98 GiB for 8-byte keys.
            let contender = Contender::Dex(pool.options(percent * 31));
            let cost = measure(pool, &contender, mix, operations)?;
            report.cost(&format!("{percent} %"), &cost);
            verbs.push(cost.us[0]);
        }
        report.claim(
            "a larger cache is faster (write-intensive above 8 % only with few threads).",
            "time at 2 us falls with every size:",
            verbs.is_sorted_by(|a, b| a >= b),
        );
    }
    Ok(())
}

/// Offloading with the cache of 1 %.
fn fig13(pool: &mut Pool, operations: u64, report: &mut Report) -> Result<()> {
    for mix in [Mix::ReadIntensive, Mix::WriteIntensive] {
        report.head(mix.name());
        let options = || pool.options(SMALL_CACHE);
        let all = [
            ("never", Offloading::Never),
            ("as measured", Offloading::Measured),
            ("always", Offloading::Always),
        ];
        let mut costs = Vec::new();
        for (name, offloading) in all {
            let contender = Contender::Dex(options().offloading(offloading));
            let cost = measure(pool, &contender, mix, operations)?;
            report.cost(name, &cost);
            costs.push(cost);
        }
        let fewer = 100.0 * (1.0 - costs[1].verbs() / costs[0].verbs());
        let at = LATENCIES_US.iter().position(|us| *us == 3).unwrap_or(1);
        report.claim(
            "fewer verbs and a higher throughput.",
            &format!(
                "{fewer:.0} % fewer verbs, {:.2} times as fast at 3 us; \
                 20 % or more, and faster at 3 us:",
                costs[0].us[at] / costs[1].us[at]
            ),
            fewer >= 20.0 && costs[1].us[at] < costs[0].us[at],
        );
    }
    Ok(())
}
