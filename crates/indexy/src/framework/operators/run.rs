//! What an operator makes of bytes.
//!
//! An operand waits for its value as it is, or, where each fits or does not by itself, as a part
//! with its length before it.

#![forbid(unsafe_code)]

use super::{named::MAX_MERGED_BYTES, own::Merge};
use crate::error::{Error, Result};
use std::sync::Arc;

/// Bytes before each part of what waits.
const LENGTH_BYTES: usize = 4;

/// An operator that can be run.
pub(crate) enum Operator {
    AddU64,
    AddI64,
    Max,
    Append { separator: Vec<u8>, limit: usize },
    Own(Arc<dyn Merge>),
}

/// What a merge makes of a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Value(Vec<u8>),
    /// The value stays as it is, as the operator says.
    Same,
    /// The value stays as it is because it does not suit.
    Refused(String),
}

impl Operator {
    /// `operand` as it waits for its value. `MergeRefused` if it is none.
    pub(crate) fn waiting(&self, key: &[u8], operand: &[u8]) -> Result<Vec<u8>> {
        let refused = |reason| Error::MergeRefused { reason };
        let refuse = |reason| Err(refused(reason));
        let len = operand.len();
        match self {
            Self::AddU64 | Self::AddI64 if len != 8 => {
                return refuse(format!("the operand has {len} bytes instead of 8"));
            }
            Self::Append { limit, .. } if len > *limit => {
                return refuse(format!("the operand has {len} bytes, the limit is {limit}"));
            }
            _ if len > MAX_MERGED_BYTES => {
                return refuse(format!(
                    "the operand has {len} bytes, {MAX_MERGED_BYTES} at most"
                ));
            }
            Self::Own(own) => own.check(key, operand).map_err(refused)?,
            Self::AddU64 | Self::AddI64 | Self::Max | Self::Append { .. } => {}
        }
        Ok(match self.keeps_parts() {
            true => part(operand),
            false => operand.to_vec(),
        })
    }

    /// Whether operands of one key wait one by one.
    fn keeps_parts(&self) -> bool {
        match self {
            Self::AddU64 | Self::AddI64 | Self::Max => false,
            Self::Append { .. } => true,
            Self::Own(own) => !own.is_bounded(),
        }
    }

    /// What waits when `later` comes to `earlier`.
    pub(crate) fn combine(&self, key: &[u8], earlier: &[u8], later: &[u8]) -> Vec<u8> {
        match self {
            Self::AddU64 | Self::AddI64 => self.sum(earlier, later),
            Self::Max => earlier.max(later).to_vec(),
            Self::Own(own) if own.is_bounded() => own.combine(key, earlier, later),
            // Each part fits, or does not, by itself.
            Self::Append { .. } | Self::Own(_) => [earlier, later].concat(),
        }
    }

    /// One part for all of `waiting`. For the log of an older version, which combined operands: it
    /// may have more of them for a key than wait now.
    pub(crate) fn compacted(&self, key: &[u8], waiting: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Own(own) if self.keeps_parts() => {
                let combined = parts(&waiting).map(<[u8]>::to_vec);
                let combined = combined.reduce(|earlier, later| own.combine(key, &earlier, &later));
                combined.map_or(waiting, |combined| part(&combined))
            }
            _ => waiting,
        }
    }

    /// What `waiting` makes of `base`, where values have `most` bytes at most.
    pub(crate) fn merge(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        waiting: &[u8],
        most: usize,
    ) -> Outcome {
        let most = most.min(MAX_MERGED_BYTES);
        let value = match (self, base) {
            (Self::AddU64 | Self::AddI64, Some(base)) if base.len() != 8 => {
                let len = base.len();
                return Outcome::Refused(format!("the value has {len} bytes instead of 8"));
            }
            (Self::AddU64 | Self::AddI64, Some(base)) => self.sum(base, waiting),
            (Self::Max, Some(base)) if base >= waiting => return Outcome::Same,
            (Self::AddU64 | Self::AddI64, None) | (Self::Max, _) => waiting.to_vec(),
            (Self::Append { separator, limit }, base) => {
                return append(base, waiting, separator, most.min(*limit));
            }
            (Self::Own(own), base) if own.is_bounded() => own.merge(key, base, waiting),
            (Self::Own(own), base) => return one_by_one(&**own, key, base, waiting, most),
        };
        fitting(value, most)
    }

    fn sum(&self, a: &[u8], b: &[u8]) -> Vec<u8> {
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_be_bytes);
        let (a, b) = (number(a), number(b));
        let sum = match self {
            Self::AddU64 => a.saturating_add(b),
            _ => a.wrapping_add(b),
        };
        sum.to_be_bytes().to_vec()
    }
}

