//! The driver's locks, and what it knows behind them.
//!
//! One lock per warehouse, one per district and 256 per warehouse for its stock, by item. A
//! transaction takes all of its locks before its first read, in ascending order (warehouses,
//! districts, stock), and frees them after its commit: two-phase locking without deadlocks, which
//! makes the transactions serializable whatever the engine does. A customer belongs to its
//! district's lock. ITEM and what never changes (tax rates, names) need none.
//!
//! Where the engine's transactions isolate, nothing is locked, and nothing known beforehand.

use super::scale::{DISTRICTS, Scale};
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, Ordering::Relaxed},
};

/// Locks for the stock of a warehouse.
const STRIPES: usize = 256;
/// What each customer has paid in a fresh database, in cents; 3000 of them make the 30,000.00 of
/// D_YTD.
pub(super) const PAID: i64 = 1000;

/// What a warehouse's row must hold.
#[derive(Debug)]
pub(crate) struct WarehouseState {
    pub ytd: i64,
}

/// What a district's row must hold, and how many rows of HISTORY belong to it.
#[derive(Debug)]
pub(crate) struct DistrictState {
    pub ytd: i64,
    pub next_order: u32,
}

/// A lock that shares its cache lines with no other.
#[derive(Debug)]
#[repr(align(128))]
struct Seat<T>(Mutex<T>);

impl<T> Seat<T> {
    fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// A panic of another thread has ended the run already.
    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The locks of a database and what the driver knows of it.
#[derive(Debug)]
pub struct State {
    warehouses: Vec<Seat<WarehouseState>>,
    districts: Vec<Seat<DistrictState>>,
    stock: Vec<Mutex<()>>,
    /// The next row of HISTORY of each district: its key is ours to choose.
    next_history: Vec<AtomicU32>,
}

impl State {
    /// What a freshly loaded database of `scale` holds.
    pub fn fresh(scale: Scale) -> Self {
        let warehouses = usize::from(scale.warehouses);
        let (warehouse_ytd, district_ytd) = loaded_ytd(scale);
        let district = || DistrictState {
            ytd: district_ytd,
            next_order: scale.customers + 1,
        };
        let warehouse = || WarehouseState { ytd: warehouse_ytd };
        Self {
            warehouses: (0..warehouses).map(|_| Seat::new(warehouse())).collect(),
            districts: (0..warehouses * usize::from(DISTRICTS))
                .map(|_| Seat::new(district()))
                .collect(),
            stock: (0..warehouses * STRIPES)
                .map(|_| Mutex::default())
                .collect(),
            next_history: (0..warehouses * usize::from(DISTRICTS))
                .map(|_| AtomicU32::new(scale.customers + 1))
                .collect(),
        }
    }

    /// A number for a row of HISTORY of the district that no other row has. One that is not used
    /// leaves a gap.
    pub(crate) fn next_history(&self, w: u16, d: u8) -> u32 {
        self.next_history[Self::district_index(w, d)].fetch_add(1, Relaxed)
    }

    /// Locks warehouse `w`, from 1 on.
    pub(crate) fn warehouse(&self, w: u16) -> MutexGuard<'_, WarehouseState> {
        self.warehouses[usize::from(w) - 1].lock()
    }

    /// Locks district `d` of warehouse `w`, both from 1 on.
    pub(crate) fn district(&self, w: u16, d: u8) -> MutexGuard<'_, DistrictState> {
        self.districts[Self::district_index(w, d)].lock()
    }

    /// Locks two districts, the first of which may be the second; returns the first one's guard and
    /// the other's.
    pub(crate) fn two_districts(
        &self,
        first: (u16, u8),
        second: (u16, u8),
    ) -> (
        MutexGuard<'_, DistrictState>,
        Option<MutexGuard<'_, DistrictState>>,
    ) {
        match first.cmp(&second) {
            std::cmp::Ordering::Equal => (self.district(first.0, first.1), None),
            std::cmp::Ordering::Less => {
                let one = self.district(first.0, first.1);
                (one, Some(self.district(second.0, second.1)))
            }
            std::cmp::Ordering::Greater => {
                let other = self.district(second.0, second.1);
                (self.district(first.0, first.1), Some(other))
            }
        }
    }

    /// Locks the stock rows of `rows`, (warehouse, item) each.
    pub(crate) fn stock(&self, rows: impl Iterator<Item = (u16, u32)>) -> Vec<MutexGuard<'_, ()>> {
        let index = |(w, i): (u16, u32)| (usize::from(w) - 1) * STRIPES + i as usize % STRIPES;
        let mut stripes: Vec<usize> = rows.map(index).collect();
        stripes.sort_unstable();
        stripes.dedup();
        let lock = |s: usize| self.stock[s].lock().unwrap_or_else(PoisonError::into_inner);
        stripes.into_iter().map(lock).collect()
    }

    fn district_index(w: u16, d: u8) -> usize {
        (usize::from(w) - 1) * usize::from(DISTRICTS) + usize::from(d) - 1
    }
}

/// Sums of a fresh database: a warehouse's and a district's.
pub(super) fn loaded_ytd(scale: Scale) -> (i64, i64) {
    let district = PAID * i64::from(scale.customers);
    (district * i64::from(DISTRICTS), district)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn locks_taken_from_both_ends_do_not_deadlock() {
        let state = State::fresh(Scale::full(2));
        thread::scope(|scope| {
            for swapped in [false, true] {
                let state = &state;
                scope.spawn(move || {
                    for i in 0..20_000u32 {
                        let (a, b) = ((1, 3), (2, 3));
                        let (first, second) = if swapped { (b, a) } else { (a, b) };
                        let (mut guard, _other) = state.two_districts(first, second);
                        guard.next_order += 1;
                        let rows = [(1, i), (2, i + 1), (1, i + 256)];
                        let _stock = if swapped {
                            state.stock(rows.into_iter().rev())
                        } else {
                            state.stock(rows.into_iter())
                        };
                    }
                });
            }
        });
        let orders = |w| state.district(w, 3).next_order;
        assert_eq!(orders(1) + orders(2), 2 * 3001 + 40_000);
        assert!(state.two_districts((1, 1), (1, 1)).1.is_none());
    }
}
