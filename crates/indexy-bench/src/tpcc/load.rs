//! The initial population (4.3.3), in units that threads share.
//!
//! Each unit draws from a generator of its own, so that the database is the same however many
//! threads load it.

use super::{
    random::{Constants, Draw, Text, alphanumeric, chance, digits, zip},
    rows::{Customer, District, History, Item, Order, OrderLine, Stock, Warehouse, Whole},
    scale::{DISTRICTS, Scale},
    schema::{self, Table},
    state::{PAID, loaded_ytd},
};
use crate::{
    application::Done,
    contender::{TableBatch, Tables},
    workload::{Rng, rng},
};
use rand::{Rng as _, seq::SliceRandom as _};

/// Rows of ITEM or STOCK in a unit.
const FLAT_CHUNK: u32 = 500;
/// Customers of a unit, each with a row of HISTORY, an order and its lines.
const CUSTOMER_CHUNK: u32 = 50;
/// Phases of the generators of units and of permutations; no job has as many phases.
const UNIT_DRAWS: u64 = 1 << 21;
const PERMUTATION_DRAWS: u64 = 1 << 22;

/// One piece of the initial database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Items { from: u32 },
    Warehouse { w: u16 },
    Stock { w: u16, from: u32 },
    Customers { w: u16, d: u8, from: u32 },
}

/// Loads a database.
#[derive(Debug)]
pub struct Loader {
    draw: Draw,
    seed: u64,
    /// The time in the rows, in milliseconds since 1970.
    now: u64,
    units: Vec<Unit>,
}

/// A batch, and what went into it.
struct Writer<B> {
    batch: B,
    bytes: Vec<u8>,
    rows: u64,
    payload: u64,
}

impl<B: TableBatch> Writer<B> {
    fn put(&mut self, table: Table, key: &[u8]) {
        self.batch.put(table as usize, key, &self.bytes);
        self.rows += 1;
        self.payload += (key.len() + self.bytes.len()) as u64;
    }

    /// An entry of a secondary index.
    fn index(&mut self, table: Table, key: &[u8]) {
        self.bytes.clear();
        self.put(table, key);
    }
}

impl Loader {
    /// Of a database of `scale`; `seed` decides everything but `now`, the time in its rows.
    pub fn new(scale: Scale, seed: u64, now: u64) -> Self {
        let draw = Draw {
            constants: Constants::new(seed),
            scale,
        };
        let starts = |count: u32, chunk: u32| (1..=count).step_by(chunk as usize);
        let mut units: Vec<Unit> = starts(scale.items, FLAT_CHUNK)
            .map(|from| Unit::Items { from })
            .collect();
        for w in 1..=scale.warehouses {
            units.push(Unit::Warehouse { w });
            units.extend(starts(scale.items, FLAT_CHUNK).map(|from| Unit::Stock { w, from }));
            for d in 1..=DISTRICTS {
                let chunks = starts(scale.customers, CUSTOMER_CHUNK);
                units.extend(chunks.map(|from| Unit::Customers { w, d, from }));
            }
        }
        Self {
            draw,
            seed,
            now,
            units,
        }
    }

    /// How many units there are.
    pub fn units(&self) -> usize {
        self.units.len()
    }

    /// Loads unit `index` in one batch; returns rows, and bytes of keys and values.
    pub fn load<T: Tables>(&self, tables: &T, index: usize) -> Done<(u64, u64)> {
        let mut draws = rng(self.seed, UNIT_DRAWS, index as u64);
        let mut writer = Writer {
            batch: tables.batch(),
            bytes: Vec::new(),
            rows: 0,
            payload: 0,
        };
        let (scale, draws) = (self.draw.scale, &mut draws);
        let flat = |from: u32| from..=scale.items.min(from + FLAT_CHUNK - 1);
        match self.units[index] {
            Unit::Items { from } => flat(from).for_each(|i| item(&mut writer, draws, i)),
            Unit::Warehouse { w } => warehouse(&mut writer, draws, w, scale),
            Unit::Stock { w, from } => flat(from).for_each(|i| stock(&mut writer, draws, w, i)),
            Unit::Customers { w, d, from } => {
                let ordering = self.permutation(w, d);
                for c in from..=scale.customers.min(from + CUSTOMER_CHUNK - 1) {
                    self.customer(&mut writer, draws, (w, d, c));
                    self.order(&mut writer, draws, (w, d, c), ordering[c as usize - 1]);
                }
            }
        }
        let Writer {
            batch,
            rows,
            payload,
            ..
        } = writer;
        batch.commit()?;
        Ok((rows, payload))
    }

    /// Which customer each order of a district belongs to.
    fn permutation(&self, w: u16, d: u8) -> Vec<u32> {
        let mut customers: Vec<u32> = (1..=self.draw.scale.customers).collect();
        let stream = u64::from(w) * u64::from(DISTRICTS) + u64::from(d);
        customers.shuffle(&mut rng(self.seed, PERMUTATION_DRAWS, stream));
        customers
    }

