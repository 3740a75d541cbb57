//! What reads of keys in memory allocate: what they give out, and of a scan a few small pieces.
//!
//! Alone in its program, because an allocator is that of all of it. Each thread counts its own, so
//! that background threads do not disturb.

use indexy::{Db, IndexXKind, Options, Tree};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};
use tempfile::TempDir;

/// The system's allocator, which counts.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    COUNT.set(COUNT.get() + 1);
}

// SAFETY: every call goes to the system's allocator as it came. To count allocates nothing, and is
// possible as long as a thread lives: the counter is a constant at first and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, bytes) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What this thread allocates while it does `work`, in calls of the allocator.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

const KEYS: u64 = 20_000;
/// No longer than a `Key` or a `Value` holds within itself, and longer.
const SHORT: usize = 20;
const LONG: usize = 100;

/// Key `n`, at a random place of the tree.
fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// A tree that is all in memory.
struct Place {
    tree: Tree,
    value: usize,
    _db: Db,
    _dir: TempDir,
}

impl Place {
    fn new(x: IndexXKind, value: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path(), Options::new(64 << 20).index_x(x)).unwrap();
        let tree = db.tree("t").unwrap();
        for n in 0..KEYS {
            tree.insert(key(n), vec![n as u8; value]).unwrap();
        }
        let place = Self {
            tree,
            value,
            _db: db,
            _dir: dir,
        };
        // What a thread needs once.
        place.tree.get(key(0)).unwrap();
        place.read_ten(0);
        place
    }

    /// The first ten entries from key `n` on, and fewer at the end of the tree.
    fn read_ten(&self, n: u64) {
        for entry in self.tree.range(key(n)..).take(10) {
            let (key, value) = entry.unwrap();
            assert!(key.len() == 8 && value.len() == self.value);
        }
    }
}

const X: [IndexXKind; 2] = [IndexXKind::Art, IndexXKind::BPlus];

#[test]
fn a_value_that_is_lent_allocates_nothing() {
    for x in X {
        let place = Place::new(x, LONG);
        let all = allocations(|| {
            for n in 0..2 * KEYS {
                let len = place.tree.get_with(key(n), <[u8]>::len).unwrap();
                assert_eq!(len, (n < KEYS).then_some(LONG));
            }
        });
        assert_eq!(all, 0, "{x}");
    }
}

#[test]
fn a_get_allocates_what_its_value_needs() {
    for x in X {
        for (len, most) in [(SHORT, 0), (LONG, 1)] {
            let place = Place::new(x, len);
            for n in 0..KEYS {
                let one = allocations(|| {
                    assert_eq!(place.tree.get(key(n)).unwrap().unwrap().len(), len);
                });
                assert!(one <= most, "{x}: {one} for {len} bytes");
            }
        }
    }
}

/// What a scan allocates beside its values, in the mean and at most: where it begins, the path to a
/// leaf, the bounds of the leaf, the entries as the leaf gives them and as the caller gets them,
/// and where it goes on; and for each further leaf its bounds and room for its entries.
const MEAN: u64 = 10;
const MOST: u64 = 18;

#[test]
fn ten_entries_allocate_their_values_and_little_more() {
    for x in X {
        for (len, values) in [(SHORT, 0), (LONG, 10)] {
            let place = Place::new(x, len);
            let (mut all, mut worst) = (0, 0);
            for n in 0..KEYS {
                let one = allocations(|| place.read_ten(n));
                (all, worst) = (all + one, worst.max(one));
            }
            let mean = all as f64 / KEYS as f64;
            println!("{x}, {len} bytes: {mean:.2} allocations in the mean, {worst} at most");
            assert!(mean <= (values + MEAN) as f64, "{x}: {mean}");
            assert!(worst <= values + MOST, "{x}: {worst}");
        }
    }
}