/// `operand` as one of several parts.
fn part(operand: &[u8]) -> Vec<u8> {
    [&(operand.len() as u32).to_le_bytes(), operand].concat()
}

/// The operands of which `waiting` consists.
fn parts(mut waiting: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (len, tail) = waiting.split_first_chunk::<LENGTH_BYTES>()?;
        let len = (u32::from_le_bytes(*len) as usize).min(tail.len());
        let (part, behind) = tail.split_at(len);
        waiting = behind;
        Some(part)
    })
}

fn fitting(value: Vec<u8>, most: usize) -> Outcome {
    match value.len() {
        len if len > most => {
            Outcome::Refused(format!("the value would have {len} bytes, {most} at most"))
        }
        _ => Outcome::Value(value),
    }
}

/// Merges the parts of `waiting` whose answers fit.
fn one_by_one(
    own: &dyn Merge,
    key: &[u8],
    base: Option<&[u8]>,
    waiting: &[u8],
    most: usize,
) -> Outcome {
    let mut outcome = Outcome::Same;
    for part in parts(waiting) {
        let base = match &outcome {
            Outcome::Value(value) => Some(&value[..]),
            Outcome::Same | Outcome::Refused(_) => base,
        };
        match (fitting(own.merge(key, base, part), most), &outcome) {
            (Outcome::Refused(_), Outcome::Value(_)) => {}
            (made, _) => outcome = made,
        }
    }
    outcome
}

