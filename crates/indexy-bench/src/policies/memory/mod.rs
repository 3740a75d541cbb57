//! A model of the memory index under the engine's policies.
//!
//! Keys are numbers. For each there is whether it is present, referenced, dirty; every entry takes
//! the same bytes, and nothing else takes any. What the engine does with threads happens here at
//! once: an access over the high mark releases down to the low one, and a run of the cleaner has
//! ended when the next access comes. So nothing is in flight, no slab has holes, sizes of regions
//! are never stale, and leaves have one entry.
//!
//! The steps and their order are those of `framework/release/cut.rs`, `step.rs` and
//! `framework/clean/cleaner.rs` in the library; what they choose is chosen by the library.

mod cleaning;

use super::{Access, Cache, ours::Ours};
use indexy::{
    Precleaning,
    replay::{self, Held, Loads, RegionTable},
};
use std::ops::Range;

const PRESENT: u8 = 1;
const REFERENCED: u8 = 2;
const DIRTY: u8 = 4;

/// Rounds of one release; in the last ones referenced entries go too.
const ROUNDS: usize = 4;
const SPARING_ROUNDS: usize = 2;
/// A release goes on until it freed this part of what is needed.
const WORTHWHILE_DIVISOR: u64 = 8;
/// With this part of what is needed, nothing has to be cleaned.
const ENOUGH_DIVISOR: u64 = 2;
/// Runs for one release, at most, without any effect.
const CLEAN_TRIES: u32 = 8;
/// The budget's marks are in so many parts, and a release begins at the second number of them.
const MARK_PARTS: (u64, u64) = (256, 226);

/// How large memory is, and how closely it is watched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Bytes of entries at which a release begins.
    pub bytes: u64,
    /// Bytes of one entry.
    pub entry_bytes: u64,
    /// A region holds this part of the budget; none: what the engine says.
    pub region_divisor: Option<u64>,
    /// One access in so many is counted.
    pub sampled_one_in: u32,
    /// For [`indexy::Release::Random`].
    pub seed: u64,
}

/// The memory index.
#[derive(Debug)]
pub struct Memory {
    policy: Ours,
    settings: Settings,
    /// The budget whose high mark is `settings.bytes`, less what counts of misses take.
    budget: u64,
    low: u64,
    high: u64,
    state: Vec<u8>,
    keys: u64,
    dirty: u64,
    loads: Loads,
    table: RegionTable,
    /// First key of each region, and what it holds. One region until the low mark is reached.
    starts: Vec<u64>,
    regions: Vec<Region>,
    monitored: bool,
    /// Accesses so far: the time.
    now: u64,
    countdown: u32,
    releases: u64,
    /// Entries that came into memory.
    loaded: u64,
    cleaner: Cleaner,
}

#[derive(Debug, Default, Clone, Copy)]
struct Region {
    keys: u64,
    dirty: u64,
}

/// What the cleaner remembers.
#[derive(Debug, Default)]
struct Cleaner {
    written: u64,
    /// As of the last pass.
    last_written: u64,
    last_releases: u64,
    cursor: usize,
    runs: u32,
}

impl Memory {
    /// An empty one, for keys below `keys`.
    pub fn new(keys: u32, policy: Ours, settings: Settings) -> Self {
        let whole = settings.bytes / MARK_PARTS.1 * MARK_PARTS.0;
        let loads = Loads::new(policy.admission, whole);
        let budget = whole - loads.bytes();
        let (low, high) = replay::marks(budget);
        Self {
            policy,
            settings,
            budget,
            low,
            high,
            state: vec![0; keys as usize],
            keys: 0,
            dirty: 0,
            loads,
            table: RegionTable::new(),
            starts: vec![0],
            regions: vec![Region::default()],
            monitored: false,
            now: 0,
            countdown: settings.sampled_one_in,
            releases: 0,
            loaded: 0,
            cleaner: Cleaner::default(),
        }
    }

    /// Releases so far.
    pub fn releases(&self) -> u64 {
        self.releases
    }

    /// Entries that came into memory so far, by reads and writes.
    pub fn loaded(&self) -> u64 {
        self.loaded
    }

    /// Entries that are there.
    pub fn entries(&self) -> u64 {
        self.keys
    }

    fn live(&self) -> u64 {
        self.keys * self.settings.entry_bytes
    }

    fn region_of(&self, key: u32) -> usize {
        let key = u64::from(key);
        self.starts.partition_point(|start| *start <= key) - 1
    }

    fn range(&self, region: usize) -> Range<usize> {
        let end = self.starts.get(region + 1);
        self.starts[region] as usize..end.map_or(self.state.len(), |end| *end as usize)
    }

    fn sample(&mut self, key: u32) {
        self.countdown -= 1;
        if self.countdown == 0 {
            self.countdown = self.settings.sampled_one_in;
            if self.monitored {
                self.table.note_access(key.into(), self.now);
            }
        }
    }

    /// Puts an entry for `key`, which has none.
    fn insert(&mut self, key: u32, bits: u8) {
        self.state[key as usize] = PRESENT | bits;
        let dirty = u64::from(bits & DIRTY != 0);
        let region = self.region_of(key);
        self.regions[region].keys += 1;
        self.regions[region].dirty += dirty;
        self.keys += 1;
        self.dirty += dirty;
        self.loaded += 1;
        if !self.monitored && self.live() >= self.low {
            self.choose_regions();
        }
        if self.live() > self.high {
            self.make_room();
        }
    }

