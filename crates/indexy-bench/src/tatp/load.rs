//! The initial population, in pieces that threads share. Each draws from a generator of its own, so
//! that the database is the same however many threads load it.

use super::{
    population::{SUBSCRIBERS_A_UNIT, Tatp},
    schema::{self, AccessInfo, CallForwarding, SpecialFacility, Subscriber, Table, number},
};
use crate::{
    application::{
        Done,
        access::Writes,
        random::{alphanumeric, chance, digits},
        rows::Whole,
    },
    contender::{TableBatch, Tables},
    workload::{Rng, rng},
};
use rand::{Rng as _, seq::SliceRandom as _};
use std::ops::RangeInclusive;

/// Phase of the generators of pieces; no job has as many phases.
const UNIT_DRAWS: u64 = 1 << 21;
/// Of 100 special facilities, those that are active.
const ACTIVE_PERCENT: u32 = 85;
/// When call forwardings may start.
pub(super) const STARTS: [u8; 3] = [0, 8, 16];

/// The subscribers of piece `unit`.
pub(super) fn subscribers(tatp: &Tatp, unit: usize) -> RangeInclusive<u32> {
    let from = unit as u32 * SUBSCRIBERS_A_UNIT + 1;
    from..=tatp.config.subscribers.min(from + SUBSCRIBERS_A_UNIT - 1)
}

pub(super) fn load<T: Tables>(tatp: &Tatp, tables: &T, unit: usize) -> Done<(u64, u64)> {
    let mut draws = rng(tatp.seed, UNIT_DRAWS, unit as u64);
    let mut writes = Writes::new(tables.batch());
    let mut row = Vec::new();
    for s in subscribers(tatp, unit) {
        let location = subscriber(&mut writes, &mut draws, &mut row, s);
        tatp.known.set_location(s, location);
        for kind in types(&mut draws) {
            AccessInfo {
                data1: draws.random(),
                data2: draws.random(),
                data3: &alphanumeric(&mut draws),
                data4: &alphanumeric(&mut draws),
                row: Whole::default(),
            }
            .write(&mut row);
            writes.put(Table::AccessInfo, &schema::of_type(s, kind), &row);
        }
        for kind in types(&mut draws) {
            let forwardings = facility(&mut writes, &mut draws, &mut row, (s, kind));
            (0..forwardings).for_each(|_| tatp.known.add_forwarding(s));
        }
    }
    writes.commit_rows()
}

/// Returns the location.
fn subscriber<B: TableBatch>(
    writes: &mut Writes<B>,
    draws: &mut Rng,
    row: &mut Vec<u8>,
    s: u32,
) -> u32 {
    let location = draws.random_range(1..=u32::MAX);
    let number = number(s);
    Subscriber {
        bits: draws.random_range(0..1 << 10),
        msc_location: draws.random_range(1..=u32::MAX),
        vlr_location: location,
        number: &number,
        hexes: &std::array::from_fn(|_| draws.random_range(0..16)),
        bytes: &draws.random(),
        row: Whole::default(),
    }
    .write(row);
    writes.put(Table::Subscriber, &schema::subscriber(s), row);
    writes.put(Table::SubscriberByNumber, &number, &s.to_be_bytes());
    location
}

/// A special facility and its call forwardings; returns how many these are.
fn facility<B: TableBatch>(
    writes: &mut Writes<B>,
    draws: &mut Rng,
    row: &mut Vec<u8>,
    (s, kind): (u32, u8),
) -> usize {
    SpecialFacility {
        active: chance(draws, ACTIVE_PERCENT).into(),
        error_control: draws.random(),
        data_a: draws.random(),
        data_b: &alphanumeric(draws),
        row: Whole::default(),
    }
    .write(row);
    writes.put(Table::SpecialFacility, &schema::of_type(s, kind), row);
    let mut starts = STARTS;
    starts.shuffle(draws);
    let count = draws.random_range(0..=STARTS.len());
    for start in &starts[..count] {
        CallForwarding {
            end: start + draws.random_range(1..=8),
            number: &digits(draws),
            row: Whole::default(),
        }
        .write(row);
        writes.put(
            Table::CallForwarding,
            &schema::forwarding(s, kind, *start),
            row,
        );
    }
    count
}

/// One to four of the types 1 to 4.
fn types(draws: &mut Rng) -> Vec<u8> {
    let mut types = vec![1, 2, 3, 4];
    types.shuffle(draws);
    types.truncate(draws.random_range(1..=4));
    types
}
