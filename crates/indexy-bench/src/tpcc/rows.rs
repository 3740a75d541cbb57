//! The rows. Money is in cents, rates in
//! ten-thousandths, times in milliseconds since 1970; 0 stands for "not yet" in a carrier and a
//! delivery time.

use super::scale::DISTRICTS;
use crate::application::rows::row;

pub(crate) use crate::application::rows::Whole;

row! {
    /// WAREHOUSE.
    Warehouse {
        ytd: i64,
        tax: u16,
        name: &'a [u8],
        street_1: &'a [u8],
        street_2: &'a [u8],
        city: &'a [u8],
        state: &'a [u8; 2],
        zip: &'a [u8; 9],
    }
}
row! {
    /// DISTRICT.
    District {
        ytd: i64,
        next_order: u32,
        tax: u16,
        name: &'a [u8],
        street_1: &'a [u8],
        street_2: &'a [u8],
        city: &'a [u8],
        state: &'a [u8; 2],
        zip: &'a [u8; 9],
    }
}
row! {
    /// CUSTOMER.
    Customer {
        balance: i64,
        ytd_payment: i64,
        payments: u16,
        deliveries: u16,
        credit_limit: i64,
        discount: u16,
        since: u64,
        credit: &'a [u8; 2],
        middle: &'a [u8; 2],
        state: &'a [u8; 2],
        zip: &'a [u8; 9],
        phone: &'a [u8; 16],
        first: &'a [u8],
        last: &'a [u8],
        street_1: &'a [u8],
        street_2: &'a [u8],
        city: &'a [u8],
        data: &'a [u8],
    }
}
row! {
    /// HISTORY; its warehouse and district are in the key.
    History {
        customer: u32,
        customer_district: u8,
        customer_warehouse: u16,
        date: u64,
        amount: i64,
        data: &'a [u8],
    }
}
row! {
    /// ORDER.
    Order {
        customer: u32,
        entered: u64,
        carrier: u8,
        lines: u8,
        all_local: u8,
    }
}
row! {
    /// ORDER-LINE.
    OrderLine {
        item: u32,
        supply_warehouse: u16,
        delivered: u64,
        quantity: u8,
        amount: u32,
        district_info: &'a [u8; DISTRICT_INFO_BYTES],
    }
}
row! {
    /// ITEM.
    Item {
        image: u32,
        price: u32,
        name: &'a [u8],
        data: &'a [u8],
    }
}
row! {
    /// STOCK; the texts of its ten districts follow each other.
    Stock {
        quantity: i16,
        ytd: u32,
        orders: u32,
        remotes: u32,
        districts: &'a [u8; DISTRICT_INFO_BYTES * DISTRICTS as usize],
        data: &'a [u8],
    }
}

/// Bytes of a district's text in STOCK and ORDER-LINE.
pub(crate) const DISTRICT_INFO_BYTES: usize = 24;

impl<'a> Stock<'a> {
    /// The text of district `d`, which an order line copies.
    pub(crate) fn district_info(&self, d: u8) -> &'a [u8; DISTRICT_INFO_BYTES] {
        let (texts, _) = self.districts.as_chunks::<DISTRICT_INFO_BYTES>();
        &texts[usize::from(d - 1) % texts.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn customer() -> Customer<'static> {
        Customer {
            balance: -1000,
            ytd_payment: 1000,
            payments: 1,
            deliveries: 0,
            credit_limit: 5_000_000,
            discount: 4999,
            since: 1 << 40,
            credit: b"BC",
            middle: b"OE",
            state: b"ab",
            zip: b"123411111",
            phone: b"0123456789012345",
            first: b"first",
            last: b"BARBARBAR",
            street_1: b"",
            street_2: b"street",
            city: b"city",
            data: b"data",
            row: Whole::default(),
        }
    }

    #[test]
    fn rows_survive_their_bytes() {
        let mut out = Vec::new();
        let row = customer();
        assert_eq!(Customer::read(row.write(&mut out)), Some(row));
        let line = OrderLine {
            item: 100_000,
            supply_warehouse: 65_535,
            delivered: u64::MAX,
            quantity: 10,
            amount: 999_999,
            district_info: b"abcdefghijklmnopqrstuvwx",
            row: Whole::default(),
        };
        assert_eq!(OrderLine::read(line.write(&mut out)), Some(line));
        let order = Order {
            customer: 3000,
            entered: 7,
            carrier: 0,
            lines: 15,
            all_local: 1,
            row: Whole::default(),
        };
        assert_eq!(Order::read(order.write(&mut out)), Some(order));
    }

    #[test]
    fn bytes_that_are_not_exactly_a_row_are_none() {
        let mut out = Vec::new();
        customer().write(&mut out);
        for len in 0..out.len() {
            assert!(Customer::read(&out[..len]).is_none(), "{len}");
        }
        out.push(0);
        assert!(Customer::read(&out).is_none());
    }

    #[test]
    fn each_district_has_its_own_text_in_stock() {
        let mut districts = [0; DISTRICT_INFO_BYTES * DISTRICTS as usize];
        for (i, byte) in districts.iter_mut().enumerate() {
            *byte = (i / DISTRICT_INFO_BYTES) as u8;
        }
        let stock = Stock {
            quantity: 1,
            ytd: 0,
            orders: 0,
            remotes: 0,
            districts: &districts,
            data: b"",
            row: Whole::default(),
        };
        for d in 1..=DISTRICTS {
            assert_eq!(stock.district_info(d), &[d - 1; DISTRICT_INFO_BYTES]);
        }
    }
}
