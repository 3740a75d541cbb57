//! Random steps over versions, against a `BTreeMap`.

use super::*;

/// Keys are below this.
const KEYS: usize = 600;

fn key(n: usize) -> Vec<u8> {
    // Of different lengths, some a prefix of the next.
    let mut key = format!("{:03}", n / 3).into_bytes();
    key.extend(&b"xy"[..n % 3]);
    key
}

struct World {
    random: Random,
    version: Version<Fake>,
    model: Model,
    next: u64,
    /// Merges that have been read and not yet put in place.
    merges: Vec<Inputs<Fake>>,
    placed: usize,
    /// Merges that were put in place although something came in between.
    late: usize,
    removals: usize,
    /// Loads that made partitions of their own.
    loads: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            version: Version::empty(4096 * 6),
            model: Model::new(),
            next: 1,
            merges: Vec::new(),
            placed: 0,
            late: 0,
            removals: 0,
            loads: 0,
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn stretch(&mut self) -> Range<usize> {
        let from = self.random.below(KEYS);
        let len = [1, 5, 40, KEYS][self.random.below(4)];
        from..(from + 1 + self.random.below(len)).min(KEYS)
    }

    fn run(&mut self) {
        let stretch = self.stretch();
        let dense = 1 + self.random.below(6);
        let deletes = self.random.below(3);
        let mut run = Entries::new();
        for n in stretch {
            if self.random.below(dense) == 0 {
                let value = format!("{}.{n}", self.next).into_bytes();
                let delete = self.random.below(4) < deletes;
                run.insert(key(n), (!delete).then_some(value));
            }
        }
        if run.is_empty() {
            return;
        }
        apply(&mut self.model, &run);
        let entries: Vec<_> = run.into_iter().collect();
        let most = if self.random.below(3) == 0 { 20 } else { KEYS };
        let tables: Vec<_> = entries
            .chunks(most)
            .map(|part| table(self.number(), part.iter().cloned().collect()))
            .collect();
        self.version = self.version.with_run(&tables);
    }

    /// Where there is no key, more or less than a partition.
    fn load(&mut self) {
        let stretch = self.stretch();
        let (from, to) = (key(stretch.start), key(stretch.end));
        if self.model.range(from..to).next().is_some() {
            return;
        }
        let value = vec![7; [1, 4096][self.random.below(2)]];
        let entries: Vec<_> = stretch.map(|n| (key(n), Some(value.clone()))).collect();
        apply(&mut self.model, &entries.iter().cloned().collect());
        let most = 1 + self.random.below(20);
        let tables: Vec<_> = entries
            .chunks(most)
            .map(|part| table(self.number(), part.iter().cloned().collect()))
            .collect();
        let before = self.version.partitions().len();
        self.version = self.version.with_load(&tables);
        self.loads += usize::from(self.version.partitions().len() > before);
    }

    fn begin_merge(&mut self) {
        let partitions = self.version.partitions().len();
        let from = self.random.below(partitions);
        let to = (from + 1 + self.random.below(3)).min(partitions);
        let major = self.random.below(2) == 0;
        let (a, b) = (self.random.below(100), self.random.below(100));
        let layers = |p: &Partition<Fake>| {
            let len = p.layers.len();
            let (a, b) = (a % (len + 1), b % (len + 1));
            a.min(b)..a.max(b)
        };
        let inputs = Inputs::of(&self.version, from..to, major, layers);
        self.merges.extend(inputs);
    }

    fn end_merge(&mut self) {
        if self.merges.is_empty() {
            return;
        }
        let n = self.random.below(self.merges.len());
        let inputs = self.merges.swap_remove(n);
        let most = [3, 10, 1000][self.random.below(3)];
        let parts = merge(&inputs, most);
        let output: Vec<_> = parts
            .into_iter()
            .map(|part| table(self.number(), part))
            .collect();
        let changed = inputs.parts.iter().any(|part| {
            let same = |p: &Arc<Partition<Fake>>| Arc::ptr_eq(p, &part.partition);
            !self.version.partitions().iter().any(same)
        });
        if let Some(next) = self.version.with_merge(&inputs, &output) {
            self.version = next;
            self.placed += 1;
            self.late += usize::from(changed);
        }
    }

