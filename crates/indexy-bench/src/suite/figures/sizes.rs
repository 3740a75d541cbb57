//! How large the figures are.

use crate::{contender::Device, harness::Turnover, tpcc::Scale};

/// A named set of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Preset {
    /// Every figure, tiny: does the tool work? About three minutes.
    Smoke,
    /// The paper's proportions at a fortieth of its sizes, reads at an eightieth. About an hour
    /// with all engines on two cores.
    Laptop,
    /// Twice the sizes of `laptop` for reads, phases that go on until memory was released often,
    /// longer inserts, and a hundred warehouses of few rows. Up to two hours for each engine.
    Evening,
    /// The paper's sizes. Many hours, hundreds of gigabytes.
    Paper,
}

/// The sizes of the TPC-C figures.
#[derive(Debug, Clone)]
pub struct TpccSizes {
    /// The database.
    pub scale: Scale,
    /// Memory budget in bytes, all tables together.
    pub budget: u64,
    /// Share of the budget that the tables beside ORDER-LINE have.
    pub others_share: f64,
    /// Thread counts.
    pub threads: &'static [usize],
    /// Page sizes in bytes.
    pub pages: &'static [usize],
    /// Cap of a load; 0 for none.
    pub load_seconds: f64,
    /// Length of a run.
    pub seconds: f64,
}

/// The sizes of the figures about cold data on modelled devices. Times are caps in seconds.
#[derive(Debug, Clone)]
pub struct ColdSizes {
    /// Blocks that a device alone is asked for, in KiB.
    pub block_kib: &'static [usize],
    /// Bytes of all blocks of one size.
    pub block_bytes: u64,
    /// Cap of the writes of blocks of one size, and of the reads.
    pub block_seconds: f64,
    /// Devices under YCSB and tables.
    pub devices: Vec<Device>,
    /// Records of 1 KiB.
    pub records: u64,
    /// Memory budget in bytes: an eighth of the records, as in the paper.
    pub budget: u64,
    /// Exponents of YCSB's draws.
    pub skews: &'static [f64],
    /// The same on disks that turn, whose phases are longer.
    pub turning_skews: &'static [f64],
    /// Cap of a load, which no device slows down.
    pub load_seconds: f64,
    /// Operations before each measured phase, which no device slows down.
    pub warm_operations: u64,
    /// Length of a measured phase.
    pub seconds: f64,
    /// The same on disks that turn, which read some 80 times a second.
    pub turning_seconds: f64,
    /// Subscribers of TATP.
    pub subscribers: u32,
    /// Memory budget of TATP and Voter in bytes.
    pub tables_budget: u64,
    /// TPC-C.
    pub tpcc: Scale,
    /// Its memory budget in bytes.
    pub tpcc_budget: u64,
}

impl ColdSizes {
    /// Length of a measured phase on `device`.
    pub fn seconds_on(&self, device: Device) -> f64 {
        match device.turns() {
            true => self.turning_seconds,
            false => self.seconds,
        }
    }

    /// Exponents on `device`.
    pub fn skews_on(&self, device: Device) -> &'static [f64] {
        match device.turns() {
            true => self.turning_skews,
            false => self.skews,
        }
    }
}

/// The sizes of a preset. Times are caps in seconds, 0 for none.
#[derive(Debug, Clone)]
pub struct Sizes {
    /// Memory budget of the insert figures in bytes.
    pub budget: u64,
    /// Memory budget of the read figures and of YCSB in bytes: about what the keys and values of
    /// `read_keys` take, as in the paper.
    pub read_budget: u64,
    /// Keys of the insert figures.
    pub insert_keys: u64,
    /// Keys of the read figures and of YCSB.
    pub read_keys: u64,
    /// Threads.
    pub threads: usize,
    /// Whether reads and transactions wait until the load's background work is done. It takes a
    /// second at least.
    pub settles: bool,
    /// Cap of the inserts of Figure 3 and Table II, which only say something once memory is full.
    pub load_seconds: f64,
    /// Cap of the inserts at one value size.
    pub size_seconds: f64,
    /// Cap of a load before reads. It is generous, because the reads need all keys: a contender
    /// that reaches the cap reads what it has, and is not compared.
    pub read_load_seconds: f64,
    /// Cap of a warm-up by draws.
    pub warm_seconds: f64,
    /// Cap of touching each key of a working set once.
    pub touch_seconds: f64,
    /// Cap of a measured read phase.
    pub read_seconds: f64,
    /// Cap of a YCSB run phase.
    pub ycsb_seconds: f64,
    /// Length of one phase of the shifting working set; its cap.
    pub shift_seconds: f64,
    /// Releases of memory that reads and YCSB runs go on for, up to a multiple of their cap;
    /// 0 for none.
    pub releases: u64,
    /// Whether the exponents are read upwards and, after a load of their own, downwards.
    pub both_orders: bool,
    /// Operations of a YCSB run phase, and keys read in a phase of the shifting working set (twice
    /// that).
    pub operations: u64,
    /// Sizes of the TPC-C figures.
    pub tpcc: TpccSizes,
    /// Sizes of the figures about cold data on modelled devices.
    pub cold: ColdSizes,
    /// Seed of all draws.
    pub seed: u64,
}

