//! The simulation itself: what survives, what is lost, and when faults strike.

use super::*;

fn file(sim: &Sim, name: &str) -> Arc<dyn StorageFile> {
    let path = Path::new("/d").join(name);
    sim.create(&path).unwrap()
}

#[test]
fn synced_survives_and_unsynced_may_not() {
    let (mut kept, mut lost, mut torn, mut nameless) = (0, 0, 0, 0);
    for seed in 0..400 {
        let sim = Sim::default();
        let a = file(&sim, "a");
        sim.sync_dir(Path::new("/d")).unwrap();
        a.write_at(&[1; 2000], 0).unwrap();
        a.sync().unwrap();
        a.write_at(&[2; 2000], 2000).unwrap();
        file(&sim, "b").sync().unwrap();
        let after = sim.crash(seed).contents();
        let bytes = &after[Path::new("/d/a")];
        assert_eq!(bytes[..2000], [1; 2000]);
        match &bytes[2000..] {
            rest if rest == [2; 2000] => kept += 1,
            [] => lost += 1,
            _ => torn += 1,
        }
        nameless += usize::from(!after.contains_key(Path::new("/d/b")));
    }
    assert!(
        kept > 20 && lost > 20 && torn > 20 && nameless > 20,
        "{kept} {lost} {torn} {nameless}"
    );
}

#[test]
fn a_rename_is_atomic() {
    for seed in 0..200 {
        let sim = Sim::default();
        file(&sim, "new").sync().unwrap();
        sim.sync_dir(Path::new("/d")).unwrap();
        sim.rename(Path::new("/d/new"), Path::new("/d/name"))
            .unwrap();
        assert_eq!(sim.crash(seed).contents().len(), 1);
    }
}

#[test]
fn after_a_failed_sync_the_next_one_lies() {
    let sim = Sim::default();
    let a = file(&sim, "a");
    sim.sync_dir(Path::new("/d")).unwrap();
    a.write_at(b"lost", 0).unwrap();
    sim.fail_at(0, Fault::FailedSync, false);
    a.sync().unwrap_err();
    a.sync().unwrap();
    assert!((0..100).any(|seed| sim.crash(seed).contents()[Path::new("/d/a")].is_empty()));
}

#[test]
fn what_is_written_over_a_lost_change_is_durable_after_the_next_sync() {
    for seed in 0..200 {
        let sim = Sim::default();
        let a = file(&sim, "a");
        sim.sync_dir(Path::new("/d")).unwrap();
        a.write_at(&[1; 3000], 0).unwrap();
        a.set_len(2500).unwrap();
        sim.fail_at(0, Fault::FailedSync, false);
        a.sync().unwrap_err();
        a.write_at(&[2; 1000], 1000).unwrap();
        a.write_at(&[3; 500], 2600).unwrap();
        a.sync().unwrap();
        let bytes = &sim.crash(seed).contents()[Path::new("/d/a")];
        assert_eq!(bytes.len(), 3100);
        assert_eq!(bytes[1000..2000], [2; 1000]);
        assert_eq!(bytes[2600..], [3; 500]);
    }
}

#[test]
fn faults_strike_when_told() {
    let sim = Sim::default();
    let a = file(&sim, "a");
    sim.fail_at(sim.ios() + 2, Fault::ShortFull, false);
    a.write_at(&[1; 1000], 0).unwrap();
    let error = a.write_at(&[2; 1000], 1000).unwrap_err();
    assert!(matches!(error, Error::OutOfSpace { .. }));
    assert!((1000..2000).contains(&a.len().unwrap()));
    a.write_at(&[2; 1000], 1000).unwrap();
    assert_eq!(sim.faults(), 1);
    sim.fail_at(0, Fault::PowerLoss, false);
    a.write_at(&[2; 1000], 1000).unwrap_err();
    a.sync().unwrap_err();
}
