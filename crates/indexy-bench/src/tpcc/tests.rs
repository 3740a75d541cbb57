//! The whole workload on small databases, and databases broken on purpose.

use super::{
    rows::{District, Order, OrderLine, Stock, Warehouse},
    *,
};
use crate::{
    application::Done,
    contender::{
        BTreeTables, Durability, Focus, IndexyTables, IndexyTransactions, Others, Outcome, Placed,
        Placement, Setup, TableBatch, TableSetup, Tables,
    },
    workload::rng,
};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
};

const SEED: u64 = 5;
const SCALE: Scale = Scale {
    warehouses: 2,
    items: 60,
    customers: 30,
};
/// An order takes from 5 to 15 of so few items: some twice.
const NEW_ORDERS: u32 = 9;

fn config(mix: Mix) -> Config {
    Config {
        scale: SCALE,
        mix,
        others: Others::Same,
    }
}

fn open<T: Tables>(path: &Path, variant: &str) -> T {
    T::open(&TableSetup {
        setup: &setup(path, variant),
        names: &names(),
    })
    .unwrap()
}

/// With tables of ours beside ORDER-LINE.
fn place<T: Tables>(path: &Path, variant: &str, resident: bool) -> Placed<T> {
    let others = Others::Apart {
        pair: "art-lsm".to_owned(),
        resident,
        share: 0.6,
    };
    let setup = TableSetup {
        setup: &setup(path, variant),
        names: &names(),
    };
    let placement = Placement {
        subject: Table::OrderLine as usize,
        others: &others,
    };
    Placed::place(&setup, &placement).unwrap()
}

fn setup(path: &Path, variant: &str) -> Setup {
    Setup {
        path: path.to_path_buf(),
        budget: 24 << 20,
        durability: Durability::None,
        threads: 2,
        records: 0,
        key_bytes: 39,
        value_bytes: 700,
        page_bytes: 0,
        focus: Focus::Mixed,
        variant: variant.to_owned(),
        cold: None,
    }
}

fn map() -> BTreeTables {
    open(Path::new(""), "")
}

fn load<T: Tables>(tables: &T, units: impl Fn(usize) -> usize) -> u64 {
    let loader = Loader::new(SCALE, SEED, 1);
    (0..loader.units())
        .map(|i| loader.load(tables, units(i)).unwrap().0)
        .sum()
}

fn run<T: Tables>(tables: &T, state: &State, mix: Mix, each: u32) -> Done<u64> {
    let config = config(mix);
    let one = |thread: u64| -> Done<u64> {
        let mut transactions = Transactions::new(tables, state, &config, SEED);
        let (mut draws, mut rolled_back) = (rng(SEED, 7, thread), 0);
        for _ in 0..each {
            rolled_back += u64::from(!transactions.next(&mut draws)?.committed);
        }
        Ok(rolled_back)
    };
    thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..2).map(|t| scope.spawn(move || one(t))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    })
}

fn check<T: Tables>(tables: &T, state: &State) -> Done<u64> {
    let mut rows = 0;
    for w in 1..=SCALE.warehouses {
        check_warehouse(tables, state, w)?;
        for d in 1..=DISTRICTS {
            rows += check_district(tables, state, w, d)?;
        }
    }
    Ok(rows)
}

type Entries = Vec<(usize, Vec<u8>, Vec<u8>)>;

fn dump<T: Tables>(tables: &T) -> Entries {
    let mut all = Vec::new();
    for table in TABLES {
        let see = |key: &[u8], value: &[u8]| {
            all.push((table as usize, key.to_vec(), value.to_vec()));
            true
        };
        tables.scan(table as usize, &[], &[0xff; 8], see).unwrap();
    }
    all
}

fn put<T: Tables>(tables: &T, table: Table, key: &[u8], value: &[u8]) {
    let mut batch = tables.batch();
    batch.put(table as usize, key, value);
    batch.commit().unwrap();
}

fn remove<T: Tables>(tables: &T, table: Table, key: &[u8]) {
    let mut batch = tables.batch();
    batch.remove(table as usize, key);
    batch.commit().unwrap();
}

fn row<T: Tables>(tables: &T, table: Table, key: &[u8]) -> Vec<u8> {
    tables
        .get(table as usize, key, <[u8]>::to_vec)
        .unwrap()
        .unwrap()
}

