//! Stock-Level (2.8). Its orders are read under the district's lock, the stock without one: read
//! committed is enough (2.8.2.3).

use super::{Reads, Transactions, Writes, expect_known};
use crate::{
    application::{Done, Trouble},
    contender::Tables,
    tpcc::{
        Table,
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

impl<'a, T: Tables> Transactions<'a, T> {
    pub(super) fn stock_level(&mut self, rng: &mut Rng) -> Done<()> {
        let (w, d) = (self.draw.warehouse(rng), district(rng));
        let threshold = rng.random_range(10..=20);
        let writes = self.begin();
        self.recent_items(&writes, w, d)?;
        let (reads, b) = (Reads::of(self.tables, &writes), &mut self.buffers);
        b.numbers.sort_unstable();
        b.numbers.dedup();
        let mut short = 0;
        for item in &b.numbers {
            reads.fetch(Table::Stock, &schema::stock(w, *item), &mut b.read)?;
            let stock = Stock::read(&b.read).ok_or_else(|| Trouble::garbled(Table::Stock))?;
            short += u32::from(stock.quantity < threshold);
        }
        black_box(short);
        Ok(())
    }

    /// Leaves the items of the district's last orders in `numbers`.
    fn recent_items(&mut self, writes: &Writes<T::Batch<'a>>, w: u16, d: u8) -> Done<()> {
        let known = self.locked(|state| state.district(w, d));
        let (reads, b) = (Reads::of(self.tables, writes), &mut self.buffers);
        reads.fetch(Table::District, &schema::district(w, d), &mut b.read)?;
        let row = District::read(&b.read).ok_or_else(|| Trouble::garbled(Table::District))?;
        let next = row.next_order;
        let known = known.as_ref().map(|known| known.next_order);
        expect_known(Table::District, "D_NEXT_O_ID", next, known)?;
        b.numbers.clear();
        let (numbers, mut garbled) = (&mut b.numbers, false);
        let first = schema::order(w, d, next.saturating_sub(ORDERS).max(1));
        let end = schema::order(w, d, next);
        reads.scan(Table::OrderLine, &first, &end, |_, value| {
            let line = OrderLine::read(value);
            garbled |= line.is_none();
            numbers.extend(line.map(|l| l.item));
            true
        })?;
        if garbled {
            return Err(Trouble::garbled(Table::OrderLine));
        }
        Ok(())
    }
}