/// How much longer a phase may take that waits for releases.
const TURNOVER_TIMES: f64 = 12.0;

impl Sizes {
    /// What a phase with a cap of `seconds` goes on for.
    pub fn turnover(&self, seconds: f64) -> Option<Turnover> {
        (self.releases > 0 && seconds > 0.0).then_some(Turnover {
            releases: self.releases,
            most_seconds: TURNOVER_TIMES * seconds,
        })
    }
}

/// Threads of the paper's micro benchmarks.
const PAPER_THREADS: usize = 4;

/// Configurations of ours beside the default pair: the systems of the paper's Table I.
const OURS: [&str; 5] = [
    "indexy-art-bplus",
    "indexy-bplus-lsm",
    "indexy-bplus-bplus",
    "bplus-alone",
    "lsm-alone",
];
/// What smoke has of them, to be done in two minutes.
const OURS_IN_SMOKE: [&str; 2] = ["indexy-art-bplus", "bplus-alone"];

impl Preset {
    /// Our configurations that its figures show beside the default pair, unless contenders are
    /// named.
    pub fn ours(self) -> &'static [&'static str] {
        match self {
            Preset::Smoke => &OURS_IN_SMOKE,
            Preset::Laptop | Preset::Evening | Preset::Paper => &OURS,
        }
    }

    /// The sizes.
    pub fn sizes(self, seed: u64) -> Sizes {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let threads = cores.clamp(2, PAPER_THREADS);
        match self {
            Preset::Smoke => smoke(seed, threads),
            Preset::Laptop => laptop(seed, threads),
            Preset::Evening => evening(seed, threads),
            Preset::Paper => paper(seed),
        }
    }
}

fn smoke(seed: u64, threads: usize) -> Sizes {
    Sizes {
        budget: 4 << 20,
        read_budget: 4 << 20,
        insert_keys: 400_000,
        read_keys: 250_000,
        threads,
        settles: false,
        load_seconds: 1.0,
        size_seconds: 1.0,
        read_load_seconds: 4.0,
        warm_seconds: 0.1,
        touch_seconds: 0.1,
        read_seconds: 0.2,
        ycsb_seconds: 0.25,
        shift_seconds: 0.25,
        releases: 0,
        both_orders: false,
        operations: 250_000,
        tpcc: TpccSizes {
            scale: Scale {
                warehouses: 1,
                items: 2000,
                customers: 60,
            },
            budget: 16 << 20,
            others_share: 0.5,
            threads: &[2],
            pages: &[4096, 16_384],
            load_seconds: 3.0,
            seconds: 1.1,
        },
        cold: cold_smoke(),
        seed,
    }
}

fn laptop(seed: u64, threads: usize) -> Sizes {
    Sizes {
        budget: 128 << 20,
        read_budget: 64 << 20,
        insert_keys: 20_000_000,
        read_keys: 4_000_000,
        threads,
        settles: true,
        load_seconds: 20.0,
        size_seconds: 4.0,
        read_load_seconds: 80.0,
        warm_seconds: 2.0,
        touch_seconds: 8.0,
        read_seconds: 2.0,
        ycsb_seconds: 5.0,
        shift_seconds: 3.0,
        releases: 0,
        both_orders: false,
        operations: 4_000_000,
        // The rows beside ORDER-LINE take about 60 % of the budget, as in the paper.
        tpcc: TpccSizes {
            scale: Scale::full(2),
            budget: 384 << 20,
            others_share: 0.75,
            threads: &[1, 2, 4],
            pages: &[4096, 8192, 16_384],
            load_seconds: 40.0,
            seconds: 12.0,
        },
        cold: cold_laptop(),
        seed,
    }
}

