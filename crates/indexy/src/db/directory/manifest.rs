//! The manifest: which trees there are, what they are made of, where the log starts.
//!
//! One small file, replaced as a whole: written beside, made durable, renamed, directory made
//! durable. The layout is in `docs/formats/manifest.md`. It is durable before a tree's first record
//! is logged; tree numbers are never reused. Threads: the database serializes writers.

#![forbid(unsafe_code)]

use crate::db::kinds::{IndexXKind, IndexYKind};
use crate::{
    error::{Error, Result},
    framework::{expiry, operators::MergeOperator},
    storage::Storage,
    versions::time::Millis,
    y::Compression,
};
use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

const MANIFEST: &str = "MANIFEST";
pub(crate) const MANIFEST_NEXT: &str = "MANIFEST.next";
const MAGIC: &[u8; 8] = b"IndeXYmf";
/// Version of the directory format: of the manifest and of what it names.
/// Version 2 has expiry and merge operators. What needs neither is still written as version 1, for
/// older programs.
pub(crate) const FORMAT_VERSION: u32 = 2;
const FIRST_VERSION: u32 = 1;
/// Magic, version, body length, crc32c of version, length and body.
const HEADER_BYTES: usize = 20;
/// No manifest is longer: a bound for a damaged length.
const MAX_BODY_BYTES: usize = 64 << 20;
/// How long a new manifest that is in force may wait for a descriptor, and between two tries.
const MOST_WANT: Duration = Duration::from_secs(1);
const WANT_POLL: Duration = Duration::from_millis(1);
/// What names and options of trees leave of it, for numbers that grow.
const SPARE_BODY_BYTES: usize = 4 << 10;

/// A tree as the manifest knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TreeEntry {
    pub id: u32,
    pub name: String,
    pub index_x: IndexXKind,
    pub index_y: IndexYKind,
    pub resident: bool,
    /// Absent in manifests from before there was a choice.
    #[serde(default, skip_serializing_if = "Compression::is_none")]
    pub compression: Compression,
    /// Absent where nothing is merged, and in manifests of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeOperator>,
    /// Entries expire, after so many milliseconds unless their writer says otherwise; 0: never.
    /// Absent: no entry expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

impl TreeEntry {
    /// How long an entry lives unless its writer says otherwise; `None`: no entry expires.
    pub(crate) fn ttl(&self) -> Option<Millis> {
        match self.ttl_ms? {
            0 => Some(expiry::NEVER),
            ttl => Some(ttl),
        }
    }
}

/// Contents of the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Random; every log segment repeats it.
    pub database_id: u128,
    /// Next tree number.
    pub next_tree_id: u32,
    pub trees: Vec<TreeEntry>,
    /// Replay starts here: all below is durable in Y.
    pub log_start: u64,
    /// Damage to the log below this is corruption, not a torn tail.
    pub log_durable: u64,
}

impl Manifest {
    pub(crate) fn new(database_id: u128) -> Self {
        Self {
            database_id,
            next_tree_id: 1,
            trees: Vec::new(),
            log_start: 0,
            log_durable: 0,
        }
    }

    pub(crate) fn path(dir: &Path) -> PathBuf {
        dir.join(MANIFEST)
    }

    /// Reads the manifest of `dir`; `None` when there is none.
    ///
    /// Errors: `FormatVersion`, `Corrupt`, `Io`.
    pub(crate) fn read(storage: &dyn Storage, dir: &Path) -> Result<Option<Self>> {
        let path = Self::path(dir);
        if !storage.exists(&path)? {
            return Ok(None);
        }
        decode(&bytes_of(storage, dir)?, &path).map(Some)
    }

    /// Reads what can be read of a damaged database's manifest: `Ok(Err)` says what is damaged.
    ///
    /// Errors: what is no damage. A version that is not known is none where the checksum holds.
    pub(crate) fn salvage(storage: &dyn Storage, dir: &Path) -> Result<Result<Self>> {
        let error = match Self::read(storage, dir) {
            Ok(Some(manifest)) => return Ok(Ok(manifest)),
            Ok(None) => Error::corrupt(Self::path(dir), 0, "the manifest is missing"),
            Err(error) => error,
        };
        let is_whole = match &error {
            Error::Unsupported { .. } => true,
            Error::FormatVersion { .. } => is_whole(&bytes_of(storage, dir)?),
            error => error.is_no_damage(),
        };
        match is_whole {
            true => Err(error),
            false => Ok(Err(error)),
        }
    }

