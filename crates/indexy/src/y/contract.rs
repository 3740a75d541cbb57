//! The contract of a disk index (Index Y of the paper).
//!
//! `crate::index_y` makes it public. Its text says what an implementer has to know, threads and
//! crashes included. The suite in `conformance/` tests it.

use super::compression::Compression;
use crate::{
    error::{Error, Result},
    key::{Key, Value},
    x::Order,
};
use std::path::Path;

/// Limits and preferences of a disk index. Constant while it is open.
#[derive(Debug, Clone, Copy)]
pub struct Capabilities {
    /// Longest key in bytes, at most [`MAX_KEY_BYTES`](crate::limits::MAX_KEY_BYTES). The tree
    /// refuses longer ones.
    pub max_key_bytes: usize,
    /// Longest value in bytes, at most [`MAX_VALUE_BYTES`](crate::limits::MAX_VALUE_BYTES). The
    /// tree refuses longer ones.
    pub max_value_bytes: usize,
    /// Payload of a run, in bytes, below which writing is wasteful. Neighbouring regions are joined
    /// until they have it. An LSM tree wants megabytes; for a B+ tree the cost of a commit decides.
    pub preferred_run_bytes: usize,
}

/// One element of a sorted run: a key and its value, `None` for a delete.
pub type RunEntry<'a> = (&'a [u8], Option<&'a [u8]>);

/// Where [`IndexY::write_run`] takes a run from. Keys ascend strictly.
pub trait RunSource {
    /// Feeds every entry to `sink`. An error of `sink` ends it and is returned. The bytes are valid
    /// during the call of `sink` only. Call it once.
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()>;

    /// Waits until the log is durable up to the run. Call it once, after the last entry and before
    /// the run becomes visible or durable. After an error nothing of the run may appear.
    fn before_publish(&mut self) -> Result<()>;
}

/// Sorted entries on their way into an index that has none of their keys; see
/// [`IndexY::begin_load`]. Nobody sees any of them before [`SortedLoad::publish`]. Dropped before
/// that, it leaves nothing, and gives its space back.
pub trait SortedLoad: Send {
    /// Adds an entry behind all before.
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Brings what was added to the device, so that [`SortedLoad::publish`] has little to write.
    /// Called once, after the last entry.
    fn seal(&mut self) -> Result<()>;

    /// Shows all entries at once and makes them durable. As a run: one at a time, no run and no
    /// removal of a range beside it. The index has no key from the first to the last one added.
    ///
    /// After `Ok` every later read and every later open sees all of them. After `Err`, and after a
    /// crash in the middle, an open sees none or all of them; a read, too. The caller removes the
    /// range then.
    fn publish(self: Box<Self>) -> Result<()>;
}

/// The keys from the first up to the second, without it; `None`: to the end.
pub type KeyRange<'a> = (&'a [u8], Option<&'a [u8]>);

/// A removal of ranges that was made ready; see [`IndexY::begin_removal`]. Dropped before
/// [`RangeRemoval::publish`], it leaves everything as it was, and gives its space back.
pub trait RangeRemoval {
    /// Shows the removal. An error is as one of [`IndexY::remove_range`].
    fn publish(self: Box<Self>) -> Result<()>;
}

/// [`IndexY::remove_range`], put off.
struct Later<'y, Y: ?Sized> {
    y: &'y Y,
    ranges: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl<Y: IndexY + ?Sized> RangeRemoval for Later<'_, Y> {
    fn publish(self: Box<Self>) -> Result<()> {
        let mut ranges = self.ranges.iter();
        ranges.try_for_each(|(from, to)| self.y.remove_range(from, to.as_deref()))
    }
}

/// What a call of [`IndexY::maintain`] left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maintained {
    /// Nothing is due.
    Idle,
    /// Work was done; call again.
    More,
}

/// Entries of a range, in the order asked. It borrows the index, so it ends before the index does.
pub type YIter<'a> = Box<dyn Iterator<Item = Result<(Key, Value)>> + Send + 'a>;

/// Where an index has the value of a key; see [`IndexY::locate`]. What its bytes mean is the
/// index's own affair, and good for this open alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locator {
    bytes: [u8; Self::MAX_BYTES],
    len: u8,
}

impl Locator {
    /// The longest one, in bytes.
    pub const MAX_BYTES: usize = 26;

    /// The locator of these bytes; `None`: they are too many.
    pub fn new(from: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX_BYTES];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        Some(Self {
            bytes,
            len: from.len() as u8,
        })
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len.into()).unwrap_or_default()
    }
}

/// What a locator is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// For the key alone that it was given for.
    Key,
    /// For all keys that are in the same place.
    Place,
}