fn evening(seed: u64, threads: usize) -> Sizes {
    Sizes {
        read_budget: 128 << 20,
        read_keys: 8_000_000,
        load_seconds: 150.0,
        size_seconds: 20.0,
        read_load_seconds: 160.0,
        warm_seconds: 5.0,
        // Enough for each key of a set that fits in memory, by single reads of the device.
        touch_seconds: 200.0,
        read_seconds: 5.0,
        ycsb_seconds: 10.0,
        shift_seconds: 6.0,
        releases: 20,
        both_orders: true,
        operations: 8_000_000,
        // A thousand districts, so that orders are appended in a thousand places. The rows beside
        // ORDER-LINE take about 60 % of the budget at the end of the load, as in the paper.
        tpcc: TpccSizes {
            scale: Scale {
                warehouses: 100,
                items: 4000,
                customers: 120,
            },
            budget: 384 << 20,
            others_share: 0.75,
            threads: &[2, 4],
            pages: &[4096, 8192, 16_384],
            load_seconds: 120.0,
            seconds: 60.0,
        },
        cold: ColdSizes {
            seconds: 6.0,
            turning_seconds: 30.0,
            ..cold_laptop()
        },
        ..laptop(seed, threads)
    }
}

fn paper(seed: u64) -> Sizes {
    Sizes {
        budget: 5 << 30,
        read_budget: 5 << 30,
        insert_keys: 800_000_000,
        read_keys: 320_000_000,
        threads: PAPER_THREADS,
        settles: true,
        load_seconds: 0.0,
        size_seconds: 0.0,
        read_load_seconds: 0.0,
        warm_seconds: 600.0,
        touch_seconds: 600.0,
        read_seconds: 120.0,
        ycsb_seconds: 0.0,
        shift_seconds: 0.0,
        releases: 0,
        both_orders: true,
        operations: 320_000_000,
        tpcc: TpccSizes {
            scale: Scale::full(100),
            budget: 30 << 30,
            others_share: 0.5,
            threads: &[2, 4, 8, 16],
            pages: &[4096, 8192, 16_384],
            load_seconds: 0.0,
            seconds: 600.0,
        },
        cold: cold_paper(),
        seed,
    }
}

fn cold_smoke() -> ColdSizes {
    ColdSizes {
        block_kib: &[1, 64],
        block_bytes: 4 << 20,
        block_seconds: 0.15,
        devices: vec![Device::Ssd, Device::Nvram],
        records: 16_384,
        budget: 2 << 20,
        skews: &[1.0],
        turning_skews: &[1.0],
        load_seconds: 2.0,
        warm_operations: 20_000,
        seconds: 0.3,
        turning_seconds: 0.3,
        subscribers: 4000,
        tables_budget: 2 << 20,
        tpcc: Scale {
            warehouses: 1,
            items: 1000,
            customers: 100,
        },
        tpcc_budget: 4 << 20,
    }
}

fn cold_laptop() -> ColdSizes {
    ColdSizes {
        block_kib: &[1, 4, 16, 64, 256, 1024],
        block_bytes: 64 << 20,
        block_seconds: 0.5,
        devices: vec![
            Device::Hdd,
            Device::Smr,
            Device::Ssd,
            Device::Xpoint,
            Device::Nvram,
        ],
        records: 65_536,
        budget: 8 << 20,
        skews: &[0.5, 1.0, 1.25],
        turning_skews: &[1.0],
        load_seconds: 20.0,
        warm_operations: 150_000,
        seconds: 3.0,
        turning_seconds: 16.0,
        subscribers: 60_000,
        tables_budget: 4 << 20,
        tpcc: Scale {
            warehouses: 2,
            items: 20_000,
            customers: 1000,
        },
        tpcc_budget: 6 << 20,
    }
}

/// The paper's sizes: 10 GB, of which an eighth fits into memory.
fn cold_paper() -> ColdSizes {
    ColdSizes {
        records: 10 << 20,
        budget: 1280 << 20,
        skews: &[0.5, 0.75, 1.0, 1.25],
        turning_skews: &[0.5, 0.75, 1.0, 1.25],
        load_seconds: 0.0,
        warm_operations: 20_000_000,
        seconds: 600.0,
        turning_seconds: 1800.0,
        subscribers: 10_000_000,
        tables_budget: 512 << 20,
        tpcc: Scale::full(100),
        tpcc_budget: 1280 << 20,
        ..cold_laptop()
    }
}
