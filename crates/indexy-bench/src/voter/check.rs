//! Conditions: votes against their counts, by telephone number and by contestant and state, and the
//! limit of each number.

use super::{
    schema::{self, Table, Vote},
    state::{MOST_CONTESTANTS, Voter},
};
use crate::{
    application::{
        Done, TableId, Trouble,
        access::{Reads, Writes},
    },
    contender::Tables,
};

/// The votes of each telephone number of `state` are numbered from 1 on, are as many as is counted
/// there, and within the limit; those of each contestant in it are as many as is counted, and as
/// were accepted. Returns rows seen. Cost: a scan of the state's votes and numbers.
pub(super) fn state<T: Tables>(voter: &Voter, tables: &T, state: u8) -> Done<u64> {
    let view = Writes::new(tables.batch());
    let reads = Reads::of(tables, &view);
    let mut sums = Sums::default();
    let mut rows = 0;
    for area in schema::areas(state) {
        let mut row = Vec::new();
        reads.fetch(Table::AreaCodes, &area.to_be_bytes(), &mut row)?;
        if row != [state] {
            return Err(Trouble::garbled(Table::AreaCodes));
        }
        let phones = schema::phone(area, 0)..schema::phone(area + 1, 0);
        rows += 1 + numbers(voter, &reads, phones, state, &mut sums)?;
    }
    for contestant in 1..=MOST_CONTESTANTS {
        let mut row = Vec::new();
        let key = [contestant, state];
        let there = reads.fetch_if_there(Table::VotesByContestant, &key, &mut row)?;
        rows += u64::from(there);
        let counted = if there { schema::count(&row) } else { Some(0) };
        let counted = counted.ok_or_else(|| Trouble::garbled(Table::VotesByContestant))?;
        let (votes, accepted) = (
            sums[usize::from(contestant - 1)],
            voter.accepted(contestant, state),
        );
        if counted != votes || counted != accepted {
            return Err(Trouble::Wrong(format!(
                "contestant {contestant} has {votes} votes in state {state}, {counted} by their \
                 count, and {accepted} were accepted"
            )));
        }
    }
    Ok(rows)
}

/// The same for one telephone number, which nobody writes to or `tables` isolates. Returns rows
/// seen.
pub(super) fn phone<T: Tables>(voter: &Voter, tables: &T, phone: u64) -> Done<u64> {
    let view = Writes::new(tables.batch());
    let reads = Reads::of(tables, &view);
    let state = schema::state(schema::area(phone));
    numbers(voter, &reads, phone..phone + 1, state, &mut Sums::default())
}

/// Votes of each contestant.
type Sums = [u64; MOST_CONTESTANTS as usize];

/// Holds the votes of a range of telephone numbers against their counts and the limit; adds them to
/// `sums`.
fn numbers<T: Tables>(
    voter: &Voter,
    reads: &Reads<'_, '_, T>,
    phones: std::ops::Range<u64>,
    state: u8,
    sums: &mut Sums,
) -> Done<u64> {
    let (from, to) = (phones.start.to_be_bytes(), phones.end.to_be_bytes());
    let mut votes: Vec<(u64, u8)> = Vec::new();
    let (mut rows, mut garbled) = (0, None);
    reads.scan(Table::Votes, &from, &to, |key, row| {
        rows += 1;
        let known = Vote::read(row).filter(|vote| vote.state == state);
        let place = known.and_then(|vote| {
            let contestant = usize::from(vote.contestant).checked_sub(1)?;
            sums.get_mut(contestant)
        });
        let (Some(place), Some((phone, n))) = (place, schema::read_vote(key)) else {
            garbled = Some(Table::Votes);
            return false;
        };
        let follows = match votes.last() {
            Some((last, count)) if *last == phone => count.checked_add(1) == Some(n),
            last => n == 1 && last.is_none_or(|(last, _)| *last < phone),
        };
        if !follows {
            garbled = Some(Table::Votes);
            return false;
        }
        *place += 1;
        match votes.last_mut() {
            Some((_, count)) if n > 1 => *count = n,
            _ => votes.push((phone, n)),
        }
        true
    })?;
    let mut counts: Vec<(u64, u8)> = Vec::new();
    reads.scan(Table::VotesByPhone, &from, &to, |key, row| {
        rows += 1;
        match (key.try_into(), schema::byte(row)) {
            (Ok(phone), Some(count)) => counts.push((u64::from_be_bytes(phone), count)),
            _ => garbled = Some(Table::VotesByPhone),
        }
        garbled.is_none()
    })?;
    if let Some(table) = garbled {
        return Err(Trouble::Wrong(format!(
            "{}: a row that was never written, or a vote that is missing, among those of the \
             numbers from {} on",
            table.name(),
            phones.start
        )));
    }
    if votes != counts {
        let sum = |of: &[(u64, u8)]| of.iter().map(|(_, n)| u64::from(*n)).sum::<u64>();
        return Err(Trouble::Wrong(format!(
            "from {} on, {} telephone numbers have {} votes, and by their counts {} have {}",
            phones.start,
            votes.len(),
            sum(&votes),
            counts.len(),
            sum(&counts),
        )));
    }
    let limit = voter.config.votes_a_phone;
    match votes.iter().find(|(_, count)| *count > limit) {
        Some((phone, count)) => Err(Trouble::Wrong(format!(
            "telephone number {phone} has {count} votes, and may have {limit}"
        ))),
        None => Ok(rows),
    }
}
