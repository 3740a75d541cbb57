//! Which range moves to whom: a pure function of what the owners report.

use super::table::Table;

/// What an owner reports of the time since the last look.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The compute server.
    pub owner: u16,
    /// Operations that it served.
    pub operations: u64,
    /// Keys of some of them, chosen at random.
    pub sampled_keys: Vec<u64>,
}

/// A range that should change hands, ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The lowest key; the owner moves it to the start of a leaf.
    pub low: u64,
    /// The highest key.
    pub high: u64,
    /// Who gives.
    pub from: u16,
    /// Who takes.
    pub to: u16,
}

/// How much busier than the mean an owner must be, as a factor.
const IMBALANCE: f64 = 1.25;
/// Fewer samples say nothing about a range.
const MIN_SAMPLES: usize = 32;

/// The move that evens out the busiest and the idlest owner; `None`: the load is even enough, or
/// one key is all of it.
///
/// The range is cut from the side of the busiest owner's segment that lies nearer to the idlest
/// one's, so that neighbours grow into each other.
pub fn plan(table: &Table, loads: &[Load]) -> Option<Move> {
    let busiest = loads.iter().max_by_key(|load| load.operations)?;
    let idlest = loads.iter().min_by_key(|load| load.operations)?;
    let all: u64 = loads.iter().map(|load| load.operations).sum();
    let mean = all as f64 / loads.len() as f64;
    if busiest.owner == idlest.owner || busiest.operations as f64 <= IMBALANCE * mean {
        return None;
    }
    // The busiest segment of that owner.
    let in_segment = |low: u64, high: u64| {
        let keys = busiest.sampled_keys.iter().copied();
        let mut keys: Vec<u64> = keys.filter(|key| (low..=high).contains(key)).collect();
        keys.sort_unstable();
        keys
    };
    let own = table
        .segments()
        .filter(|segment| segment.2 == busiest.owner);
    let segments = own.map(|(low, high, _)| (low, high, in_segment(low, high)));
    let (low, high, keys) = segments.max_by_key(|segment| segment.2.len())?;
    if keys.len() < MIN_SAMPLES {
        return None;
    }
    let excess = (busiest.operations - idlest.operations) as f64 / 2.0;
    let share = excess / busiest.operations as f64;
    let samples = busiest.sampled_keys.len() as f64;
    let moved = ((samples * share) as usize).clamp(1, keys.len() - 1);
    let is_below = |segment: (u64, u64, u16)| segment.2 == idlest.owner && segment.1 < low;
    let (low, high) = if table.segments().any(is_below) {
        (low, keys[moved].checked_sub(1)?)
    } else {
        (keys[keys.len() - moved], high)
    };
    let whole = table
        .segments()
        .any(|segment| (segment.0, segment.1) == (low, high));
    let this = Move {
        low,
        high,
        from: busiest.owner,
        to: idlest.owner,
    };
    // A whole segment only changes who is busy.
    (!whole && low <= high).then_some(this)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(owner: u16, operations: u64, sampled_keys: Vec<u64>) -> Load {
        Load {
            owner,
            operations,
            sampled_keys,
        }
    }

    fn table() -> Table {
        Table::new(vec![(0, 0), (1000, 1)]).unwrap()
    }

    #[test]
    fn even_load_stays() {
        let loads = [load(0, 120, (0..100).collect()), load(1, 100, vec![])];
        assert_eq!(plan(&table(), &loads), None);
        assert_eq!(plan(&table(), &[]), None);
        assert_eq!(plan(&table(), &loads[..1]), None);
    }

    #[test]
    fn the_busiest_gives_half_of_the_difference_on_the_near_side() {
        let loads = [load(0, 300, (0..100).collect()), load(1, 100, vec![])];
        // 100 of 300 operations: a third of the samples.
        let expected = Move {
            low: 67,
            high: 999,
            from: 0,
            to: 1,
        };
        assert_eq!(plan(&table(), &loads), Some(expected));
        let keys = (1000..1100).collect();
        let loads = [load(0, 100, vec![]), load(1, 300, keys)];
        let expected = Move {
            low: 1000,
            high: 1032,
            from: 1,
            to: 0,
        };
        assert_eq!(plan(&table(), &loads), Some(expected));
    }

    #[test]
    fn one_hot_key_is_not_thrown_around() {
        let loads = [load(0, 100, vec![]), load(1, 900, vec![1000; 100])];
        assert_eq!(plan(&table(), &loads), None);
        let loads = [load(0, 900, vec![0; 100]), load(1, 100, vec![])];
        assert_eq!(plan(&table(), &loads), None);
        let few = [load(0, 900, (0..10).collect()), load(1, 1, vec![])];
        assert_eq!(plan(&table(), &few), None);
    }
}