fn runs_consistently<T: Tables>(tables: &T, each: u32) {
    load(tables, |i| i);
    let state = State::fresh(SCALE);
    check(tables, &state).unwrap();
    let rolled_back = run(tables, &state, Mix::Standard, each).unwrap();
    assert!(rolled_back > 0, "1 % of New-Orders");
    check(tables, &state).unwrap();
    run(tables, &state, Mix::Paper, each / 4).unwrap();
    assert!(check(tables, &state).unwrap() > 0);
}

#[test]
fn both_mixes_keep_a_map_consistent() {
    runs_consistently(&map(), 4000);
}

#[test]
fn both_mixes_keep_every_pair_of_ours_consistent() {
    let consistent = |variant| {
        let dir = tempfile::tempdir().unwrap();
        let tables: IndexyTables = open(dir.path(), variant);
        runs_consistently(&tables, 800);
        tables.settle().unwrap();
        tables.close().unwrap();
    };
    // Side by side: to settle is mostly to wait.
    std::thread::scope(|scope| {
        for variant in ["art-lsm", "bplus-bplus", "none-lsm", "none-bplus"] {
            scope.spawn(move || consistent(variant));
        }
    });
}

#[test]
fn the_other_tables_may_be_resident_in_a_database_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let tables: Placed<IndexyTables> = place(dir.path(), "none-bplus", true);
    runs_consistently(&tables, 400);
    assert!(tables.counters().contains_key("others_x_keys"));
    tables.close().unwrap();
    assert!(dir.path().join("subject").is_dir() && dir.path().join("others").is_dir());
}

#[test]
fn a_contender_of_any_kind_may_have_the_one_table_only() {
    let dir = tempfile::tempdir().unwrap();
    let tables: Placed<BTreeTables> = place(dir.path(), "", false);
    runs_consistently(&tables, 400);
    let all = dump(&tables);
    assert!(
        TABLES
            .iter()
            .all(|t| all.iter().any(|e| e.0 == *t as usize))
    );
    // A map does not say what it holds, so the sum is not known either.
    assert!(tables.memory_used().is_none());
    tables.settle().unwrap();
    tables.close().unwrap();
}

#[test]
fn the_initial_population_does_not_depend_on_who_loads_what_when() {
    let (one, other) = (map(), map());
    let rows = load(&one, |i| i);
    let units = Loader::new(SCALE, SEED, 1).units();
    load(&other, |i| units - 1 - i);
    let entries = dump(&one);
    assert!(entries == dump(&other));
    assert_eq!(rows, entries.len() as u64);
    let of = |table: Table| entries.iter().filter(|e| e.0 == table as usize).count() as u32;
    let customers = SCALE.customers * 20;
    assert_eq!((of(Table::Item), of(Table::Stock)), (60, 120));
    assert_eq!(
        (of(Table::Customer), of(Table::History)),
        (customers, customers)
    );
    assert_eq!(
        (of(Table::Order), of(Table::NewOrder)),
        (customers, NEW_ORDERS * 20)
    );
    let bytes: usize = entries.iter().map(|e| e.1.len() + e.2.len()).sum();
    let estimate = SCALE.bytes() as f64;
    assert!(
        (0.8..1.25).contains(&(bytes as f64 / estimate)),
        "{bytes} against {estimate}"
    );
    let expected = SCALE.entries() as f64;
    assert!(
        (0.95..1.05).contains(&(rows as f64 / expected)),
        "{rows} against {expected}"
    );
}

#[test]
fn both_mixes_keep_transactions_consistent_without_locks() {
    for variant in ["art-lsm", "bplus-bplus"] {
        let dir = tempfile::tempdir().unwrap();
        let tables: IndexyTransactions = open(dir.path(), variant);
        runs_consistently(&tables, 800);
        tables.close().unwrap();
    }
}

/// Says that it isolates, and does not.
struct Careless(BTreeTables);

impl Tables for Careless {
    type Batch<'a> = <BTreeTables as Tables>::Batch<'a>;

    fn open(setup: &TableSetup<'_>) -> Outcome<Self> {
        BTreeTables::open(setup).map(Self)
    }

    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        self.0.get(table, key, see)
    }

    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        self.0.scan(table, from, to, see)
    }

    fn last<R>(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        self.0.last(table, from, to, see)
    }

    fn batch(&self) -> Self::Batch<'_> {
        self.0.batch()
    }

    fn isolates(&self) -> bool {
        true
    }

    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