/// What [`IndexY::locate`] found.
#[derive(Debug, Default)]
pub struct Located {
    /// The newest value of the key.
    pub value: Option<Value>,
    /// Where it is, and the least key that is there, too; `None`: a read by locator would gain
    /// nothing, or the value is about to move.
    pub at: Option<(Locator, Key)>,
}

/// What [`IndexY::get_at`] found.
#[derive(Debug)]
pub enum GotAt {
    /// The newest value.
    Found(Value),
    /// The newest value, which this locator leads to faster from now on.
    Moved(Value, Locator),
    /// The place is what it was, and the key is not in it: it is elsewhere, or nowhere.
    NotThere,
    /// The place is not what it was: the locator is of no use any more.
    Stale,
}

/// The disk index of one tree. The text of the [module](crate::index_y) says who may call what,
/// when.
///
/// Drop: when it returns, all work on files has ended, that of iterators and of threads included.
/// The directory is unlocked right afterwards.
pub trait IndexY: Send + Sync {
    /// Its limits and preferences.
    fn capabilities(&self) -> Capabilities;

    /// The newest value of `key`. Cost: at most about one device read while upper levels are
    /// cached.
    fn get(&self, key: &[u8]) -> Result<Option<Value>>;

    /// The newest values of `keys`, in the order asked. A key may come twice.
    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        keys.iter().map(|k| self.get(k)).collect()
    }

    /// As [`IndexY::get`], and where the value is. The default knows no places.
    fn locate(&self, key: &[u8], reach: Reach) -> Result<Located> {
        let _ = reach;
        let value = self.get(key)?;
        Ok(Located { value, at: None })
    }

    /// The newest value of `key` by a locator that [`IndexY::locate`] gave since the open: for this
    /// key, or for any with [`Reach::Place`]. Never an old value.
    fn get_at(&self, key: &[u8], locator: &Locator) -> Result<GotAt> {
        let _ = (key, locator);
        Ok(GotAt::Stale)
    }

    /// Entries of `[from, to)`, from the end that `order` says; nothing where `to <= from`. `to`
    /// may be one byte longer than a key can be.
    ///
    /// The iterator may pin files; callers drop it within one chunk. `size_hint().0` is the number
    /// of entries that come without I/O, or 0 if that is unknown: a scan that has enough takes
    /// those along.
    fn range(&self, from: &[u8], to: Option<&[u8]>, order: Order) -> Result<YIter<'_>>;

    /// Writes one sorted run: drains the source, calls `before_publish`, publishes. A key over the
    /// limit is `KeyTooLong`.
    ///
    /// After `Ok`, every later read sees the run, and so does every later open after a plain drop.
    /// After `Err` the caller writes it again.
    fn write_run(&self, source: &mut dyn RunSource) -> Result<()>;

    /// Whether [`IndexY::remove_range`] may be called. If not, the keys of a range are removed one
    /// by one.
    fn removes_ranges(&self) -> bool {
        false
    }

    /// Removes every key of `[from, to)`; `None`: to the end. `to` may be one byte longer than a
    /// key can be.
    ///
    /// As a run: one at a time, none in flight beside it; after `Ok` every later read sees it, and
    /// so does every later open after a plain drop; [`IndexY::make_durable`] makes it durable. The
    /// caller has made the log durable up to it. After `Err` the tree is as it was, and the caller
    /// gives up writing.
    fn remove_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        let _ = (from, to);
        Err(Error::Unsupported {
            what: "to remove a range from this index_y".into(),
        })
    }

    /// Does of the removal of `ranges`, which ascend and do not overlap, whatever may fail for want
    /// of room or for damage, so that [`RangeRemoval::publish`] does not: the log says that the
    /// ranges are gone when that is called.
    ///
    /// No run, no other removal and no load is published beside it. After `Err` the tree is as it
    /// was. The default does everything in `publish`: right where [`IndexY::remove_range`] writes
    /// nothing.
    fn begin_removal<'y>(&'y self, ranges: &[KeyRange<'_>]) -> Result<Box<dyn RangeRemoval + 'y>> {
        let own = |(from, to): &KeyRange<'_>| (from.to_vec(), to.map(<[u8]>::to_vec));
        let ranges = ranges.iter().map(own).collect();
        Ok(Box::new(Later { y: self, ranges }))
    }

    /// How what is written from now on is stored. What there is stays as it is. Called when the
    /// tree is opened, and when its option changes.
    ///
    /// Errors: `Unsupported`, for all but `None` where this index does not compress.
    fn set_compression(&self, compression: Compression) -> Result<()> {
        match compression {
            Compression::None => Ok(()),
            other => Err(Error::Unsupported {
                what: format!("compression {other} in this index_y"),
            }),
        }
    }

    /// Begins a load of sorted entries past runs, `None` where this index cannot: then sorted
    /// entries are refused. Several may be under way, and runs beside them. An index that can also
    /// [removes ranges](IndexY::removes_ranges).
    ///
    /// The load holds bounded memory, beside what [`IndexY::memory_bytes`] has of it, whatever it
    /// holds of the device. [`IndexY::release_files`] is false while it lives.
    fn begin_load(&self) -> Result<Option<Box<dyn SortedLoad + '_>>> {
        Ok(None)
    }

    /// Makes every acknowledged run durable: afterwards it survives a crash of the machine. Called
    /// before the log is cut. A `write_run` in flight beside it does not count.
    fn make_durable(&self) -> Result<()>;

    /// One bounded step of background work: compaction, garbage. Damage that it meets is left alone
    /// and counted by [`IndexY::damaged`], as long as that is possible: an error ends all writing.
    fn maintain(&self) -> Result<Maintained>;

    /// One bounded step of what makes `[from, to)` take no more space than its entries need,
    /// whatever it costs. `Idle`: nothing is left to do, or this index has nothing to do at all.
    ///
    /// Errors: as [`IndexY::maintain`]; `Corrupt` ends nothing but this call. Damage is left as it
    /// is. The LSM tree tells it when everything else is done; the paged tree ends at the first
    /// that it meets.
    fn compact(&self, from: &[u8], to: Option<&[u8]>) -> Result<Maintained> {
        let _ = (from, to);
        Ok(Maintained::Idle)
    }

    /// Bytes on disk that hold nothing of use, as far as that is known without I/O: what compaction
    /// would give back beside what was overwritten.
    fn dead_bytes(&self) -> u64 {
        0
    }

    /// Damaged places that background work has met since the open, and leaves alone. No I/O.
    fn damaged(&self) -> u64 {
        0
    }

    /// Ends a `maintain` under way soon, and makes later ones do nothing, because the database is
    /// being closed. From any thread.
    fn interrupt(&self) {}

    /// True while runs should wait for [`IndexY::maintain`], because there are too many level-0
    /// runs, say.
    fn congested(&self) -> bool;

    /// False while background work is under way, or put off until writers rest. No I/O.
    fn settled(&self) -> bool {
        true
    }

    /// True when it holds no entry; tombstones are no entries. May say false when unsure.
    fn is_empty(&self) -> Result<bool>;

    /// Entries, roughly. No I/O.
    fn approximate_len(&self) -> u64;

    /// Upper bound of the memory that this index holds for itself, in bytes, without what
    /// [`IndexYShared`](crate::index_y::IndexYShared) reports. Asked about five times a second. No
    /// I/O.
    fn memory_bytes(&self) -> usize;

    /// Bytes on disk. No I/O beyond a look at the file's size.
    fn disk_bytes(&self) -> u64;

    /// Sorted runs or levels that a point read may have to look at, 0 when it is empty. For stats.
    fn run_count(&self) -> usize;

    /// Reads everything and checks checksums and order; returns the number of entries. Readers and
    /// the writer go on.
    fn verify(&self) -> Result<u64>;

    /// Reads everything, as [`IndexY::verify`] does, and goes on behind what is damaged: tells
    /// `found` of each place. May find less than `verify`, which stops at the first.
    fn damage(&self, found: &mut dyn FnMut(Error)) {
        if let Err(error) = self.verify() {
            found(error);
        }
    }

    /// Gives the files to the next owner of the directory, if nothing uses them any more.
    ///
    /// False while a run, a step of maintenance or an iterator still needs a file that would be
    /// removed or written later; the caller asks again. After true this index removes and writes no
    /// file: not in a call (writes get [`Closed`](crate::Error::Closed)), not when an iterator is
    /// dropped, not when the index is dropped.
    fn release_files(&self) -> bool {
        true
    }

    /// Whether [`IndexY::copy_to`] may be called beside [`IndexY::write_run`]. If not, a checkpoint
    /// holds up cleaning, and in the end writers, as long as the copy takes.
    fn copies_beside_runs(&self) -> bool {
        false
    }

    /// Copies a consistent image, of a moment during the call, into the absent directory `dest` and
    /// makes it durable. No run is in flight meanwhile, unless [`IndexY::copies_beside_runs`].
    /// Readers go on. The index itself holds off its maintenance where that is needed.
    fn copy_to(&self, dest: &Path) -> Result<()>;
}
