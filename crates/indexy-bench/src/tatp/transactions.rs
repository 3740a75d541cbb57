//! The seven transactions, for one thread.

use super::{
    check,
    kinds::Transaction,
    load::STARTS,
    population::{Draw, Outcomes, Tatp},
    schema::{self, AccessInfo, CallForwarding, SpecialFacility, Subscriber, Table, number},
};
use crate::{
    application::{
        Client, Done, Ended, Trouble,
        access::{Reads, Writes, repeated},
        random::digits,
        rows::Whole,
    },
    contender::Tables,
    workload::Rng,
};
use rand::Rng as _;

/// Transactions of a thread between two looks at a subscriber.
const LOOK_EVERY: u64 = 4096;

/// Runs transactions for one thread.
pub(super) struct Transactions<'a, T: Tables> {
    tables: &'a T,
    tatp: &'a Tatp,
    read: Vec<u8>,
    written: Vec<u8>,
    draw: Draw,
    outcomes: Outcomes,
    turns: u64,
    conflicts: u64,
}

/// What a transaction draws before it begins.
struct Input {
    s: u32,
    kind: u8,
    start: u8,
    end: u8,
    draw: u32,
}

impl<'a, T: Tables> Transactions<'a, T> {
    pub(super) fn new(tables: &'a T, tatp: &'a Tatp) -> Self {
        Self {
            tables,
            tatp,
            read: Vec::new(),
            written: Vec::new(),
            draw: tatp.config.draw(),
            outcomes: Outcomes::default(),
            turns: 0,
            conflicts: 0,
        }
    }

    fn input(&self, rng: &mut Rng) -> Input {
        Input {
            s: self.draw.subscriber(rng),
            kind: rng.random_range(1..=4),
            start: STARTS[rng.random_range(0..STARTS.len())],
            end: rng.random_range(1..=24),
            draw: rng.random_range(1..=u32::MAX),
        }
    }

    /// The bytes that it wrote, or none if it found nothing to do.
    fn attempt(&mut self, kind: Transaction, rng: &mut Rng) -> Done<Option<u64>> {
        let input = self.input(rng);
        let _lock = (!self.tables.isolates()).then(|| self.tatp.known.lock(input.s));
        let writes = Writes::new(self.tables.batch());
        match kind {
            Transaction::GetSubscriberData => {
                self.subscriber(&writes, &input)?;
                Ok(Some(0))
            }
            Transaction::GetNewDestination => self.new_destination(&writes, &input),
            Transaction::GetAccessData => self.access_data(&writes, &input),
            Transaction::UpdateSubscriberData => self.update_subscriber(writes, &input),
            Transaction::UpdateLocation => self.update_location(writes, &input),
            Transaction::InsertCallForwarding => {
                let number = digits(rng);
                self.insert_forwarding(writes, &input, &number)
            }
            Transaction::DeleteCallForwarding => self.delete_forwarding(writes, &input),
        }
    }

    /// Reads the subscriber, whose location must be the one that was committed last.
    fn subscriber(&mut self, writes: &Writes<T::Batch<'a>>, input: &Input) -> Done<()> {
        let key = schema::subscriber(input.s);
        let reads = Reads::of(self.tables, writes);
        reads.fetch(Table::Subscriber, &key, &mut self.read)?;
        let row = Subscriber::read(&self.read);
        let row = row.ok_or_else(|| Trouble::garbled(Table::Subscriber))?;
        let known = self.tatp.known.location(input.s);
        if !self.tables.isolates() && row.vlr_location != known {
            return Err(Trouble::Wrong(format!(
                "subscriber {}: VLR_LOCATION is {}, and {known} was committed last",
                input.s, row.vlr_location
            )));
        }
        Ok(())
    }

    /// The subscriber must be found by its number.
    fn by_number(&mut self, writes: &Writes<T::Batch<'a>>, input: &Input) -> Done<()> {
        let reads = Reads::of(self.tables, writes);
        let table = Table::SubscriberByNumber;
        reads.fetch(table, &number(input.s), &mut self.read)?;
        if self.read == input.s.to_be_bytes() {
            return Ok(());
        }
        Err(Trouble::garbled(table))
    }

