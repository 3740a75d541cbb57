//! The model under every policy, and by hand.

use super::*;
use crate::{
    policies::{Policy, default_policies},
    workload::rng,
};
use indexy::{Admission, Release};
use rand::Rng as _;

fn settings(bytes: u64) -> Settings {
    Settings {
        bytes,
        entry_bytes: 24,
        region_divisor: None,
        sampled_one_in: replay::SAMPLED_ONE_IN,
        seed: 1,
    }
}

/// What is counted is what is there.
fn check(memory: &Memory) {
    let present = |bit| memory.state.iter().filter(|b| **b & bit != 0).count() as u64;
    assert_eq!(memory.keys, present(PRESENT));
    assert_eq!(memory.dirty, present(DIRTY));
    let sum = |of: fn(&Region) -> u64| memory.regions.iter().map(of).sum::<u64>();
    assert_eq!(
        (sum(|r| r.keys), sum(|r| r.dirty)),
        (memory.keys, memory.dirty)
    );
    assert!(
        memory.live() <= memory.high,
        "{} of {}",
        memory.live(),
        memory.high
    );
}

#[test]
fn memory_stays_within_its_bytes_under_every_policy() {
    let mut random = rng(1, 0, 0);
    let ours = default_policies()
        .into_iter()
        .filter_map(|policy| match policy {
            Policy::Ours(ours) => Some(ours),
            Policy::Peer(_) => None,
        });
    for policy in ours {
        let mut memory = Memory::new(30_000, policy, settings(200_000));
        for round in 0..5 {
            for _ in 0..10_000 {
                let access = match random.random_range(0..4) {
                    0 => Access::Update,
                    1 => Access::Write,
                    _ => Access::Read,
                };
                let key = random.random_range(0..30_000u32);
                memory.access(key, access);
            }
            check(&memory);
            assert!(round == 0 || memory.entries() > 5000, "{}", policy.name());
        }
        assert!(memory.releases() > 0);
    }
}

/// Worked by hand: a thousand keys fit, two are read again, and a release spares these.
#[test]
fn a_release_spares_what_was_read_again_unless_that_is_off() {
    for second_chance in [true, false] {
        let policy = Ours {
            second_chance,
            ..Ours::default()
        };
        let mut memory = Memory::new(5000, policy, settings(48_000));
        let room = memory.high / 24;
        (0..room as u32).for_each(|key| {
            memory.access(key, Access::Read);
        });
        assert!(memory.access(0, Access::Read) && memory.access(1, Access::Read));
        assert_eq!(memory.releases(), 0);
        memory.access(4000, Access::Read);
        assert_eq!(memory.releases(), 1);
        // One region of keys 0.. goes first: nothing was sampled.
        assert_eq!(memory.access(0, Access::Pass), second_chance);
        assert!(!memory.access(2, Access::Pass), "its neighbours went");
    }
}

#[test]
fn what_is_not_admitted_does_not_come_in() {
    let ours = |admission| Ours {
        admission,
        ..Ours::default()
    };
    let mut never = Memory::new(100, ours(Admission::Never), settings(48_000));
    for access in [Access::Read, Access::Update, Access::Read] {
        let hit = never.access(1, access);
        // A write brings it in.
        assert_eq!(hit, never.loaded() == 1 && never.now == 3);
    }
    let top = Ours {
        release: Release::Coldest,
        ..ours(Admission::Top { percent: 5 })
    };
    let less = Memory::new(100, top, settings(10 << 20));
    let all = Memory::new(100, Ours::default(), settings(10 << 20));
    assert!(less.high < all.high, "counts of misses take their bytes");
}

#[test]
fn a_release_waits_for_what_is_dirty() {
    for precleaning in [
        Precleaning::CheckBack,
        Precleaning::Oldest,
        Precleaning::Off,
    ] {
        let policy = Ours {
            precleaning,
            ..Ours::default()
        };
        let mut memory = Memory::new(20_000, policy, settings(200_000));
        (0..20_000).for_each(|key| {
            memory.access(key, Access::Write);
        });
        check(&memory);
        assert!(memory.cleaner.runs > 0, "{precleaning:?}");
    }
}
