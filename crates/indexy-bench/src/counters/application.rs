//! Counters as the harness runs it.

use super::{
    state::{Counters, PARTS, Table, count, write},
    transactions::{Transaction, Transactions},
};
use crate::{
    application::{
        Application, Client, Done, TableId, Trouble,
        access::{Reads, Writes},
    },
    contender::{Others, Placement, Tables},
};

/// Rows of one batch of the load.
const ROWS_A_UNIT: u64 = 1024;

impl Application for Counters {
    type Kind = Transaction;

    fn names(&self) -> Vec<&'static str> {
        vec![Table.name()]
    }

    fn placement(&self) -> Placement<'_> {
        Placement {
            subject: Table.index(),
            others: &Others::Same,
        }
    }

    fn units(&self) -> usize {
        self.config.rows.div_ceil(ROWS_A_UNIT) as usize
    }

    fn load<T: Tables>(&self, tables: &T, unit: usize) -> Done<(u64, u64)> {
        let (rows, from) = (self.config.rows, unit as u64 * ROWS_A_UNIT);
        let mut writes = Writes::new(tables.batch());
        let mut row = Vec::new();
        write(&mut row, 0, self.config.value_bytes);
        for key in from..rows.min(from + ROWS_A_UNIT) {
            writes.put(Table, &key.to_be_bytes(), &row);
        }
        writes.commit_rows()
    }

    fn client<'a, T: Tables>(
        &'a self,
        tables: &'a T,
        _: u64,
    ) -> impl Client<Kind = Transaction> + 'a {
        Transactions::new(tables, self)
    }

    fn parts(&self) -> usize {
        PARTS
    }

    /// All rows of the part are there, and their counts are what transactions made of them.
    fn check<T: Tables>(&self, tables: &T, part: usize) -> Done<u64> {
        let view = Writes::new(tables.batch());
        let reads = Reads::of(tables, &view);
        let keys = self.keys_of(part);
        let (from, to) = (keys.start.to_be_bytes(), keys.end.to_be_bytes());
        let (mut next, mut sum, mut garbled) = (keys.start, 0, false);
        reads.scan(Table, &from, &to, |key, row| {
            match count(row).filter(|_| *key == next.to_be_bytes()) {
                Some(count) => (next, sum) = (next + 1, sum + count),
                None => garbled = true,
            }
            !garbled
        })?;
        if garbled || next != keys.end {
            return Err(Trouble::Wrong(format!(
                "{}: row {next} is missing, or was never written so",
                Table.name()
            )));
        }
        match self.raised(part) {
            raised if raised == sum => Ok(keys.end - keys.start),
            raised => Err(Trouble::Wrong(format!(
                "{}: the counts of rows {keys:?} are {sum} together, and were raised by {raised}",
                Table.name()
            ))),
        }
    }
}