    /// Reads all special facilities of the subscriber, as the description does; whether the one is
    /// there.
    fn among_facilities(&mut self, writes: &Writes<T::Batch<'a>>, input: &Input) -> Done<bool> {
        let key = schema::of_type(input.s, input.kind);
        let (from, to) = (schema::subscriber(input.s), schema::subscriber(input.s + 1));
        let mut found = false;
        let reads = Reads::of(self.tables, writes);
        reads.scan(Table::SpecialFacility, &from, &to, |other, _| {
            found |= other == key;
            true
        })?;
        Ok(found)
    }

    /// Reads a special facility; false if there is none.
    fn facility(&mut self, writes: &Writes<T::Batch<'a>>, input: &Input) -> Done<bool> {
        let key = schema::of_type(input.s, input.kind);
        let reads = Reads::of(self.tables, writes);
        reads.fetch_if_there(Table::SpecialFacility, &key, &mut self.read)
    }

    fn new_destination(
        &mut self,
        writes: &Writes<T::Batch<'a>>,
        input: &Input,
    ) -> Done<Option<u64>> {
        if !self.facility(writes, input)? {
            return Ok(None);
        }
        let row = SpecialFacility::read(&self.read);
        let row = row.ok_or_else(|| Trouble::garbled(Table::SpecialFacility))?;
        if row.active == 0 {
            return Ok(None);
        }
        let from = schema::forwarding(input.s, input.kind, 0);
        let to = schema::forwarding(input.s, input.kind, input.start + 1);
        let (mut found, mut garbled) = (false, false);
        let reads = Reads::of(self.tables, writes);
        reads.scan(Table::CallForwarding, &from, &to, |_, row| {
            match CallForwarding::read(row) {
                Some(row) => found |= input.end < row.end,
                None => garbled = true,
            }
            true
        })?;
        if garbled {
            return Err(Trouble::garbled(Table::CallForwarding));
        }
        Ok(found.then_some(0))
    }

    fn access_data(&mut self, writes: &Writes<T::Batch<'a>>, input: &Input) -> Done<Option<u64>> {
        let key = schema::of_type(input.s, input.kind);
        let reads = Reads::of(self.tables, writes);
        if !reads.fetch_if_there(Table::AccessInfo, &key, &mut self.read)? {
            return Ok(None);
        }
        let row = AccessInfo::read(&self.read);
        row.ok_or_else(|| Trouble::garbled(Table::AccessInfo))?;
        Ok(Some(0))
    }

    fn update_subscriber(
        &mut self,
        mut writes: Writes<T::Batch<'a>>,
        input: &Input,
    ) -> Done<Option<u64>> {
        self.subscriber(&writes, input)?;
        let mut row =
            Subscriber::read(&self.read).ok_or_else(|| Trouble::garbled(Table::Subscriber))?;
        row.bits = row.bits & !1 | (input.draw & 1) as u16;
        let key = schema::subscriber(input.s);
        writes.put(Table::Subscriber, &key, row.write(&mut self.written));
        // Dropped, the batch changes nothing: both or none.
        if !self.facility(&writes, input)? {
            return Ok(None);
        }
        let mut row = SpecialFacility::read(&self.read)
            .ok_or_else(|| Trouble::garbled(Table::SpecialFacility))?;
        row.data_a = (input.draw >> 8) as u8;
        let key = schema::of_type(input.s, input.kind);
        writes.put(Table::SpecialFacility, &key, row.write(&mut self.written));
        writes.commit().map(Some)
    }

