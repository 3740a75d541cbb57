//! New-Order (2.4).

use super::{Buffers, Reads, Transactions, Writes, expect_known, now};
use crate::{
    application::{Done, Trouble},
    contender::{TableBatch, Tables},
    tpcc::{
        Table,
        random::{Draw, chance, district, is_original},
        rows::{Customer, District, Item, Order, OrderLine, Stock, Warehouse, Whole},
        schema,
    },
    workload::Rng,
};
use rand::Rng as _;
use std::hint::black_box;

const MOST_LINES: usize = 15;
/// Of 100 orders, those whose last item does not exist.
const INVALID_PERCENT: u32 = 1;
/// Of 100 lines, those that another warehouse supplies.
const REMOTE_PERCENT: u32 = 1;
/// An item that no database has.
const NO_ITEM: u32 = 0;

#[derive(Debug, Clone, Copy, Default)]
struct Line {
    item: u32,
    supply: u16,
    quantity: u8,
}

/// What the terminal would send.
#[derive(Debug)]
struct Input {
    w: u16,
    d: u8,
    customer: u32,
    lines: [Line; MOST_LINES],
    count: usize,
}

impl Input {
    fn draw(draw: &Draw, rng: &mut Rng) -> Self {
        let w = draw.warehouse(rng);
        let mut input = Self {
            w,
            d: district(rng),
            customer: draw.customer(rng),
            lines: [Line::default(); MOST_LINES],
            count: rng.random_range(5..=MOST_LINES),
        };
        for line in &mut input.lines[..input.count] {
            *line = Line {
                item: draw.item(rng),
                supply: if chance(rng, REMOTE_PERCENT) {
                    draw.other_warehouse(w, rng)
                } else {
                    w
                },
                quantity: rng.random_range(1..=10),
            };
        }
        if chance(rng, INVALID_PERCENT) {
            input.lines[input.count - 1].item = NO_ITEM;
        }
        input
    }

    fn lines(&self) -> &[Line] {
        &self.lines[..self.count]
    }
}

impl<T: Tables> Transactions<'_, T> {
    /// Bytes written; none if it was rolled back.
    pub(super) fn new_order(&mut self, rng: &mut Rng) -> Done<Option<u64>> {
        let input = Input::draw(&self.draw, rng);
        let (w, d, tables) = (input.w, input.d, self.tables);
        let mut known = self.locked(|state| state.district(w, d));
        let rows = input.lines().iter().map(|l| (l.supply, l.item));
        let _stock = self.locked(|state| state.stock(rows));
        let mut writes = self.begin();
        let b = &mut self.buffers;

        Reads::of(tables, &writes).fetch(Table::Warehouse, &schema::warehouse(w), &mut b.read)?;
        let tax = Warehouse::read(&b.read)
            .ok_or_else(|| Trouble::garbled(Table::Warehouse))?
            .tax;

        let key = schema::district(w, d);
        Reads::of(tables, &writes).fetch(Table::District, &key, &mut b.read)?;
        let mut row = District::read(&b.read).ok_or_else(|| Trouble::garbled(Table::District))?;
        let next = known.as_ref().map(|known| known.next_order);
        expect_known(Table::District, "D_NEXT_O_ID", row.next_order, next)?;
        let (o, tax) = (row.next_order, u32::from(tax) + u32::from(row.tax));
        row.next_order += 1;
        writes.put(Table::District, &key, row.write(&mut b.written));

        let key = schema::customer(w, d, input.customer);
        Reads::of(tables, &writes).fetch(Table::Customer, &key, &mut b.read)?;
        let discount = Customer::read(&b.read)
            .ok_or_else(|| Trouble::garbled(Table::Customer))?
            .discount;

        enter(&mut writes, &input, o, b);
        let Some(sum) = order_lines(tables, &mut writes, &input, o, b)? else {
            // The batch is dropped: the district's number too is as it was.
            return Ok(None);
        };
        let total =
            f64::from(sum) * (1.0 - f64::from(discount) / 1e4) * (1.0 + f64::from(tax) / 1e4);
        black_box(total);
        let payload = writes.commit()?;
        if let Some(known) = &mut known {
            known.next_order += 1;
        }
        Ok(Some(payload))
    }
}

/// The rows of ORDER and NEW-ORDER.
fn enter<B: TableBatch>(writes: &mut Writes<B>, input: &Input, o: u32, b: &mut Buffers) {
    let (w, d) = (input.w, input.d);
    let order = Order {
        customer: input.customer,
        entered: now(),
        carrier: 0,
        lines: input.count as u8,
        all_local: u8::from(input.lines().iter().all(|l| l.supply == w)),
        row: Whole::default(),
    };
    let key = schema::order(w, d, o);
    writes.put(Table::Order, &key, order.write(&mut b.written));
    writes.put(Table::NewOrder, &key, &[]);
    let by_customer = schema::order_by_customer(w, d, input.customer, o);
    writes.put(Table::OrderByCustomer, &by_customer, &[]);
}

/// Stock and order line of each line; the sum of the amounts, or none if an item does not exist.
fn order_lines<'a, T: Tables>(
    tables: &'a T,
    writes: &mut Writes<T::Batch<'a>>,
    input: &Input,
    o: u32,
    b: &mut Buffers,
) -> Done<Option<u32>> {
    let mut sum = 0;
    for (index, line) in input.lines().iter().enumerate() {
        let key = schema::item(line.item);
        if !Reads::of(tables, writes).fetch_if_there(Table::Item, &key, &mut b.other)? {
            return if line.item == NO_ITEM {
                Ok(None)
            } else {
                Err(Trouble::missing(Table::Item, &key))
            };
        }
        let item = Item::read(&b.other).ok_or_else(|| Trouble::garbled(Table::Item))?;
        let key = schema::stock(line.supply, line.item);
        Reads::of(tables, writes).fetch(Table::Stock, &key, &mut b.read)?;
        let mut stock = Stock::read(&b.read).ok_or_else(|| Trouble::garbled(Table::Stock))?;
        // Where the batch is not read, what earlier lines of the same order took from the same
        // stock is taken here.
        for same in input.lines()[..index].iter() {
            if !tables.isolates() && (same.item, same.supply) == (line.item, line.supply) {
                take(&mut stock, same, input.w);
            }
        }
        take(&mut stock, line, input.w);
        writes.put(Table::Stock, &key, stock.write(&mut b.written));

        let amount = u32::from(line.quantity) * item.price;
        sum += amount;
        black_box(is_original(item.data) && is_original(stock.data));
        let row = OrderLine {
            item: line.item,
            supply_warehouse: line.supply,
            delivered: 0,
            quantity: line.quantity,
            amount,
            district_info: stock.district_info(input.d),
            row: Whole::default(),
        };
        let key = schema::order_line(input.w, input.d, o, index as u8 + 1);
        writes.put(Table::OrderLine, &key, row.write(&mut b.written));
    }
    Ok(Some(sum))
}

/// Takes a line's quantity from the stock, which is filled up when it runs short.
fn take(stock: &mut Stock<'_>, line: &Line, home: u16) {
    let quantity = i16::from(line.quantity);
    stock.quantity -= quantity;
    if stock.quantity < 10 {
        stock.quantity += 91;
    }
    stock.ytd += u32::from(line.quantity);
    stock.orders += 1;
    stock.remotes += u32::from(line.supply != home);
}
