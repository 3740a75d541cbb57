//! Reads: from the root to a leaf, through the pool, then the answer.
//!
//! The caller holds what keeps the pages what they are; a search holds, while it is in frames, a
//! guard of the pool. The guard is left for every read of the device, and the search goes on from
//! the page that was read. (Only a key longer than an eighth of a page that agrees with the one
//! asked in all of that is fetched with the guard held: it delays reuse of frames, nobody waits.)

use super::{INNER_ROUNDS, LEAF_ROUNDS, Pool};
use crate::{
    error::Result,
    key::Value,
    y::page::{
        PageNo, PageSource,
        node::{Far, Node, ValueAt},
    },
};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

/// The pages of one tree, through the pool that it shares with others.
pub(crate) struct CachedPages<S> {
    pub(crate) file: S,
    pub(crate) pool: Arc<Pool>,
    /// What the tags of its pages have in common.
    tags: u64,
}

/// Where a search begins.
#[derive(Debug, Default)]
pub(crate) struct Root {
    /// 0: the tree is empty.
    pub(crate) page: PageNo,
    /// Levels; 0: the tree is empty.
    pub(crate) height: u8,
    /// Where the root's frame may be.
    hint: AtomicU32,
}

impl Root {
    pub(crate) fn new(page: PageNo, height: u8) -> Self {
        Self {
            page,
            height,
            hint: AtomicU32::new(0),
        }
    }
}

/// A value, or where it is.
pub(crate) enum Found {
    Nothing,
    Deleted,
    Near(Value),
    Far(Far),
}

/// A step of a search: what to do at an inner page.
pub(crate) trait Route {
    /// Whether a leaf that is read is worth keeping. An inner page is.
    const KEEPS_LEAVES: bool;
    /// The child to go to.
    fn child(&mut self, node: &Node<'_>) -> Result<Option<usize>>;
}

/// Where a search is on its way down.
#[derive(Clone, Copy)]
pub(crate) struct At {
    page: PageNo,
    hint: u32,
    level: u8,
}

impl At {
    /// Before the first step; `None`: the tree is empty.
    pub(crate) fn root(root: &Root) -> Option<Self> {
        (root.page != 0).then(|| Self {
            page: root.page,
            hint: root.hint.load(Relaxed),
            level: root.height.saturating_sub(1),
        })
    }

    pub(crate) fn page(&self) -> PageNo {
        self.page
    }

    /// At leaf `page`, which was in the frame that `hint` says.
    pub(super) fn leaf(page: PageNo, hint: u32) -> Self {
        Self {
            page,
            hint,
            level: 0,
        }
    }

    /// Where the page's frame was last seen (0: nowhere).
    pub(super) fn hint(&self) -> u32 {
        self.hint
    }

    pub(super) fn is_at_leaf(&self) -> bool {
        self.level == 0
    }
}

impl<S: PageSource> CachedPages<S> {
    /// Errors: `Unsupported` where the pool has no tags left.
    pub(crate) fn new(file: S, pool: Arc<Pool>) -> Result<Self> {
        let tags = pool.tags_of_a_tree(S::IS_TABLE)?;
        Ok(Self { file, pool, tags })
    }

    #[inline]
    pub(crate) fn tag(&self, page: PageNo) -> u64 {
        self.tags | self.file.place(page)
    }

    /// Reads pages into frames; see [`Pool::load_all`].
    pub(crate) fn load_all(&self, numbers: &[PageNo]) -> Result<()> {
        self.pool.load_all(&self.file, self.tags, numbers)
    }

    /// The value of `key` under `root`.
    pub(crate) fn get(&self, root: &Root, key: &[u8]) -> Result<Option<Value>> {
        self.value_of(self.look_up(root, key)?)
    }

    /// What the tree under `root` says about `key`.
    pub(crate) fn look_up(&self, root: &Root, key: &[u8]) -> Result<Found> {
        let mut route = ToKey {
            file: &self.file,
            key,
        };
        let found = self.at_leaf(root, &mut route, |leaf| self.value_in(leaf, key))?;
        Ok(found.unwrap_or(Found::Nothing))
    }

    /// Reads the value if it is elsewhere.
    pub(crate) fn value_of(&self, found: Found) -> Result<Option<Value>> {
        Ok(match found {
            Found::Nothing | Found::Deleted => None,
            Found::Near(value) => Some(value),
            Found::Far(far) => Some(self.file.fetch_value(far)?),
        })
    }

    /// The answer for `key` in its leaf; `None` inside if the page makes no sense.
    pub(crate) fn value_in(&self, leaf: &Node<'_>, key: &[u8]) -> Result<Option<Found>> {
        let found = leaf.search(key, &|far| self.file.fetch(far))?;
        Ok(found.and_then(|(at, equal)| {
            if !equal {
                return Some(Found::Nothing);
            }
            Some(match leaf.value(at)? {
                ValueAt::Near(bytes) => Found::Near(Value::new(bytes)),
                ValueAt::Far(far) => Found::Far(far),
                ValueAt::Deleted => Found::Deleted,
            })
        }))
    }

