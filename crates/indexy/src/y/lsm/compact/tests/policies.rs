//! The policy on paper examples.

use crate::y::lsm::{
    compact::policy::{Effort, Limits, PartitionShape, Shape, Step, next},
    version::Slice,
};

const MIB: u64 = 1 << 20;

fn slice(mib: u64) -> Slice {
    Slice {
        entries: mib * 50_000,
        deletes: 0,
        bytes: mib * MIB,
    }
}

fn partition(base: u64, layers: &[u64]) -> PartitionShape {
    PartitionShape {
        base: slice(base),
        base_tables: 1,
        layers: layers.iter().map(|mib| slice(*mib)).collect(),
        ..PartitionShape::default()
    }
}

fn shape(partitions: Vec<PartitionShape>, effort: Effort) -> Shape {
    Shape {
        partitions,
        effort,
        limits: Limits::new(32 * MIB),
    }
}

fn busy(partition: PartitionShape) -> Step {
    next(&shape(vec![partition], Effort::Busy))
}

#[test]
fn a_load_is_left_alone_until_there_are_eight_layers() {
    assert_eq!(busy(partition(32, &[4; 7])), Step::Rest);
    assert_eq!(busy(partition(32, &[4; 8])), Step::Major(0..1));
    assert_eq!(busy(partition(0, &[])), Step::Rest);
}

#[test]
fn the_worst_partition_comes_first() {
    let partitions = vec![
        partition(32, &[4; 8]),
        partition(32, &[4; 9]),
        partition(32, &[4; 9]),
    ];
    assert_eq!(next(&shape(partitions, Effort::Busy)), Step::Major(1..2));
}

#[test]
fn few_bytes_over_a_large_base_are_merged_among_themselves() {
    assert_eq!(busy(partition(64, &[1; 8])), Step::Minor(0, 0..8));
    // Those that were merged before wait for others of their size.
    assert_eq!(
        busy(partition(64, &[1, 1, 1, 1, 1, 1, 5, 4])),
        Step::Minor(0, 0..6)
    );
    // Of all sizes: all of them.
    assert_eq!(
        busy(partition(1000, &[1, 4, 13, 40, 13, 4, 1, 20])),
        Step::Minor(0, 0..8)
    );
}

#[test]
fn reads_that_paid_for_it_get_it_once() {
    let mut now = partition(30, &[10]);
    // 2,000,000 entries, 500 a block.
    now.wasted = 3_999;
    assert_eq!(busy(now.clone()), Step::Rest);
    now.wasted = 4_000;
    assert_eq!(busy(now.clone()), Step::Major(0..1));
    now.wasted = 0;
    now.skipped = 4_000_000;
    assert_eq!(busy(now), Step::Major(0..1));
    let mut clean = partition(32, &[]);
    clean.wasted = u64::MAX;
    assert_eq!(busy(clean), Step::Rest, "there is nothing to gain");
    // Small layers are paid for by less.
    let mut small = partition(64, &[1, 1]);
    small.wasted = 200;
    assert_eq!(busy(small), Step::Minor(0, 0..2));
}

#[test]
fn deletes_go_when_they_are_a_quarter() {
    let mut now = partition(30, &[10]);
    now.layers[0].deletes = 500_000;
    assert_eq!(busy(now.clone()), Step::Rest);
    now.base.deletes = 1;
    assert_eq!(busy(now), Step::Major(0..1));
    // Also of a base alone.
    let mut base = partition(30, &[]);
    base.base.deletes = base.base.entries;
    assert_eq!(busy(base), Step::Major(0..1));
}

#[test]
fn quiet_times_are_used_but_not_wasted() {
    let quiet = |p| next(&shape(vec![p], Effort::Quiet));
    assert_eq!(quiet(partition(32, &[8])), Step::Major(0..1));
    assert_eq!(quiet(partition(32, &[1, 1])), Step::Minor(0, 0..2));
    assert_eq!(quiet(partition(32, &[1])), Step::Rest);
    assert_eq!(quiet(partition(40, &[1, 5])), Step::Minor(0, 0..2));
    assert_eq!(quiet(partition(80, &[1, 10])), Step::Rest);
    assert_eq!(quiet(partition(32, &[])), Step::Rest);
    let thorough = |p| next(&shape(vec![p], Effort::Thorough));
    assert_eq!(thorough(partition(32, &[1])), Step::Major(0..1));
    assert_eq!(thorough(partition(32, &[])), Step::Rest);
}

