//! Tables and their keys.
//!
//! Keys are the primary keys of the specification, big-endian, so that their order is that of the
//! numbers: warehouse 2 bytes, district 1, customer, order and item 4, line 1. HISTORY has no
//! primary key; its rows are numbered within the district of the payment. Two secondary indexes
//! have empty values: customers by last and first name, orders by customer.

use crate::application::TableId;

/// A table or secondary index; the number is its index for [`Tables`](crate::contender::Tables).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Table {
    /// WAREHOUSE.
    Warehouse,
    /// DISTRICT.
    District,
    /// CUSTOMER.
    Customer,
    /// HISTORY.
    History,
    /// NEW-ORDER.
    NewOrder,
    /// ORDER.
    Order,
    /// ORDER-LINE.
    OrderLine,
    /// ITEM.
    Item,
    /// STOCK.
    Stock,
    /// Customers by district, last name, first name.
    CustomerByName,
    /// Orders by customer.
    OrderByCustomer,
}

/// All tables, by their numbers.
pub const TABLES: [Table; 11] = [
    Table::Warehouse,
    Table::District,
    Table::Customer,
    Table::History,
    Table::NewOrder,
    Table::Order,
    Table::OrderLine,
    Table::Item,
    Table::Stock,
    Table::CustomerByName,
    Table::OrderByCustomer,
];

impl Table {
    /// The name of its tree.
    pub fn name(self) -> &'static str {
        match self {
            Table::Warehouse => "warehouse",
            Table::District => "district",
            Table::Customer => "customer",
            Table::History => "history",
            Table::NewOrder => "new_order",
            Table::Order => "order",
            Table::OrderLine => "order_line",
            Table::Item => "item",
            Table::Stock => "stock",
            Table::CustomerByName => "customer_by_name",
            Table::OrderByCustomer => "order_by_customer",
        }
    }
}

impl TableId for Table {
    fn index(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        Table::name(self)
    }
}

/// Names of all tables, by number.
pub fn names() -> [&'static str; TABLES.len()] {
    TABLES.map(Table::name)
}

/// Bytes that a name takes in a key.
const NAME_BYTES: usize = 16;
/// Warehouse, district, two names, customer.
const LONGEST_KEY: usize = 2 + 1 + 2 * NAME_BYTES + 4;

/// A key on the stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    bytes: [u8; LONGEST_KEY],
    len: usize,
}

impl Key {
    fn new() -> Self {
        Self {
            bytes: [0; LONGEST_KEY],
            len: 0,
        }
    }

    fn with(mut self, part: &[u8]) -> Self {
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
        self
    }

    /// `name` padded with zeros, which sort before every letter.
    fn with_name(mut self, name: &[u8]) -> Self {
        let taken = name.len().min(NAME_BYTES);
        self.bytes[self.len..self.len + taken].copy_from_slice(&name[..taken]);
        self.len += NAME_BYTES;
        self
    }

    /// The first key after all that begin with this one. None of our keys ends in `ff` only.
    pub(crate) fn end(mut self) -> Self {
        while self.len > 0 {
            let last = &mut self.bytes[self.len - 1];
            if *last < u8::MAX {
                *last += 1;
                break;
            }
            self.len -= 1;
        }
        self
    }
}

impl std::ops::Deref for Key {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// WAREHOUSE, and the prefix of all that belongs to it.
pub(crate) fn warehouse(w: u16) -> Key {
    Key::new().with(&w.to_be_bytes())
}

/// DISTRICT, and the prefix of all that belongs to it.
pub(crate) fn district(w: u16, d: u8) -> Key {
    warehouse(w).with(&[d])
}

/// CUSTOMER, and the prefix of its orders in ORDER-BY-CUSTOMER.
pub(crate) fn customer(w: u16, d: u8, c: u32) -> Key {
    district(w, d).with(&c.to_be_bytes())
}

/// HISTORY.
pub(crate) fn history(w: u16, d: u8, number: u32) -> Key {
    district(w, d).with(&number.to_be_bytes())
}

/// ORDER and NEW-ORDER, and the prefix of its lines in ORDER-LINE.
pub(crate) fn order(w: u16, d: u8, o: u32) -> Key {
    district(w, d).with(&o.to_be_bytes())
}

/// ORDER-LINE; `number` from 1 on.
pub(crate) fn order_line(w: u16, d: u8, o: u32, number: u8) -> Key {
    order(w, d, o).with(&[number])
}

/// ITEM.
pub(crate) fn item(i: u32) -> Key {
    Key::new().with(&i.to_be_bytes())
}

/// STOCK.
pub(crate) fn stock(w: u16, i: u32) -> Key {
    warehouse(w).with(&i.to_be_bytes())
}

/// CUSTOMER-BY-NAME of all customers with `last`.
pub(crate) fn customers_named(w: u16, d: u8, last: &[u8]) -> Key {
    district(w, d).with_name(last)
}

/// CUSTOMER-BY-NAME.
pub(crate) fn customer_by_name(w: u16, d: u8, last: &[u8], first: &[u8], c: u32) -> Key {
    customers_named(w, d, last)
        .with_name(first)
        .with(&c.to_be_bytes())
}

/// ORDER-BY-CUSTOMER.
pub(crate) fn order_by_customer(w: u16, d: u8, c: u32, o: u32) -> Key {
    customer(w, d, c).with(&o.to_be_bytes())
}

/// The number in the last four bytes of a key: customer, order or item.
pub(crate) fn last_number(key: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*key.last_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_stand_at_their_numbers_and_have_names_of_their_own() {
        for (index, table) in TABLES.into_iter().enumerate() {
            assert_eq!(table as usize, index);
        }
        let mut all = names().to_vec();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), TABLES.len());
    }

    #[test]
    fn keys_sort_as_their_numbers_and_names() {
        let keys = [
            order_line(1, 2, 255, 15),
            order_line(1, 2, 256, 1),
            order_line(1, 3, 1, 1),
            order_line(256, 1, 1, 1),
        ];
        assert!(keys.windows(2).all(|w| *w[0] < *w[1]));
        let names = [
            customer_by_name(1, 1, b"BAR", b"z", 9),
            customer_by_name(1, 1, b"BARBAR", b"a", 1),
            customer_by_name(1, 1, b"BARBAR", b"a", 2),
        ];
        assert!(names.windows(2).all(|w| *w[0] < *w[1]));
        assert_eq!(last_number(&names[2]), Some(2));
    }

    #[test]
    fn the_end_of_a_prefix_is_after_all_that_begin_with_it() {
        let prefix = order(1, 255, u32::MAX);
        assert!(*order_line(1, 255, u32::MAX, 255) < *prefix.end());
        assert_eq!(*prefix.end(), *warehouse(2));
        assert_eq!(*district(1, 2).end(), *district(1, 3));
        let bar = customers_named(1, 1, b"BAR");
        assert!(*customer_by_name(1, 1, b"BARBAR", b"", 0) > *bar.end());
    }
}
