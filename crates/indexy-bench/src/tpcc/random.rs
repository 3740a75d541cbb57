//! Draws by the specification: the constants of NURand (2.1.6), last names (4.3.2.3).

use super::scale::{DISTRICTS, Scale};
use crate::{application::random::nurand, workload::Rng};
use rand::Rng as _;

pub(crate) use crate::application::random::{Text, alphanumeric, chance, digits};

/// Last names of a district: so many differ.
const NAMES: u32 = 1000;
const NAME_A: u32 = 255;
const CUSTOMER_A: u32 = 1023;
const ITEM_A: u32 = 8191;

/// The constants C of NURand, drawn once per database; that of the last name is another one for the
/// run (2.1.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constants {
    load_name: u32,
    run_name: u32,
    customer: u32,
    item: u32,
}

impl Constants {
    /// The constants of a run seeded with `seed`.
    pub fn new(seed: u64) -> Self {
        /// A phase that no job has.
        const OWN_PHASE: u64 = 1 << 20;
        let mut rng = crate::workload::rng(seed, OWN_PHASE, 0);
        let load_name = rng.random_range(0..=NAME_A);
        let run_name = loop {
            let run_name = rng.random_range(0..=NAME_A);
            if delta_is_valid(load_name, run_name) {
                break run_name;
            }
        };
        Self {
            load_name,
            run_name,
            customer: rng.random_range(0..=CUSTOMER_A),
            item: rng.random_range(0..=ITEM_A),
        }
    }
}

/// 65..=119 apart, but neither 96 nor 112.
fn delta_is_valid(load: u32, run: u32) -> bool {
    let delta = load.abs_diff(run);
    (65..=119).contains(&delta) && delta != 96 && delta != 112
}

/// Draws of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draw {
    pub constants: Constants,
    pub scale: Scale,
}

impl Draw {
    /// A customer of a district.
    pub(crate) fn customer(&self, rng: &mut Rng) -> u32 {
        nurand(
            rng,
            CUSTOMER_A,
            self.constants.customer,
            1,
            self.scale.customers,
        )
    }

    /// An item.
    pub(crate) fn item(&self, rng: &mut Rng) -> u32 {
        nurand(rng, ITEM_A, self.constants.item, 1, self.scale.items)
    }

    /// A last name that some customer of each district has.
    pub(crate) fn last_name(&self, rng: &mut Rng) -> Text<LAST_NAME_BYTES> {
        let names = NAMES.min(self.scale.customers);
        last_name(nurand(rng, NAME_A, self.constants.run_name, 0, names - 1))
    }

    /// The last name of customer `c` when it is loaded: the first ones have one each.
    pub(crate) fn loaded_last_name(&self, c: u32, rng: &mut Rng) -> Text<LAST_NAME_BYTES> {
        let number = if c <= NAMES {
            c - 1
        } else {
            nurand(rng, NAME_A, self.constants.load_name, 0, NAMES - 1)
        };
        last_name(number)
    }

    /// A warehouse.
    pub(crate) fn warehouse(&self, rng: &mut Rng) -> u16 {
        rng.random_range(1..=self.scale.warehouses)
    }

    /// A warehouse other than `home`; `home` if there is no other.
    pub(crate) fn other_warehouse(&self, home: u16, rng: &mut Rng) -> u16 {
        if self.scale.warehouses < 2 {
            return home;
        }
        let other = rng.random_range(1..self.scale.warehouses);
        other + u16::from(other >= home)
    }
}

/// A district.
pub(crate) fn district(rng: &mut Rng) -> u8 {
    rng.random_range(1..=DISTRICTS)
}

/// Three syllables of five letters at most.
pub(crate) const LAST_NAME_BYTES: usize = 15;

/// The last name of `number`, of 0..1000.
fn last_name(number: u32) -> Text<LAST_NAME_BYTES> {
    const SYLLABLES: [&str; 10] = [
        "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
    ];
    let mut name = Text::new();
    for digit in [number / 100, number / 10, number] {
        name.push(SYLLABLES[(digit % 10) as usize].as_bytes());
    }
    name
}

const ORIGINAL: &[u8] = b"ORIGINAL";

impl<const N: usize> Text<N> {
    /// A random text, with one of ten "ORIGINAL" somewhere in it (4.3.3.1).
    pub(crate) fn random_data(rng: &mut Rng, from: usize) -> Self {
        let mut text = Self::random(rng, from);
        if chance(rng, 10) {
            let at = rng.random_range(0..=text.len - ORIGINAL.len());
            text.bytes[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
        }
        text
    }
}

/// True if `data` contains "ORIGINAL".
pub(crate) fn is_original(data: &[u8]) -> bool {
    data.windows(ORIGINAL.len()).any(|w| w == ORIGINAL)
}

/// Four digits and "11111".
pub(crate) fn zip(rng: &mut Rng) -> [u8; 9] {
    let mut zip = *b"000011111";
    zip[..4].copy_from_slice(&digits::<4>(rng));
    zip
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rng;

    #[test]
    fn nurand_stays_in_its_range_and_reaches_its_ends() {
        let mut rng = rng(1, 0, 0);
        for (a, from, to) in [
            (255, 0, 999),
            (1023, 1, 3000),
            (8191, 1, 100_000),
            (1023, 1, 30),
        ] {
            let (mut least, mut most) = (u32::MAX, 0);
            for _ in 0..2_000_000 {
                let n = nurand(&mut rng, a, a / 3, from, to);
                least = least.min(n);
                most = most.max(n);
            }
            assert_eq!((least, most), (from, to));
        }
    }

    #[test]
    fn nurand_is_not_even() {
        let mut rng = rng(1, 0, 0);
        let mut counts = vec![0u32; 3001];
        for _ in 0..3_000_000 {
            counts[nurand(&mut rng, CUSTOMER_A, 77, 1, 3000) as usize] += 1;
        }
        let most = counts.iter().max().copied().unwrap();
        assert!(most > 5000, "1000 is even: {most}");
    }

    #[test]
    fn constants_are_as_far_apart_as_the_specification_wants() {
        for seed in 0..500 {
            let c = Constants::new(seed);
            assert!(
                delta_is_valid(c.load_name, c.run_name) && c.load_name <= 255 && c.run_name <= 255
            );
            assert_eq!(c, Constants::new(seed));
        }
        assert!(delta_is_valid(0, 65) && delta_is_valid(119, 0));
        assert!(!delta_is_valid(0, 64) && !delta_is_valid(0, 96) && !delta_is_valid(200, 88));
    }

    #[test]
    fn names_texts_and_warehouses() {
        assert_eq!(&*last_name(0), b"BARBARBAR");
        assert_eq!(&*last_name(371), b"PRICALLYOUGHT");
        assert_eq!(&*last_name(999), b"EINGEINGEING");
        assert_eq!(last_name(788).len(), LAST_NAME_BYTES);
        let mut rng = rng(1, 0, 0);
        let mut originals = 0;
        for _ in 0..1000 {
            let text = Text::<50>::random_data(&mut rng, 26);
            assert!((26..=50).contains(&text.len()) && text.iter().all(u8::is_ascii_alphanumeric));
            originals += u32::from(is_original(&text));
        }
        assert!((60..140).contains(&originals), "{originals}");
        let draw = |warehouses| Draw {
            constants: Constants::new(1),
            scale: Scale::full(warehouses),
        };
        for _ in 0..100 {
            assert_eq!(draw(1).other_warehouse(1, &mut rng), 1);
            let other = draw(3).other_warehouse(2, &mut rng);
            assert!(other == 1 || other == 3);
        }
    }
}