#[test]
fn too_much_for_one_step_is_cut_first() {
    assert_eq!(busy(partition(60, &[10; 8])), Step::Cut(0, None));
    assert_eq!(busy(partition(40, &[10; 8])), Step::Major(0..1));
}

#[test]
fn small_neighbours_are_merged_together() {
    let few = vec![partition(1, &[]); 16];
    assert_eq!(next(&shape(few, Effort::Busy)), Step::Rest);
    let mut many = vec![partition(1, &[]); 40];
    many[3] = partition(32, &[]);
    assert_eq!(next(&shape(many, Effort::Busy)), Step::Major(4..36));
}

#[test]
fn dead_bytes_are_collected_where_that_is_cheapest() {
    let mut partitions = vec![partition(32, &[]), partition(32, &[2]), partition(32, &[])];
    partitions[0].dead_base = 20 * MIB;
    partitions[2].dead_base = 20 * MIB;
    assert_eq!(next(&shape(partitions.clone(), Effort::Busy)), Step::Rest);
    // Copying a layer costs less than what is below it.
    partitions[1].dead_layers = 12 * MIB;
    assert_eq!(
        next(&shape(partitions.clone(), Effort::Busy)),
        Step::Minor(1, 0..1)
    );
    partitions[1].dead_layers = 0;
    assert_eq!(next(&shape(partitions, Effort::Quiet)), Step::Major(0..1));
}

#[test]
fn runs_wait_when_there_are_far_too_many_layers() {
    let limits = Limits::new(32 * MIB);
    assert!(!limits.congested(23));
    assert!(limits.congested(24));
}

#[test]
fn a_part_of_a_tree_can_be_compacted_alone() {
    let partitions = vec![
        partition(32, &[9; 9]),
        partition(32, &[1]),
        partition(32, &[2]),
    ];
    let some = shape(partitions, Effort::Thorough).within(&(1..2));
    assert_eq!(next(&some), Step::Major(1..2));
    // However many there are outside, and though nothing is inside.
    for inside in [5..6, 6..6] {
        let many = vec![partition(32, &[]); 40];
        let some = shape(many, Effort::Thorough).within(&inside);
        assert_eq!(next(&some), Step::Rest);
    }
    let small = shape(vec![partition(1, &[]); 40], Effort::Thorough);
    assert_eq!(next(&small.within(&(3..30))), Step::Major(3..30));
}

#[test]
fn a_damaged_base_is_left_alone_and_its_layers_are_merged() {
    let damaged = |layers: &[u64], at: &[usize]| PartitionShape {
        damaged_base: at.is_empty(),
        damaged_layers: at.to_vec(),
        ..partition(32, layers)
    };
    assert_eq!(busy(damaged(&[4; 8], &[])), Step::Minor(0, 0..8));
    assert_eq!(busy(damaged(&[4; 8], &[2])), Step::Minor(0, 3..8));
    assert_eq!(busy(damaged(&[4; 8], &[5])), Step::Minor(0, 0..5));
    assert_eq!(busy(damaged(&[4; 8], &[1, 3, 5, 7])), Step::Rest);
    assert_eq!(busy(damaged(&[20; 8], &[])), Step::Cut(0, Some(0..8)));
    // A single layer, however much of it is dead or deleted.
    let mut one = damaged(&[4], &[]);
    (one.base.deletes, one.dead_base) = (one.base.entries, 64 * MIB);
    for effort in [Effort::Busy, Effort::Quiet, Effort::Thorough] {
        assert_eq!(next(&shape(vec![one.clone()], effort)), Step::Rest);
    }
    // The others go on.
    let others = vec![damaged(&[4; 9], &[]), partition(32, &[4; 8])];
    let mut others = shape(others, Effort::Busy);
    assert_eq!(next(&others), Step::Minor(0, 0..9));
    others.partitions[0].layers.truncate(1);
    assert_eq!(next(&others), Step::Major(1..2));
}

#[test]
fn small_neighbours_of_damage_are_merged_without_it() {
    let mut partitions = vec![partition(0, &[]); 40];
    partitions[10].damaged_base = true;
    let step = next(&shape(partitions, Effort::Busy));
    assert_eq!(step, Step::Major(11..40));
}
