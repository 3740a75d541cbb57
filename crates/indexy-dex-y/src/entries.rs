//! A range, a chunk at a time: from the pool, and from the backing once the pool is given up.

use crate::{
    pooled::{Chunk, Pooled},
    pools::Pools,
};
use indexy::{
    Key, Result, Value,
    index_y::{IndexY, Order, YIter},
};

pub(crate) struct Entries<'a, P: Pools, const N: usize> {
    pooled: &'a Pooled<P, N>,
    backing: &'a dyn IndexY,
    order: Order,
    /// What is left of the range; `None`: nothing.
    rest: Option<(Vec<u8>, Option<Vec<u8>>)>,
    chunk: std::vec::IntoIter<(Vec<u8>, Vec<u8>)>,
    /// The rest, by the backing.
    on_disk: Option<YIter<'a>>,
}

impl<'a, P: Pools, const N: usize> Entries<'a, P, N> {
    pub(crate) fn new(
        pooled: &'a Pooled<P, N>,
        backing: &'a dyn IndexY,
        (from, to): (&[u8], Option<&[u8]>),
        order: Order,
    ) -> Self {
        Self {
            pooled,
            backing,
            order,
            rest: Some((from.to_vec(), to.map(<[u8]>::to_vec))),
            chunk: Vec::new().into_iter(),
            on_disk: None,
        }
    }

    /// Reads what comes next; `false`: the range is at its end.
    fn advance(&mut self) -> Result<bool> {
        let Some((from, to)) = self.rest.take() else {
            return Ok(false);
        };
        let Some((entries, next)): Option<Chunk> =
            self.pooled.chunk(&from, to.as_deref(), self.order)
        else {
            self.on_disk = Some(self.backing.range(&from, to.as_deref(), self.order)?);
            return Ok(true);
        };
        self.rest = next.map(|next| match self.order {
            Order::Ascending => (next, to),
            Order::Descending => (from, Some(next)),
        });
        self.chunk = entries.into_iter();
        Ok(true)
    }
}

impl<P: Pools, const N: usize> Iterator for Entries<'_, P, N> {
    type Item = Result<(Key, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.chunk.next() {
                return Some(Ok((Key::from(key), Value::from(value))));
            }
            if let Some(on_disk) = &mut self.on_disk {
                return on_disk.next();
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Read already; beyond them nothing is known.
        (self.chunk.len(), None)
    }
}
