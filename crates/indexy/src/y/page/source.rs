//! Where pages come from: a file of pages, each checked when it is read.

use super::{PageNo, node::Far};
use crate::{
    error::{Error, Result},
    key::Value,
    mem::aligned::AlignedBuffer,
    storage::StorageFile,
};

/// The pages of one tree. Threads: any.
pub(crate) trait PageSource {
    /// Whether these are the pages of a table: few, and of one of many.
    const IS_TABLE: bool = false;

    fn page_bytes(&self) -> usize;
    /// A number by which a pool knows page `number` among those of this tree.
    fn place(&self, number: PageNo) -> u64 {
        number
    }
    /// Whether there can be a page `number`. One for which this is false may have the place of a
    /// page of another tree.
    #[inline]
    fn may_have(&self, _number: PageNo) -> bool {
        true
    }
    /// Reads page `number` into `to`, which has the size of a page, and checks it. Cost: one read
    /// of the device.
    fn read(&self, number: PageNo, to: &mut [u8]) -> Result<()>;
    /// Reads pages into buffers of the size of a page, and checks them. Cost: a read of the device
    /// each, overlapped where the system can.
    fn read_all(&self, pages: &mut [(PageNo, &mut [u8])]) -> Result<()>;
    /// Leaves are looked at where they lie.
    #[inline]
    fn has_views(&self) -> bool {
        false
    }
    /// Page `number` where it lies in the file, checked when it is first looked at; `None`: it has
    /// to be read. What is found in it counts only if [`views_hold`](Self::views_hold) says so
    /// afterwards. The caller's version has the page.
    fn view(&self, _number: PageNo) -> Result<Option<&[u8]>> {
        Ok(None)
    }
    /// Whether all views so far have shown what the file has.
    fn views_hold(&self) -> bool {
        true
    }
    /// `bytes` of page `number` were looked at in a view.
    fn looked_at(&self, _number: PageNo, _bytes: usize) {}
    /// Reads the bytes of a key or value that does not lie in a node.
    fn fetch(&self, far: Far) -> Result<Vec<u8>>;
    /// The same of a value.
    fn fetch_value(&self, far: Far) -> Result<Value> {
        Ok(self.fetch(far)?.into())
    }
    /// Offset and length in the file of the pages that `far` is in, if one read takes them;
    /// `None`: [`fetch_value`](Self::fetch_value) reads them piece by piece. Errors: `Corrupt`, if
    /// it cannot be there.
    fn far_pages(&self, far: Far) -> Result<Option<(u64, usize)>>;
    /// The value of `far` in `pages`, which are all that [`far_pages`](Self::far_pages) says.
    /// Checks it.
    fn value_in(&self, far: Far, pages: &[u8]) -> Result<Value>;
    /// The file that all is in.
    fn storage(&self) -> &dyn StorageFile;
    /// What is wrong with the content of a page.
    fn corrupt(&self, number: PageNo, what: &str) -> Error;

    /// The error for a page that cannot be what it should be.
    fn senseless(&self, page: PageNo) -> Error {
        self.corrupt(page, "the node makes no sense")
    }

    /// A buffer for one page.
    fn page_buffer(&self) -> AlignedBuffer {
        AlignedBuffer::new(self.page_bytes())
    }
}
