//! Going down from the root to where a key is, or would be, and past what is dead there.
//!
//! Optimistic: each node is read at a version and validated before what it said is used. Because
//! neither nodes nor leaves ever move to another place (`inner/mod.rs`), a child that is not
//! obsolete is the right one, whatever happened to its parent since. Where the whole tree was
//! cleared meanwhile (`walk/clear.rs`), it is the right one of the moment when the root was read.
//!
//! A key may be padded with endless 0xFF: that stands for "just below" something, and finds the
//! last range.
//!
//! Threads: any, under a guard. No latch is taken.

#![forbid(unsafe_code)]

use super::{
    Radix,
    inner::{Child, InnerSeen, ValidWord},
    parent::ParentSeen,
    place::{Gap, Place, Site, beside},
    symbol::{END, LAST, Symbol, first_symbol},
};
use crate::{
    mem::Guard,
    x::{
        Order,
        bounds::{Passed, Probe},
        root::{Root, RootSeen},
        tree::{Descend, Spot},
    },
};

/// So many ranges where nothing lives are passed one after the other. More of them are passed side
/// by side: see `Place::dead_row`.
const MOST_PASSED: usize = 4;

impl Probe<'_> {
    fn symbol(&self, at: usize) -> Symbol {
        let rest = self.rest(at);
        if rest.is_empty() && self.padded {
            LAST
        } else {
            first_symbol(rest)
        }
    }

    /// The number of prefix bytes of `node` that the probe has from `start` on.
    fn match_prefix(&self, node: &InnerSeen<'_>, start: usize) -> usize {
        let rest = self.rest(start);
        let mut matched = node.node().match_prefix(rest);
        if self.padded && matched == rest.len() {
            let len = node.node().prefix_len();
            while matched < len && node.node().prefix_byte(matched) == u8::MAX {
                matched += 1;
            }
        }
        matched
    }
}

/// A way down.
struct Way<'g> {
    above: Option<(ParentSeen<'g>, Symbol)>,
    parent: ParentSeen<'g>,
    symbol: Symbol,
    /// Where suffixes below the parent start.
    depth: usize,
    /// Where the path of a node starts that the symbol leads to.
    start: usize,
}

impl<'g> Way<'g> {
    fn at_root(root: &'g Root, guard: &'g Guard<'_>) -> Self {
        Self {
            above: None,
            parent: ParentSeen::Root(root.see(guard)),
            symbol: END,
            depth: 0,
            start: 0,
        }
    }

    /// Goes on to `probe`; `None` when something changed on the way.
    #[inline(always)]
    fn go_down(&mut self, probe: Probe<'_>) -> Option<Site<'g>> {
        loop {
            match self.parent.child(self.symbol)? {
                Child::Leaf(leaf) => return Some(Site::Range(Spot::Leaf(leaf.see()?))),
                Child::Empty(mount) => return Some(Site::Range(Spot::Empty(mount))),
                Child::Inner(node) => {
                    let node = node.see()?;
                    let matched = probe.match_prefix(&node, self.start);
                    if matched < node.node().prefix_len() {
                        let mount = node.gap()?;
                        return Some(Site::Gap(Gap {
                            node,
                            matched,
                            mount,
                        }));
                    }
                    let symbol = probe.symbol(self.start + matched);
                    self.enter(node, symbol);
                }
            }
        }
    }

    /// Goes on to the child at `symbol` of `node`, which is the child here.
    #[inline(always)]
    fn enter(&mut self, node: InnerSeen<'g>, symbol: Symbol) {
        self.above = Some((self.parent, self.symbol));
        self.parent = ParentSeen::Inner(node);
        self.depth = self.start + node.node().prefix_len();
        self.symbol = symbol;
        self.start = self.depth + 1;
    }

    /// Goes from `site`, where nothing lives, to the range beside it, or the node that is there,
    /// and notes it in `passed`, whose probe led here; the first one was `begun`. `Some(false)`:
    /// what is beside it is not below the parent. `None` when something changed.
    fn go_aside(
        &mut self,
        site: Site<'g>,
        begun: Probe<'_>,
        order: Order,
        passed: &mut Passed,
    ) -> Option<bool> {
        let descending = order == Order::Descending;
        if let Site::Gap(gap) = site
            && gap.is_above(passed.probe(begun), self.start) == descending
        {
            // The keys of its node are next.
            passed.go_on(begun, self.start);
            gap.node.node().push_prefix(&mut passed.bytes);
            passed.padded = descending;
            self.enter(gap.node, if descending { LAST } else { END });
            return Some(true);
        }
        let ParentSeen::Inner(parent) = self.parent else {
            return Some(false);
        };
        let Some(next) = beside(parent.range(self.symbol)?, order) else {
            return Some(false);
        };
        self.symbol = next;
        passed.go_on(begun, self.depth);
        let byte = next.checked_sub(1);
        passed.bytes.extend(byte.map(|byte| byte as u8));
        passed.padded = byte.is_some() && descending;
        Some(true)
    }

    fn end_at(self, site: Site<'g>) -> Place<'g> {
        Place {
            above: self.above,
            parent: self.parent,
            symbol: self.symbol,
            depth: self.depth,
            site,
        }
    }
}

impl Descend for Radix {
    fn try_descend<'g>(
        root: &'g Root,
        guard: &'g Guard<'_>,
        probe: Probe<'_>,
    ) -> Option<Place<'g>> {
        let mut way = Way::at_root(root, guard);
        let site = way.go_down(probe)?;
        Some(way.end_at(site))
    }

    fn try_descend_past<'g>(
        root: &'g Root,
        guard: &'g Guard<'_>,
        probe: Probe<'_>,
        order: Order,
        passed: &mut Passed,
    ) -> Option<Place<'g>> {
        let mut way = Way::at_root(root, guard);
        let mut site = way.go_down(probe)?;
        while passed.ranges < MOST_PASSED
            && site.is_dead()?
            && way.go_aside(site, probe, order, passed)?
        {
            site = way.go_down(passed.probe(probe))?;
        }
        Some(way.end_at(site))
    }

    #[inline]
    fn try_find<'g>(root: &'g Root, guard: &'g Guard<'_>, key: &[u8]) -> Option<Spot<'g>> {
        match find(root.see(guard), key)?.resolve() {
            Child::Leaf(leaf) => leaf.see().map(Spot::Leaf),
            Child::Empty(mount) => Some(Spot::Empty(mount)),
            Child::Inner(_) => unreachable!("a search ends at a range"),
        }
    }
}

/// The word of the leaf or the empty range that has `key`; `None` when something changed on the
/// way. A function of its own, and words, so that all that it works with is in registers.
#[inline(never)]
fn find<'g>(root: RootSeen<'g>, key: &[u8]) -> Option<ValidWord<'g>> {
    let word = ValidWord::of_root(root)?;
    let Some(mut inner) = word.inner() else {
        return Some(word);
    };
    let mut rest = key;
    loop {
        let node = inner.see()?;
        let matched = inner.match_prefix(rest);
        if matched < inner.prefix_len() {
            return node.gap_word();
        }
        rest = &rest[matched..];
        let word = node.valid_word(first_symbol(rest))?;
        let Some(next) = word.inner() else {
            return Some(word);
        };
        inner = next;
        // An inner child covers one byte.
        rest = rest.get(1..).unwrap_or_default();
    }
}