    fn update_location(
        &mut self,
        mut writes: Writes<T::Batch<'a>>,
        input: &Input,
    ) -> Done<Option<u64>> {
        self.by_number(&writes, input)?;
        self.subscriber(&writes, input)?;
        let mut row =
            Subscriber::read(&self.read).ok_or_else(|| Trouble::garbled(Table::Subscriber))?;
        row.vlr_location = input.draw;
        let key = schema::subscriber(input.s);
        writes.put(Table::Subscriber, &key, row.write(&mut self.written));
        let payload = writes.commit()?;
        self.tatp.known.set_location(input.s, input.draw);
        Ok(Some(payload))
    }

    fn insert_forwarding(
        &mut self,
        mut writes: Writes<T::Batch<'a>>,
        input: &Input,
        number: &[u8; schema::NUMBER_BYTES],
    ) -> Done<Option<u64>> {
        self.by_number(&writes, input)?;
        let key = schema::forwarding(input.s, input.kind, input.start);
        let free = self.among_facilities(&writes, input)? && {
            let reads = Reads::of(self.tables, &writes);
            !reads.fetch_if_there(Table::CallForwarding, &key, &mut self.read)?
        };
        if !free {
            return Ok(None);
        }
        let row = CallForwarding {
            end: input.end,
            number,
            row: Whole::default(),
        };
        writes.put(Table::CallForwarding, &key, row.write(&mut self.written));
        let payload = writes.commit()?;
        self.tatp.known.add_forwarding(input.s);
        Ok(Some(payload))
    }

    fn delete_forwarding(
        &mut self,
        mut writes: Writes<T::Batch<'a>>,
        input: &Input,
    ) -> Done<Option<u64>> {
        self.by_number(&writes, input)?;
        let key = schema::forwarding(input.s, input.kind, input.start);
        let reads = Reads::of(self.tables, &writes);
        if !reads.fetch_if_there(Table::CallForwarding, &key, &mut self.read)? {
            return Ok(None);
        }
        writes.remove(Table::CallForwarding, &key);
        let payload = writes.commit()?;
        self.tatp.known.take_forwarding(input.s);
        Ok(Some(payload))
    }
}

impl<T: Tables> Transactions<'_, T> {
    /// Draws a kind by its share.
    fn kind(rng: &mut Rng) -> Transaction {
        let mut drawn = rng.random_range(0..100);
        let of_draw = Transaction::ALL.into_iter().find(|kind| {
            let found = drawn < kind.share();
            drawn = drawn.saturating_sub(kind.share());
            found
        });
        of_draw.expect("the shares add up to 100")
    }

    /// Holds the conditions against a subscriber, beside transactions.
    fn look(&self, rng: &mut Rng) -> Done<()> {
        let s = self.draw.subscriber(rng);
        let _lock = (!self.tables.isolates()).then(|| self.tatp.known.lock(s));
        match check::subscriber(self.tatp, self.tables, s, false) {
            // It was given up, and another one is looked at another time.
            Err(Trouble::Engine(fault)) if self.tables.is_conflict(&fault) => Ok(()),
            looked => looked.map(drop),
        }
    }
}

impl<T: Tables> Client for Transactions<'_, T> {
    type Kind = Transaction;

    fn next(&mut self, rng: &mut Rng) -> Done<Ended<Transaction>> {
        self.turns += 1;
        if self.turns.is_multiple_of(LOOK_EVERY) {
            self.look(rng)?;
        }
        let kind = Self::kind(rng);
        let (tables, mut met) = (self.tables, 0);
        let payload = repeated(tables, &mut met, rng, |rng| self.attempt(kind, rng))?;
        self.conflicts += met;
        self.outcomes.note(kind, payload.is_some());
        Ok(Ended {
            kind,
            succeeded: payload.is_some(),
            payload: payload.unwrap_or(0),
        })
    }

    fn finish(self) -> Vec<(String, f64)> {
        self.tatp.known.add_outcomes(&self.outcomes);
        let succeeded = Transaction::ALL.into_iter().map(|kind| {
            let (_, succeeded) = self.outcomes.of(kind);
            (format!("{}_succeeded", kind.name()), succeeded as f64)
        });
        let conflicts = ("conflicts".to_owned(), self.conflicts as f64);
        succeeded.chain([conflicts]).collect()
    }
}
