//! Stock-Level (2.8). Its orders are read under the district's lock, the stock without one: read
//! committed is enough (2.8.2.3).

use super::{Transactions, expect, fetch};
use crate::{
    contender::Tables,
    tpcc::{
        Done, Table, Trouble,
        random::district,
        rows::{District, OrderLine, Stock},
        schema,
    },
    workload::Rng,
};
use rand::Rng as _;
use std::hint::black_box;

/// Orders that are looked at.
const ORDERS: u32 = 20;

impl<T: Tables> Transactions<'_, T> {
    pub(super) fn stock_level(&mut self, rng: &mut Rng) -> Done<()> {
        let (w, d) = (self.draw.warehouse(rng), district(rng));
        let threshold = rng.random_range(10..=20);
        self.recent_items(w, d)?;
        let (tables, b) = (self.tables, &mut self.buffers);
        b.numbers.sort_unstable();
        b.numbers.dedup();
        let mut short = 0;
        for item in &b.numbers {
            fetch(tables, Table::Stock, &schema::stock(w, *item), &mut b.read)?;
            let stock = Stock::read(&b.read).ok_or_else(|| Trouble::garbled(Table::Stock))?;
            short += u32::from(stock.quantity < threshold);
        }
        black_box(short);
        Ok(())
    }

    /// Leaves the items of the district's last orders in `numbers`.
    fn recent_items(&mut self, w: u16, d: u8) -> Done<()> {
        let known = self.state.district(w, d);
        let (tables, b) = (self.tables, &mut self.buffers);
        fetch(
            tables,
            Table::District,
            &schema::district(w, d),
            &mut b.read,
        )?;
        let row = District::read(&b.read).ok_or_else(|| Trouble::garbled(Table::District))?;
        let next = row.next_order;
        expect(Table::District, "D_NEXT_O_ID", next, known.next_order)?;
        b.numbers.clear();
        let (numbers, mut garbled) = (&mut b.numbers, false);
        let first = schema::order(w, d, next.saturating_sub(ORDERS).max(1));
        tables.scan(
            Table::OrderLine as usize,
            &first,
            &schema::order(w, d, next),
            |_, value| {
                let line = OrderLine::read(value);
                garbled |= line.is_none();
                numbers.extend(line.map(|l| l.item));
                true
            },
        )?;
        if garbled {
            return Err(Trouble::garbled(Table::OrderLine));
        }
        Ok(())
    }
}
