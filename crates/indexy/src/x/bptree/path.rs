//! Going down to a range, or to a node above it.
//!
//! Nothing but separators is passed on the way: they are the bounds of what is found.
//!
//! Threads: any, under a guard. No latch is taken; what changes on the way starts it again.

#![forbid(unsafe_code)]

use super::{
    BPlus,
    inner::Child,
    parent::ParentSeen,
    place::{Fence, Hop, Place, Site},
};
use crate::{
    mem::Guard,
    x::{backoff::Backoff, bounds::Probe, root::Root, tree::Spot},
};

impl BPlus {
    /// As `descend`, but stops at a node of this level or below.
    pub(super) fn descend_to<'g>(
        &'g self,
        guard: &'g Guard<'_>,
        probe: Probe<'_>,
        level: usize,
    ) -> Place<'g> {
        let mut backoff = Backoff::default();
        loop {
            if let Some(place) = try_descend(&self.root, guard, probe, level) {
                return place;
            }
            backoff.wait();
        }
    }
}

/// `None` when something changed on the way.
pub(super) fn try_descend<'g>(
    root: &'g Root,
    guard: &'g Guard<'_>,
    probe: Probe<'_>,
    level: usize,
) -> Option<Place<'g>> {
    let mut hop = Hop {
        parent: ParentSeen::Root(root.see(guard)),
        at: 0,
    };
    let (mut outer, mut inner) = ([None, None], [None, None]);
    loop {
        let site = match hop.parent.child(hop.at)? {
            Child::Leaf(leaf) => Site::Range(Spot::Leaf(leaf.see()?)),
            Child::Empty(mount) => Site::Range(Spot::Empty(mount)),
            Child::Inner(node) => {
                let node = node.see()?;
                if node.node().level() <= level {
                    Site::Node(node)
                } else {
                    outer = inner;
                    let at = node.index_for(probe)?;
                    if at > 0 {
                        inner[0] = Some(Fence { node, at: at - 1 });
                    }
                    if at + 1 < node.children() {
                        inner[1] = Some(Fence { node, at });
                    }
                    hop = Hop {
                        parent: ParentSeen::Inner(node),
                        at,
                    };
                    continue;
                }
            }
        };
        return Some(Place { hop, outer, site });
    }
}
