//! Measurements of many sensors, several times larger than the memory they get: ranges of one
//! sensor, its newest value, and the removal of what is too old.
//!
//!     cargo run --release -p indexy --example time_series

use indexy::{Db, Options, Result, Tree};

const SENSORS: u16 = 100;
const SECONDS: u64 = 4_000;
const BUDGET_BYTES: usize = 4 << 20;

/// Sensor first, then time, both big-endian: a sensor's measurements stand together, in order.
fn key(sensor: u16, second: u64) -> [u8; 10] {
    let mut key = [0; 10];
    key[..2].copy_from_slice(&sensor.to_be_bytes());
    key[2..].copy_from_slice(&second.to_be_bytes());
    key
}

fn second(key: &[u8]) -> u64 {
    key[2..].try_into().map_or(0, u64::from_be_bytes)
}

fn reading(value: &[u8]) -> f64 {
    value[..8].try_into().map_or(0.0, f64::from_be_bytes)
}

/// The mean from second `from` up to `to`.
fn mean(series: &Tree, sensor: u16, from: u64, to: u64) -> Result<f64> {
    let (mut sum, mut n) = (0.0, 0);
    for entry in series.range(key(sensor, from)..key(sensor, to)) {
        sum += reading(&entry?.1);
        n += 1;
    }
    Ok(sum / f64::from(n.max(1)))
}

/// When a sensor was last heard of, and what it said: a scan from the end reads one entry.
fn newest(series: &Tree, sensor: u16) -> Result<Option<(u64, f64)>> {
    let last = series
        .prefix(sensor.to_be_bytes())
        .next_back()
        .transpose()?;
    Ok(last.map(|(key, value)| (second(&key), reading(&value))))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let db = Db::open(dir.path(), Options::new(BUDGET_BYTES))?;
    let series = db.tree("temperature")?;

    for second in 0..SECONDS {
        for sensor in 0..SENSORS {
            let celsius = 20.0 + f64::from(sensor) / 10.0 + (second as f64 / 600.0).sin();
            let mut value = [0; 32]; // the reading, and 24 bytes for what else a sensor says
            value[..8].copy_from_slice(&celsius.to_be_bytes());
            series.insert(key(sensor, second), value)?;
        }
    }
    let stats = db.stats();
    println!(
        "{} measurements, {:.1} MiB of keys and values with a budget of {} MiB; in use: {:.1} MiB",
        SECONDS * u64::from(SENSORS),
        (SECONDS * u64::from(SENSORS) * 42) as f64 / f64::from(1 << 20),
        BUDGET_BYTES >> 20,
        stats.memory_used_bytes as f64 / f64::from(1 << 20),
    );

    println!(
        "sensor 7, second 600 to 1200: {:.3} degrees",
        mean(&series, 7, 600, 1200)?
    );
    println!("sensor 42 at last: {:?}", newest(&series, 42)?);
    assert_eq!(
        newest(&series, 42)?.map(|(second, _)| second),
        Some(SECONDS - 1)
    );

    // What is older than the last 1,000 seconds goes, sensor by sensor.
    let keep_from = SECONDS - 1_000;
    for sensor in 0..SENSORS {
        series.remove_range(key(sensor, 0)..key(sensor, keep_from))?;
    }
    assert_eq!(series.len()?, 1_000 * u64::from(SENSORS));
    println!("{} measurements are kept", series.len()?);
    db.close()?;
    Ok(())
}
