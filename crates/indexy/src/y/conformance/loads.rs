//! Sorted loads: seen by nobody before they are published, by everybody afterwards.

use super::store::{Entries, Model, Store, check, del, put, settle, write_both};
use crate::y::{IndexY, SortedLoad};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// `entries` on their way into `y`, written and not published; `None` if it takes no loads.
pub fn loading<'y>(y: &'y dyn IndexY, entries: &Model) -> Option<Box<dyn SortedLoad + 'y>> {
    let mut load = y.begin_load().expect("begin_load")?;
    for (key, value) in entries {
        load.add(key, value).expect("add");
    }
    load.seal().expect("seal");
    Some(load)
}

/// The keys of number `n`, which follow those of number `n - 1`: `count` of them, some long, with
/// values of every size.
pub fn stretch(n: u32, count: u32) -> Model {
    let mut entries = Model::new();
    for i in 0..count {
        let mut key = [n.to_be_bytes(), i.to_be_bytes()].concat();
        if i % 50 == 7 {
            key.extend([3; 700]);
        }
        let len = match i % 97 {
            5 => 0,
            11 => 2000,
            13 if n.is_multiple_of(3) => 70_000,
            _ => (i % 60) as usize,
        };
        entries.insert(key, vec![(i + n) as u8; len]);
    }
    entries
}

/// A load is invisible until it is published, and whole from then on, whatever runs, maintenance
/// and other loads do beside it, and over a reopen. One that is dropped leaves nothing.
pub fn loads_appear_at_once<S: Store>(store: &S) {
    let mut y = store.open();
    let mut model = Model::new();
    let mut rng = StdRng::seed_from_u64(5);
    let mut free: Vec<u32> = (0..12).collect();
    while !free.is_empty() {
        let n = free.swap_remove(rng.random_range(0..free.len()));
        let entries = stretch(n, *[1, 2, 40, 3000].get(n as usize % 4).unwrap_or(&9));
        let beside = stretch(n + 1000, 50);
        {
            let Some(load) = loading(&y, &entries) else {
                return;
            };
            let other = loading(&y, &beside);
            // Keys next to the load, before and behind it, come and go.
            let near = [
                n.to_be_bytes().to_vec(),
                [&n.to_be_bytes()[..], &[9; 9]].concat(),
            ];
            let mut run: Entries = near.iter().map(|key| put(key, &[1; 30])).collect();
            run.push(del(&[0xff; 9]));
            write_both(&y, &mut model, &run);
            if rng.random() {
                y.maintain().unwrap();
            }
            if rng.random() {
                y.make_durable().unwrap();
            }
            check(&y, &model);
            if rng.random_bool(0.2) {
                drop(load);
                free.push(n);
            } else {
                load.publish().unwrap();
                model.extend(entries);
            }
            drop(other);
        }
        check(&y, &model);
        match rng.random_range(0..5) {
            0 => {
                drop(y);
                y = store.open();
            }
            1 => settle(&y),
            2 => {
                let run = model.keys().step_by(3).map(|key| del(key)).collect();
                write_both(&y, &mut model, &run);
            }
            _ => {}
        }
        check(&y, &model);
    }
    settle(&y);
    check(&y, &model);
    drop(y);
    check(&store.open(), &model);
}