#[test]
fn an_engine_that_does_not_isolate_is_found_out() {
    let tables: Careless = open(Path::new(""), "");
    load(&tables, |i| i);
    let state = State::fresh(SCALE);
    check(&tables, &state).unwrap();
    // Two threads lose updates of each other, sooner or later.
    let found_out = (0..50).any(|_| {
        let ran = run(&tables, &state, Mix::Standard, 2000);
        ran.and_then(|_| check(&tables, &state)).is_err()
    });
    assert!(found_out);
}

#[test]
fn a_new_order_that_is_rolled_back_leaves_nothing() {
    let tables = map();
    load(&tables, |i| i);
    let state = State::fresh(SCALE);
    let config = config(Mix::Standard);
    let mut transactions = Transactions::new(&tables, &state, &config, SEED);
    let mut draws = rng(SEED, 8, 0);
    for _ in 0..2000 {
        let before = dump(&tables).len();
        let ended = transactions.run(Transaction::NewOrder, &mut draws).unwrap();
        let after = dump(&tables).len();
        if !ended.committed {
            assert_eq!((after, ended.payload), (before, 0));
            check(&tables, &state).unwrap();
            return;
        }
        // An order, its wait, its customer's index, its lines.
        assert!((8..=18).contains(&(after - before)));
    }
    panic!("none of 2000 was rolled back");
}

#[test]
fn an_item_that_an_order_has_twice_is_taken_twice() {
    let tables = map();
    load(&tables, |i| i);
    let quantities = |entries: &Entries| -> u64 {
        let lines = entries.iter().filter(|e| e.0 == Table::OrderLine as usize);
        lines
            .map(|e| u64::from(OrderLine::read(&e.2).unwrap().quantity))
            .sum()
    };
    let before = quantities(&dump(&tables));
    run(&tables, &State::fresh(SCALE), Mix::Paper, 500).unwrap();
    let after = dump(&tables);
    let stock = after.iter().filter(|e| e.0 == Table::Stock as usize);
    let (mut taken, mut least) = (0, i16::MAX);
    for entry in stock {
        let stock = Stock::read(&entry.2).unwrap();
        taken += u64::from(stock.ytd);
        least = least.min(stock.quantity);
    }
    assert_eq!(taken, quantities(&after) - before);
    assert!(
        least >= 10,
        "stock is filled up before it runs short: {least}"
    );
}

/// Breaks a consistent database and returns what the check says.
fn complaint(damage: impl Fn(&BTreeTables)) -> String {
    let tables = map();
    load(&tables, |i| i);
    let state = State::fresh(SCALE);
    run(&tables, &state, Mix::Standard, 300).unwrap();
    check(&tables, &state).unwrap();
    damage(&tables);
    check(&tables, &state).unwrap_err().to_string()
}

/// The last order of district 2/3, which is not delivered yet.
fn last_order(tables: &BTreeTables) -> u32 {
    let district = row(tables, Table::District, &schema::district(2, 3));
    District::read(&district).unwrap().next_order - 1
}

#[test]
fn condition_1_fails_when_a_sum_is_off() {
    let said = complaint(|tables| {
        let key = schema::warehouse(2);
        let bytes = row(tables, Table::Warehouse, &key);
        let mut warehouse = Warehouse::read(&bytes).unwrap();
        warehouse.ytd += 1;
        put(tables, Table::Warehouse, &key, warehouse.write(&mut vec![]));
    });
    assert!(
        said.contains("condition 1 is broken in warehouse 2"),
        "{said}"
    );
    let said = complaint(|tables| remove(tables, Table::District, &schema::district(2, 3)));
    assert!(said.contains("condition 1 is broken"), "{said}");
}

#[test]
fn condition_2_fails_when_the_newest_order_is_lost() {
    let lost = |table: Table| {
        complaint(move |tables| {
            let o = last_order(tables);
            remove(tables, table, &schema::order(2, 3, o));
        })
    };
    for table in [Table::Order, Table::NewOrder] {
        let said = lost(table);
        assert!(
            said.contains("condition 2 is broken in district 2/3"),
            "{said}"
        );
    }
}

#[test]
fn condition_3_fails_when_a_new_order_in_the_middle_is_lost() {
    let said = complaint(|tables| {
        let o = last_order(tables);
        remove(tables, Table::NewOrder, &schema::order(2, 3, o - 1));
    });
    assert!(
        said.contains("condition 3 is broken in district 2/3"),
        "{said}"
    );
}

