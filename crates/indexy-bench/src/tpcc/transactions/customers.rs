//! Which customer a Payment or an Order-Status is about (2.5.1.2, 2.6.1.2).

use super::{Reads, Transactions, Writes};
use crate::{
    application::{Done, Trouble},
    contender::Tables,
    tpcc::{
        Table,
        random::{LAST_NAME_BYTES, Text, chance},
        schema,
    },
    workload::Rng,
};

/// Of 100 customers, those who are looked for by name.
const BY_NAME_PERCENT: u32 = 60;

/// What is known of the customer.
#[derive(Debug)]
pub(super) enum Wanted {
    Number(u32),
    Name(Text<LAST_NAME_BYTES>),
}

impl<'a, T: Tables> Transactions<'a, T> {
    /// Draws how a customer is looked for.
    pub(super) fn wanted(&self, rng: &mut Rng) -> Wanted {
        if chance(rng, BY_NAME_PERCENT) {
            Wanted::Name(self.draw.last_name(rng))
        } else {
            Wanted::Number(self.draw.customer(rng))
        }
    }

    /// The number of a customer of a district: of several of the same name the middle one, by first
    /// name.
    pub(super) fn customer_number(
        &mut self,
        writes: &Writes<T::Batch<'a>>,
        w: u16,
        d: u8,
        wanted: &Wanted,
    ) -> Done<u32> {
        let name = match wanted {
            Wanted::Number(number) => return Ok(*number),
            Wanted::Name(name) => name,
        };
        let numbers = &mut self.buffers.numbers;
        numbers.clear();
        let prefix = schema::customers_named(w, d, name);
        let see = |key: &[u8], _: &[u8]| {
            numbers.extend(schema::last_number(key));
            true
        };
        let table = Table::CustomerByName;
        Reads::of(self.tables, writes).scan(table, &prefix, &prefix.end(), see)?;
        // Position n/2, rounded up, counted from 1.
        let middle = numbers.len().div_ceil(2).wrapping_sub(1);
        let found = numbers.get(middle).copied();
        found.ok_or_else(|| Trouble::missing(table, &prefix))
    }
}
