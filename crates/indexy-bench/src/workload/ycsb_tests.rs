use super::*;
use crate::workload::{builtin_names, builtin_text, fnv64, rng};
use std::collections::HashMap;

fn workload(name: &str, more: &[&str]) -> Result<Workload, PropertyError> {
    let mut p = Properties::default();
    p.read(builtin_text(name).unwrap()).unwrap();
    for line in more {
        p.set_line(line)?;
    }
    Workload::from_properties(&p)
}

#[test]
fn every_builtin_workload_parses() {
    for name in builtin_names() {
        workload(name, &[]).unwrap();
    }
    assert!(builtin_text("A").is_some() && builtin_text("nope").is_none());
}

/// The comparison that it is from: nine reads for one update, of tuples of 1 KiB.
#[test]
fn workload_t_reads_nine_times_of_ten_and_has_tuples_of_1_kib() {
    let w = workload("t", &[]).unwrap();
    for (operation, _) in OPERATIONS {
        let share = match operation {
            Operation::Read => 0.9,
            Operation::Update => 0.1,
            _ => 0.0,
        };
        let found = w.share(operation);
        assert!((found - share).abs() < 1e-9, "{operation:?}: {found}");
    }
    assert_eq!((w.records.fields(), w.records.longest_bytes()), (1, 1024));
    assert_eq!(w.records.average_bytes(), 1024);
    assert!(w.writes_whole_records());
}

#[test]
fn operations_come_in_their_shares() {
    let w = workload("x", &[]).unwrap();
    let client = w.client();
    let mut rng = rng(1, 0, 0);
    let mut counts: HashMap<_, u32> = HashMap::new();
    for _ in 0..100_000 {
        *counts
            .entry(format!("{:?}", client.operation(&mut rng)))
            .or_default() += 1;
    }
    let deletes = counts["Delete"];
    assert!((9_500..10_500).contains(&deletes), "{deletes}");
    assert_eq!(counts.len(), 2);
}

#[test]
fn records_are_always_ones_that_were_inserted() {
    for distribution in [
        "uniform",
        "zipfian",
        "latest",
        "hotspot",
        "exponential",
        "sequential",
    ] {
        let request = format!("requestdistribution={distribution}");
        let w = workload("d", &["recordcount=500", "operationcount=4000", &request]).unwrap();
        let shared = Shared::new(500);
        let mut client = w.client();
        let mut rng = rng(2, 0, 0);
        for _ in 0..2000 {
            assert!(
                client.record(&shared, &mut rng) < shared.inserted.limit(),
                "{distribution}"
            );
            if client.operation(&mut rng) == Operation::Insert {
                shared.inserted.acknowledge(shared.inserted.take());
            }
        }
        assert!(shared.inserted.limit() > 500);
    }
}

#[test]
fn keys_have_ycsbs_form() {
    let mut key = Vec::new();
    workload("a", &["insertorder=ordered", "zeropadding=6"])
        .unwrap()
        .keys
        .write(42, &mut key);
    assert_eq!(key, b"user000042");
    workload("a", &[]).unwrap().keys.write(0, &mut key);
    assert_eq!(key, format!("user{}", fnv64(0)).as_bytes());
    workload("a", &["keyformat=u64", "insertorder=ordered"])
        .unwrap()
        .keys
        .write(1, &mut key);
    assert_eq!(key, 1u64.to_be_bytes());
}

#[test]
fn scan_lengths_stay_within_bounds() {
    for distribution in ["uniform", "zipfian"] {
        let lengths = format!("scanlengthdistribution={distribution}");
        let w = workload("e", &["minscanlength=2", "maxscanlength=9", &lengths]).unwrap();
        let client = w.client();
        let mut rng = rng(3, 0, 0);
        assert!((0..1000).all(|_| (2..=9).contains(&client.scan_length(&mut rng))));
    }
}

#[test]
fn values_out_of_range_are_refused_by_name() {
    for (line, says) in [
        ("requestdistribution=gaussian", "uniform, zipfian, latest"),
        ("readproportion=-1", "at least 0"),
        ("insertorder=random", "hashed or ordered"),
        ("minscanlength=0", "minscanlength"),
        ("recordcount=0", "recordcount"),
        ("insertcount=1001", "within recordcount"),
        ("threadcount=0", "1 to 1024"),
        ("hotspotdatafraction=2", "0 to 1"),
    ] {
        let message = workload("a", &[line]).unwrap_err().to_string();
        assert!(message.contains(says), "{line}: {message}");
    }
}
