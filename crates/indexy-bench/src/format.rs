//! Numbers as people read them, from what is measured as floating point.

use indexy_report::size;
use std::time::Duration;

pub use indexy_report::size::short_number as count;

/// From here on bytes have a unit.
const KIB: f64 = 1024.0;

/// Operations per second: `950/s`, `12.3 k/s`, `4.56 M/s`.
pub fn rate(per_second: f64) -> String {
    format!("{}/s", count(per_second))
}

/// Bytes, also parts of one: `0.25 B`, `1.50 MiB`.
pub fn bytes(n: f64) -> String {
    if n.abs() < KIB {
        format!("{} B", count(n))
    } else {
        size::bytes(n as u64)
    }
}

/// A time given in microseconds: `350 ns`, `12.3 ms`, `4.50 s`.
pub fn micros(us: f64) -> String {
    size::duration(Duration::from_secs_f64(us.max(0.0) / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(rate(4_560_000.0), "4.56 M/s");
        assert_eq!(rate(999_600.0), "1.00 M/s");
        assert_eq!(count(950.0), "950");
        assert_eq!(count(0.25), "0.25");
        assert_eq!(bytes(0.25), "0.25 B");
        assert_eq!(bytes(1_572_864.0), "1.50 MiB");
        assert_eq!(micros(12_345.0), "12.3 ms");
        assert_eq!(micros(0.35), "350 ns");
        assert_eq!(micros(0.0), "0 ns");
    }
}
