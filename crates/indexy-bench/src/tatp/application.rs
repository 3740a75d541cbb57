//! TATP as the harness runs it.

use super::{
    check,
    kinds::Transaction,
    load,
    population::{SUBSCRIBERS_A_UNIT, Tatp},
    schema::{Table, names},
    transactions::Transactions,
};
use crate::{
    application::{Application, Client, Done},
    contender::{Others, Placement, Tables},
};

impl Application for Tatp {
    type Kind = Transaction;

    fn names(&self) -> Vec<&'static str> {
        names().to_vec()
    }

    fn placement(&self) -> Placement<'_> {
        Placement {
            subject: Table::Subscriber as usize,
            others: &Others::Same,
        }
    }

    fn units(&self) -> usize {
        self.config.subscribers.div_ceil(SUBSCRIBERS_A_UNIT) as usize
    }

    fn load<T: Tables>(&self, tables: &T, unit: usize) -> Done<(u64, u64)> {
        load::load(self, tables, unit)
    }

    fn client<'a, T: Tables>(
        &'a self,
        tables: &'a T,
        _: u64,
    ) -> impl Client<Kind = Transaction> + 'a {
        Transactions::new(tables, self)
    }

    fn parts(&self) -> usize {
        self.units()
    }

    fn check<T: Tables>(&self, tables: &T, part: usize) -> Done<u64> {
        check::check(self, tables, part)
    }
}
