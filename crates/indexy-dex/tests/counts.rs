//! What each operation costs in verbs: exact numbers.

mod pools;

use indexy_dex::{
    BulkLoad, Options, Tree,
    node::NODE_BYTES,
    offload::Offloading,
    partition::Table,
    remote::{Counts, Latency, Model, RemoteMemory},
};
use pools::{ModelPool, Pool};

const KEYS: u64 = 20_000;
/// Entries of a loaded node: 20,000 keys are 500 leaves, 13 nodes of level 1, and a root.
const FILL: usize = 40;
const NODE: u64 = NODE_BYTES;

fn load(pool: &ModelPool, table: Table) -> Table {
    let load = BulkLoad::default().fill(FILL).table(table);
    load.load(&pool.connect(), (0..KEYS).map(|key| (key, key)))
        .unwrap()
}

fn options(owner: u16, leaf_admission: f64) -> Options {
    Options::new(owner, 2_000)
        .leaf_admission(leaf_admission)
        .offloading(Offloading::Never)
}

fn alone(leaf_admission: f64) -> Tree<Model> {
    let pool = ModelPool::new(2, 16 << 20);
    load(&pool, Table::whole());
    Tree::open(pool.connect(), options(0, leaf_admission)).unwrap()
}

/// Verbs and bytes of one operation.
fn cost<M: RemoteMemory, T>(tree: &Tree<M>, operation: impl FnOnce() -> T) -> Counts {
    let before = tree.counts();
    operation();
    tree.counts() - before
}

fn reads(nodes: u64) -> Counts {
    Counts {
        reads: nodes,
        read_bytes: nodes * NODE,
        ..Counts::default()
    }
}

#[test]
fn a_read_of_a_cached_path_is_no_verb() {
    let tree = alone(1.0);
    let get = || tree.get(777).unwrap();
    assert_eq!(cost(&tree, get), reads(2), "level 1 and the leaf");
    assert_eq!(cost(&tree, get), Counts::default());
    assert_eq!(
        cost(&tree, || tree.get(778).unwrap()),
        Counts::default(),
        "the same leaf"
    );
}

#[test]
fn a_read_of_a_private_leaf_that_is_not_cached_is_one_read() {
    let tree = alone(0.0);
    let get = || tree.get(777).unwrap();
    assert_eq!(
        cost(&tree, get),
        reads(2),
        "inner nodes are always admitted"
    );
    for _ in 0..3 {
        assert_eq!(cost(&tree, get), reads(1));
    }
}

#[test]
fn a_write_of_a_leaf_that_is_not_admitted_is_a_read_and_a_write() {
    let tree = alone(0.0);
    tree.get(777).unwrap();
    let expected = Counts {
        writes: 1,
        written_bytes: NODE,
        ..reads(1)
    };
    assert_eq!(cost(&tree, || tree.put(777, 1).unwrap()), expected);
    assert_eq!(cost(&tree, || tree.remove(777).unwrap()), expected);
    // What changes nothing is not written.
    assert_eq!(cost(&tree, || tree.remove(777).unwrap()), reads(1));
}

#[test]
fn a_write_of_a_cached_leaf_is_no_verb_until_it_is_flushed() {
    let tree = alone(1.0);
    tree.get(777).unwrap();
    assert_eq!(cost(&tree, || tree.put(777, 1).unwrap()), Counts::default());
    assert_eq!(cost(&tree, || tree.put(778, 1).unwrap()), Counts::default());
    let one = Counts {
        writes: 1,
        written_bytes: NODE,
        ..Counts::default()
    };
    assert_eq!(cost(&tree, || tree.flush().unwrap()), one);
    assert_eq!(cost(&tree, || tree.flush().unwrap()), Counts::default());
}

/// Two owners; the border lies below the middle of a node of level 1, which both share.
fn shared() -> (Tree<Model>, Tree<Model>, u64) {
    let pool = ModelPool::new(2, 16 << 20);
    let border = KEYS / 13 * 6;
    let table = load(&pool, Table::new(vec![(0, 0), (border, 1)]).unwrap());
    let border = table.segments().nth(1).unwrap().0;
    let open = |owner| Tree::open(pool.connect(), options(owner, 1.0)).unwrap();
    (open(0), open(1), border)
}

