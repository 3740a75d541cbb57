//! Reads all of a table and checks what it promises: T1, T2, T3, its counts, its bounds.

use super::{
    PAGE_BYTES,
    far_window::FarWindow,
    file::TableFile,
    filter::{self, hash_of},
    leaves::Leaves,
    meta::TableMeta,
    read::Table,
    walk::LeafWalk,
};
use crate::{
    error::{Error, Result},
    mem::aligned::AlignedBuffer,
    y::{
        page::{
            PageNo, PageSource,
            build::Bound,
            leaf_entries::LeafEntries,
            node::{EntryAt, Node, ValueAt},
        },
        tolerant::Tolerant,
    },
};

/// Bytes of leaves, and of far bytes, that are read at once.
const READ_BYTES: usize = 256 << 10;

impl Table {
    /// Reads everything past the pool, and returns the number of entries, deletes among them.
    /// Errors: `Corrupt` with file and offset, `Io`. Cost: the file is read once, in pieces of up
    /// to 256 KiB.
    pub(crate) fn verify(&self) -> Result<u64> {
        let (file, meta) = (self.file(), self.meta());
        file.check_head(meta.number)?;
        if TableMeta::from_footer(file)? != *meta {
            return Err(file.corrupt(file.pages - 1, "the footer is of another table"));
        }
        let mut check = Check {
            file,
            meta,
            last: None,
            entries: 0,
            deletes: 0,
            far: FarWindow::new(READ_BYTES),
            filter: None,
        };
        let root = (meta.root, meta.height);
        let walk = || LeafWalk::new(file.clone(), root, &[], None);
        let mut leaves = Leaves::new(file.clone(), walk(), READ_BYTES);
        // A second walk has the separators of the leaf that the first one is ahead of.
        let mut separators = walk();
        let mut leaf = LeafEntries::default();
        while let Some(number) = leaves.next()? {
            separators.next()?;
            let node = Node::of_page(leaves.page()).and_then(|node| leaf.read(&node));
            if node.is_none() || leaf.len() == 0 {
                return Err(file.senseless(number));
            }
            let mut lower = check.separator(number, separators.separator()?)?;
            for i in 0..leaf.len() {
                let entry = leaf.get(i, leaves.page());
                let entry = entry.ok_or_else(|| file.senseless(number))?;
                check.entry(number, entry, lower.take())?;
            }
        }
        check.end()?;
        Ok(check.entries)
    }
}

impl Table {
    /// Errors: `FormatVersion`. What is damaged is found by those who need it. Cost: a read of a
    /// page.
    pub(crate) fn check_format(&self) -> Result<()> {
        self.file().check_format(self.meta().number)
    }
}

impl Table {
    /// Tells `found` of every damaged page of the file, and of every place of far bytes; of what is
    /// under a damaged inner page, of that page alone.
    pub(crate) fn find_damage(&self, found: &mut dyn FnMut(Error)) {
        let (file, meta) = (self.file(), self.meta());
        let mut tell = |checked: Result<()>| {
            if let Err(error) = checked {
                found(error);
            }
        };
        tell(file.check_head(meta.number));
        tell(TableMeta::from_footer(file).map(drop));
        let mut page = file.page_buffer();
        for segment in &meta.segments {
            for number in segment.first..segment.first + u64::from(segment.pages) {
                tell(file.read(number, &mut page));
            }
        }
        let tree = Tolerant::new(file, meta.root, meta.height, &[], None);
        tree.holes().for_each(|hole| tell(Err(hole.error)));
    }
}

/// What was seen so far.
struct Check<'t> {
    file: &'t TableFile,
    meta: &'t TableMeta,
    last: Option<Vec<u8>>,
    entries: u64,
    deletes: u64,
    far: FarWindow,
    /// The pages of a segment, with its number.
    filter: Option<(usize, AlignedBuffer)>,
}

impl Check<'_> {
    /// T2: `bound`, which the inner pages have in front of leaf `number`, is behind all that came.
    /// Returns it whole.
    fn separator(&self, number: PageNo, bound: Option<Bound>) -> Result<Option<Vec<u8>>> {
        let whole = bound.map(|bound| bound.whole(&|far| self.file.fetch(far)));
        let whole = whole.transpose()?;
        // Only the first leaf has none in front of it, as nothing is less than the empty key.
        if whole.as_ref() <= self.last.as_ref() && self.last.is_some() {
            return Err(self.file.corrupt(number, "the key in front of the leaf"));
        }
        Ok(whole)
    }

    fn entry(&mut self, page: PageNo, entry: EntryAt<'_>, lower: Option<Vec<u8>>) -> Result<()> {
        let mut key = entry.stub.to_vec();
        if let Some(far) = entry.far_key {
            self.far.load(self.file, far)?;
            key = self.far.present().to_vec();
        }
        if Bound::stub_of(&key, PAGE_BYTES) != entry.stub {
            return Err(self.file.corrupt(page, "a long key begins otherwise"));
        }
        let first = self.last.is_none() && *key != *self.meta.min;
        let above = lower.is_none_or(|lower| lower <= key);
        if self.last.as_ref().is_some_and(|last| *last >= key) || !above || first {
            return Err(self.file.corrupt(page, "keys out of order"));
        }
        self.in_filter(page, &key)?;
        match entry.value {
            ValueAt::Near(_) => {}
            ValueAt::Far(far) => self.far.load(self.file, far)?,
            ValueAt::Deleted => self.deletes += 1,
        }
        self.entries += 1;
        self.last = Some(key);
        Ok(())
    }

    /// T3.
    fn in_filter(&mut self, page: PageNo, key: &[u8]) -> Result<()> {
        let i = filter::segment_of(&self.meta.segments, key);
        let Some(segment) = self.meta.segments.get(i) else {
            return Ok(());
        };
        if self.filter.as_ref().is_none_or(|(there, _)| *there != i) {
            let mut pages = AlignedBuffer::new(segment.pages as usize * PAGE_BYTES);
            self.file.read_run(segment.first, &mut pages)?;
            self.filter = Some((i, pages));
        }
        let hash = hash_of(key);
        let (at, line) = filter::place(hash, segment.pages);
        let at = at as usize * PAGE_BYTES;
        let found = self.filter.as_ref().and_then(|(_, pages)| {
            let page = pages.get(at..at + PAGE_BYTES)?;
            filter::admits(page, line, hash)
        });
        match found {
            Some(true) => Ok(()),
            _ => Err(self.file.corrupt(page, "the filter denies a key")),
        }
    }

    fn end(&self) -> Result<()> {
        let counts = (self.entries, self.deletes) == (self.meta.entries, self.meta.deletes);
        if counts && self.last.as_deref() == Some(&*self.meta.max) {
            return Ok(());
        }
        let what = "the table's counts or its greatest key";
        Err(self.file.corrupt(self.file.pages - 1, what))
    }
}
