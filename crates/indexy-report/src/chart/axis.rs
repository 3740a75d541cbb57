//! An axis: from values to places, and the places of its marks.

/// Marks of an axis, about.
const TICKS_WANTED: f64 = 6.0;
/// A logarithmic axis over fewer decades has marks within each.
const FEW_DECADES: i32 = 2;

/// Maps a range of values to a range of the picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    pub low: f64,
    pub high: f64,
    /// Place of `low`.
    pub from: f64,
    /// Place of `high`.
    pub to: f64,
    pub log: bool,
    /// Marks are at powers of two.
    pub binary: bool,
}

impl Axis {
    /// The place of a value; values beyond the axis lie at its end.
    pub fn at(&self, value: f64) -> f64 {
        let scale = |v: f64| {
            if self.log {
                v.max(f64::MIN_POSITIVE).log10()
            } else {
                v
            }
        };
        let (low, high) = (scale(self.low), scale(self.high));
        let share = if high > low {
            (scale(value) - low) / (high - low)
        } else {
            0.5
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values within the range.
    pub fn ticks(&self) -> Vec<f64> {
        if self.log {
            let ticks = self.decades();
            if ticks.len() > 1 {
                return ticks;
            }
        }
        let rough = (self.high - self.low) / TICKS_WANTED;
        if rough.is_nan() || rough <= 0.0 {
            return vec![self.low];
        }
        let step = round_step(rough, self.binary);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|i| i as f64 * step).collect()
    }

    fn decades(&self) -> Vec<f64> {
        let first = self.low.max(f64::MIN_POSITIVE).log10().floor() as i32;
        let last = self.high.max(f64::MIN_POSITIVE).log10().ceil() as i32;
        let within: &[f64] = if last - first <= FEW_DECADES {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        (first..=last)
            .flat_map(|e| within.iter().map(move |m| m * 10f64.powi(e)))
            .filter(|v| (self.low..=self.high).contains(v))
            .collect()
    }
}

/// The next of 1, 2, 5 times a power of ten (or a power of two) from `rough` up.
pub(super) fn round_step(rough: f64, binary: bool) -> f64 {
    if binary {
        return rough.log2().ceil().exp2();
    }
    let magnitude = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|s| s * magnitude)
        .find(|s| *s >= rough * 0.999)
        .unwrap_or(rough)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_range() {
        let axis = Axis {
            low: 0.0,
            high: 1060.0,
            from: 0.0,
            to: 1.0,
            log: false,
            binary: false,
        };
        assert_eq!(axis.ticks(), vec![0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        let binary = Axis {
            binary: true,
            ..axis
        };
        assert_eq!(binary.ticks(), vec![0.0, 256.0, 512.0, 768.0, 1024.0]);
        let log = Axis {
            low: 1.0,
            high: 1000.0,
            log: true,
            ..axis
        };
        assert_eq!(log.ticks(), vec![1.0, 10.0, 100.0, 1000.0]);
        let few = Axis { high: 20.0, ..log };
        assert_eq!(few.ticks(), vec![1.0, 2.0, 5.0, 10.0, 20.0]);
        let flat = Axis {
            low: 5.0,
            high: 5.0,
            ..axis
        };
        assert_eq!(flat.ticks(), vec![5.0]);
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(round_step(0.9, false), 1.0);
        assert_eq!(round_step(23.0, false), 50.0);
        assert_eq!(round_step(300.0, true), 512.0);
    }

    #[test]
    fn values_beyond_the_axis_lie_at_its_end() {
        let axis = Axis {
            low: 1.0,
            high: 100.0,
            from: 200.0,
            to: 0.0,
            log: true,
            binary: false,
        };
        assert_eq!(
            (axis.at(10.0), axis.at(0.0), axis.at(1e9)),
            (100.0, 200.0, 0.0)
        );
    }
}