#[test]
fn a_read_of_a_shared_node_is_three_reads() {
    let (one, two, border) = shared();
    let expected = Counts {
        reads: 4,
        read_bytes: 2 * NODE + 16,
        ..Counts::default()
    };
    assert_eq!(cost(&one, || one.get(border - 1).unwrap()), expected);
    assert_eq!(cost(&two, || two.get(border).unwrap()), expected);
    assert_eq!(
        cost(&one, || one.get(border - 1).unwrap()),
        Counts::default()
    );
    // Away from the border nodes are private.
    assert_eq!(cost(&one, || one.get(0).unwrap()), reads(2));
}

/// Inserts into the leaf of the first key until it is split; returns the cost of the last insert.
fn split(tree: &Tree<Model>, keys: std::ops::Range<u64>) -> Counts {
    for key in keys {
        let spent = cost(tree, || tree.put(key, 0).unwrap());
        if spent != Counts::default() {
            return spent;
        }
    }
    panic!("no split");
}

#[test]
fn a_split_below_a_private_parent_is_two_writes() {
    let pool = ModelPool::new(1, 16 << 20);
    let load = BulkLoad::default().fill(FILL);
    load.load(&pool.connect(), (0..KEYS).map(|key| (key * 100, key)))
        .unwrap();
    let tree = Tree::open(pool.connect(), options(0, 1.0)).unwrap();
    tree.get(0).unwrap();
    // The new leaf, and the parent that names it.
    let two_writes = Counts {
        writes: 2,
        written_bytes: 2 * NODE,
        ..Counts::default()
    };
    // The region's size, a guess of the next free node, and the swap that takes 64 of them.
    let first = Counts {
        reads: 1,
        read_bytes: 8,
        swaps: 2,
        ..two_writes
    };
    assert_eq!(split(&tree, 1..99), first);
    tree.get(100 * FILL as u64).unwrap();
    let next = 100 * FILL as u64 + 1;
    assert_eq!(split(&tree, next..next + 99), two_writes);
}

#[test]
fn a_split_below_a_shared_parent_is_a_swap_a_read_and_three_writes() {
    let pool = ModelPool::new(1, 16 << 20);
    let border = KEYS / 13 * 6 * 100;
    let load = BulkLoad::default().fill(FILL);
    let load = load.table(Table::new(vec![(0, 0), (border, 1)]).unwrap());
    let table = load
        .load(&pool.connect(), (0..KEYS).map(|key| (key * 100, key)))
        .unwrap();
    let border = table.segments().nth(1).unwrap().0;
    let tree = Tree::open(pool.connect(), options(1, 1.0)).unwrap();
    // A chunk of the pool, by a split below a private parent.
    tree.get(KEYS * 100 - 100).unwrap();
    split(&tree, KEYS * 100 - 99..KEYS * 100);
    tree.get(border).unwrap();
    let expected = Counts {
        reads: 1,
        read_bytes: NODE,
        // The new leaf, the parent, and its version.
        writes: 3,
        written_bytes: 2 * NODE + 8,
        swaps: 1,
        ..Counts::default()
    };
    assert_eq!(split(&tree, border + 1..border + 99), expected);
}

#[test]
fn an_offloaded_operation_is_one_call() {
    let pool = ModelPool::new(1, 16 << 20);
    load(&pool, Table::whole());
    let options = options(0, 0.0).offloading(Offloading::Always);
    let tree = Tree::open(pool.connect(), options).unwrap();
    let call = Counts {
        calls: 1,
        call_bytes: 8 * (4 + 5),
        ..Counts::default()
    };
    assert_eq!(
        cost(&tree, || assert_eq!(tree.get(777).unwrap(), Some(777))),
        call
    );
    assert_eq!(cost(&tree, || tree.put(777, 1).unwrap()), call);
    assert_eq!(
        cost(&tree, || assert_eq!(tree.get(777).unwrap(), Some(1))),
        call
    );
}

