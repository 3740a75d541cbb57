//! Compaction: the pages of the file's end move to free places in front, and the end is cut off.
//!
//! A *pass* goes through the leaves in the order of keys, a stretch of them a step; where a leaf
//! has large values, one step may end, and the next begin, within it. A page that lies behind the
//! *aim*, where the file would end if it had no holes, is written anew in front of it, and so is an
//! extent. The first pass also fills leaves up that are less than seven tenths full. A step is a
//! run that changes no entry: its new version is published and made durable, so that the places of
//! what moved are free for the next step, and a crash finds the one version or the other (I4).
//!
//! An extent needs free pages that follow one another. So from the second pass on the nodes of the
//! tree are packed together at the beginning, as far as there is room, and extents go to any place
//! in front of their own. One that is longer than all holes goes to the end of the file, once, and
//! comes back when its old place is a part of a hole. What has found no place after [`MOST_PASSES`]
//! stays.
//! Threads: one, which holds `maintaining`. Runs and readers go on between two steps.

use super::{pages::Moves, run::Run};
use crate::{
    error::Result,
    y::{
        contract::Maintained,
        page::{
            PageNo,
            build::{Bound, Content, Entry},
            filling::filled_bytes,
            node::Far,
        },
        paged::{file::extent, pass::Pass, tree::PagedY},
    },
};
use std::cmp::Ordering;

/// What a step looks at and writes, in bytes, about.
const STEP_BYTES: u64 = 8 << 20;
const MOST_PASSES: u32 = 7;
/// From this pass on extents are packed, too, and in this one those that block each other make way.
const PACKING: u32 = 3;
const MAKING_WAY: u32 = 4;
/// Commits at the end of a pass: the map moves, and what it left is cut off.
const LAST_COMMITS: usize = 3;

impl PagedY {
    /// One step. The caller holds `maintaining`, of which this is the state.
    pub(crate) fn compact_step(&self, pass: &mut Pass) -> Result<Maintained> {
        let step = self.step_of(pass);
        self.space.lock().clear_aim();
        if step.is_err() {
            *pass = Pass::default();
        }
        step
    }

    fn step_of(&self, pass: &mut Pass) -> Result<Maintained> {
        if pass.number == 0 {
            self.cut_end()?;
            if self.left() == pass.left {
                return Ok(Maintained::Idle);
            }
            pass.number = 1;
        }
        let aim = self.set_aim();
        let nodes = match pass.number {
            1 => aim,
            _ => aim.saturating_sub(pass.known_extents),
        };
        let moves = Moves {
            aim,
            nodes,
            extents: if pass.number < PACKING { aim } else { nodes },
            makes_way: pass.number == MAKING_WAY,
            dense: pass.number == 1,
        };
        match self.move_pages(pass, moves)? {
            Some(next) => {
                pass.next = next;
                self.commit()?;
            }
            None => {
                let is_last = self.cut_end()? || pass.number >= MOST_PASSES;
                *pass = Pass {
                    number: if is_last { 0 } else { pass.number + 1 },
                    next: Vec::new(),
                    extents: 0,
                    known_extents: pass.extents,
                    left: self.left(),
                };
                if is_last {
                    return Ok(Maintained::Idle);
                }
            }
        }
        self.reap();
        Ok(Maintained::More)
    }

    /// What tells whether something has changed since the last pass. Places that a reader kept busy
    /// then are free when it has gone.
    fn left(&self) -> (PageNo, u64) {
        let free = self.space.lock().free_pages();
        (self.version.load().root.page, free)
    }

    /// Where the file would end if it had no holes. What is written until the step ends goes in
    /// front.
    fn set_aim(&self) -> PageNo {
        let committed = self.committed.lock();
        let map = committed.map.pages().len() as u64;
        self.space.lock().set_aim(map)
    }

    /// A run over the leaves where `pass` is, which changes no entry; returns where the next one
    /// goes on.
    fn move_pages(&self, pass: &mut Pass, moves: Moves) -> Result<Option<Vec<u8>>> {
        let _one_writer = self.writing.lock();
        self.writable()?;
        let mut next = None;
        self.apply(|run| {
            let leaves = STEP_BYTES / self.pages.file.page_bytes as u64;
            next = run.compact(&pass.next, moves, leaves)?;
            pass.extents += run.path.pages.extent_pages;
            run.finish()
        })?;
        Ok(next)
    }

