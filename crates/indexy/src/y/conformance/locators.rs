//! Reads by locator.

use super::{Model, Store, del, put, write_both};
use crate::y::{GotAt, IndexY, Locator, Reach};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use std::collections::BTreeMap;

/// Locators, with keys that they were given for.
type Known = BTreeMap<Vec<u8>, Vec<Locator>>;

/// Reads `key` by each locator that is known of it, old ones too. Stale ones are forgotten.
fn read_by_all(y: &dyn IndexY, model: &Model, known: &mut Known, key: &[u8]) {
    let Some(locators) = known.get_mut(key) else {
        return;
    };
    let expected = model.get(key).map(|value| &value[..]);
    locators.retain_mut(|locator| match y.get_at(key, locator).unwrap() {
        GotAt::Stale => false,
        GotAt::NotThere => true,
        GotAt::Found(value) => {
            assert!(Some(&*value) == expected, "{key:?}: {}", value.len());
            true
        }
        GotAt::Moved(value, now) => {
            assert!(Some(&*value) == expected, "{key:?}: {}", value.len());
            *locator = now;
            true
        }
    });
}

/// A locator leads to the newest value or is stale, whatever was written, removed and moved since.
pub fn locators_never_lead_to_an_old_value<S: Store>(store: &S) {
    const KEYS: u64 = 2000;
    let mut rng = StdRng::seed_from_u64(8);
    let (mut model, mut known) = (Model::new(), Known::new());
    let mut y = store.open();
    for round in 0u32..80 {
        let mut run = BTreeMap::new();
        let from = rng.random_range(0..KEYS);
        for _ in 0..rng.random_range(1..200) {
            let key = (from + rng.random_range(0..KEYS / 4)) % KEYS;
            let len = *[0usize, 8, 40, 300, 3000, 9000].choose(&mut rng).unwrap();
            let entry = match rng.random_bool(0.2) {
                true => del(&key.to_be_bytes()),
                false => put(&key.to_be_bytes(), &vec![round as u8; len]),
            };
            run.insert(entry.0, entry.1);
        }
        write_both(&y, &mut model, &run.into_iter().collect());
        match rng.random_range(0..10) {
            0 => {
                drop(y);
                y = store.open();
                // Good for one open.
                known.clear();
            }
            1..5 => y.make_durable().unwrap(),
            5..7 => drop(y.maintain().unwrap()),
            7 => drop(y.compact(b"", None).unwrap()),
            _ => {}
        }
        for _ in 0..300 {
            let key = rng.random_range(0..KEYS).to_be_bytes();
            read_by_all(&y, &model, &mut known, &key);
            let reach = *[Reach::Key, Reach::Place].choose(&mut rng).unwrap();
            let located = y.locate(&key, reach).unwrap();
            let expected = model.get(&key[..]).map(|value| &value[..]);
            assert_eq!(located.value.as_deref(), expected);
            let Some((locator, least)) = located.at else {
                continue;
            };
            assert!(least[..] <= key[..]);
            known.entry(key.to_vec()).or_default().push(locator);
            let near = (u64::from_be_bytes(key) + rng.random_range(0..9)).to_be_bytes();
            for key in [&near[..], &least[..]] {
                if reach == Reach::Key {
                    break;
                }
                known.entry(key.to_vec()).or_default().push(locator);
            }
        }
        for key in known.keys().cloned().collect::<Vec<_>>() {
            read_by_all(&y, &model, &mut known, &key);
        }
    }
}
