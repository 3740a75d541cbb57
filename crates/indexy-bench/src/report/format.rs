//! Numbers as people read them.

/// Operations per second: `950/s`, `12.3 k/s`, `4.56 M/s`.
pub fn rate(per_second: f64) -> String {
    format!("{}/s", count(per_second))
}

/// A count: `950`, `12.3 k`, `4.56 M`.
pub fn count(n: f64) -> String {
    let (scaled, unit) = match n.abs() {
        a if a >= 999.5e6 => (n / 1e9, " G"),
        a if a >= 999.5e3 => (n / 1e6, " M"),
        a if a >= 999.5 => (n / 1e3, " k"),
        _ => (n, ""),
    };
    format!("{}{unit}", three_digits(scaled))
}

/// Bytes in binary units: `512 B`, `1.50 MiB`.
pub fn bytes(n: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut n, mut unit) = (n, 0);
    while n.abs() >= 1023.5 && unit + 1 < UNITS.len() {
        n /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(n), UNITS[unit])
}

/// A time given in microseconds: `0.35 us`, `12.3 ms`, `4.5 s`.
pub fn micros(us: f64) -> String {
    match us.abs() {
        a if a >= 999.5e3 => format!("{} s", three_digits(us / 1e6)),
        a if a >= 999.5 => format!("{} ms", three_digits(us / 1e3)),
        _ => format!("{} us", three_digits(us)),
    }
}

/// About three digits, without an exponent.
fn three_digits(n: f64) -> String {
    match n.abs() {
        a if a >= 99.95 || (n.fract() == 0.0 && a >= 1.0) => format!("{n:.0}"),
        a if a >= 9.995 => format!("{n:.1}"),
        0.0 => "0".to_owned(),
        _ => format!("{n:.2}"),
    }
}

/// Bytes from `64MiB`, `1.5g`, `4096`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1u64,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => {
            return Err(format!(
                "{text:?}: a size is a number with B, KiB, MiB, GiB or TiB"
            ));
        }
    };
    let number: f64 = number
        .parse()
        .map_err(|_| format!("{text:?}: a size begins with a number"))?;
    Ok((number * factor as f64) as u64)
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
        assert_eq!(bytes(1_572_864.0), "1.50 MiB");
        assert_eq!(micros(12_345.0), "12.3 ms");
        assert_eq!(micros(0.0), "0 us");
    }

    #[test]
    fn sizes_parse_with_and_without_units() {
        assert_eq!(parse_bytes("64MiB"), Ok(64 << 20));
        assert_eq!(parse_bytes("1.5g"), Ok(3 << 29));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert!(parse_bytes("lots").is_err() && parse_bytes("3 parsec").is_err());
    }
}