    /// Goes to a leaf and reads from it; `None`: the tree is empty. `read` answers `None` if the
    /// leaf makes no sense.
    pub(crate) fn at_leaf<R>(
        &self,
        root: &Root,
        route: &mut impl Route,
        read: impl Fn(&Node<'_>) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        let Some(mut at) = At::root(root) else {
            return Ok(None);
        };
        loop {
            if let Some(answer) = self.without_reading(root, &mut at, route, &read)? {
                return Ok(Some(answer));
            }
            if let Some(answer) = self.by_reading(&mut at, route, &read)? {
                return Ok(Some(answer));
            }
        }
    }

    /// Reads the page that `at` is at, and answers if it is the leaf; else goes on to its child.
    pub(super) fn by_reading<R>(
        &self,
        at: &mut At,
        route: &mut impl Route,
        read: &impl Fn(&Node<'_>) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        let loaded = self.pool.load(&self.file, at.page)?;
        let (page, tag) = (at.page, self.tag(at.page));
        let node = self.node_of(Node::of_page(loaded.bytes()), at)?;
        let answer = if node.is_leaf() {
            let answer = read(&node)?.ok_or_else(|| self.file.senseless(page))?;
            Some(answer)
        } else {
            self.step(&node, at, route)?;
            None
        };
        let hint = self.pool.keep(tag, loaded);
        if answer.is_some() {
            at.hint = hint;
        }
        Ok(answer)
    }

    /// Goes on as far as pages are in frames or can be looked at where they lie; `None`: the page
    /// that `at` is at has to be read.
    pub(crate) fn without_reading<R, T: Route>(
        &self,
        root: &Root,
        at: &mut At,
        route: &mut T,
        read: &impl Fn(&Node<'_>) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        match self.in_frames(root, at, route, read)? {
            None => self.in_place::<R, T>(at, read),
            answer => Ok(answer),
        }
    }

    /// Goes on as far as pages are in frames; `None`: the page that `at` is at is not, or is a leaf
    /// to look at where it lies.
    pub(super) fn in_frames<R, T: Route>(
        &self,
        root: &Root,
        at: &mut At,
        route: &mut T,
        read: &impl Fn(&Node<'_>) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        let guard = self.pool.frames.enter();
        let mut parent: Option<(Node<'_>, usize)> = None;
        let find = |at: &At| {
            if at.level == 0 && self.file.has_views() {
                return None;
            }
            let rounds = match at.level {
                0 if T::KEEPS_LEAVES => LEAF_ROUNDS,
                0 => 0,
                _ => INNER_ROUNDS,
            };
            self.pool.find(&guard, self.tag(at.page), at.hint, rounds)
        };
        while let Some((view, hint)) = find(at) {
            if hint != at.hint {
                match &parent {
                    Some((node, i)) => node.hint(*i, at.page, hint),
                    None if at.page == root.page => root.hint.store(hint, Relaxed),
                    None => {}
                }
                at.hint = hint;
            }
            let node = self.node_of(Node::of_frame(view), at)?;
            if node.is_leaf() {
                let answer = read(&node)?.ok_or_else(|| self.file.senseless(at.page))?;
                return Ok(Some(answer));
            }
            let i = self.step(&node, at, route)?;
            parent = Some((node, i));
        }
        Ok(None)
    }

    /// The node at `at`, if it is one and of the right level (so that no search goes round in
    /// circles).
    pub(super) fn node_of<'a>(&self, node: Option<Node<'a>>, at: &At) -> Result<Node<'a>> {
        node.filter(|n| n.level == at.level)
            .ok_or_else(|| self.file.senseless(at.page))
    }

    fn step(&self, node: &Node<'_>, at: &mut At, route: &mut impl Route) -> Result<usize> {
        let child = route.child(node)?;
        let next = child.and_then(|i| Some((i, node.child(i)?)));
        // Before the pool is asked, which would know another tree's page by such a number.
        let next = next.filter(|(_, (page, _))| self.file.may_have(*page));
        let (i, (page, hint)) = next.ok_or_else(|| self.file.senseless(at.page))?;
        *at = At {
            page,
            hint,
            level: at.level.saturating_sub(1),
        };
        Ok(i)
    }
}

/// To the leaf that has a key.
pub(crate) struct ToKey<'k, S> {
    pub(crate) file: &'k S,
    pub(crate) key: &'k [u8],
}

impl<S: PageSource> Route for ToKey<'_, S> {
    const KEEPS_LEAVES: bool = true;

    fn child(&mut self, node: &Node<'_>) -> Result<Option<usize>> {
        node.child_for(self.key, &|far| self.file.fetch(far))
    }
}
