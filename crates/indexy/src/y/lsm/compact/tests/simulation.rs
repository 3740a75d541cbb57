//! What a load writes, and that steps come to an end.

use crate::y::lsm::{
    compact::{
        policy::{Effort, Limits, Step, next},
        shape::shape_of,
    },
    version::{
        Inputs, Version,
        tests::{Entries, Fake, Model, Random, apply, content, merge, table},
    },
};
use std::sync::Arc;

/// Four entries a page.
const PARTITION: u64 = 64 * 4096;
const TABLE_ENTRIES: usize = 256;
/// Of a layer of a load.
const LAYER: usize = 2600;

struct Tree {
    version: Version<Fake>,
    limits: Limits,
    numbers: u64,
    /// Entries written by runs, and by merges.
    runs: u64,
    merged: u64,
    largest: u64,
}

impl Tree {
    fn new() -> Self {
        Self {
            version: Version::empty(PARTITION),
            limits: Limits::new(PARTITION),
            numbers: 0,
            runs: 0,
            merged: 0,
            largest: 0,
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn run(&mut self, entries: Entries) {
        self.runs += entries.len() as u64;
        let table = table(self.number(), entries);
        self.version = self.version.with_run(&[table]);
    }

    /// Makes a step; false if nothing is due.
    fn step(&mut self, effort: Effort) -> bool {
        let inputs = match next(&shape_of(&self.version, effort, self.limits, |_, _| false)) {
            Step::Rest => return false,
            Step::Major(partitions) => Inputs::major(&self.version, partitions),
            Step::Minor(i, layers) => Inputs::minor(&self.version, i, layers),
            Step::Cut(i, _) => match self.version.middle(i).unwrap() {
                Some(middle) => {
                    self.version = self.version.cut(&middle);
                    return true;
                }
                None => Inputs::major(&self.version, i..i + 1),
            },
        };
        self.merge(&inputs.unwrap());
        true
    }

    fn merge(&mut self, inputs: &Inputs<Fake>) {
        let read: u64 = inputs
            .parts
            .iter()
            .map(|p| p.partition.weights().all().bytes)
            .sum();
        self.largest = self.largest.max(read);
        let output: Vec<Arc<Fake>> = merge(inputs, TABLE_ENTRIES)
            .into_iter()
            .map(|entries| {
                self.merged += entries.len() as u64;
                table(self.number(), entries)
            })
            .collect();
        self.version = self.version.with_merge(inputs, &output).unwrap();
    }

    fn settle(&mut self, effort: Effort) {
        let mut steps = 0;
        while self.step(effort) {
            steps += 1;
            assert!(steps < 10_000, "it does not come to an end");
        }
    }

    fn written_per_entry(&self) -> f64 {
        (self.runs + self.merged) as f64 / self.runs as f64
    }
}

fn key(n: usize) -> Vec<u8> {
    (n as u32).to_be_bytes().to_vec()
}

/// Loads `layers` times so many new keys, each time in 13 stretches that go round the key space.
fn load(layers: usize, stretches: usize) -> Tree {
    let mut tree = Tree::new();
    let per_run = LAYER / stretches;
    for layer in 0..layers {
        // An order in which layers interleave.
        let layer_key = layer * 7 % layers;
        for stretch in 0..stretches {
            let keys = stretch * per_run..(stretch + 1) * per_run;
            let entry = |i| (key(i * layers + layer_key), Some(vec![1]));
            tree.run(keys.map(entry).collect());
            assert!(!tree.limits.congested(tree.version.totals().layers));
            // The compactor keeps up.
            tree.settle(Effort::Busy);
        }
    }
    tree.settle(Effort::Quiet);
    tree
}

#[test]
fn a_load_writes_about_one_and_a_half_and_r_over_2t_times() {
    for (layers, most) in [(4, 2.1), (8, 2.6), (12, 3.2), (20, 3.6), (40, 4.5)] {
        for stretches in [13, 1] {
            let tree = load(layers, stretches);
            let written = tree.written_per_entry();
            let totals = tree.version.totals();
            println!(
                "{layers} layers of {stretches} runs: {written:.2} times, depth {}, {} partitions, \
                 {:.1} partitions the largest step",
                totals.depth,
                tree.version.partitions().len(),
                tree.largest as f64 / PARTITION as f64,
            );
            assert!(
                written <= most,
                "{layers} layers of {stretches} runs: {written:.2}"
            );
            assert!(totals.depth <= 3, "{}", totals.depth);
            assert!(tree.largest <= 5 * PARTITION, "{}", tree.largest);
            assert_eq!(
                content(&tree.version).len(),
                layers * (LAYER / stretches) * stretches
            );
            assert!(totals.dead_bytes() <= totals.live.bytes / 8);
        }
    }
}

/// Overwrites, deletes and removals of ranges, with merges in between and at rest: what is in there
/// stays right, deletes and dead bytes go, and the work comes to an end.
#[test]
fn what_is_overwritten_and_removed_goes() {
    let mut tree = Tree::new();
    let (mut model, mut random) = (Model::new(), Random(9));
    for round in 0..80 {
        let from = random.below(20_000);
        let run: Entries = (from..from + 3000)
            .step_by(1 + random.below(3))
            .map(|i| (key(i), (random.below(3) > 0).then(|| vec![round])))
            .collect();
        apply(&mut model, &run);
        tree.run(run);
        if round % 5 == 0 {
            let from = random.below(20_000);
            let (from, to) = (key(from), key(from + 500));
            tree.version = tree.version.without_range(&from, Some(&to));
            model.retain(|key, _| *key < from || to <= *key);
        }
        let effort = [Effort::Busy, Effort::Quiet][usize::from(round % 8 == 7)];
        tree.settle(effort);
        assert!(content(&tree.version) == model, "round {round}");
        let totals = tree.version.totals();
        assert!(totals.depth <= 9 && totals.dead_bytes() <= totals.live.bytes);
    }
    tree.settle(Effort::Thorough);
    assert!(content(&tree.version) == model);
    let totals = tree.version.totals();
    assert_eq!(
        (totals.live.entries, totals.live.deletes),
        (model.len() as u64, 0)
    );
    assert_eq!(totals.depth, 1);
    let pages = model.len().div_ceil(4) as u64;
    assert!(
        totals.bytes <= pages * 4096 * 11 / 10,
        "{} {pages}",
        totals.bytes / 4096
    );
    // Everything is deleted: nothing is left.
    tree.run(model.keys().map(|key| (key.clone(), None)).collect());
    tree.settle(Effort::Busy);
    assert_eq!(tree.version.totals().bytes, 0);
    assert_eq!(tree.version.partitions().len(), 1);
}
