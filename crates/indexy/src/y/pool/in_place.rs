//! Leaves that are looked at where they lie, on a device that is read by the byte.
//!
//! Inner pages come into frames as ever: they are few, and every search needs them. A leaf is
//! checked when it is first looked at. From then on a search costs the lines that it looks at, and
//! the pool has no part in it: no frame, no lock. The caller's version keeps the page what it is.

#![forbid(unsafe_code)]

use super::search::{At, CachedPages, Route};
use crate::{
    error::Result,
    y::page::{PageSource, node::Node},
};

/// What a search in a leaf looks at beside the entry: the header and some lines of the heads.
const SEARCH_BYTES: usize = 256;

impl<S: PageSource> CachedPages<S> {
    /// What `read` finds in the leaf that `at` is at, where it lies; `None`: `at` is at no leaf, or
    /// the page has to be read.
    pub(super) fn in_place<R, T: Route>(
        &self,
        at: &At,
        read: &impl Fn(&Node<'_>) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        if !at.is_at_leaf() {
            return Ok(None);
        }
        let Some(page) = self.file.view(at.page())? else {
            return Ok(None);
        };
        let answer = self.node_of(Node::of_page(page), at).and_then(|node| {
            let bytes = match T::KEEPS_LEAVES {
                true => SEARCH_BYTES + page.len() / node.keys().max(1),
                false => page.len(),
            };
            self.file.looked_at(at.page(), bytes.min(page.len()));
            read(&node)?.ok_or_else(|| self.file.senseless(at.page()))
        });
        if !self.file.views_hold() {
            return Ok(None);
        }
        answer.map(Some)
    }
}