    /// The bytes of the manifest file.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let body = serde_json::to_vec(self).map_err(|e| Error::InvalidOption {
            option: "manifest",
            reason: e.to_string(),
        })?;
        Ok(with_header(self.version(), &body))
    }

    /// Whether it may be written with what was added to its trees: one that is too long could not
    /// be read again.
    ///
    /// Errors: `InvalidOption`.
    pub(crate) fn check_room(&self) -> Result<()> {
        let body_bytes = self.encode()?.len() - HEADER_BYTES;
        if body_bytes <= MAX_BODY_BYTES - SPARE_BODY_BYTES {
            return Ok(());
        }
        Err(Error::InvalidOption {
            option: "tree",
            reason: format!(
                "{} trees and their names need more than the {} MiB of a manifest",
                self.trees.len(),
                MAX_BODY_BYTES >> 20
            ),
        })
    }

    /// As it is, if it has room.
    pub(crate) fn with_room(self) -> Result<Self> {
        self.check_room().map(|()| self)
    }

    /// The oldest version that says all this.
    fn version(&self) -> u32 {
        let newer = |tree: &TreeEntry| tree.ttl_ms.is_some() || tree.merge.is_some();
        match self.trees.iter().any(newer) {
            true => FORMAT_VERSION,
            false => FIRST_VERSION,
        }
    }

    /// Whether both name the same trees and the same log. Numbers that failed attempts to make a
    /// tree have used up in memory do not count.
    pub(crate) fn says_as(&self, other: &Self) -> bool {
        let next_tree_id = other.next_tree_id;
        Self {
            next_tree_id,
            ..self.clone()
        } == *other
    }

    /// Replaces the manifest of `dir` durably.
    pub(crate) fn write(&self, storage: &dyn Storage, dir: &Path) -> Result<()> {
        let next = self.write_beside(storage, dir)?;
        Self::put_in_force(storage, dir, &next)
    }

    /// The first half of [`Manifest::write`]: what is in force has not changed yet. Returns the
    /// path of the new file, which is durable and closed.
    pub(crate) fn write_beside(&self, storage: &dyn Storage, dir: &Path) -> Result<PathBuf> {
        let next = dir.join(MANIFEST_NEXT);
        if storage.exists(&next)? {
            storage.remove(&next)?;
        }
        let file = storage.create(&next)?;
        file.write_at(&self.encode()?, 0)?;
        file.sync()?;
        Ok(next)
    }

    /// The second half: puts the file `next` in force.
    pub(crate) fn put_in_force(storage: &dyn Storage, dir: &Path, next: &Path) -> Result<()> {
        storage.rename(next, &Self::path(dir))?;
        // What is renamed cannot be taken back: for a while it is tried again where the process
        // wants for a descriptor to open the directory. A sync that failed is never tried again.
        let began = Instant::now();
        loop {
            match storage.sync_dir(dir) {
                Err(error) if error.is_transient() && began.elapsed() < MOST_WANT => {
                    std::thread::sleep(WANT_POLL);
                }
                synced => return synced,
            }
        }
    }
}

