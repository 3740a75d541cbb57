//! Limits of keys, values, names and budgets. They are checked before anything is written.

#![forbid(unsafe_code)]

/// Longest key, in bytes. One less than a `u16` holds, so that the immediate
/// successor of any key (`key ++ 0x00`) still has a length that fits one.
pub const MAX_KEY_BYTES: usize = 65_534;

/// Longest value, in bytes (256 MiB).
pub const MAX_VALUE_BYTES: usize = 256 << 20;

/// Smallest memory budget that a database opens with, in bytes (2 MiB).
pub const MIN_MEMORY_BUDGET_BYTES: usize = 2 << 20;

/// Largest memory budget, in bytes (64 TiB). Caches are never made larger than the memory that the
/// process may use.
pub const MAX_MEMORY_BUDGET_BYTES: usize = 64 << 40;

/// Longest tree name, in bytes of UTF-8.
pub const MAX_TREE_NAME_BYTES: usize = 255;
