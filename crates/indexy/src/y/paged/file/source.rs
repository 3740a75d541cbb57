//! How the page file is read.

use super::{PageFile, extent};
use crate::{
    error::{Error, Result},
    key::Value,
    storage::{ReadAt, StorageFile},
    y::page::{PageNo, PageSource, node::Far},
};
use std::sync::atomic::{
    Ordering::{Acquire, Relaxed},
    fence,
};

impl PageSource for PageFile {
    fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    fn read(&self, number: PageNo, to: &mut [u8]) -> Result<()> {
        let got = self.storage.read_at(to, self.offset(number))?;
        self.check(number, to, got)
    }

    fn read_all(&self, pages: &mut [(PageNo, &mut [u8])]) -> Result<()> {
        let mut reads = Vec::with_capacity(pages.len());
        for (number, to) in pages.iter_mut() {
            reads.push(ReadAt {
                offset: self.offset(*number),
                to,
                got: 0,
            });
        }
        self.storage.read_all(&mut reads)?;
        let got: Vec<usize> = reads.iter().map(|read| read.got).collect();
        pages
            .iter()
            .zip(got)
            .try_for_each(|((number, page), got)| self.check(*number, page, got))
    }

    #[inline]
    fn has_views(&self) -> bool {
        self.has_views.load(Relaxed)
    }

    fn view(&self, number: PageNo) -> Result<Option<&[u8]>> {
        let Some(page) = self.look(number, self.page_bytes)? else {
            return Ok(None);
        };
        self.check_once(number, page, || self.check(number, page, page.len()))
    }

    fn views_hold(&self) -> bool {
        if !self.storage.views_hold() {
            self.end_views();
        }
        // What was read from views was read before.
        fence(Acquire);
        self.has_views()
    }

    fn looked_at(&self, number: PageNo, bytes: usize) {
        self.storage.looked_at(self.offset(number), bytes);
    }

    fn fetch(&self, far: Far) -> Result<Vec<u8>> {
        extent::read(self, far)
    }

    fn fetch_value(&self, far: Far) -> Result<Value> {
        extent::read_value(self, far)
    }

    fn far_pages(&self, far: Far) -> Result<Option<(u64, usize)>> {
        extent::whole(self, far)
    }

    fn value_in(&self, far: Far, pages: &[u8]) -> Result<Value> {
        extent::value_in(self, far, pages)
    }

    fn storage(&self) -> &dyn StorageFile {
        &*self.storage
    }

    fn corrupt(&self, number: PageNo, what: &str) -> Error {
        let what = format!("page {number}: {what}");
        Error::corrupt(self.path(), self.offset(number), what)
    }
}