    /// Makes the present version durable, and cuts off what is free at the end of the file. Whether
    /// it ends where it should.
    fn cut_end(&self) -> Result<bool> {
        for _ in 0..LAST_COMMITS {
            self.set_aim();
            self.commit()?;
            self.reap();
            self.shrink()?;
        }
        Ok(self.set_aim() >= self.space.lock().end())
    }
}

impl Run<'_> {
    /// Moves what lies behind the aim, from `from` on: so many leaves, or as many pages of extents,
    /// and what remains of one. Returns where to go on.
    pub(super) fn compact(
        &mut self,
        from: &[u8],
        moves: Moves,
        leaves: u64,
    ) -> Result<Option<Vec<u8>>> {
        if self.base.root.page == 0 {
            return Ok(None);
        }
        self.path.pages.moves = Some(moves);
        let mut at = from.to_vec();
        for looked in 1.. {
            self.go_to(&at)?;
            let within = self.compact_leaf(&at, moves, leaves)?;
            if within.is_some() {
                return Ok(within);
            }
            let to = self.leaf.as_ref().and_then(|leaf| leaf.to.clone());
            match to {
                Some(next) if looked + self.path.pages.moved_pages < leaves => at = next,
                end => return Ok(end),
            }
        }
        Ok(None)
    }

    /// Moves what the entries of the open leaf have behind the aim, from the first of `at` or
    /// behind it on. Returns where to go on if `most` pages were moved before the last one.
    fn compact_leaf(&mut self, at: &[u8], moves: Moves, most: u64) -> Result<Option<Vec<u8>>> {
        let capacity = self.path.pages.capacity();
        let Some(mut leaf) = self.leaf.take() else {
            return Ok(None);
        };
        let mut rest: Vec<Entry> = leaf.rest.by_ref().collect();
        let begin = self.first_of(&rest, at)?;
        let sparse = leaf.to.is_some() && moves.joins(filled_bytes(&rest), capacity);
        let mut changed = sparse
            || leaf
                .unchanged
                .is_some_and(|page| self.path.pages.moves_page(page));
        let mut next = None;
        if begin == 0 {
            changed |= self.move_bound(&mut leaf.from, moves)?;
        }
        for entry in rest.iter_mut().skip(begin) {
            if self.path.pages.moved_pages >= most {
                next = Some(entry.key.whole(&|far| self.path.pages.output.fetch(far))?);
                break;
            }
            changed |= self.move_bound(&mut entry.key, moves)?;
            if let Content::Far(far) = &mut entry.value {
                changed |= self.move_far(far, moves)?;
            }
        }
        leaf.rest = rest.into_iter().peekable();
        if changed {
            self.path.pages.removed.extend(leaf.unchanged.take());
        }
        self.leaf = Some(leaf);
        Ok(next)
    }

    /// The place of the first entry of `key` or behind it.
    fn first_of(&self, entries: &[Entry], key: &[u8]) -> Result<usize> {
        let fetch = |far| self.path.pages.output.fetch(far);
        for (i, entry) in entries.iter().enumerate() {
            if entry.key.compare(key, &fetch)? != Ordering::Less {
                return Ok(i);
            }
        }
        Ok(entries.len())
    }

    fn move_bound(&mut self, bound: &mut Bound, moves: Moves) -> Result<bool> {
        match &mut bound.far {
            Some(far) => self.move_far(far, moves),
            None => Ok(false),
        }
    }

    /// Moves an extent that reaches behind the aim, if there is a place for it; whether it did.
    fn move_far(&mut self, far: &mut Far, moves: Moves) -> Result<bool> {
        let Some(pages) = extent::pages(&self.path.pages.y.pages.file, *far) else {
            return Ok(false);
        };
        self.path.pages.extent_pages += pages.end - pages.start;
        if pages.end <= moves.extents {
            return Ok(false);
        }
        let end = moves.makes_way && pages.end > moves.aim;
        let output = &mut self.path.pages.output;
        let moved = output.move_extent(*far, pages.start, end)?;
        let Some(moved) = moved else {
            return Ok(false);
        };
        self.path.pages.moved_pages += pages.end - pages.start;
        self.path.pages.removed.extend(pages);
        *far = moved;
        Ok(true)
    }
}
