//! Which rows TATP, TPC-C and Voter touch, in the order in which their transactions do.
//!
//! Rows that are not there are not in the trace. A table's rows follow those of the table before.

use super::sequence::{Access, Size, Trace};
use crate::workload::{Rng, mix};
use rand::Rng as _;

/// Rows of a subscriber, on average: itself, 2.5 of access info, 2.5 special facilities, 1.5 call
/// forwardings for each of these.
const ROWS_A_SUBSCRIBER: f64 = 9.75;
/// Numbers set aside for a subscriber's rows: itself, 4, 4, 4 times 3.
const NUMBERS_A_SUBSCRIBER: u32 = 21;

/// TATP's tables as numbers.
struct Subscribers {
    count: u32,
    /// Which call forwardings there are.
    forwardings: Vec<bool>,
}

impl Subscribers {
    fn new(count: u32) -> Self {
        let mut all = Self {
            count,
            forwardings: Vec::new(),
        };
        all.forwardings = (0..count * 12)
            .map(|at| {
                let facility = at / 3;
                let facilities = all.types(facility / 4, 1);
                let some = mix(u64::from(facility) ^ 0xF0) % 4;
                facilities & 1 << (facility % 4) != 0 && u64::from(at % 3) < some
            })
            .collect();
        all
    }

    /// A mask of the 1 to 4 types that subscriber `s` has in table `salt`.
    fn types(&self, s: u32, salt: u64) -> u32 {
        const MASKS: [&[u32]; 4] = [
            &[1, 2, 4, 8],
            &[3, 5, 9, 6, 10, 12],
            &[7, 11, 13, 14],
            &[15],
        ];
        let draw = mix(u64::from(s) << 8 | salt);
        let of = MASKS[draw as usize % 4];
        of[(draw >> 8) as usize % of.len()]
    }

    fn access_info(&self, s: u32, kind: u32) -> Option<u32> {
        (self.types(s, 0) & 1 << kind != 0).then_some(self.count + s * 4 + kind)
    }

    fn facility(&self, s: u32, kind: u32) -> Option<u32> {
        (self.types(s, 1) & 1 << kind != 0).then_some(self.count * 5 + s * 4 + kind)
    }

    /// The row of a call forwarding, and whether it is there.
    fn forwarding(&mut self, s: u32, kind: u32, start: u32) -> (u32, &mut bool) {
        let at = (s * 4 + kind) * 3 + start;
        (self.count * 9 + at, &mut self.forwardings[at as usize])
    }
}

/// TATP's standard mix over subscribers that are drawn as its non-uniform key distribution says.
pub(super) fn tatp(size: &Size, rng: &mut Rng) -> Trace {
    let count = ((f64::from(size.keys) / ROWS_A_SUBSCRIBER) as u32).max(1);
    let mut rows = Subscribers::new(count);
    let mut trace = Trace::new("tatp", count * NUMBERS_A_SUBSCRIBER);
    while trace.len() < size.accesses as usize {
        let s = subscriber(rng, count);
        let (kind, start) = (rng.random_range(0..4), rng.random_range(0..3));
        match rng.random_range(0..100) {
            0..35 => trace.push(s, Access::Read),
            35..45 => {
                if let Some(row) = rows.facility(s, kind) {
                    trace.push(row, Access::Read);
                    // Those that begin by then.
                    for start in 0..=start {
                        if let (row, true) = rows.forwarding(s, kind, start) {
                            trace.push(row, Access::Read);
                        }
                    }
                }
            }
            45..80 => {
                if let Some(row) = rows.access_info(s, kind) {
                    trace.push(row, Access::Read);
                }
            }
            80..82 => {
                trace.push(s, Access::Update);
                if let Some(row) = rows.facility(s, kind) {
                    trace.push(row, Access::Update);
                }
            }
            82..96 => trace.push(s, Access::Update),
            change => {
                trace.push(s, Access::Read);
                let inserts = change < 98;
                let facility = rows.facility(s, kind);
                if let Some(row) = facility.filter(|_| inserts) {
                    trace.push(row, Access::Read);
                }
                if facility.is_some() {
                    let (row, there) = rows.forwarding(s, kind, start);
                    if *there != inserts {
                        *there = inserts;
                        trace.push(row, Access::Write);
                    }
                }
            }
        }
    }
    trace
}

