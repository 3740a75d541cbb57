//! Payment (2.5).

use super::{Reads, Transactions, Writes, expect_known, now};
use crate::{
    application::{Done, Trouble},
    contender::{TableBatch, Tables},
    tpcc::{
        Table,
        random::{Text, chance, district},
        rows::{Customer, District, History, Warehouse, Whole},
        schema,
    },
    workload::Rng,
};
use rand::Rng as _;
use std::io::Write as _;

/// Of 100 customers, those who pay at their own district.
const HOME_PERCENT: u32 = 85;
/// C_DATA of a customer with bad credit is cut to this.
const DATA_BYTES: usize = 500;

/// A payment, with what several rows record of it.
struct Paid {
    w: u16,
    d: u8,
    customer: (u16, u8, u32),
    amount: i64,
}

impl<T: Tables> Transactions<'_, T> {
    /// Bytes written.
    pub(super) fn payment(&mut self, rng: &mut Rng) -> Done<u64> {
        let w = self.draw.warehouse(rng);
        let d = district(rng);
        let (cw, cd) = if chance(rng, HOME_PERCENT) {
            (w, d)
        } else {
            (self.draw.other_warehouse(w, rng), district(rng))
        };
        let wanted = self.wanted(rng);
        let amount = rng.random_range(100..=500_000);

        let mut warehouse_known = self.locked(|state| state.warehouse(w));
        let mut districts = self.locked(|state| state.two_districts((w, d), (cw, cd)));
        let mut district_known = districts.as_mut().map(|(home, _)| home);
        let mut writes = self.begin();
        let c = self.customer_number(&writes, cw, cd, &wanted)?;
        let paid = Paid {
            w,
            d,
            customer: (cw, cd, c),
            amount,
        };
        let tables = self.tables;
        let b = &mut self.buffers;

        let key = schema::warehouse(w);
        Reads::of(tables, &writes).fetch(Table::Warehouse, &key, &mut b.read)?;
        let mut row = Warehouse::read(&b.read).ok_or_else(|| Trouble::garbled(Table::Warehouse))?;
        let known = warehouse_known.as_ref().map(|known| known.ytd);
        expect_known(Table::Warehouse, "W_YTD", row.ytd, known)?;
        row.ytd += amount;
        writes.put(Table::Warehouse, &key, row.write(&mut b.written));
        let mut data = Text::<24>::new();
        data.push(row.name);
        data.push(b"    ");

        let key = schema::district(w, d);
        Reads::of(tables, &writes).fetch(Table::District, &key, &mut b.read)?;
        let mut row = District::read(&b.read).ok_or_else(|| Trouble::garbled(Table::District))?;
        let known = district_known.as_ref().map(|known| known.ytd);
        expect_known(Table::District, "D_YTD", row.ytd, known)?;
        row.ytd += amount;
        writes.put(Table::District, &key, row.write(&mut b.written));
        data.push(row.name);

        let key = schema::customer(cw, cd, c);
        Reads::of(tables, &writes).fetch(Table::Customer, &key, &mut b.read)?;
        pay(
            &mut writes,
            &key,
            &paid,
            (&b.read, &mut b.written, &mut b.list),
        )?;

        let history = History {
            customer: c,
            customer_district: cd,
            customer_warehouse: cw,
            date: now(),
            amount,
            data: &data,
            row: Whole::default(),
        };
        let key = schema::history(w, d, self.state.next_history(w, d));
        writes.put(Table::History, &key, history.write(&mut b.written));
        let payload = writes.commit()?;
        if let Some(known) = &mut warehouse_known {
            known.ytd += amount;
        }
        if let Some(known) = &mut district_known {
            known.ytd += amount;
        }
        Ok(payload)
    }
}

/// The customer's row; one with bad credit notes the payment in its data.
fn pay<B: TableBatch>(
    writes: &mut Writes<B>,
    key: &[u8],
    paid: &Paid,
    (read, written, data): (&[u8], &mut Vec<u8>, &mut Vec<u8>),
) -> Done<()> {
    let mut row = Customer::read(read).ok_or_else(|| Trouble::garbled(Table::Customer))?;
    row.balance -= paid.amount;
    row.ytd_payment += paid.amount;
    row.payments = row.payments.wrapping_add(1);
    if row.credit == b"BC" {
        let (cw, cd, c) = paid.customer;
        data.clear();
        // Writing to memory cannot fail.
        let _ = write!(
            data,
            "{c} {cd} {cw} {} {} {}.{:02}|",
            paid.d,
            paid.w,
            paid.amount / 100,
            paid.amount % 100
        );
        data.extend_from_slice(row.data);
        data.truncate(DATA_BYTES);
        row.data = data;
    }
    writes.put(Table::Customer, key, row.write(written));
    Ok(())
}