/// A manifest file with this body.
pub(crate) fn with_header(version: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    let crc = checksum(bytes.get(8..).unwrap_or_default(), body);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// What the file of the manifest holds.
fn bytes_of(storage: &dyn Storage, dir: &Path) -> Result<Vec<u8>> {
    let path = Manifest::path(dir);
    let file = storage.open(&path, false)?;
    let len = usize::try_from(file.len()?).unwrap_or(usize::MAX);
    if len > HEADER_BYTES + MAX_BODY_BYTES {
        return Err(Error::corrupt(&path, 0, "manifest is too long"));
    }
    let mut bytes = vec![0; len];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Whether the checksum holds, whatever version it is of.
fn is_whole(bytes: &[u8]) -> bool {
    let Some((header, body)) = bytes.split_at_checked(HEADER_BYTES) else {
        return false;
    };
    let sum = checksum(header.get(8..16).unwrap_or_default(), body);
    header.get(16..20) == Some(&sum.to_le_bytes()[..])
}

/// Decodes untrusted bytes; never panics.
pub(crate) fn decode(bytes: &[u8], path: &Path) -> Result<Manifest> {
    let corrupt = |offset: usize, what: &str| Error::corrupt(path, offset as u64, what);
    let (header, body) = bytes
        .split_at_checked(HEADER_BYTES)
        .ok_or_else(|| corrupt(0, "manifest is cut short"))?;
    let word = |at: usize| -> u32 {
        header
            .get(at..at + 4)
            .and_then(|b| b.try_into().ok())
            .map_or(0, u32::from_le_bytes)
    };
    if header.get(..8) != Some(&MAGIC[..]) {
        return Err(corrupt(0, "not a manifest of IndeXY"));
    }
    let (version, len, crc) = (word(8), word(12), word(16));
    let known = (FIRST_VERSION..=FORMAT_VERSION).contains(&version);
    // The checksum covers the version, so that a flipped bit is not taken for another format.
    if body.len() != len as usize || checksum(header.get(8..16).unwrap_or(&[]), body) != crc {
        if !known && body.len() == len as usize {
            return Err(Error::FormatVersion {
                path: path.into(),
                found: version,
                supported: FORMAT_VERSION,
            });
        }
        return Err(corrupt(8, "checksum of the manifest does not match"));
    }
    if !known {
        return Err(Error::FormatVersion {
            path: path.into(),
            found: version,
            supported: FORMAT_VERSION,
        });
    }
    serde_json::from_slice(body).map_err(|e| {
        // The checksum holds: what is not understood was written so.
        unknown_kind(body).unwrap_or_else(|| corrupt(HEADER_BYTES, &format!("manifest body: {e}")))
    })
}

/// The error for a tree with an index that a later version may know, if that is what is wrong with
/// `body`.
fn unknown_kind(body: &[u8]) -> Option<Error> {
    #[derive(Deserialize)]
    struct Trees {
        trees: Vec<Pair>,
    }
    #[derive(Deserialize)]
    struct Pair {
        name: String,
        index_x: serde_json::Value,
        index_y: serde_json::Value,
    }
    let known = |kind: &serde_json::Value, is_known: bool| (!is_known).then(|| kind.to_string());
    let manifest: Trees = serde_json::from_slice(body).ok()?;
    manifest.trees.iter().find_map(|tree| {
        let x = known(
            &tree.index_x,
            IndexXKind::deserialize(&tree.index_x).is_ok(),
        );
        let y = known(
            &tree.index_y,
            IndexYKind::deserialize(&tree.index_y).is_ok(),
        );
        let kind = x.or(y)?;
        Some(Error::Unsupported {
            what: format!(
                "tree {:?} with the index {kind}, which this version does not know",
                tree.name
            ),
        })
    })
}

fn checksum(version_and_length: &[u8], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(version_and_length), body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        let mut manifest = Manifest::new(u128::MAX - 7);
        manifest.trees.push(TreeEntry {
            id: 3,
            name: "näme \"quoted\"".into(),
            index_x: IndexXKind::Art,
            index_y: IndexYKind::BPlus { page_bytes: 8192 },
            resident: true,
            compression: Compression::Lz4,
            merge: Some(MergeOperator::Append {
                separator: b",".to_vec(),
                limit: 100,
            }),
            ttl_ms: Some(60_000),
        });
        manifest.log_start = u64::MAX;
        manifest
    }

    #[test]
    fn round_trip() {
        let bytes = sample().encode().unwrap();
        assert_eq!(decode(&bytes, Path::new("m")).unwrap(), sample());
    }

    #[test]
    fn what_could_not_be_read_again_is_not_added() {
        let mut manifest = sample();
        let entry = manifest.trees[0].clone();
        let each = serde_json::to_vec(&entry).unwrap().len();
        manifest.trees = vec![entry; MAX_BODY_BYTES / (each + 1) - 100];
        manifest.check_room().unwrap();
        let bytes = manifest.encode().unwrap();
        assert!(bytes.len() > MAX_BODY_BYTES - 100_000 && bytes.len() < MAX_BODY_BYTES);
        let more = vec![manifest.trees[0].clone(); 100];
        manifest.trees.extend(more);
        let error = manifest.check_room().unwrap_err();
        assert!(matches!(error, Error::InvalidOption { .. }), "{error}");
    }

    fn with_body(body: &str) -> Result<Manifest> {
        decode(&with_header(FIRST_VERSION, body.as_bytes()), Path::new("m"))
    }

    /// As versions before `custom` wrote it, byte for byte.
    const BEFORE_CUSTOM: &str = concat!(
        r#"{"database_id":7,"next_tree_id":4,"trees":["#,
        r#"{"id":1,"name":"a","index_x":"art","index_y":"lsm","resident":false},"#,
        r#"{"id":2,"name":"b","index_x":"bplus","index_y":"rocksdb","resident":true},"#,
        r#"{"id":3,"name":"c","index_x":"art","index_y":{"bplus":{"page_bytes":8192}},"#,
        r#""resident":false}],"log_start":5,"log_durable":6}"#,
    );

    #[test]
    fn old_manifests_are_read_and_written_as_they_were() {
        let manifest = with_body(BEFORE_CUSTOM).unwrap();
        assert_eq!(manifest.trees[1].index_y, IndexYKind::RocksDb);
        let bytes = manifest.encode().unwrap();
        assert_eq!(bytes, with_header(FIRST_VERSION, BEFORE_CUSTOM.as_bytes()));
    }

    #[test]
    fn a_custom_kind_is_kept_by_name() {
        let body = BEFORE_CUSTOM.replace(r#""lsm""#, r#"{"custom":"my-own"}"#);
        let manifest = with_body(&body).unwrap();
        let kind = manifest.trees[0].index_y;
        assert_eq!(kind, IndexYKind::custom("my-own").unwrap());
        let bytes = manifest.encode().unwrap();
        assert_eq!(bytes, with_header(FIRST_VERSION, body.as_bytes()));
    }

    #[test]
    fn a_program_that_knows_no_expiry_refuses_it_and_nothing_else() {
        let mut manifest = with_body(BEFORE_CUSTOM).unwrap();
        let version = |manifest: &Manifest| manifest.encode().unwrap()[8];
        assert_eq!(version(&manifest), 1);
        manifest.trees[1].ttl_ms = Some(0);
        assert_eq!(version(&manifest), 2);
        let bytes = manifest.encode().unwrap();
        assert_eq!(decode(&bytes, Path::new("m")).unwrap(), manifest);
    }

    #[test]
    fn a_kind_of_a_later_version_is_unsupported_and_named() {
        for (from, to) in [
            (r#""lsm""#, r#""cuckoo""#),
            (r#""lsm""#, r#"{"cuckoo":{"slots":4}}"#),
            (r#""bplus","index_y""#, r#""cuckoo","index_y""#),
            // No name that this version could register.
            (r#""lsm""#, r#"{"custom":"Cuckoo Hash"}"#),
        ] {
            let body = BEFORE_CUSTOM.replace(from, to);
            assert_ne!(body, BEFORE_CUSTOM);
            let refused = with_body(&body).unwrap_err();
            assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
            let said = refused.to_string();
            assert!(said.to_lowercase().contains("cuckoo"), "{said}");
        }
        // Anything else that does not hold is damage.
        for (from, to) in [(r#""id":1"#, r#""id":-1"#), ("log_start", "start")] {
            let refused = with_body(&BEFORE_CUSTOM.replace(from, to)).unwrap_err();
            assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = sample().encode().unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&damaged, Path::new("m")).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_cut_is_noticed() {
        let bytes = sample().encode().unwrap();
        for len in 0..bytes.len() {
            assert!(
                decode(&bytes[..len], Path::new("m")).is_err(),
                "length {len}"
            );
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = sample().encode().unwrap();
        bytes[8..12].copy_from_slice(&9u32.to_le_bytes());
        let crc = checksum(&bytes[8..16], &bytes[20..]);
        bytes[16..20].copy_from_slice(&crc.to_le_bytes());
        assert!(matches!(
            decode(&bytes, Path::new("m")),
            Err(Error::FormatVersion { found: 9, .. })
        ));
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)
        ) {
            let _ = decode(&bytes, Path::new("m"));
        }
    }
}
