//! A tree from sorted entries, written bottom up. Subtrees go to the memory servers in turn.

use super::{alloc::Allocator, superblock};
use crate::{
    address::Address,
    error::{Error, Result},
    node::{CAPACITY, Image, MAX_LEVEL, TreeKey},
    partition::Table,
    remote::RemoteMemory,
};
use std::{collections::VecDeque, iter::Peekable};

/// Levels of a subtree that one memory server holds: 0 to 3. Source: DEX section 3.
pub(super) const SUBTREE_LEVELS: u8 = 4;

/// What a load wrote.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Loaded {
    /// The first owners, with their lowest keys where leaves start.
    pub table: Table,
    /// Leaves.
    pub leaves: usize,
    /// Nodes above them: a cache that has room for these reads a leaf at a time.
    pub inner_nodes: usize,
}

/// Fills a pool that has no tree.
#[derive(Debug, Clone)]
pub struct BulkLoad {
    fill: usize,
    table: Table,
}

impl Default for BulkLoad {
    /// 41 entries a node (70 %), all keys to owner 0.
    fn default() -> Self {
        Self {
            fill: CAPACITY * 7 / 10 + 1,
            table: Table::whole(),
        }
    }
}

impl BulkLoad {
    /// Entries of a leaf and children of an inner node, from 2 to 58. Nodes of keys of any length
    /// are filled to so many 58ths of their room.
    pub fn fill(mut self, entries: usize) -> Self {
        self.fill = entries;
        self
    }

    /// The first owners. Their lowest keys are moved to where leaves start; with keys of any
    /// length leaves start where owners do.
    pub fn table(mut self, table: Table) -> Self {
        self.table = table;
        self
    }

    /// Writes the tree of `entries`, whose keys ascend; returns the table of owners with its keys
    /// at leaves.
    ///
    /// Cost: one write a node. Memory: 16 bytes a leaf.
    pub fn load(
        &self,
        memory: &impl RemoteMemory,
        entries: impl IntoIterator<Item = (u64, u64)>,
    ) -> Result<Table> {
        let nodes = Allocator::new(memory.servers());
        let loaded = self.load_keys(memory, &nodes, entries.into_iter().map(Ok))?;
        Ok(loaded.table)
    }

    pub(super) fn load_keys<K: TreeKey>(
        &self,
        memory: &impl RemoteMemory,
        nodes: &Allocator,
        entries: impl Iterator<Item = Result<(K, K::Value)>>,
    ) -> Result<Loaded> {
        if !(2..=CAPACITY).contains(&self.fill) {
            let what = format!("nodes of {} entries", self.fill);
            return Err(Error::Options(what));
        }
        let mut segments: Vec<(u64, u16)> = self.table.segments().map(|s| (s.0, s.2)).collect();
        let starts: Vec<K> = segments.iter().map(|s| K::lowest(s.0)).collect();
        let cuts = starts[1..].iter().rev().filter(|_| K::LOADS_CUT);
        let mut leaves = Leaves {
            entries: entries.peekable(),
            held: VecDeque::new(),
            cuts: cuts.copied().collect(),
            last: None,
        };
        let mut builder = Builder {
            memory,
            nodes,
            fill: self.fill,
            leaves: Vec::new(),
            open: vec![Vec::new()],
            planned: Vec::new(),
            subtrees: 0,
        };
        let mut low = K::MIN;
        loop {
            for (segment, start) in segments.iter_mut().zip(&starts) {
                if low <= *start {
                    segment.0 = low.prefix();
                }
            }
            let entries = leaves.gather(self.fill)?;
            let next = builder.leaf(low, entries, &mut leaves)?;
            let Some(next) = next else { break };
            leaves.cuts.pop_if(|cut| *cut == next);
            builder.make_room(next)?;
            low = next;
        }
        let table = Table::new(segments)?;
        let leaves = builder.leaves.len();
        let (root, inner_nodes) = builder.root(table.segments().count() > 1)?;
        superblock::publish(memory, root, &table)?;
        nodes.settle(memory)?;
        Ok(Loaded {
            table,
            leaves,
            inner_nodes,
        })
    }
}

/// Entries on their way into leaves.
struct Leaves<K: TreeKey, I: Iterator<Item = Result<(K, K::Value)>>> {
    entries: Peekable<I>,
    /// Taken and not placed: they come before the others.
    held: VecDeque<(K, K::Value)>,
    /// Where leaves have to start, the next one last.
    cuts: Vec<K>,
    /// The last key that was taken.
    last: Option<K>,
}

impl<K: TreeKey, I: Iterator<Item = Result<(K, K::Value)>>> Leaves<K, I> {
    /// The next key, above all that were taken.
    fn peek(&mut self) -> Result<Option<K>> {
        if let Some(entry) = self.held.front() {
            return Ok(Some(entry.0));
        }
        let key = match self.entries.peek() {
            Some(Ok(entry)) => entry.0,
            None => return Ok(None),
            Some(Err(_)) => {
                return self
                    .entries
                    .next()
                    .map_or(Ok(None), |e| e.map(|e| Some(e.0)));
            }
        };
        if self.last.is_some_and(|last| key <= last) {
            return Err(Error::Options("the keys do not ascend".into()));
        }
        Ok(Some(key))
    }

    /// The entries of a leaf, as far as they come before the next cut.
    fn gather(&mut self, fill: usize) -> Result<Vec<(K, K::Value)>> {
        let mut taken = Vec::new();
        while !K::leaf_is_loaded(&taken, fill) {
            match (self.peek()?, self.cuts.last()) {
                (None, _) => break,
                (Some(key), Some(cut)) if key >= *cut => break,
                _ => {}
            }
            let entry = match self.held.pop_front() {
                Some(entry) => Some(entry),
                None => self.entries.next().transpose()?,
            };
            self.last = entry.map(|entry| entry.0).max(self.last);
            taken.extend(entry);
        }
        Ok(taken)
    }

