//! Tables, their keys and their rows.
//!
//! Keys are big-endian: a telephone number 8 bytes, a vote of it 1 more, an area code 2, a
//! contestant and a state 1 each. A telephone number is its area code times ten million and seven
//! digits. The votes of a number are numbered from 1 on.

use crate::application::{TableId, rows::row};

/// A table; the number is its index for [`Tables`](crate::contender::Tables).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Table {
    /// Names by number.
    Contestants,
    /// States by area code.
    AreaCodes,
    /// Votes, by telephone number and number of the vote.
    Votes,
    /// How many votes each telephone number has.
    VotesByPhone,
    /// How many votes each contestant has in each state.
    VotesByContestant,
}

const TABLES: [Table; 5] = [
    Table::Contestants,
    Table::AreaCodes,
    Table::Votes,
    Table::VotesByPhone,
    Table::VotesByContestant,
];

impl TableId for Table {
    fn index(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        match self {
            Self::Contestants => "contestants",
            Self::AreaCodes => "area_codes",
            Self::Votes => "votes",
            Self::VotesByPhone => "votes_by_phone",
            Self::VotesByContestant => "votes_by_contestant",
        }
    }
}

/// Names of all tables, by number.
pub fn names() -> [&'static str; TABLES.len()] {
    TABLES.map(Table::name)
}

/// Area codes are `FIRST_AREA..FIRST_AREA + AREAS`.
pub(super) const FIRST_AREA: u16 = 200;
pub(super) const AREAS: u16 = 304;
pub(super) const STATES: usize = 51;
/// Area codes of each state, the one with most of them first.
const AREAS_OF_STATES: [u16; STATES] = [
    36, 25, 19, 14, 14, 14, 12, 11, 9, 9, 9, 8, 8, 7, 7, 6, 6, 6, 5, 5, 5, 5, 4, 4, 4, 4, 4, 4, 4,
    3, 3, 3, 3, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
];

/// The area codes of `state`, of 0..[`STATES`].
pub(super) fn areas(state: u8) -> std::ops::Range<u16> {
    let state = usize::from(state);
    let from = FIRST_AREA + AREAS_OF_STATES[..state].iter().sum::<u16>();
    from..from + AREAS_OF_STATES[state]
}

/// The state of an area code.
pub(super) fn state(area: u16) -> u8 {
    let mut states = 0..STATES as u8;
    let found = states.find(|state| areas(*state).contains(&area));
    found.expect("states share all area codes")
}

const PHONES_AN_AREA: u64 = 10_000_000;

/// Telephone number `n` of an area, of 0..10,000,000.
pub(super) fn phone(area: u16, n: u64) -> u64 {
    u64::from(area) * PHONES_AN_AREA + n
}

/// The area code of a telephone number.
pub(super) fn area(phone: u64) -> u16 {
    (phone / PHONES_AN_AREA) as u16
}

/// Vote number `n` of `phone`, from 1 on.
pub(super) fn vote(phone: u64, n: u8) -> [u8; 9] {
    let mut key = [n; 9];
    key[..8].copy_from_slice(&phone.to_be_bytes());
    key
}

/// The telephone number of a vote's key, and which vote of it that is.
pub(super) fn read_vote(key: &[u8]) -> Option<(u64, u8)> {
    let (phone, n) = key.split_first_chunk()?;
    match n {
        [n] => Some((u64::from_be_bytes(*phone), *n)),
        _ => None,
    }
}

row! {
    /// A vote; its telephone number is in the key.
    Vote {
        contestant: u8,
        state: u8,
        at: u64,
    }
}

/// The count that a row of votes by contestant is.
pub(super) fn count(row: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(row.try_into().ok()?))
}

/// The number that a row of one byte is.
pub(super) fn byte(row: &[u8]) -> Option<u8> {
    match row {
        [byte] => Some(*byte),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_share_all_area_codes() {
        let all: Vec<u16> = (0..STATES as u8).flat_map(areas).collect();
        let expected: Vec<u16> = (FIRST_AREA..FIRST_AREA + AREAS).collect();
        assert_eq!(all, expected);
        assert_eq!(
            (state(200), state(235), state(236), state(503)),
            (0, 0, 1, 50)
        );
    }

    #[test]
    fn keys_are_in_the_order_of_numbers_and_votes() {
        let one = phone(321, 9_999_999);
        assert_eq!((area(one), area(one + 1)), (321, 322));
        assert!(vote(one, 1) < vote(one, 2) && vote(one, 200) < vote(one + 1, 1));
        assert_eq!(read_vote(&vote(one, 7)), Some((one, 7)));
        assert_eq!(read_vote(&one.to_be_bytes()), None);
        assert_eq!((count(&[1; 7]), byte(&[1, 1])), (None, None));
    }
}