/// TATP's non-uniform draw of a subscriber, from 0 on.
fn subscriber(rng: &mut Rng, count: u32) -> u32 {
    let a = match count {
        0..=1_000_000 => 65_535,
        1_000_001..=10_000_000 => 1_048_575,
        _ => 2_097_151,
    };
    (rng.random_range(0..=a) | rng.random_range(1..=count)) % count
}

const ORDERS: u32 = 3000;
const MEAN_LINES: u32 = 10;
const MOST_LINES: u32 = 15;
/// Accesses of a transaction of the standard mix, on average: 45 % write ten lines, 4 % update a
/// hundred, 4 % read two hundred, 4 % ten.
const MEAN_ACCESSES: f64 = 4.5 + 4.0 + 8.0 + 0.4;
/// Orders that Stock-Level looks at.
const RECENT: u32 = 20;

/// A district's orders.
struct District {
    /// The next order.
    next: u32,
    /// The oldest order that is not delivered.
    oldest: u32,
    /// The last order of each customer.
    last: Vec<u32>,
}

/// TPC-C's standard mix, as ORDER-LINE sees it.
pub(super) fn order_line(size: &Size, rng: &mut Rng) -> Trace {
    let districts = (size.keys / (ORDERS * MEAN_LINES)).max(1);
    let new_orders = f64::from(size.accesses) / MEAN_ACCESSES * 0.45;
    let most = ORDERS + (new_orders / f64::from(districts) * 1.2) as u32 + 64;
    let mut trace = Trace::new("order-line", districts * most * MOST_LINES);
    let mut state: Vec<District> = (0..districts)
        .map(|_| District {
            next: ORDERS,
            oldest: ORDERS * 7 / 10,
            last: (0..ORDERS).collect(),
        })
        .collect();
    // An order has as many lines as its number says.
    let lines = |d: u32, o: u32| {
        let number = d * most + o;
        let count = 5 + (mix(number.into()) % 11) as u32;
        (0..count).map(move |line| number * MOST_LINES + line)
    };
    while trace.len() < size.accesses as usize {
        let d = rng.random_range(0..districts);
        let customer = (rng.random_range(0..=1023u32) | rng.random_range(1..=ORDERS)) % ORDERS;
        let of = &mut state[d as usize];
        match rng.random_range(0..100) {
            0..45 if of.next < most => {
                lines(d, of.next).for_each(|row| trace.push(row, Access::Write));
                of.last[customer as usize] = of.next;
                of.next += 1;
            }
            45..49 => {
                // One of the ten districts of a warehouse after the other.
                let first = d / 10 * 10;
                for d in first..(first + 10).min(districts) {
                    let of = &mut state[d as usize];
                    if of.oldest < of.next {
                        lines(d, of.oldest).for_each(|row| trace.push(row, Access::Update));
                        of.oldest += 1;
                    }
                }
            }
            49..53 => {
                for o in of.next - RECENT..of.next {
                    lines(d, o).for_each(|row| trace.push(row, Access::Read));
                }
            }
            53..57 => {
                let order = of.last[customer as usize];
                lines(d, order).for_each(|row| trace.push(row, Access::Read));
            }
            // Payment has no lines; and a full district takes no order.
            _ => {}
        }
    }
    trace
}

/// Contestants, and pairs of a contestant and a state.
const CONTESTANTS: u32 = 6;
const STATES: u32 = 51;
const AREAS: u32 = 304;
/// Votes that are accepted of a telephone number.
const VOTES_A_PHONE: u32 = 2;

