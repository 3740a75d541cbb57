//! YCSB records: some fields side by side, as one value.
//!
//! A record is the concatenation of its fields. Each field is a checkable value of its own
//! (`values.rs`) with its own version, so that an update of one field can be checked too. Lengths
//! that vary are a function of key and field, where YCSB draws a new one at each write: the
//! distribution is the same, and a reader knows what to expect.

use super::{
    keys::mix,
    properties::{Properties, PropertyError},
    rng::rng,
    values::{Mismatch, Values, version_of},
    zipf::Zipf,
};
use rand::Rng as _;

/// How long fields are.
#[derive(Debug, Clone, Copy)]
pub enum FieldLengths {
    /// All of this many bytes.
    Constant(usize),
    /// Evenly from the first to the second, both included.
    Uniform(usize, usize),
    /// Short ones more often, from the first to the second, both included.
    Zipfian(usize, usize),
}

/// Makes and checks records.
#[derive(Debug, Clone, Copy)]
pub struct Records {
    fields: usize,
    lengths: FieldLengths,
}

/// A shorter field has no room for a version.
const VERSIONED_BYTES: usize = 8;
const LENGTH_EXPONENT: f64 = 0.99;
/// A record must stay well below what every engine takes as one value.
const MAX_RECORD_BYTES: usize = 16 << 20;

impl Records {
    /// Records of `fields` >= 1 fields.
    pub fn new(fields: usize, lengths: FieldLengths) -> Self {
        Self {
            fields: fields.max(1),
            lengths,
        }
    }

    /// As the properties ask for.
    pub fn from_properties(p: &Properties) -> Result<Self, PropertyError> {
        let fields: usize = p.get("fieldcount")?;
        let longest: usize = p.get("fieldlength")?;
        let shortest: usize = p.get("minfieldlength")?;
        if fields == 0 {
            return Err(p.invalid("fieldcount", "at least 1"));
        }
        if fields.saturating_mul(longest) > MAX_RECORD_BYTES {
            return Err(p.invalid("fieldlength", "a record has at most 16 MiB"));
        }
        let lengths = match p.text("fieldlengthdistribution") {
            Some("constant") | None => FieldLengths::Constant(longest),
            Some("uniform") => FieldLengths::Uniform(shortest, longest),
            Some("zipfian") => FieldLengths::Zipfian(shortest, longest),
            Some(_) => {
                return Err(p.invalid(
                    "fieldlengthdistribution",
                    "one of constant, uniform, zipfian",
                ));
            }
        };
        if !matches!(lengths, FieldLengths::Constant(_)) && shortest > longest {
            return Err(p.invalid("minfieldlength", "at most fieldlength"));
        }
        Ok(Self::new(fields, lengths))
    }

    /// Number of fields.
    pub fn fields(&self) -> usize {
        self.fields
    }

    /// Bytes of a record on average, for estimates.
    pub fn average_bytes(&self) -> u64 {
        let field = match self.lengths {
            FieldLengths::Constant(n) => n,
            FieldLengths::Uniform(a, b) | FieldLengths::Zipfian(a, b) => a.midpoint(b),
        };
        (field * self.fields) as u64
    }

    /// Bytes of the longest record.
    pub fn longest_bytes(&self) -> usize {
        use FieldLengths::{Constant, Uniform, Zipfian};
        let (Constant(n) | Uniform(_, n) | Zipfian(_, n)) = self.lengths;
        n * self.fields
    }

    /// Writes version `version` of the record of the key with `seed` into `out`, replacing what is
    /// there.
    pub fn fill(&self, seed: u64, version: u32, out: &mut Vec<u8>) {
        out.clear();
        for field in 0..self.fields {
            let at = out.len();
            out.resize(at + self.length(seed, field), 0);
            Values::fill(field_seed(seed, field), version, &mut out[at..]);
        }
    }

    /// Replaces one field of `record`; false if `record` is not of the right length.
    pub fn fill_field(&self, seed: u64, field: usize, version: u32, record: &mut [u8]) -> bool {
        let at = (0..field).map(|f| self.length(seed, f)).sum::<usize>();
        let Some(slice) = record.get_mut(at..at + self.length(seed, field)) else {
            return false;
        };
        Values::fill(field_seed(seed, field), version, slice);
        true
    }

