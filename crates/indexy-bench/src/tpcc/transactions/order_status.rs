//! Order-Status (2.6).

use super::{Reads, Transactions};
use crate::{
    application::{Done, Trouble},
    contender::Tables,
    tpcc::{
        Table,
        random::district,
        rows::{Customer, Order, OrderLine},
        schema,
    },
    workload::Rng,
};
use std::hint::black_box;

impl<T: Tables> Transactions<'_, T> {
    pub(super) fn order_status(&mut self, rng: &mut Rng) -> Done<()> {
        let (w, d) = (self.draw.warehouse(rng), district(rng));
        let wanted = self.wanted(rng);
        let _district = self.locked(|state| state.district(w, d));
        let writes = self.begin();
        let c = self.customer_number(&writes, w, d, &wanted)?;
        let (reads, b) = (Reads::of(self.tables, &writes), &mut self.buffers);

        let key = schema::customer(w, d, c);
        reads.fetch(Table::Customer, &key, &mut b.read)?;
        let customer = Customer::read(&b.read).ok_or_else(|| Trouble::garbled(Table::Customer))?;
        black_box((
            customer.balance,
            customer.first,
            customer.middle,
            customer.last,
        ));

        let table = Table::OrderByCustomer;
        let last = reads.last(table, &key, &key.end(), |key, _| schema::last_number(key))?;
        let o = last
            .flatten()
            .ok_or_else(|| Trouble::missing(table, &key))?;

        let key = schema::order(w, d, o);
        reads.fetch(Table::Order, &key, &mut b.read)?;
        let order = Order::read(&b.read).ok_or_else(|| Trouble::garbled(Table::Order))?;
        if order.customer != c {
            return Err(Trouble::Wrong(format!(
                "order: {w}/{d}/{o} belongs to customer {}, and the index says {c}",
                order.customer
            )));
        }
        let (mut lines, mut garbled) = (0, false);
        reads.scan(Table::OrderLine, &key, &key.end(), |_, value| {
            lines += 1;
            let line = OrderLine::read(value);
            garbled |= line.is_none();
            black_box(line.map(|l| {
                (
                    l.item,
                    l.supply_warehouse,
                    l.quantity,
                    l.amount,
                    l.delivered,
                )
            }));
            true
        })?;
        if garbled {
            return Err(Trouble::garbled(Table::OrderLine));
        }
        super::expect(Table::OrderLine, "number of lines", lines, order.lines)
    }
}
