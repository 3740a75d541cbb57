//! Voter as the harness runs it.

use super::{
    check,
    schema::{self, AREAS, FIRST_AREA, STATES, Table, names},
    state::Voter,
    transactions::{Transaction, Transactions},
};
use crate::{
    application::{Application, Client, Done, access::Writes},
    contender::{Others, Placement, Tables},
};

impl Application for Voter {
    type Kind = Transaction;

    fn names(&self) -> Vec<&'static str> {
        names().to_vec()
    }

    fn placement(&self) -> Placement<'_> {
        Placement {
            subject: Table::Votes as usize,
            others: &Others::Same,
        }
    }

    fn units(&self) -> usize {
        1
    }

    fn load<T: Tables>(&self, tables: &T, _: usize) -> Done<(u64, u64)> {
        let mut writes = Writes::new(tables.batch());
        for contestant in 1..=self.config.contestants {
            let name = format!("Contestant {contestant}");
            writes.put(Table::Contestants, &[contestant], name.as_bytes());
        }
        for area in FIRST_AREA..FIRST_AREA + AREAS {
            let state = schema::state(area);
            writes.put(Table::AreaCodes, &area.to_be_bytes(), &[state]);
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

    /// One for each state.
    fn parts(&self) -> usize {
        STATES
    }

    fn check<T: Tables>(&self, tables: &T, part: usize) -> Done<u64> {
        check::state(self, tables, part as u8)
    }
}
