//! Delivery (2.7), without its queue: at once, one batch per district (2.7.2.2 permits that).

use super::{Reads, Transactions, now};
use crate::{
    application::{Done, Trouble},
    contender::Tables,
    tpcc::{
        DISTRICTS, Table,
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
            payload += self.repeated(rng, |me, _| me.deliver(w, d, carrier))?;
        }
        Ok(payload)
    }

    /// Delivers the oldest order of a district, if one waits.
    fn deliver(&mut self, w: u16, d: u8, carrier: u8) -> Done<u64> {
        let _district = self.locked(|state| state.district(w, d));
        let (tables, mut writes) = (self.tables, self.begin());
        let b = &mut self.buffers;
        let district = schema::district(w, d);
        let mut oldest = None;
        let end = district.end();
        Reads::of(tables, &writes).scan(Table::NewOrder, &district, &end, |key, _| {
            oldest = schema::last_number(key);
            false
        })?;
        let Some(o) = oldest else { return Ok(0) };
        let key = schema::order(w, d, o);
        writes.remove(Table::NewOrder, &key);

        Reads::of(tables, &writes).fetch(Table::Order, &key, &mut b.read)?;
        let mut order = Order::read(&b.read).ok_or_else(|| Trouble::garbled(Table::Order))?;
        order.carrier = carrier;
        writes.put(Table::Order, &key, order.write(&mut b.written));

        let (mut sum, mut garbled) = (0, false);
        let (delivered, written) = (now(), &mut b.written);
        let mut lines: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        Reads::of(tables, &writes).scan(Table::OrderLine, &key, &key.end(), |key, value| {
            let Some(mut line) = OrderLine::read(value) else {
                garbled = true;
                return false;
            };
            sum += i64::from(line.amount);
            line.delivered = delivered;
            lines.push((key.to_vec(), line.write(written).to_vec()));
            true
        })?;
        for (key, line) in &lines {
            writes.put(Table::OrderLine, key, line);
        }
        if garbled {
            return Err(Trouble::garbled(Table::OrderLine));
        }
        let found = lines.len() as u8;
        super::expect(Table::OrderLine, "number of lines", found, order.lines)?;

        let key = schema::customer(w, d, order.customer);
        Reads::of(tables, &writes).fetch(Table::Customer, &key, &mut b.other)?;
        let mut customer =
            Customer::read(&b.other).ok_or_else(|| Trouble::garbled(Table::Customer))?;
        customer.balance += sum;
        customer.deliveries = customer.deliveries.wrapping_add(1);
        writes.put(Table::Customer, &key, customer.write(&mut b.written));
        writes.commit()
    }
}
