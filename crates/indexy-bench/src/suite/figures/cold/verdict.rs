//! What became of a claim. Pure.
//!
//! A claim is a ratio, or a range of ratios, of the paper's; what is measured is a ratio of one
//! run. The devices are modelled and the machine is another one, so that a tenth is no difference.

use std::{fmt, ops::RangeInclusive};

/// Two figures that differ by less than this part are the same.
const SAME: f64 = 0.1;

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As much as the paper says, up to a tenth.
    AsClaimed,
    /// What the paper has as better is better here, by less or by more than the paper says.
    DirectionOnly,
    /// It is not, or by less than a tenth.
    NotShown,
    /// The phase was too short for it.
    TooShort,
    /// The design has no such thing.
    CannotBeTested,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AsClaimed => "as claimed",
            Self::DirectionOnly => "direction only",
            Self::NotShown => "not shown",
            Self::TooShort => "too short to tell",
            Self::CannotBeTested => "cannot be tested",
        })
    }
}

/// Of a gain by a factor of `least` or more.
pub(super) fn at_least(measured: Option<f64>, least: f64) -> Verdict {
    match measured {
        None => Verdict::TooShort,
        // A gain that the paper does not put a figure on still has to be one.
        Some(ratio) if ratio >= (least * (1.0 - SAME)).max(1.0 + SAME) => Verdict::AsClaimed,
        Some(ratio) if ratio > 1.0 + SAME => Verdict::DirectionOnly,
        Some(_) => Verdict::NotShown,
    }
}

/// Of a ratio within `claimed`. Direction: on the same side of 1 as all of the range.
pub(super) fn within(measured: Option<f64>, claimed: RangeInclusive<f64>) -> Verdict {
    let Some(ratio) = measured else {
        return Verdict::TooShort;
    };
    let (low, high) = (*claimed.start(), *claimed.end());
    if (low * (1.0 - SAME)..=high * (1.0 + SAME)).contains(&ratio) {
        return Verdict::AsClaimed;
    }
    let more = low > 1.0 && ratio > 1.0 + SAME;
    let less = high < 1.0 && ratio < 1.0 - SAME;
    match more || less {
        true => Verdict::DirectionOnly,
        false => Verdict::NotShown,
    }
}

/// Of two figures that the paper has as equal: they differ by a fifth at most.
pub(super) fn alike(measured: Option<f64>) -> Verdict {
    const ALIKE: RangeInclusive<f64> = 0.89..=1.12;
    within(measured, ALIKE)
}

#[cfg(test)]
mod tests {
    use super::Verdict::*;
    use super::*;

    #[test]
    fn a_gain_is_as_large_as_claimed_smaller_or_none() {
        let of = |ratio| at_least(Some(ratio), 6.0);
        assert_eq!([of(9.0), of(6.0), of(5.4)], [AsClaimed; 3]);
        assert_eq!([of(5.3), of(1.2)], [DirectionOnly; 2]);
        assert_eq!([of(1.1), of(1.0), of(0.2)], [NotShown; 3]);
        assert_eq!(at_least(None, 6.0), TooShort);
    }

    #[test]
    fn a_gain_without_a_figure_is_more_than_noise() {
        let of = |ratio| at_least(Some(ratio), 1.0);
        assert_eq!([of(1.5), of(1.11)], [AsClaimed; 2]);
        assert_eq!([of(1.09), of(0.95)], [NotShown; 2]);
    }

    #[test]
    fn a_range_has_a_direction_where_it_lies_on_one_side() {
        let of = |ratio| within(Some(ratio), 1.92..=4.4);
        assert_eq!([of(1.8), of(3.0), of(4.8)], [AsClaimed; 3]);
        assert_eq!([of(1.2), of(6.0)], [DirectionOnly; 2]);
        assert_eq!([of(1.05), of(0.5)], [NotShown; 2]);
        assert_eq!(within(Some(0.7), 0.4..=0.5), DirectionOnly);
        assert_eq!(within(Some(0.95), 0.4..=0.5), NotShown);
        assert_eq!(within(None, 1.0..=2.0), TooShort);
    }

    #[test]
    fn what_is_alike_differs_by_a_fifth_at_most() {
        let of = |ratio| alike(Some(ratio));
        assert_eq!([of(0.81), of(1.0), of(1.22)], [AsClaimed; 3]);
        assert_eq!([of(0.7), of(1.4)], [NotShown; 2]);
        assert_eq!(alike(None), TooShort);
    }
}