    /// Where the leaf after `entries` starts; `None`: there is nothing more.
    fn next_start(&mut self, entries: &[(K, K::Value)]) -> Result<Option<K>> {
        let next = self.peek()?;
        if let Some(cut) = self.cuts.last()
            && next.is_none_or(|next| *cut <= next)
        {
            return Ok(Some(*cut));
        }
        let last = entries.last().map(|entry| entry.0);
        Ok(next.map(|next| last.map_or(next, |last| K::start_between(last, next))))
    }
}

/// Writes leaves as they come, and plans the nodes above them: it knows a leaf's subtree, and so
/// its server, before it writes it.
struct Builder<'a, M, K> {
    memory: &'a M,
    nodes: &'a Allocator,
    fill: usize,
    /// Lowest keys and addresses.
    leaves: Vec<(K, u64)>,
    /// Children of the node that is filled at each level above the leaves. Inner nodes have no
    /// addresses yet.
    open: Vec<Vec<(K, u64)>>,
    /// Nodes of each level above the leaves, in order.
    planned: Vec<Vec<Planned<K>>>,
    /// Subtrees before the one that is filled.
    subtrees: usize,
}

/// An inner node to be written.
struct Planned<K> {
    children: usize,
    high: K,
    server: u16,
}

/// Stands for an address that is not known yet.
const SOME_CHILD: u64 = 0;

impl<M: RemoteMemory, K: TreeKey> Builder<'_, M, K> {
    /// Writes the leaf from `low` on; returns where the next one starts. Entries that do not fit
    /// go back.
    fn leaf<I: Iterator<Item = Result<(K, K::Value)>>>(
        &mut self,
        low: K,
        mut entries: Vec<(K, K::Value)>,
        leaves: &mut Leaves<K, I>,
    ) -> Result<Option<K>> {
        let server = (self.subtrees % self.memory.servers()) as u16;
        let node = self.nodes.take(self.memory, server)?;
        loop {
            let next = leaves.next_start(&entries)?;
            let high = next.and_then(K::before).unwrap_or(K::MAX);
            if let Some(leaf) = K::loaded_leaf(node.at(), low, high, &entries) {
                self.memory.write(node.at(), &leaf.0)?;
                self.leaves.push((low, node.at().word()));
                self.open[0].push((low, SOME_CHILD));
                node.keep();
                return Ok(next);
            }
            if let Some(entry) = entries.pop() {
                leaves.held.push_front(entry);
            }
        }
    }

    /// Closes the nodes that are full before the leaf from `next` on is written.
    fn make_room(&mut self, next: K) -> Result<()> {
        let mut height = 0;
        while K::inner_is_loaded(&self.open[height], self.fill) {
            self.close(height, next.before().unwrap_or(K::MIN))?;
            height += 1;
        }
        Ok(())
    }

    /// Plans the node over `open[height]`, up to `high`.
    fn close(&mut self, height: usize, high: K) -> Result<()> {
        if height >= usize::from(MAX_LEVEL) {
            return Err(Error::Options("the tree has too many levels".into()));
        }
        if self.open.len() == height + 1 {
            self.open.push(Vec::new());
            self.planned.push(Vec::new());
        }
        let children = std::mem::take(&mut self.open[height]);
        self.plan(height, &children, high);
        self.subtrees += usize::from(height + 2 == usize::from(SUBTREE_LEVELS));
        Ok(())
    }

    fn plan(&mut self, height: usize, children: &[(K, u64)], high: K) {
        let level = height as u8 + 1;
        let image = K::loaded_inner(Address::new(0, 0), level, children, high);
        if image.is_none() && children.len() > 1 {
            // The fences have less in common than the separators.
            let (left, right) = children.split_at(children.len() / 2);
            self.plan(height, left, right[0].0.before().unwrap_or(K::MIN));
            return self.plan(height, right, high);
        }
        let turn = match level {
            0..SUBTREE_LEVELS => self.subtrees,
            _ => self.planned[height].len(),
        };
        self.planned[height].push(Planned {
            children: children.len(),
            high,
            server: (turn % self.memory.servers()) as u16,
        });
        self.open[height + 1].extend(children.first().map(|first| (first.0, SOME_CHILD)));
    }

    /// Writes the inner nodes, level by level; returns the root, an inner node if `is_shared`, and
    /// how many inner nodes there are.
    fn root(mut self, is_shared: bool) -> Result<(Address, usize)> {
        for height in 0.. {
            let is_top = self.open.len() == height + 1 && self.open[height].len() == 1;
            if is_top && (height > 0 || !is_shared) {
                break;
            }
            self.close(height, K::MAX)?;
        }
        let mut below = self.leaves;
        for (height, planned) in self.planned.iter().enumerate() {
            let mut level = Vec::with_capacity(planned.len());
            let mut rest = &below[..];
            for inner in planned {
                let children;
                (children, rest) = rest.split_at(inner.children.min(rest.len()));
                let node = self.nodes.take(self.memory, inner.server)?;
                let image: Option<Image> =
                    K::loaded_inner(node.at(), height as u8 + 1, children, inner.high);
                let what = "an inner node has no children";
                let image = image.ok_or_else(|| Error::corrupt(node.at(), what))?;
                self.memory.write(node.at(), &image.0)?;
                level.push((children[0].0, node.at().word()));
                node.keep();
            }
            below = level;
        }
        let root = below.first().and_then(|node| Address::from_word(node.1));
        let root = root.ok_or_else(|| Error::corrupt(Address::new(0, 0), "a load has no root"))?;
        Ok((root, self.planned.iter().map(Vec::len).sum()))
    }
}