    fn write(&mut self, key: u32) {
        let bits = self.state[key as usize];
        if bits & PRESENT == 0 {
            self.insert(key, DIRTY);
        } else if bits & DIRTY == 0 {
            self.state[key as usize] |= DIRTY;
            let region = self.region_of(key);
            self.regions[region].dirty += 1;
            self.dirty += 1;
        }
        self.table.note_write(key.into());
        self.cleaner.written += 1;
        let due = replay::timer_keys(self.budget, self.keys, self.live());
        if self.cleaner.written - self.cleaner.last_written >= due {
            self.pass();
        }
    }
}

impl Cache for Memory {
    fn access(&mut self, key: u32, access: Access) -> bool {
        self.now += 1;
        self.sample(key);
        let hit = self.state[key as usize] & PRESENT != 0;
        if access != Access::Write {
            if hit {
                self.state[key as usize] |= REFERENCED;
            } else if self.loads.admits(key.into(), access == Access::Update) {
                self.insert(key, 0);
            }
        }
        if matches!(access, Access::Write | Access::Update) {
            self.write(key);
        }
        hit
    }
}

/// Release.
impl Memory {
    fn make_room(&mut self) {
        let mut cleans = 0;
        while self.live() > self.high {
            let need = self.live() - self.low;
            let freed = self.release(need);
            if freed >= need / ENOUGH_DIVISOR {
                continue;
            }
            if self.dirty > 0 && cleans < CLEAN_TRIES {
                cleans += 1;
                self.clean_oldest();
                if self.policy.precleaning != Precleaning::Off {
                    self.keep_ahead(replay::timer_keys(self.budget, self.keys, self.live()));
                }
            } else if freed == 0 {
                break;
            }
        }
    }

    fn release(&mut self, need: u64) -> u64 {
        let mut freed = 0;
        for round in 0..ROUNDS {
            let sparing = round < SPARING_ROUNDS;
            let too_large = 4 * self.region_bytes() / self.settings.entry_bytes;
            let oversize = self.regions.iter().any(|r| r.keys > too_large);
            if oversize || !sparing && freed == 0 {
                self.choose_regions();
            }
            let entry_bytes = self.settings.entry_bytes;
            let held = self.regions.iter().map(|region| Held {
                keys: region.keys,
                clean_bytes: (region.keys - region.dirty) * entry_bytes,
            });
            let held: Vec<Held> = held.collect();
            if held.iter().all(|held| held.clean_bytes == 0) {
                break;
            }
            let (policy, seed) = (self.policy.release, self.settings.seed ^ self.releases << 8);
            let chosen = self
                .table
                .choose(policy, &held, need - freed, seed, self.now);
            for region in chosen {
                if freed < need {
                    let spare = sparing && self.policy.second_chance;
                    freed += self.cut(region, need - freed, spare);
                }
            }
            if freed > 0 && freed >= need / WORTHWHILE_DIVISOR {
                break;
            }
        }
        if freed > 0 {
            self.table.decay();
            self.releases += 1;
        }
        freed
    }

    /// Drops what is clean of `region`, in the order of keys, until `enough` bytes are free; spares
    /// what was referenced, once.
    fn cut(&mut self, region: usize, enough: u64, spare: bool) -> u64 {
        let range = self.range(region);
        let (entry_bytes, mut freed) = (self.settings.entry_bytes, 0);
        for_present(&mut self.state[range], |bits| {
            if freed >= enough {
                return false;
            }
            if *bits & DIRTY == 0 {
                if spare && *bits & REFERENCED != 0 {
                    *bits &= !REFERENCED;
                } else {
                    *bits = 0;
                    freed += entry_bytes;
                }
            }
            true
        });
        let gone = freed / entry_bytes;
        self.regions[region].keys -= gone;
        self.keys -= gone;
        self.table.note_release(region, self.now);
        freed
    }

    fn region_bytes(&self) -> u64 {
        let own = self.settings.region_divisor.map(|d| self.budget / d);
        own.unwrap_or_else(|| replay::region_bytes(self.budget))
            .max(1)
    }

    /// Chooses regions of even size, and counts what they hold.
    fn choose_regions(&mut self) {
        let most = (self.region_bytes() / self.settings.entry_bytes).max(1);
        self.starts.clear();
        self.regions.clear();
        self.starts.push(0);
        self.regions.push(Region::default());
        for (key, bits) in self.state.iter().enumerate() {
            if bits & PRESENT == 0 {
                continue;
            }
            if self
                .regions
                .last()
                .is_some_and(|region| region.keys >= most)
            {
                self.starts.push(key as u64);
                self.regions.push(Region::default());
            }
            if let Some(region) = self.regions.last_mut() {
                region.keys += 1;
                region.dirty += u64::from(bits & DIRTY != 0);
            }
        }
        self.table.choose_anew(&self.starts);
        self.monitored = true;
    }
}

/// Calls `each` for the bits of what is present, until it returns false.
fn for_present(state: &mut [u8], mut each: impl FnMut(&mut u8) -> bool) {
    for word in state.chunks_mut(64) {
        // Most of a large range is absent.
        if word.iter().all(|bits| *bits == 0) {
            continue;
        }
        for bits in word.iter_mut().filter(|bits| **bits & PRESENT != 0) {
            if !each(bits) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
