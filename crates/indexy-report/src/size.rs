//! Sizes, counts, rates and durations as people write and read them.
//!
//! Parsing follows `dd`: `K`, `M`, `G`, `T` (also `KiB`, ...) are powers of 1024, `KB`, `MB`,
//! `GB`, `TB` powers of 1000, a bare number is bytes.

use std::time::Duration;

/// Parses `64M`, `1.5GiB`, `500MB`, `65536`. Errors are sentences for clap to show.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let factor = unit_factor(unit.trim())
        .ok_or_else(|| format!("unknown unit {unit:?}: use K, M, G, T (1024) or KB, MB, GB, TB"))?;
    let bytes = if number.contains('.') {
        let n: f64 = number.parse().map_err(|_| not_a_size(text))?;
        (n * factor as f64).round()
    } else {
        let n: u64 = number.parse().map_err(|_| not_a_size(text))?;
        return n
            .checked_mul(factor)
            .ok_or_else(|| format!("{text} is too large"));
    };
    if bytes >= u64::MAX as f64 {
        return Err(format!("{text} is too large"));
    }
    Ok(bytes as u64)
}

fn not_a_size(text: &str) -> String {
    format!("{text:?} is not a size such as 64M or 1.5GiB")
}

fn unit_factor(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let (letter, base): (&str, u64) = match unit.as_str() {
        "" | "b" => return Some(1),
        u if u.ends_with("ib") => (&u[..u.len() - 2], 1024),
        u if u.ends_with('b') => (&u[..u.len() - 1], 1000),
        u => (u, 1024),
    };
    let power = match letter {
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    Some(base.pow(power))
}

/// `1536` -> `1.5 KiB`; three significant digits.
#[must_use]
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{n} B")
    } else {
        format!("{} {}", three_digits(value), UNITS[unit])
    }
}

/// `1234567` -> `1,234,567`.
#[must_use]
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `1 record`, `2 records`.
#[must_use]
pub fn counted(n: u64, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(n))
}

/// `312345.6` -> `312 k`, `0.25` -> `0.25`; three significant digits, powers of 1000.
#[must_use]
pub fn short_number(n: f64) -> String {
    const UNITS: [&str; 5] = ["", " k", " M", " G", " T"];
    let mut value = n;
    let mut unit = 0;
    while value.abs() >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 && value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{}{}", three_digits(value), UNITS[unit])
    }
}

/// Events per second over `elapsed`, as `312 k/s`.
#[must_use]
pub fn rate(n: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-9);
    format!("{}/s", short_number(n as f64 / seconds))
}

/// `650 ns`, `12.0 µs`, `3.20 s`, `2 min 05 s`.
#[must_use]
pub fn duration(d: Duration) -> String {
    let seconds = d.as_secs_f64();
    if seconds < 0.999_5e-6 {
        format!("{} ns", d.as_nanos())
    } else if seconds < 0.999_5e-3 {
        format!("{} µs", three_digits(seconds * 1e6))
    } else if seconds < 0.9995 {
        format!("{} ms", three_digits(seconds * 1e3))
    } else if seconds < 100.0 {
        format!("{} s", three_digits(seconds))
    } else {
        format!("{} min {:02} s", d.as_secs() / 60, d.as_secs() % 60)
    }
}

/// `part` of `whole` in percent, without decimals except close to either end.
#[must_use]
pub fn percent(part: f64, whole: f64) -> String {
    if whole <= 0.0 {
        return "-".into();
    }
    let p = part / whole * 100.0;
    if (p > 0.0 && p < 10.0) || (p > 99.0 && p < 100.0) {
        format!("{p:.1} %")
    } else {
        format!("{p:.0} %")
    }
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_and_without_units() {
        for (text, bytes) in [
            ("0", 0),
            ("65536", 65_536),
            ("64M", 64 << 20),
            ("64m", 64 << 20),
            ("64 MiB", 64 << 20),
            ("64MB", 64_000_000),
            ("1.5G", 3 << 29),
            ("2TiB", 2 << 40),
            ("10b", 10),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn not_sizes() {
        for text in [
            "",
            "M",
            "64X",
            "-1",
            "1.2.3M",
            "64 M B",
            "99999999999T",
            "9e9G",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shown() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1.00 KiB");
        assert_eq!(bytes(64 << 20), "64.0 MiB");
        assert_eq!(bytes(u64::MAX), "16384 PiB");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(123), "123");
        assert_eq!(counted(1, "record"), "1 record");
        assert_eq!(short_number(312_345.6), "312 k");
        assert_eq!(short_number(999_600.0), "1.00 M");
        assert_eq!(short_number(950.0), "950");
        assert_eq!(short_number(0.25), "0.25");
        assert_eq!(duration(Duration::from_millis(3200)), "3.20 s");
        assert_eq!(duration(Duration::from_nanos(650)), "650 ns");
        assert_eq!(duration(Duration::from_nanos(12_000)), "12.0 µs");
        assert_eq!(duration(Duration::from_micros(999_400)), "999 ms");
        assert_eq!(duration(Duration::from_secs(125)), "2 min 05 s");
        assert_eq!(percent(1.0, 3.0), "33 %");
        assert_eq!(percent(1.0, 0.0), "-");
    }
}
