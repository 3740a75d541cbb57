//! The file of a hot set: written beside and renamed, read block by block.
//!
//! Threads: one writer at a time (`keeper.rs`). Who reads has the file open: it is replaced by a
//! rename, so what was opened stays as it was.
//! What a writer leaves when it fails goes with it, or with the next one.

#![forbid(unsafe_code)]

use super::format::{
    BLOCK_HEADER_BYTES, BlockBuilder, BlockHeader, HEADER_BYTES, Kind, MAX_PAYLOAD_BYTES,
    Malformed, Totals, check_header, decode_totals, encode_header,
};
use crate::{
    db::directory::{HOT, HOT_NEXT},
    error::{Error, Result},
    framework::hot::{HotKey, TIERS},
    storage::{Storage, StorageFile},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Where the hot set of the database in `dir` is.
pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(HOT)
}

/// A file under way. Dropped before [`Writer::finish`], it is removed.
pub(super) struct Writer<'a> {
    storage: &'a dyn Storage,
    dir: &'a Path,
    next: PathBuf,
    file: Arc<dyn StorageFile>,
    database_id: u128,
    offset: u64,
    totals: Totals,
    tiers: [BlockBuilder; TIERS],
    finished: bool,
}

impl<'a> Writer<'a> {
    /// Memory that a writer takes.
    pub(super) const BYTES: usize = TIERS * (BLOCK_HEADER_BYTES + MAX_PAYLOAD_BYTES);

    /// Begins a new file beside the one that is in force.
    pub(super) fn begin(
        storage: &'a dyn Storage,
        dir: &'a Path,
        database_id: u128,
    ) -> Result<Self> {
        let next = dir.join(HOT_NEXT);
        if storage.exists(&next)? {
            storage.remove(&next)?;
        }
        let file = storage.create(&next)?;
        let mut writer = Self {
            storage,
            dir,
            next,
            file,
            database_id,
            offset: 0,
            totals: Totals::default(),
            tiers: std::array::from_fn(|tier| BlockBuilder::new(Kind::Tier(tier))),
            finished: false,
        };
        writer.write(&encode_header(database_id))?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(bytes, self.offset)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Bytes written so far.
    pub(super) fn bytes(&self) -> u64 {
        self.offset
    }

    /// Adds an entry of `tree`. Entries of one tree come in runs, each in ascending order.
    pub(super) fn push(&mut self, tree: u32, entry: &HotKey<'_>) -> Result<()> {
        let at = entry.tier.min(TIERS - 1);
        if self.tiers[at].tree != tree {
            self.end_block(at)?;
            self.tiers[at].tree = tree;
        }
        match self.tiers[at].push(entry) {
            true => self.end_block(at),
            false => Ok(()),
        }
    }

    fn end_block(&mut self, tier: usize) -> Result<()> {
        let block = &mut self.tiers[tier];
        let keys = block.keys;
        if keys > 0 {
            let bytes = block.seal(self.database_id, self.offset);
            self.file.write_at(bytes, self.offset)?;
            self.offset += bytes.len() as u64;
            block.clear();
            self.totals.keys += u64::from(keys);
            self.totals.blocks += 1;
        }
        Ok(())
    }

    /// Makes the file durable and puts it in force.
    pub(super) fn finish(mut self) -> Result<Totals> {
        for tier in 0..TIERS {
            self.end_block(tier)?;
        }
        let totals = self.totals;
        let mut end = BlockBuilder::end(totals);
        let bytes = end.seal(self.database_id, self.offset).to_vec();
        self.write(&bytes)?;
        self.file.sync()?;
        self.storage.rename(&self.next, &path(self.dir))?;
        self.finished = true;
        self.storage.sync_dir(self.dir)?;
        Ok(totals)
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if !self.finished {
            // What cannot be removed is replaced by the next writer.
            let _ = self.storage.remove(&self.next);
        }
    }
}

/// A file to be read from its first block on, as often as it takes.
pub(super) struct Reader<'a> {
    file: Arc<dyn StorageFile>,
    database_id: u128,
    offset: u64,
    payload: Vec<u8>,
    stopped: &'a dyn Fn() -> bool,
}

impl<'a> Reader<'a> {
    /// Memory that a reader takes.
    pub(super) const BYTES: usize = MAX_PAYLOAD_BYTES;

    /// Opens the hot set of the database in `dir`; `None` if it has none. All of the file was
    /// looked at: what [`Reader::next`] finds later is new damage. `stopped` is asked before each
    /// block.
    ///
    /// Errors: `Corrupt` for damage, another version or another database; `Io`; `Closed` where it
    /// was stopped.
    pub(super) fn open(
        storage: &dyn Storage,
        dir: &Path,
        database_id: u128,
        stopped: &'a dyn Fn() -> bool,
    ) -> Result<Option<(Self, Totals)>> {
        let path = path(dir);
        if !storage.exists(&path)? {
            return Ok(None);
        }
        let mut reader = Self {
            file: storage.open(&path, false)?,
            database_id,
            offset: 0,
            payload: Vec::new(),
            stopped,
        };
        let totals = reader.check()?;
        Ok(Some((reader, totals)))
    }

    fn check(&mut self) -> Result<Totals> {
        let mut header = [0; HEADER_BYTES];
        let got = self.file.read_at(&mut header, 0)?;
        check_header(&header[..got], self.database_id).map_err(|what| self.corrupt(what))?;
        self.rewind();
        let mut found = Totals::default();
        while let Some(block) = self.next(|_| true)? {
            found.keys += u64::from(block.keys);
            found.blocks += 1;
        }
        let said = decode_totals(&self.payload).map_err(|what| self.corrupt(what))?;
        if said != found {
            return Err(self.corrupt("its end does not fit its blocks"));
        }
        if self.offset != self.file.len()? {
            return Err(self.corrupt("bytes behind the end"));
        }
        Ok(said)
    }

    /// Goes back to the first block.
    pub(super) fn rewind(&mut self) {
        self.offset = HEADER_BYTES as u64;
    }

    /// The next block that is `wanted`, whose payload is then [`Reader::payload`]; `None` at the
    /// end. Cost: a read of each header, and of the payload. Errors: `Closed` where it was stopped.
    pub(super) fn next(
        &mut self,
        wanted: impl Fn(&BlockHeader) -> bool,
    ) -> Result<Option<BlockHeader>> {
        loop {
            if (self.stopped)() {
                return Err(Error::Closed);
            }
            let mut header = [0; BLOCK_HEADER_BYTES];
            let got = self.file.read_at(&mut header, self.offset)?;
            let header = BlockHeader::decode(&header[..got]).map_err(|what| self.corrupt(what))?;
            let at = self.offset;
            let from = at + BLOCK_HEADER_BYTES as u64;
            if header.kind == Kind::End || wanted(&header) {
                self.payload.resize(header.payload_bytes, 0);
                let got = self.file.read_at(&mut self.payload, from)?;
                self.payload.truncate(got);
                header
                    .check(self.database_id, at, &self.payload)
                    .map_err(|what| self.corrupt(what))?;
            }
            self.offset = from + header.payload_bytes as u64;
            if header.kind == Kind::End {
                return Ok(None);
            }
            if wanted(&header) {
                return Ok(Some(header));
            }
        }
    }

    /// The payload of the block that was read last.
    pub(super) fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The error for what does not hold where the reader is.
    pub(super) fn corrupt(&self, what: Malformed) -> Error {
        Error::corrupt(self.file.path(), self.offset, what)
    }
}
