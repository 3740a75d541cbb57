//! Where a key is: its leaf, the frame of that, and the place in it.

#![forbid(unsafe_code)]

use super::search::{At, CachedPages, Found, Root, ToKey};
use crate::{
    error::Result,
    key::{Key, Value},
    y::page::{
        PageNo, PageSource,
        node::{Node, ValueAt},
    },
};

/// See the module header.
pub(crate) struct Spot {
    pub(crate) page: PageNo,
    /// The frame, as a hint (0: none).
    pub(crate) hint: u32,
    pub(crate) slot: usize,
    /// The least key of the leaf; `None`: the leaf does not have all of it.
    pub(crate) first: Option<Key>,
}

impl<S: PageSource> CachedPages<S> {
    /// As [`look_up`](Self::look_up), and where the key is; `None`: it is not there.
    pub(crate) fn locate(&self, root: &Root, key: &[u8]) -> Result<Option<(Spot, Found)>> {
        let Some(mut at) = At::root(root) else {
            return Ok(None);
        };
        let mut route = ToKey {
            file: &self.file,
            key,
        };
        let read = |leaf: &Node<'_>| self.spot_in(leaf, key);
        loop {
            let mut answer = self.without_reading(root, &mut at, &mut route, &read)?;
            if answer.is_none() {
                answer = self.by_reading(&mut at, &mut route, &read)?;
            }
            let Some(found) = answer else { continue };
            return Ok(found.map(|(mut spot, found)| {
                (spot.page, spot.hint) = (at.page(), at.hint());
                (spot, found)
            }));
        }
    }

    /// What leaf `page` says about `key`, which should be entry `slot`, and a hint where it is now.
    /// `hint`: where it was. With no slot the leaf is not read; `None`: it would have to be. The
    /// caller's version has the page.
    pub(crate) fn look_at(
        &self,
        page: PageNo,
        hint: u32,
        key: &[u8],
        slot: Option<usize>,
    ) -> Result<Option<(Found, u32)>> {
        let mut at = At::leaf(page, hint);
        let read = |leaf: &Node<'_>| self.value_at(leaf, key, slot);
        let mut route = ToKey {
            file: &self.file,
            key,
        };
        let no_root = Root::default();
        let mut answer = self.without_reading(&no_root, &mut at, &mut route, &read)?;
        if answer.is_none() && slot.is_some() {
            answer = self.by_reading(&mut at, &mut route, &read)?;
        }
        Ok(answer.map(|found| (found, at.hint())))
    }

    fn spot_in(&self, leaf: &Node<'_>, key: &[u8]) -> Result<Option<Option<(Spot, Found)>>> {
        let Some((slot, equal)) = leaf.search(key, &|far| self.file.fetch(far))? else {
            return Ok(None);
        };
        if !equal {
            return Ok(Some(None));
        }
        let (Some(value), Some(least)) = (leaf.value(slot), leaf.key(0)) else {
            return Ok(None);
        };
        let first = least.far.is_none().then(|| {
            let mut bytes = Vec::new();
            least.append_to(&mut bytes);
            Key::from(bytes)
        });
        let spot = Spot {
            page: 0,
            hint: 0,
            slot,
            first,
        };
        Ok(Some(Some((spot, Found::of(value)))))
    }

    fn value_at(&self, leaf: &Node<'_>, key: &[u8], slot: Option<usize>) -> Result<Option<Found>> {
        if let Some(slot) = slot.filter(|slot| *slot < leaf.keys())
            && leaf.is_key(slot, key, &|far| self.file.fetch(far))? == Some(true)
        {
            return Ok(leaf.value(slot).map(Found::of));
        }
        self.value_in(leaf, key)
    }
}

impl Found {
    fn of(value: ValueAt<'_>) -> Self {
        match value {
            ValueAt::Near(bytes) => Self::Near(Value::new(bytes)),
            ValueAt::Far(far) => Self::Far(far),
            ValueAt::Deleted => Self::Deleted,
        }
    }
}