    fn customer<B: TableBatch>(&self, to: &mut Writer<B>, draws: &mut Rng, id: (u16, u8, u32)) {
        let (w, d, c) = id;
        let last = self.draw.loaded_last_name(c, draws);
        let first = Text::<16>::random(draws, 8);
        let place = Place::random(draws);
        Customer {
            balance: -PAID,
            ytd_payment: PAID,
            payments: 1,
            deliveries: 0,
            credit_limit: 5_000_000,
            discount: draws.random_range(0..=5000),
            since: self.now,
            credit: if chance(draws, 10) { b"BC" } else { b"GC" },
            middle: b"OE",
            state: &place.state,
            zip: &place.zip,
            phone: &digits(draws),
            first: &first,
            last: &last,
            street_1: &place.street_1,
            street_2: &place.street_2,
            city: &place.city,
            data: &Text::<500>::random(draws, 300),
            row: Whole::default(),
        }
        .write(&mut to.bytes);
        to.put(Table::Customer, &schema::customer(w, d, c));
        let name = schema::customer_by_name(w, d, &last, &first, c);
        to.index(Table::CustomerByName, &name);
        History {
            customer: c,
            customer_district: d,
            customer_warehouse: w,
            date: self.now,
            amount: PAID,
            data: &Text::<24>::random(draws, 12),
            row: Whole::default(),
        }
        .write(&mut to.bytes);
        to.put(Table::History, &schema::history(w, d, c));
    }

    /// Order number `o` of customer `c`; the last third waits for its delivery.
    fn order<B: TableBatch>(
        &self,
        to: &mut Writer<B>,
        draws: &mut Rng,
        (w, d, o): (u16, u8, u32),
        c: u32,
    ) {
        let scale = self.draw.scale;
        let delivered = o <= scale.customers - scale.undelivered();
        let lines = draws.random_range(5..=15);
        Order {
            customer: c,
            entered: self.now,
            carrier: if delivered {
                draws.random_range(1..=10)
            } else {
                0
            },
            lines,
            all_local: 1,
            row: Whole::default(),
        }
        .write(&mut to.bytes);
        to.put(Table::Order, &schema::order(w, d, o));
        to.index(
            Table::OrderByCustomer,
            &schema::order_by_customer(w, d, c, o),
        );
        for number in 1..=lines {
            OrderLine {
                item: draws.random_range(1..=scale.items),
                supply_warehouse: w,
                delivered: if delivered { self.now } else { 0 },
                quantity: 5,
                amount: if delivered {
                    0
                } else {
                    draws.random_range(1..=999_999)
                },
                district_info: &alphanumeric(draws),
                row: Whole::default(),
            }
            .write(&mut to.bytes);
            to.put(Table::OrderLine, &schema::order_line(w, d, o, number));
        }
        if !delivered {
            to.index(Table::NewOrder, &schema::order(w, d, o));
        }
    }
}

fn item<B: TableBatch>(to: &mut Writer<B>, draws: &mut Rng, i: u32) {
    Item {
        image: draws.random_range(1..=10_000),
        price: draws.random_range(100..=10_000),
        name: &Text::<24>::random(draws, 14),
        data: &Text::<50>::random_data(draws, 26),
        row: Whole::default(),
    }
    .write(&mut to.bytes);
    to.put(Table::Item, &schema::item(i));
}

fn stock<B: TableBatch>(to: &mut Writer<B>, draws: &mut Rng, w: u16, i: u32) {
    Stock {
        quantity: draws.random_range(10..=100),
        ytd: 0,
        orders: 0,
        remotes: 0,
        districts: &alphanumeric(draws),
        data: &Text::<50>::random_data(draws, 26),
        row: Whole::default(),
    }
    .write(&mut to.bytes);
    to.put(Table::Stock, &schema::stock(w, i));
}

/// A warehouse and its districts.
fn warehouse<B: TableBatch>(to: &mut Writer<B>, draws: &mut Rng, w: u16, scale: Scale) {
    let (ytd, district_ytd) = loaded_ytd(scale);
    let place = Place::random(draws);
    Warehouse {
        ytd,
        tax: draws.random_range(0..=2000),
        name: &Text::<10>::random(draws, 6),
        street_1: &place.street_1,
        street_2: &place.street_2,
        city: &place.city,
        state: &place.state,
        zip: &place.zip,
        row: Whole::default(),
    }
    .write(&mut to.bytes);
    to.put(Table::Warehouse, &schema::warehouse(w));
    for d in 1..=DISTRICTS {
        let place = Place::random(draws);
        District {
            ytd: district_ytd,
            next_order: scale.customers + 1,
            tax: draws.random_range(0..=2000),
            name: &Text::<10>::random(draws, 6),
            street_1: &place.street_1,
            street_2: &place.street_2,
            city: &place.city,
            state: &place.state,
            zip: &place.zip,
            row: Whole::default(),
        }
        .write(&mut to.bytes);
        to.put(Table::District, &schema::district(w, d));
    }
}

/// An address.
struct Place {
    street_1: Text<20>,
    street_2: Text<20>,
    city: Text<20>,
    state: [u8; 2],
    zip: [u8; 9],
}

impl Place {
    fn random(draws: &mut Rng) -> Self {
        Self {
            street_1: Text::random(draws, 10),
            street_2: Text::random(draws, 10),
            city: Text::random(draws, 10),
            state: alphanumeric(draws),
            zip: zip(draws),
        }
    }
}