/// Appends the parts of `waiting` that fit.
fn append(base: Option<&[u8]>, waiting: &[u8], separator: &[u8], limit: usize) -> Outcome {
    let (mut value, mut appended) = (base.map(<[u8]>::to_vec), false);
    for part in parts(waiting) {
        let before = value
            .as_ref()
            .map_or(0, |value| value.len() + separator.len());
        if before + part.len() > limit {
            continue;
        }
        appended = true;
        match &mut value {
            Some(value) => {
                value.extend_from_slice(separator);
                value.extend_from_slice(part);
            }
            None => value = Some(part.to_vec()),
        }
    }
    match value {
        Some(value) if appended => Outcome::Value(value),
        _ => Outcome::Refused(format!("the value would be longer than {limit} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::named::MergeOperator, *};
    use rand::{Rng, SeedableRng, rngs::StdRng};

    fn operators() -> Vec<Operator> {
        let append = |separator: &[u8], limit| Operator::Append {
            separator: separator.to_vec(),
            limit,
        };
        vec![
            Operator::AddU64,
            Operator::AddI64,
            Operator::Max,
            append(b",", 20),
            append(b"", 7),
            Operator::Own(Arc::new(Chain { bounded: false })),
            Operator::Own(Arc::new(Chain { bounded: true })),
        ]
    }

    /// Longest value here.
    const MOST: usize = 24;

    /// Operands, one behind the other; if it is bounded, the first bytes of that.
    struct Chain {
        bounded: bool,
    }

    impl Merge for Chain {
        fn name(&self) -> &str {
            "chain"
        }
        fn merge(&self, key: &[u8], base: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
            self.combine(key, base.unwrap_or_default(), operand)
        }
        fn combine(&self, _: &[u8], earlier: &[u8], later: &[u8]) -> Vec<u8> {
            let mut both = [earlier, later].concat();
            if self.bounded {
                both.truncate(MOST);
            }
            both
        }
        fn is_bounded(&self) -> bool {
            self.bounded
        }
    }

    fn merged(operator: &Operator, base: Option<Vec<u8>>, waiting: &[u8]) -> Option<Vec<u8>> {
        match operator.merge(b"k", base.as_deref(), waiting, MOST) {
            Outcome::Value(value) => Some(value),
            Outcome::Same | Outcome::Refused(_) => base,
        }
    }

    /// Whatever the values are, and however operands were put together before they met them.
    #[test]
    fn when_operands_meet_their_value_makes_no_difference() {
        let mut rng = StdRng::seed_from_u64(7);
        for operator in operators() {
            for _ in 0..3000 {
                let mut bytes = |eight: bool| {
                    let len = if eight { 8 } else { rng.random_range(0..12) };
                    (0..len)
                        .map(|_| *[0, 1, 0x7F, 0xFF].get(rng.random_range(0..4)).unwrap())
                        .collect::<Vec<u8>>()
                };
                let eight = matches!(operator, Operator::AddU64 | Operator::AddI64);
                let base = Some(bytes(false)).filter(|b| b.len() != 3);
                let ops: Vec<_> = (0..4)
                    .filter_map(|_| operator.waiting(b"k", &bytes(eight)).ok())
                    .collect();
                let one_by_one = ops
                    .iter()
                    .fold(base.clone(), |v, o| merged(&operator, v, o));
                for split in 0..=ops.len() {
                    let (first, rest) = ops.split_at(split);
                    let value = first
                        .iter()
                        .fold(base.clone(), |v, o| merged(&operator, v, o));
                    let together = rest
                        .iter()
                        .cloned()
                        .reduce(|a, b| operator.combine(b"k", &a, &b));
                    let value = together.map_or(value.clone(), |o| merged(&operator, value, &o));
                    assert_eq!(value, one_by_one);
                }
            }
        }
    }

    /// As older versions had them.
    #[test]
    fn parts_of_one_key_can_become_one() {
        let parts = ["one", "two", "three"].map(str::as_bytes);
        for operator in operators() {
            let waiting = parts.iter().filter_map(|p| operator.waiting(b"k", p).ok());
            let waiting = waiting.reduce(|a, b| operator.combine(b"k", &a, &b));
            let Some(waiting) = waiting else { continue };
            let compacted = operator.compacted(b"k", waiting.clone());
            let are_parts = matches!(&operator, Operator::Own(own) if !own.is_bounded());
            match are_parts {
                true => assert_eq!(compacted, part(b"onetwothree")),
                false => assert_eq!(compacted, waiting),
            }
            let base = Some(b"base".to_vec());
            assert_eq!(
                merged(&operator, base.clone(), &compacted),
                merged(&operator, base, &waiting)
            );
        }
    }

    #[test]
    fn sums_saturate_without_a_sign_and_wrap_with_one() {
        let (max, one) = (u64::MAX.to_be_bytes().to_vec(), 1u64.to_be_bytes());
        assert_eq!(
            merged(&Operator::AddU64, Some(max.clone()), &one),
            Some(max.clone())
        );
        assert_eq!(merged(&Operator::AddI64, Some(max), &one), Some(vec![0; 8]));
    }

    #[test]
    fn operands_and_parameters_that_cannot_be_are_refused() {
        let refused = |operator: &Operator, operand: &[u8]| {
            matches!(
                operator.waiting(b"k", operand),
                Err(Error::MergeRefused { .. })
            )
        };
        assert!(refused(&Operator::AddU64, b"7 bytes"));
        assert!(refused(&Operator::AddI64, b""));
        assert!(refused(&Operator::Max, &vec![0; MAX_MERGED_BYTES + 1]));
        assert!(!refused(&Operator::Max, &vec![0; MAX_MERGED_BYTES]));
        assert!(refused(&operators()[4], b"8 bytes."));
        let append = |separator: &str, limit| MergeOperator::Append {
            separator: separator.into(),
            limit,
        };
        for wrong in [
            append("", 0),
            append("", MAX_MERGED_BYTES + 1),
            append("ab", 2),
        ] {
            assert!(wrong.check().is_err(), "{wrong}");
        }
        assert!(MergeOperator::Own(String::new()).check().is_err());
        assert!(append("ab", 3).check().is_ok());
    }
}