    /// The version that the first field of `record` carries, if it is one of the key with `seed`
    /// and has room for a version.
    pub fn version(&self, seed: u64, record: &[u8]) -> Option<u32> {
        version_of(field_seed(seed, 0), record.get(..self.length(seed, 0))?)
    }

    /// True if every record is one value with a version of its own.
    pub fn has_versions(&self) -> bool {
        let (FieldLengths::Constant(least)
        | FieldLengths::Uniform(least, _)
        | FieldLengths::Zipfian(least, _)) = self.lengths;
        least >= VERSIONED_BYTES
    }

    /// Checks all fields, or only `field`.
    pub fn check(&self, seed: u64, record: &[u8], field: Option<usize>) -> Result<(), Mismatch> {
        let mut rest = record;
        for index in 0..self.fields {
            let length = self.length(seed, index);
            let Some((bytes, tail)) = rest.split_at_checked(length) else {
                return Err(self.mismatch(seed, record, index));
            };
            let wanted = field.is_none_or(|f| f == index);
            if wanted && version_of(field_seed(seed, index), bytes).is_none() {
                return Err(self.mismatch(seed, record, index));
            }
            rest = tail;
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(self.mismatch(seed, record, self.fields))
        }
    }

    #[cold]
    fn mismatch(&self, seed: u64, record: &[u8], field: usize) -> Mismatch {
        let expected: usize = (0..self.fields).map(|f| self.length(seed, f)).sum();
        Mismatch {
            expected: format!("a record of {expected} bytes"),
            found: format!("{} bytes, wrong from field {field} on", record.len()),
        }
    }

    #[inline]
    fn length(&self, seed: u64, field: usize) -> usize {
        let draw = |a: usize, b: usize, zipf: bool| {
            let mut rng = rng(seed, 0x1e57, field as u64);
            let span = (b - a + 1) as u64;
            let over = if zipf {
                Zipf::new(span, LENGTH_EXPONENT).sample(&mut rng)
            } else {
                rng.random_range(0..span)
            };
            a + over as usize
        };
        match self.lengths {
            FieldLengths::Constant(n) => n,
            FieldLengths::Uniform(a, b) => draw(a, b, false),
            FieldLengths::Zipfian(a, b) => draw(a, b, true),
        }
    }
}

#[inline]
fn field_seed(seed: u64, field: usize) -> u64 {
    if field == 0 {
        seed
    } else {
        seed ^ mix(field as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_every_shape_check_and_catch_a_changed_byte() {
        for lengths in [
            FieldLengths::Constant(20),
            FieldLengths::Uniform(1, 50),
            FieldLengths::Zipfian(3, 90),
        ] {
            let records = Records::new(5, lengths);
            for seed in 0..50 {
                let mut record = Vec::new();
                records.fill(seed, 3, &mut record);
                records.check(seed, &record, None).unwrap();
                assert!(records.fill_field(seed, 2, 9, &mut record));
                records.check(seed, &record, None).unwrap();
                let last = record.len() - 1;
                record[last] ^= 1;
                assert!(records.check(seed, &record, None).is_err());
                records.check(seed, &record, Some(0)).unwrap();
                record.push(0);
                assert!(records.check(seed, &record, Some(0)).is_err());
            }
        }
    }

    #[test]
    fn lengths_stay_within_their_bounds() {
        let records = Records::new(1, FieldLengths::Zipfian(3, 9));
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..2000 {
            let mut record = Vec::new();
            records.fill(seed, 0, &mut record);
            seen.insert(record.len());
        }
        assert_eq!(
            seen.into_iter().collect::<Vec<_>>(),
            (3..=9).collect::<Vec<_>>()
        );
    }

    #[test]
    fn properties_out_of_range_are_named() {
        let mut p = Properties::default();
        p.set_line("fieldlengthdistribution=histogram").unwrap();
        assert!(
            Records::from_properties(&p)
                .unwrap_err()
                .to_string()
                .contains("constant, uniform, zipfian")
        );
        p.set_line("fieldlengthdistribution=uniform").unwrap();
        p.set_line("minfieldlength=200").unwrap();
        assert!(Records::from_properties(&p).is_err());
    }
}
