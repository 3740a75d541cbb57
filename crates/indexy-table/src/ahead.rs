//! How many rows a scan looks up at once.
//!
//! A policy: more with each chunk while rows are small, few while they are large. The sizes of rows
//! to come are guessed from those that were read.

/// Rows in the largest chunk.
const MOST_ROWS: usize = 128;
/// Each chunk has so many times the rows of the one before, at most.
const GROWTH: usize = 8;
/// Bytes of a chunk, if no row is larger than those before.
pub(crate) const AHEAD_BYTES: usize = 1 << 20;

/// See the module header. The first chunk has one row: a caller who takes one pays for one.
#[derive(Debug)]
pub(crate) struct Ahead {
    rows: usize,
    /// The largest row; those from earlier chunks count less and less.
    row_bytes: usize,
}

impl Ahead {
    pub(crate) fn new() -> Self {
        Self {
            rows: 1,
            row_bytes: 0,
        }
    }

    /// Rows of the next chunk, 1 at least.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The chunk was read, and its largest row has `largest` bytes.
    pub(crate) fn saw(&mut self, largest: usize) {
        // One large row must not make the rest of a long scan slow.
        self.row_bytes = largest.max(self.row_bytes / 2);
        let fit = AHEAD_BYTES / self.row_bytes.max(1);
        self.rows = (GROWTH * self.rows).min(MOST_ROWS).min(fit).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_rows_make_larger_chunks_and_large_rows_small_ones() {
        let mut ahead = Ahead::new();
        let mut chunk = |largest| {
            ahead.saw(largest);
            ahead.rows()
        };
        assert_eq!([chunk(100), chunk(100), chunk(100)], [8, 64, 128]);
        assert_eq!([chunk(6 << 20), chunk(6 << 20)], [1, 1]);
        // Small again.
        let after: Vec<usize> = (0..12).map(|_| chunk(100)).collect();
        assert!(
            after.is_sorted() && after[0] == 1 && after[11] == 128,
            "{after:?}"
        );
    }
}
