//! Conditions: rows belong together and are as many as the driver counted, and transactions
//! succeeded as often as the population makes them.

use super::{
    kinds::Transaction,
    load::{STARTS, subscribers},
    population::Tatp,
    schema::{self, AccessInfo, CallForwarding, SpecialFacility, Subscriber, Table, number},
};
use crate::{
    application::{
        Done, TableId, Trouble,
        access::{Reads, Writes},
    },
    contender::Tables,
};

/// Fewer of a kind say little about its share.
const LEAST_TRIED: u64 = 1000;
/// A share may be off by so much: a few subscribers are drawn more often than others.
const SLACK: f64 = 0.03;
/// And by so many standard deviations of a draw.
const DEVIATIONS: f64 = 5.0;

/// Holds the conditions against the subscribers of piece `part`, after all clients finished;
/// returns rows seen.
pub(super) fn check<T: Tables>(tatp: &Tatp, tables: &T, part: usize) -> Done<u64> {
    // By Zipf a handful of subscribers, with the rows that chance gave them, make the share.
    if part == 0 && tatp.config.zipf.is_none() {
        Transaction::ALL
            .into_iter()
            .try_for_each(|kind| share(tatp, kind))?;
    }
    let mut rows = 0;
    for s in subscribers(tatp, part) {
        rows += subscriber(tatp, tables, s, true)?;
    }
    Ok(rows)
}

fn share(tatp: &Tatp, kind: Transaction) -> Done<()> {
    let (tried, succeeded) = tatp.known.outcomes().of(kind);
    if tried < LEAST_TRIED {
        return Ok(());
    }
    let (least, most) = kind.success();
    let share = succeeded as f64 / tried as f64;
    let deviation = (least * (1.0 - least) / tried as f64).sqrt();
    let slack = if least < 1.0 {
        SLACK + DEVIATIONS * deviation
    } else {
        0.0
    };
    if (least - slack..=most + slack).contains(&share) {
        return Ok(());
    }
    Err(Trouble::Wrong(format!(
        "{}: {succeeded} of {tried} succeeded, {:.1} %; {:.1} to {:.1} % are expected",
        kind.name(),
        share * 100.0,
        least * 100.0,
        most * 100.0,
    )))
}

/// Holds the conditions against subscriber `s`, which nobody writes to or `tables` isolates;
/// `settled`: all clients have finished. Returns the subscriber's rows.
pub(super) fn subscriber<T: Tables>(tatp: &Tatp, tables: &T, s: u32, settled: bool) -> Done<u64> {
    let view = Writes::new(tables.batch());
    let reads = Reads::of(tables, &view);
    let mut bytes = Vec::new();
    reads.fetch(Table::Subscriber, &schema::subscriber(s), &mut bytes)?;
    let row = Subscriber::read(&bytes).ok_or_else(|| Trouble::garbled(Table::Subscriber))?;
    let known = tatp.known.location(s);
    let located = tables.isolates() || row.vlr_location == known;
    holds(located, s, || {
        let found = row.vlr_location;
        format!("VLR_LOCATION is {found}, and {known} was committed last")
    })?;
    let own = row.number == &number(s);
    holds(own, s, || "SUB_NBR is another one's".to_owned())?;
    reads.fetch(Table::SubscriberByNumber, &number(s), &mut bytes)?;
    let own = bytes == s.to_be_bytes();
    holds(own, s, || "its number is another one's".to_owned())?;

    let access = keys(&reads, Table::AccessInfo, s, |row| {
        AccessInfo::read(row).is_some()
    })?;
    let facilities = keys(&reads, Table::SpecialFacility, s, |row| {
        SpecialFacility::read(row).is_some()
    })?;
    for (table, found) in [
        (Table::AccessInfo, &access),
        (Table::SpecialFacility, &facilities),
    ] {
        holds((1..=4).contains(&found.len()), s, || {
            format!("{} has {} rows of it", table.name(), found.len())
        })?;
    }
    let forwardings = keys(&reads, Table::CallForwarding, s, |row| {
        CallForwarding::read(row).is_some()
    })?;
    let counted = usize::from(tatp.known.forwardings(s));
    let exact = settled || !tables.isolates();
    holds(!exact || forwardings.len() == counted, s, || {
        let found = forwardings.len();
        format!("{found} call forwardings are there, {counted} were committed")
    })?;
    let belongs = |key: &Vec<u8>| {
        let starts = key.last().is_some_and(|start| STARTS.contains(start));
        starts && facilities.iter().any(|facility| key.starts_with(facility))
    };
    holds(forwardings.iter().all(belongs), s, || {
        "a call forwarding has no special facility, or starts at no such time".to_owned()
    })?;
    Ok((2 + access.len() + facilities.len() + forwardings.len()) as u64)
}

fn holds(holds: bool, s: u32, what: impl FnOnce() -> String) -> Done<()> {
    if holds {
        return Ok(());
    }
    Err(Trouble::Wrong(format!("subscriber {s}: {}", what())))
}

/// Keys of the rows of subscriber `s`, each of which must be `sound`.
fn keys<T: Tables>(
    reads: &Reads<'_, '_, T>,
    table: Table,
    s: u32,
    sound: impl Fn(&[u8]) -> bool,
) -> Done<Vec<Vec<u8>>> {
    let (mut keys, mut garbled) = (Vec::new(), false);
    let (from, to) = (schema::subscriber(s), schema::subscriber(s + 1));
    reads.scan(table, &from, &to, |key, row| {
        garbled |= !sound(row);
        keys.push(key.to_vec());
        true
    })?;
    if garbled {
        return Err(Trouble::garbled(table));
    }
    Ok(keys)
}
