//! Delivery (2.7), without its queue: at once, one batch per district (2.7.2.2 permits that).

use super::{Transactions, fetch, now};
use crate::{
    contender::Tables,
    tpcc::{
        DISTRICTS, Done, Table, Trouble,
        rows::{Customer, Order, OrderLine},
        schema,
    },
    workload::Rng,
};
use rand::Rng as _;

impl<T: Tables> Transactions<'_, T> {
    /// Bytes written.
    pub(super) fn delivery(&mut self, rng: &mut Rng) -> Done<u64> {
        let w = self.draw.warehouse(rng);
        let carrier = rng.random_range(1..=10);
        let mut payload = 0;
        for d in 1..=DISTRICTS {
            payload += self.deliver(w, d, carrier)?;
        }
        Ok(payload)
    }

    /// Delivers the oldest order of a district, if one waits.
    fn deliver(&mut self, w: u16, d: u8, carrier: u8) -> Done<u64> {
        let _district = self.state.district(w, d);
        let (tables, mut writes) = (self.tables, self.begin());
        let b = &mut self.buffers;
        let district = schema::district(w, d);
        let mut oldest = None;
        tables.scan(
            Table::NewOrder as usize,
            &district,
            &district.end(),
            |key, _| {
                oldest = schema::last_number(key);
                false
            },
        )?;
        let Some(o) = oldest else { return Ok(0) };
        let key = schema::order(w, d, o);
        writes.remove(Table::NewOrder, &key);

        fetch(tables, Table::Order, &key, &mut b.read)?;
        let mut order = Order::read(&b.read).ok_or_else(|| Trouble::garbled(Table::Order))?;
        order.carrier = carrier;
        writes.put(Table::Order, &key, order.write(&mut b.written));

        let (mut lines, mut sum, mut garbled) = (0, 0, false);
        let (delivered, written) = (now(), &mut b.written);
        tables.scan(Table::OrderLine as usize, &key, &key.end(), |key, value| {
            let Some(mut line) = OrderLine::read(value) else {
                garbled = true;
                return false;
            };
            lines += 1;
            sum += i64::from(line.amount);
            line.delivered = delivered;
            writes.put(Table::OrderLine, key, line.write(written));
            true
        })?;
        if garbled {
            return Err(Trouble::garbled(Table::OrderLine));
        }
        super::expect(Table::OrderLine, "number of lines", lines, order.lines)?;

        let key = schema::customer(w, d, order.customer);
        fetch(tables, Table::Customer, &key, &mut b.other)?;
        let mut customer =
            Customer::read(&b.other).ok_or_else(|| Trouble::garbled(Table::Customer))?;
        customer.balance += sum;
        customer.deliveries = customer.deliveries.wrapping_add(1);
        writes.put(Table::Customer, &key, customer.write(&mut b.written));
        writes.commit()
    }
}
