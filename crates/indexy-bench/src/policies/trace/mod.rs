//! What is accessed: made by name and seed, or read from a file.
//!
//! Keys are numbers in the order of the keys that they stand for, from 0 on, without large gaps.
//! The popular keys of most traces are *spread* over all of them, as hashed keys are; in
//! `side-0.99` they lie side by side.

mod file;
mod sequence;
mod tables;

pub use file::{TraceError, read_file};
pub use sequence::{Access, Size, Trace};

use crate::workload::{Pick, Rng, rng};
use rand::Rng as _;

/// The exponent where nothing else is said: YCSB's.
const EXPONENT: f64 = 0.99;

/// The traces by name, with what they are. A name that begins with `zipf-` ends in its exponent.
pub const TRACES: [(&str, &str); 12] = [
    ("zipf-0.5", "reads by zipf 0.5, popular keys spread"),
    ("zipf-0.7", "reads by zipf 0.7, popular keys spread"),
    ("zipf-0.99", "reads by zipf 0.99, popular keys spread"),
    ("zipf-1.2", "reads by zipf 1.2, popular keys spread"),
    ("zipf-1.5", "reads by zipf 1.5, popular keys spread"),
    ("side-0.99", "reads by zipf 0.99, popular keys side by side"),
    (
        "shift",
        "side-0.99, and other keys become popular, four times",
    ),
    (
        "loop",
        "side-0.99, and two passes of single reads over all keys",
    ),
    ("mixed", "zipf-0.99 with 5 % updates and 5 % blind writes"),
    ("tatp", "rows of TATP's four tables, standard mix"),
    ("order-line", "rows of TPC-C's ORDER-LINE, standard mix"),
    ("voter", "rows of Voter's five tables, from few numbers"),
];

/// The trace `name` at that size; none if there is no such name.
pub fn make(name: &str, size: &Size) -> Option<Trace> {
    TRACES.iter().find(|(known, _)| *known == name)?;
    let mut rng = rng(size.seed, 0, 0);
    Some(match name {
        "tatp" => tables::tatp(size, &mut rng),
        "order-line" => tables::order_line(size, &mut rng),
        "voter" => tables::voter(size, &mut rng),
        "side-0.99" => zipf(name, EXPONENT, false, size, &mut rng),
        "shift" => shift(size, &mut rng),
        "loop" => passes(size, &mut rng),
        "mixed" => mixed(size, &mut rng),
        _ => {
            let exponent = name.strip_prefix("zipf-").and_then(|e| e.parse().ok());
            zipf(name, exponent.unwrap_or(EXPONENT), true, size, &mut rng)
        }
    })
}

fn pick(size: &Size, exponent: f64, scattered: bool, rotate: u64) -> Pick {
    Pick::Zipf {
        keys: size.keys.into(),
        exponent,
        scattered,
        rotate,
    }
}

fn zipf(name: &str, exponent: f64, scattered: bool, size: &Size, rng: &mut Rng) -> Trace {
    let mut trace = Trace::new(name, size.keys);
    let chooser = pick(size, exponent, scattered, 0).chooser();
    for _ in 0..size.accesses {
        trace.push(chooser.next(rng) as u32, Access::Read);
    }
    trace
}

/// Phases of [`shift`], each with its own popular keys.
const SHIFTS: u32 = 4;

fn shift(size: &Size, rng: &mut Rng) -> Trace {
    let mut trace = Trace::new("shift", size.keys);
    for phase in 0..SHIFTS {
        let rotate = u64::from(size.keys) * u64::from(phase) / u64::from(SHIFTS);
        let chooser = pick(size, EXPONENT, false, rotate).chooser();
        for _ in 0..size.accesses / SHIFTS {
            trace.push(chooser.next(rng) as u32, Access::Read);
        }
    }
    trace
}

/// After 3/8 and 5/8 of the reads, each key once, in order.
fn passes(size: &Size, rng: &mut Rng) -> Trace {
    let mut trace = Trace::new("loop", size.keys);
    let chooser = pick(size, EXPONENT, false, 0).chooser();
    for eighth in 0..8 {
        if eighth == 3 || eighth == 5 {
            (0..size.keys).for_each(|key| trace.push(key, Access::Pass));
        }
        for _ in 0..size.accesses / 8 {
            trace.push(chooser.next(rng) as u32, Access::Read);
        }
    }
    trace
}

fn mixed(size: &Size, rng: &mut Rng) -> Trace {
    let mut trace = Trace::new("mixed", size.keys);
    let chooser = pick(size, EXPONENT, true, 0).chooser();
    for _ in 0..size.accesses {
        let access = match rng.random_range(0..100) {
            0..5 => Access::Update,
            5..10 => Access::Write,
            _ => Access::Read,
        };
        trace.push(chooser.next(rng) as u32, access);
    }
    trace
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size {
        keys: 20_000,
        accesses: 80_000,
        seed: 3,
    };

    fn words(trace: &Trace) -> Vec<(u32, Access)> {
        trace.iter().collect()
    }

    #[test]
    fn a_seed_makes_the_same_trace_and_another_one_another() {
        for (name, _) in TRACES {
            let trace = make(name, &SIZE).unwrap();
            assert_eq!(trace.name, name);
            assert!(trace.iter().all(|(key, _)| key < trace.keys), "{name}");
            let about = SIZE.accesses as usize;
            assert!(
                (about * 9 / 10..=about * 3 / 2).contains(&trace.len()),
                "{name}"
            );
            assert_eq!(words(&trace), words(&make(name, &SIZE).unwrap()));
            let other = Size { seed: 4, ..SIZE };
            assert_ne!(words(&trace), words(&make(name, &other).unwrap()));
        }
        assert!(make("zipf-9", &SIZE).is_none());
    }

    #[test]
    fn a_pass_reads_each_key_once_in_order() {
        let trace = make("loop", &SIZE).unwrap();
        let passed: Vec<u32> = trace
            .iter()
            .filter(|a| a.1 == Access::Pass)
            .map(|a| a.0)
            .collect();
        let twice: Vec<u32> = (0..SIZE.keys).chain(0..SIZE.keys).collect();
        assert_eq!(passed, twice);
    }

    #[test]
    fn what_is_popular_shifts_and_is_spread_or_not() {
        let top = |accesses: &mut dyn Iterator<Item = (u32, Access)>| {
            let mut counts = vec![0; SIZE.keys as usize];
            accesses.for_each(|(key, _)| counts[key as usize] += 1);
            (0..SIZE.keys)
                .max_by_key(|&key| counts[key as usize])
                .unwrap()
        };
        let shift = make("shift", &SIZE).unwrap();
        let quarter = shift.len() / 4;
        for phase in 0..4 {
            let part = &mut shift.iter().skip(phase * quarter).take(quarter);
            assert_eq!(top(part), SIZE.keys / 4 * phase as u32);
        }
        let within = |name: &str| {
            let trace = make(name, &SIZE).unwrap();
            trace
                .iter()
                .filter(|(key, _)| *key < SIZE.keys / 10)
                .count()
                * 10
                / trace.len()
        };
        assert!(within("side-0.99") >= 6 && within("zipf-0.99") <= 3);
    }
}