/// Calls of Voter from numbers that each call as often as any other. A number has a row that counts
/// its votes, and a row for each vote.
pub(super) fn voter(size: &Size, rng: &mut Rng) -> Trace {
    const AREAS_FROM: u32 = CONTESTANTS;
    const COUNTS_FROM: u32 = AREAS_FROM + AREAS;
    const PHONES_FROM: u32 = COUNTS_FROM + CONTESTANTS * STATES;
    let phones = (size.keys / (1 + VOTES_A_PHONE)).max(1);
    let votes_from = PHONES_FROM + phones;
    let mut votes = vec![0u8; phones as usize];
    let mut trace = Trace::new("voter", votes_from + phones * VOTES_A_PHONE);
    while trace.len() < size.accesses as usize {
        let phone = rng.random_range(0..phones);
        let area = phone % AREAS;
        let count = &mut votes[phone as usize];
        // One call of 100 is for a contestant that there is not.
        let is_valid = rng.random_range(0..100) > 0;
        let contestant = rng.random_range(0..CONTESTANTS);
        if is_valid {
            trace.push(contestant, Access::Read);
        }
        if *count > 0 {
            trace.push(PHONES_FROM + phone, Access::Read);
        }
        trace.push(AREAS_FROM + area, Access::Read);
        if !is_valid || u32::from(*count) == VOTES_A_PHONE {
            continue;
        }
        let of_state = COUNTS_FROM + contestant * STATES + area % STATES;
        trace.push(of_state, Access::Update);
        trace.push(
            votes_from + phone * VOTES_A_PHONE + u32::from(*count),
            Access::Write,
        );
        trace.push(PHONES_FROM + phone, Access::Write);
        *count += 1;
    }
    trace
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rng;

    const SIZE: Size = Size {
        keys: 100_000,
        accesses: 200_000,
        seed: 1,
    };

    #[test]
    fn subscribers_have_as_many_rows_as_the_specification_says() {
        let rows = Subscribers::new(20_000);
        let of = |salt| {
            (0..20_000)
                .map(|s| rows.types(s, salt).count_ones())
                .sum::<u32>()
        };
        for salt in 0..2 {
            let all = of(salt);
            assert!(
                (49_000..51_000).contains(&all),
                "{all} rows of 20,000 subscribers"
            );
        }
        let forwardings = rows.forwardings.iter().filter(|there| **there).count();
        assert!((73_000..77_000).contains(&forwardings), "{forwardings}");
    }

    #[test]
    fn tatp_reads_most_and_every_table() {
        let trace = tatp(&SIZE, &mut rng(1, 0, 0));
        let count = trace.keys / NUMBERS_A_SUBSCRIBER;
        let mut tables = [0; 4];
        let mut reads = 0;
        for (row, access) in trace.iter() {
            let table = match row / count {
                0 => 0,
                1..5 => 1,
                5..9 => 2,
                _ => 3,
            };
            tables[table] += 1;
            reads += u32::from(access == Access::Read);
        }
        assert!(tables.iter().all(|n| *n > 5000), "{tables:?}");
        let share = f64::from(reads) / trace.len() as f64;
        assert!((0.70..0.85).contains(&share), "{share}");
    }

    #[test]
    fn order_lines_are_read_after_they_were_written() {
        let trace = order_line(&SIZE, &mut rng(1, 0, 0));
        let districts = SIZE.keys / (ORDERS * MEAN_LINES);
        let most = trace.keys / MOST_LINES / districts;
        let mut written = vec![false; trace.keys as usize];
        let mut new = 0;
        for (row, access) in trace.iter() {
            let order = row / MOST_LINES % most;
            let loaded = order < ORDERS;
            match access {
                Access::Write => {
                    assert!(!loaded && !written[row as usize]);
                    written[row as usize] = true;
                    new += 1;
                }
                _ => assert!(loaded || written[row as usize]),
            }
        }
        let share = f64::from(new) / trace.len() as f64;
        assert!((0.2..0.35).contains(&share), "{share}");
    }
    #[test]
    fn a_number_votes_twice_at_most_and_its_count_is_read_once_it_is_there() {
        let trace = voter(&SIZE, &mut rng(1, 0, 0));
        let phones = SIZE.keys / 3;
        let (from, votes_from) = (trace.keys - 3 * phones, trace.keys - 2 * phones);
        let mut count = vec![0; phones as usize];
        let mut voted = vec![false; 2 * phones as usize];
        let mut refused = 0;
        for (row, access) in trace.iter() {
            if row >= votes_from {
                let vote = &mut voted[(row - votes_from) as usize];
                assert!(access == Access::Write && !*vote);
                *vote = true;
            } else if row >= from {
                let count = &mut count[(row - from) as usize];
                match access {
                    Access::Write => *count += 1,
                    _ => assert!(*count > 0),
                }
                refused += u32::from(*count == 2 && access == Access::Read);
            }
        }
        assert!(count.iter().all(|votes| *votes <= 2));
        let votes: u32 = count.iter().sum();
        assert_eq!(votes as usize, voted.iter().filter(|v| **v).count());
        assert!(votes > 25_000 && refused > 1000, "{votes} {refused}");
    }
}