#[test]
fn a_scan_reads_what_is_missing_in_batches() {
    let tree = alone(0.0);
    tree.get(0).unwrap();
    let mut found = Vec::new();
    let mut scan = |most| {
        found.clear();
        let before = tree.memory().now_ns();
        let counts = cost(&tree, || tree.scan(0, 10_000, most, &mut found).unwrap());
        assert_eq!(found.len(), most);
        (counts, tree.memory().now_ns() - before)
    };
    assert_eq!(scan(40).0, reads(2), "room for leaves that are half full");
    // 100 entries are 3 leaves; 4 are read, in one trip.
    let (counts, ns) = scan(100);
    assert_eq!(counts, reads(4));
    let latency = Latency::rdma();
    assert_eq!(
        ns,
        latency.one_sided_ns + 4 * NODE * 1_000 / latency.bytes_per_us
    );
    let tree = alone(1.0);
    let mut found = Vec::new();
    let scan = |found: &mut Vec<_>| tree.scan(500, 4_000, 1_000, found).unwrap();
    scan(&mut found);
    assert_eq!(cost(&tree, || scan(&mut found)), Counts::default());
}

#[test]
fn a_hand_over_writes_what_is_dirty_and_little_else() {
    let (one, two, border) = shared();
    for key in 0..border {
        one.put(key, 7).unwrap();
    }
    let quarter = one.leaf_start(border / 4 * 3).unwrap();
    let leaves = (border - quarter).div_ceil(FILL as u64);
    let given = cost(&one, || one.release(quarter, border - 1, 1).unwrap());
    // The dirty leaves, and the table: a lock, the words, the next version.
    assert_eq!(given.writes, leaves + 2);
    assert!(given.reads + given.swaps <= 6, "{given:?}");
    let taken = cost(&two, || two.adopt_table().unwrap());
    // The table, the root, and the node of level 1 that the border ran through.
    assert_eq!(taken.writes + taken.swaps + taken.calls, 0);
    assert!(taken.reads <= 9, "{taken:?}");
    assert_eq!(two.get(quarter).unwrap(), Some(7));
    // The other ranges are as warm as before.
    assert_eq!(cost(&one, || one.get(0).unwrap()), Counts::default());
}

#[test]
fn a_stale_shared_node_costs_a_version_a_level_and_three_reads_where_it_differs() {
    let pool = ModelPool::new(1, 16 << 20);
    let border = KEYS / 13 * 6 * 100;
    let load = BulkLoad::default().fill(FILL);
    let load = load.table(Table::new(vec![(0, 0), (border, 1)]).unwrap());
    let table = load
        .load(&pool.connect(), (0..KEYS).map(|key| (key * 100, key)))
        .unwrap();
    let border = table.segments().nth(1).unwrap().0;
    let open = |owner| Tree::open(pool.connect(), options(owner, 1.0)).unwrap();
    let (one, two) = (open(0), open(1));
    // Owner 0 knows the shared node of level 1 as it was loaded.
    one.get(border - 1).unwrap();
    // Owner 1 splits leaves below it until it is split itself.
    let mut key = border;
    let shared_end = border + 100 * 1_600;
    while key < shared_end {
        two.put(key, 1).unwrap();
        key += 3;
    }
    // The next split of owner 0 below its stale copy finds out.
    let spent = split(&one, border - 99..border - 1);
    // In vain: the new leaf, the lock and the read of the stale node (2 swaps, a read, a write of
    // the version). Then 4 reads of the root, which differs; the node's new half, which is
    // private, and the leaf, for both left the cache; a chunk of the pool; the leaf's old half;
    // and the split's two writes.
    assert!(spent.reads <= 11 && spent.writes <= 5, "{spent:?}");
    let mut found = Vec::new();
    one.scan(0, border - 1, usize::MAX, &mut found).unwrap();
    assert!(found.len() as u64 > border / 100);
}