    /// Some ranges, in any order: empty ones, neighbours, and some that overlap among them.
    fn ranges(&mut self) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let most = [1, 2, 12][self.random.below(3)];
        let ranges = (0..self.random.below(most + 1)).map(|_| {
            let stretch = self.stretch();
            let open = stretch.end == KEYS && self.random.below(4) == 0;
            match self.random.below(8) {
                0 => (key(stretch.end), Some(key(stretch.start))),
                1 => (key(stretch.start), Some(key(stretch.start))),
                2 => (Vec::new(), Some(key(stretch.start))),
                _ => (key(stretch.start), (!open).then(|| key(stretch.end))),
            }
        });
        ranges.collect()
    }

    fn remove(&mut self) {
        let ranges = self.ranges();
        let ranges: Vec<KeyRange<'_>> =
            ranges.iter().map(|(f, t)| (&f[..], t.as_deref())).collect();
        let all = Version::of(
            self.version.partitions.clone(),
            self.version.partition_bytes,
        );
        let one_by_one = ranges
            .iter()
            .fold(all, |version, (from, to)| version.without_range(from, *to));
        self.version = self.version.without_ranges(&ranges);
        assert!(content(&one_by_one) == content(&self.version));
        let before = self.model.len();
        for (from, to) in ranges {
            self.model
                .retain(|key, _| **key < *from || to.is_some_and(|to| **key >= *to));
        }
        self.removals += before - self.model.len();
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..7 => self.run(),
            7..9 => self.load(),
            9..13 => self.begin_merge(),
            13..17 => self.end_merge(),
            17..19 => self.remove(),
            _ => {
                let n = self.random.below(KEYS);
                self.version = self.version.cut(&key(n));
            }
        }
        self.check();
    }

    fn check(&self) {
        self.version.check().unwrap();
        assert!(content(&self.version) == self.model);
        for n in 0..KEYS {
            let key = key(n);
            assert_eq!(get(&self.version, &key), self.model.get(&key), "key {n}");
        }
    }
}

#[test]
fn every_step_keeps_what_the_model_has() {
    let (mut late, mut placed, mut removals, mut loads) = (0, 0, 0, 0);
    for seed in 0..60 {
        let mut world = World::new(seed);
        for step in 0..120 {
            world.step();
            let _ = step;
        }
        (late, placed) = (late + world.late, placed + world.placed);
        removals += world.removals;
        loads += world.loads;
    }
    println!("{placed} merges, {late} of them late, {removals} keys removed, {loads} loads");
    assert!(placed > 500 && late > 100 && removals > 1000 && loads > 20);
}

/// Lets reads pay somewhere; what is paid then.
fn pay(version: &Version<Fake>, random: &mut Random) -> Paid {
    let partitions = version.partitions();
    for _ in 0..random.below(3) {
        let reads = partitions[random.below(partitions.len())].reads();
        reads.waste(random.below(2) as u64);
        reads.skip(random.below(2) as u64);
    }
    Paid::of(version)
}

/// A record of the log says what is new and what reads have paid, and no more.
#[test]
fn the_log_follows_every_step() {
    for seed in 0..20 {
        let mut world = World::new(1000 + seed);
        let mut before = translate::change_of(&world.version, None);
        let mut listing = log::Listing::default();
        listing.apply(before).unwrap();
        for _ in 0..60 {
            let old = std::mem::replace(&mut world.version, Version::empty(1));
            world.version = Version::of(old.partitions.clone(), old.partition_bytes);
            for _ in 0..world.random.below(4) {
                world.step();
            }
            before = translate::change_of(&world.version, Some(&old));
            let paid = pay(&world.version, &mut world.random);
            before.paid = paid.clone();
            let bytes = before.encode();
            assert!(log::Change::decode(&bytes) == Ok(before));
            listing.apply(log::Change::decode(&bytes).unwrap()).unwrap();
            assert!(listing == translate::listing_of(&world.version, paid));
        }
    }
}

/// Partitions are neither too many nor too large.
#[test]
fn sequential_runs_are_never_merged_and_fill_partitions() {
    let mut version = Version::empty(4096 * 100);
    for run in 0..200u32 {
        let keys = (0..40u32).map(|i| ((run * 40 + i).to_be_bytes().to_vec(), Some(vec![1])));
        version = version.with_run(&[table(u64::from(run) + 1, keys.collect())]);
    }
    let totals = version.totals();
    assert_eq!((totals.depth, totals.tables), (1, 200));
    assert_eq!(totals.live.entries, 8000);
    assert_eq!(totals.dead_bytes(), 0);
    let bytes = |p: &Arc<Partition<Fake>>| p.weights().all().bytes / 4096;
    let sizes: Vec<u64> = version.partitions().iter().map(bytes).collect();
    assert!((10..=20).contains(&sizes.len()), "{sizes:?}");
    assert!(sizes.iter().all(|size| *size <= 200), "{sizes:?}");
}
