//! Which database and which tree, and how to open them.

use super::usage::Usage;
use clap::{Args, ValueEnum};
use indexy::{Compression, Durability, IndexXKind, IndexYKind, limits::MAX_TREE_NAME_BYTES};
use indexy_report::size::parse_size;
use std::path::PathBuf;

/// Interval of `--durability buffered`.
const BUFFERED_INTERVAL_MS: u64 = 100;
/// Page size of `--index-y bplus` without a size.
const DEFAULT_PAGE_BYTES: u64 = 4096;
const PAGE_BYTES: [u32; 3] = [4 << 10, 8 << 10, 16 << 10];

/// Which database, and how to open it.
#[derive(Debug, Args)]
pub struct Database {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub path: PathBuf,
    /// Memory budget, for instance 64M [default: a quarter of the memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = DATABASE)]
    pub budget: Option<u64>,
    /// When a write survives a power failure
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "buffered",
        help_heading = DATABASE
    )]
    pub durability: DurabilityArg,
}

impl Database {
    /// Whether there is none yet.
    pub fn is_new(&self) -> bool {
        !self.path.join("MANIFEST").exists()
    }
}

/// Which tree, and what it is made of.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// Name of the tree
    #[arg(
        long,
        value_name = "NAME",
        default_value = "default",
        value_parser = parse_tree_name,
        help_heading = DATABASE
    )]
    pub tree: String,
    /// Index in memory of a new tree: art, bplus, none, radix or radix-leaves
    /// [default: art]
    #[arg(long, value_name = "X", value_parser = parse_index_x, help_heading = DATABASE)]
    pub index_x: Option<IndexXKind>,
    /// Index on disk of a new tree: lsm, rocksdb or bplus:PAGEBYTES
    /// [default: lsm]
    #[arg(long, value_name = "Y", value_parser = parse_index_y, help_heading = DATABASE)]
    pub index_y: Option<IndexYKind>,
    /// How the index on disk stores what is written from now on: none, lz4 or
    /// zstd (if the program was built with it); remembered [default: none]
    #[arg(long, value_name = "C", value_parser = parse_compression, help_heading = DATABASE)]
    pub compression: Option<Compression>,
}

const DATABASE: &str = "Database options";

impl TreeArgs {
    /// Refuses a pair of indexes that does not go together, before anything is made. In a database
    /// that is not `new` the tree may have the other index already.
    pub fn check(&self, new: bool) -> Result<(), Usage> {
        let (x, y) = (self.index_x, self.index_y);
        let needs_places = matches!(x, Some(IndexXKind::Radix | IndexXKind::RadixLeaves));
        let has_places = match y {
            Some(y) => !matches!(y, IndexYKind::Lsm | IndexYKind::RocksDb),
            None => !new,
        };
        match needs_places && !has_places {
            true => Err(Usage(
                "--index-x radix and radix-leaves need --index-y bplus".into(),
            )),
            false => Ok(()),
        }
    }
}

/// `--durability`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DurabilityArg {
    /// No log: what was written since the last flush may be lost
    None,
    /// The log is made durable every 100 ms
    Buffered,
    /// Every write is durable when it returns
    Sync,
}

impl From<DurabilityArg> for Durability {
    fn from(arg: DurabilityArg) -> Self {
        match arg {
            DurabilityArg::None => Self::None,
            DurabilityArg::Buffered => Self::Buffered {
                interval_ms: BUFFERED_INTERVAL_MS,
            },
            DurabilityArg::Sync => Self::Sync,
        }
    }
}

pub(super) fn parse_index_x(text: &str) -> Result<IndexXKind, String> {
    match text {
        "art" => Ok(IndexXKind::Art),
        "bplus" => Ok(IndexXKind::BPlus),
        "none" => Ok(IndexXKind::None),
        "radix" => Ok(IndexXKind::Radix),
        "radix-leaves" => Ok(IndexXKind::RadixLeaves),
        _ => Err("use art, bplus, none, radix or radix-leaves".into()),
    }
}

fn parse_compression(text: &str) -> Result<Compression, String> {
    match text {
        "none" => Ok(Compression::None),
        "lz4" => Ok(Compression::Lz4),
        "zstd" if !cfg!(feature = "zstd") => Err(without("Zstandard", "zstd")),
        "zstd" => Ok(Compression::Zstd),
        _ => Err("none, lz4 or zstd".into()),
    }
}

fn without(what: &str, feature: &str) -> String {
    format!(
        "this program was built without {what}; \
         `cargo install --path crates/indexy-cli --features {feature}` builds one with it"
    )
}

/// A name that a tree may have.
fn parse_tree_name(text: &str) -> Result<String, String> {
    match text.len() {
        1..=MAX_TREE_NAME_BYTES => Ok(text.into()),
        len => Err(format!(
            "a name of {len} bytes: it has 1 to {MAX_TREE_NAME_BYTES} bytes"
        )),
    }
}

pub(super) fn parse_index_y(text: &str) -> Result<IndexYKind, String> {
    match text.split_once(':').unwrap_or((text, "")) {
        ("lsm", "") => Ok(IndexYKind::Lsm),
        ("rocksdb", "") if !cfg!(feature = "rocksdb") => Err(without("RocksDB", "rocksdb")),
        ("rocksdb", "") => Ok(IndexYKind::RocksDb),
        ("bplus", page) => {
            let bytes = if page.is_empty() {
                DEFAULT_PAGE_BYTES
            } else {
                parse_size(page)?
            };
            match u32::try_from(bytes) {
                Ok(page_bytes) if PAGE_BYTES.contains(&page_bytes) => {
                    Ok(IndexYKind::BPlus { page_bytes })
                }
                _ => Err(format!("a page of {page}: it has 4K, 8K or 16K")),
            }
        }
        _ => Err("use lsm, rocksdb or bplus:PAGEBYTES, for instance bplus:4096".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_pairs() {
        assert_eq!(parse_index_x("bplus"), Ok(IndexXKind::BPlus));
        assert_eq!(parse_index_x("none"), Ok(IndexXKind::None));
        for kind in [IndexXKind::Art, IndexXKind::Radix, IndexXKind::RadixLeaves] {
            assert_eq!(parse_index_x(&kind.to_string()), Ok(kind));
        }
        assert!(parse_index_x("rbtree").is_err());
        assert_eq!(parse_index_y("lsm"), Ok(IndexYKind::Lsm));
        assert_eq!(
            parse_index_y("bplus"),
            Ok(IndexYKind::BPlus { page_bytes: 4096 })
        );
        assert_eq!(
            parse_index_y("bplus:16K"),
            Ok(IndexYKind::BPlus { page_bytes: 16384 })
        );
        for wrong in ["", "lsm:1", "bplus:x", "bplus:5000", "bplus:99999999999999"] {
            assert!(parse_index_y(wrong).is_err(), "{wrong}");
        }
        let (rocksdb, zstd) = (parse_index_y("rocksdb"), parse_compression("zstd"));
        assert_eq!(rocksdb.is_ok(), cfg!(feature = "rocksdb"));
        assert_eq!(zstd.is_ok(), cfg!(feature = "zstd"));
    }
}