#[test]
fn condition_4_fails_when_an_order_line_is_lost_or_the_count_is_off() {
    let said = complaint(|tables| {
        remove(tables, Table::OrderLine, &schema::order_line(2, 3, 7, 2));
    });
    assert!(
        said.contains("condition 4 is broken in district 2/3"),
        "{said}"
    );
    let said = complaint(|tables| {
        let key = schema::order(2, 3, 7);
        let bytes = row(tables, Table::Order, &key);
        let mut order = Order::read(&bytes).unwrap();
        order.lines += 1;
        put(tables, Table::Order, &key, order.write(&mut vec![]));
    });
    assert!(
        said.contains("condition 4 is broken in district 2/3"),
        "{said}"
    );
}

#[test]
fn condition_9_fails_when_a_payment_is_lost() {
    let said = complaint(|tables| remove(tables, Table::History, &schema::history(2, 3, 7)));
    assert!(
        said.contains("condition 9 is broken in district 2/3"),
        "{said}"
    );
}

#[test]
fn whole_transactions_that_are_lost_are_noticed_though_the_conditions_hold() {
    let tables = map();
    load(&tables, |i| i);
    let fresh = map();
    load(&fresh, |i| i);
    let state = State::fresh(SCALE);
    run(&tables, &state, Mix::Standard, 300).unwrap();
    // What was loaded is consistent in itself, and not what was committed last.
    let said = check(&fresh, &state).unwrap_err().to_string();
    assert!(said.contains("was committed last"), "{said}");
    let said = run(&fresh, &state, Mix::Standard, 300).unwrap_err();
    assert!(said.to_string().contains("was committed last"), "{said}");
}

/// Tables that lose writes in the middle of a batch.
pub(crate) struct Leaky {
    tables: BTreeTables,
    puts: AtomicU64,
    leaks: AtomicBool,
}

pub(crate) struct LeakyBatch<'a> {
    of: &'a Leaky,
    batch: <BTreeTables as Tables>::Batch<'a>,
}

impl Tables for Leaky {
    type Batch<'a> = LeakyBatch<'a>;

    fn open(setup: &TableSetup<'_>) -> Outcome<Self> {
        Ok(Self {
            tables: BTreeTables::open(setup)?,
            puts: AtomicU64::new(0),
            leaks: AtomicBool::new(setup.setup.variant == "leaky"),
        })
    }

    fn get<R>(&self, table: usize, key: &[u8], see: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        self.tables.get(table, key, see)
    }

    fn scan(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Outcome<()> {
        self.tables.scan(table, from, to, see)
    }

    fn last<R>(
        &self,
        table: usize,
        from: &[u8],
        to: &[u8],
        see: impl FnOnce(&[u8], &[u8]) -> R,
    ) -> Outcome<Option<R>> {
        self.tables.last(table, from, to, see)
    }

    fn batch(&self) -> LeakyBatch<'_> {
        LeakyBatch {
            of: self,
            batch: self.tables.batch(),
        }
    }

    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    fn close(self) -> Outcome<()> {
        Ok(())
    }
}

impl TableBatch for LeakyBatch<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) {
        // New lines, after those of the load; some of them may belong to an order that is rolled
        // back.
        const LOST: std::ops::Range<u64> = 5000..5040;
        let order_line = table == Table::OrderLine as usize;
        let new = order_line && OrderLine::read(value).is_some_and(|l| l.delivered == 0);
        let lost = new && LOST.contains(&self.of.puts.fetch_add(1, Relaxed));
        if !(lost && self.of.leaks.load(Relaxed)) {
            self.batch.put(table, key, value);
        }
    }

    fn remove(&mut self, table: usize, key: &[u8]) {
        self.batch.remove(table, key);
    }

    fn commit(self) -> Outcome<()> {
        self.batch.commit()
    }
}

#[test]
fn an_engine_that_loses_a_part_of_a_batch_is_found_out() {
    for (variant, sound) in [("", true), ("leaky", false)] {
        let tables: Leaky = open(Path::new(""), variant);
        load(&tables, |i| i);
        let state = State::fresh(SCALE);
        let ran = run(&tables, &state, Mix::Standard, 4000);
        let verdict = ran.and_then(|_| check(&tables, &state));
        assert_eq!(verdict.is_ok(), sound, "{verdict:?}");
    }
}
