//! What the fuzz targets need to see of the page file; see `crate::fuzzing`.

use super::file::{
    PageFile, extent,
    map::StoredMap,
    superblock::{self, Superblock},
};
use crate::y::page::{
    self, HEADER_BYTES, Header, Kind, PageNo, build, leaf_builder,
    leaf_entries::LeafEntries,
    node::{Far, Node},
};
use crate::{
    error::{Error, Result},
    limits::MAX_VALUE_BYTES,
    storage::StorageFile,
};
use std::{path::Path, sync::Arc};
use xxhash_rust::xxh3::xxh3_64;

const PAGE_BYTES: usize = 4096;
const TREE: u64 = 7;
/// Pages of the map of which a damaged list may speak here.
const END: PageNo = 100_000;

/// A file of what was given, behind room for superblocks. Writes have no effect.
struct Bytes(Vec<u8>);

impl StorageFile for Bytes {
    fn len(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let there = self.0.get(from..).unwrap_or_default();
        let len = there.len().min(buf.len());
        for (to, byte) in buf.iter_mut().zip(there) {
            *to = *byte;
        }
        Ok(len)
    }
    fn write_at(&self, _: &[u8], _: u64) -> Result<()> {
        Ok(())
    }
    fn sync(&self) -> Result<()> {
        Ok(())
    }
    fn set_len(&self, _: u64) -> Result<()> {
        Ok(())
    }
    fn allocate(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn path(&self) -> &Path {
        Path::new("pages")
    }
    fn set_path(&self, _: &Path) {}
}

/// Leaves, an inner page, an extent, a page of a chain, one of the map, and a superblock.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let entry = |i: u32| build::Entry {
        key: build::Bound {
            stub: i.to_be_bytes()[..].into(),
            far: (i == 20).then_some(Far { bytes: 9, first: 4 }),
        },
        value: match i {
            10 => build::Content::Far(Far { bytes: 9, first: 4 }),
            _ => build::Content::Near([7u8; 20][..].into()),
        },
    };
    let mut leaf = vec![0; PAGE_BYTES];
    leaf_builder::leaf(&mut leaf, &(0..40).map(entry).collect::<Vec<_>>());
    let mut fixed = vec![0; PAGE_BYTES];
    leaf_builder::leaf(&mut fixed, &(21..90).map(entry).collect::<Vec<_>>());
    let of_kind = |kind: Kind, link: PageNo| {
        let mut page = vec![0; PAGE_BYTES];
        let header = Header {
            link,
            payload: 16,
            ..Header::of_kind(kind)
        };
        header.write(&mut page);
        page::put(&mut page, HEADER_BYTES, &5u64.to_le_bytes());
        page
    };
    let superblock = Superblock {
        version: superblock::VERSION,
        page_bytes: PAGE_BYTES as u32,
        tree: TREE,
        generation: 1,
        root: 4,
        height: 1,
        entries: 1,
        end: 6,
        map: 5,
        owner: 1,
    };
    let superblock = superblock.encode().get(..88).unwrap_or_default().to_vec();
    let chain = [of_kind(Kind::Overflow, 5), of_kind(Kind::Overflow, 0)].concat();
    let map = [of_kind(Kind::MapList, 0), of_kind(Kind::Map, 0)].concat();
    let extent = of_kind(Kind::Extent, 0);
    vec![leaf, fixed, extent, chain, map, superblock]
}

/// Reads `bytes` as each kind of page, as they are and with checksums that match.
pub(crate) fn decode(bytes: &[u8]) {
    superblock(bytes);
    node(bytes);
    let file = sealed(bytes);
    let first = file.first_page();
    if let Ok((map, bits)) = StoredMap::load(&file, first, END) {
        assert!(map.pages().len() <= 2 * bytes.len());
        assert!(bits.pages().all(|page| page < END));
    }
    for len in [0, 9, 16, 32, MAX_VALUE_BYTES + 1] {
        let far = Far {
            bytes: len as u32,
            first,
        };
        for far in [far, extent::reference(first, len)] {
            if let Ok(found) = extent::read(&file, far) {
                assert_eq!(found.len(), len);
            }
        }
    }
}

fn superblock(bytes: &[u8]) {
    let path = Path::new("pages");
    let _ = Superblock::decode(bytes, path, 0);
    let mut whole = bytes.to_vec();
    if let Some(head) = whole.get(..80) {
        let sum = xxh3_64(head);
        whole.resize(whole.len().max(88), 0);
        page::put(&mut whole, 80, &sum.to_le_bytes());
        if let Ok(found) = Superblock::decode(&whole, path, 0) {
            let again = Superblock::decode(&found.encode(), path, 0);
            assert!(again.is_ok_and(|again| again == found));
        }
    }
}

/// Goes through everything that a node can be asked.
fn node(bytes: &[u8]) {
    let Some(node) = Node::of_page(bytes) else {
        return;
    };
    let fetch = |_| Err(Error::Closed);
    for key in [&b""[..], b"abc", &[0, 0, 0, 9], &[0xff; 40]] {
        let _ = node.search(key, &fetch);
        let _ = node.child_for(key, &fetch);
    }
    for i in 0..=node.keys() {
        let _ = (
            node.child(i),
            node.value(i),
            build::bound(&node, i, &mut Vec::new()),
        );
    }
    let listed = build::entries(&node).map(|entries| entries.len());
    let mut entries = LeafEntries::default();
    let read = entries.read(&node).map(|()| entries.len());
    assert!(!node.is_leaf() || read == listed);
    let _ = build::children(&node, build::Bound::default());
}

/// The pages of `bytes` from the first one on, sealed.
fn sealed(bytes: &[u8]) -> PageFile {
    let empty = PageFile::new(Arc::new(Bytes(Vec::new())), PAGE_BYTES, TREE, 1);
    let first = empty.first_page();
    let mut all = vec![0; first as usize * PAGE_BYTES];
    for (page, number) in bytes.chunks(PAGE_BYTES).zip(first..) {
        let mut whole = page.to_vec();
        whole.resize(PAGE_BYTES, 0);
        empty.seal(number, &mut whole);
        all.extend(whole);
    }
    PageFile::new(Arc::new(Bytes(all)), PAGE_BYTES, TREE, 1)
}
