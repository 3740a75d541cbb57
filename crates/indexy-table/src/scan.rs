//! Scans: the rows of a query, over a snapshot or within a transaction.
//!
//! Entries that do not have all that is wanted are read in chunks, and their rows looked up
//! together. The first chunks are small, so that a caller who takes one row pays for few; so are
//! those of large rows (`ahead.rs`).

#[cfg(feature = "arrow")]
use crate::value::Borrowed;
use crate::{
    ahead::Ahead,
    definition::Definition,
    entry::{Entries, Projection},
    error::{Error, Result},
    layout::Layout,
    query::{Plan, Query},
    record::Record,
};
use indexy::{Key, Range, Snapshot, Transaction, TransactionRange, Tree};
use std::{collections::VecDeque, fmt, ops::Bound, sync::Arc};

/// What a scan reads.
pub(crate) enum Source<'a> {
    Snapshot(Snapshot),
    Transaction(&'a Transaction),
}

type Entry = (Key, indexy::Value);

/// Entries of a tree, in order.
enum Cursor<'a> {
    Single(Option<Entry>),
    Snapshot(Box<Range>),
    Transaction(Box<TransactionRange<'a>>),
}

/// The rows of a query, in its order. After an error it is at its end.
///
/// [`Query`] has an example. One over a snapshot keeps it open.
pub struct Rows<'a> {
    source: Source<'a>,
    layout: Arc<Layout>,
    plan: Plan,
    /// Of what is wanted: in the entries, or if these do not have it all in the rows.
    projection: Projection,
    cursor: Cursor<'a>,
    /// Rows that were looked up ahead.
    ready: VecDeque<Entry>,
    /// What stands behind them.
    failed: Option<Error>,
    ahead: Ahead,
    /// How many entries may still be read.
    left: u64,
}

impl fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("table", &self.layout.name)
            .finish_non_exhaustive()
    }
}

impl<'a> Source<'a> {
    fn get(&self, tree: &Tree, key: &[u8]) -> Result<Option<indexy::Value>> {
        Ok(match self {
            Self::Snapshot(snapshot) => snapshot.get(tree, key)?,
            Self::Transaction(tx) => tx.get(tree, key)?,
        })
    }

    /// As `get`; a key that is longer than any can be is absent.
    fn get_if_possible(&self, tree: &Tree, key: &[u8]) -> Result<Option<indexy::Value>> {
        match self.get(tree, key) {
            Err(Error::Db(indexy::Error::KeyTooLong { .. })) => Ok(None),
            found => found,
        }
    }

    fn multi_get(&self, tree: &Tree, keys: &[Vec<u8>]) -> Result<Vec<Option<indexy::Value>>> {
        Ok(match self {
            Self::Snapshot(snapshot) => snapshot.multi_get(tree, keys)?,
            Self::Transaction(tx) => tx.multi_get(tree, keys)?,
        })
    }

    fn range(&self, tree: &Tree, plan: &Plan) -> Cursor<'a> {
        let to = plan.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let range = (Bound::Included(&plan.from[..]), to);
        match self {
            Self::Snapshot(snapshot) => {
                Cursor::Snapshot(Box::new(snapshot.range::<&[u8]>(tree, range)))
            }
            Self::Transaction(tx) => Cursor::Transaction(Box::new(tx.range::<&[u8]>(tree, range))),
        }
    }
}

impl Cursor<'_> {
    fn next(&mut self, reversed: bool) -> Option<indexy::Result<Entry>> {
        match (self, reversed) {
            (Self::Single(entry), _) => entry.take().map(Ok),
            (Self::Snapshot(range), false) => range.next(),
            (Self::Snapshot(range), true) => range.next_back(),
            (Self::Transaction(range), false) => range.next(),
            (Self::Transaction(range), true) => range.next_back(),
        }
    }
}

impl<'a> Rows<'a> {
    pub(crate) fn new(source: Source<'a>, layout: &Arc<Layout>, query: &Query) -> Result<Self> {
        let plan = Plan::new(layout, query)?;
        let tree = &plan.entries(layout).tree;
        let cursor = if plan.limit == 0 {
            Cursor::Single(None)
        } else if plan.single {
            let found = source.get_if_possible(tree, &plan.from)?;
            Cursor::Single(found.map(|value| (Key::new(&plan.from), value)))
        } else {
            source.range(tree, &plan)
        };
        Ok(Self {
            source,
            layout: layout.clone(),
            left: plan.limit,
            projection: match plan.covered {
                true => plan.entries(layout).project(&plan.wanted),
                false => layout.rows.project(&plan.wanted),
            },
            plan,
            cursor,
            ready: VecDeque::new(),
            failed: None,
            ahead: Ahead::new(),
        })
    }

    /// Numbers of the columns of each record.
    #[cfg(feature = "arrow")]
    pub(crate) fn wanted(&self) -> &[usize] {
        &self.plan.wanted
    }

    /// Name of the table.
    #[cfg(feature = "arrow")]
    pub(crate) fn table(&self) -> &str {
        &self.layout.name
    }

    fn next_entry(&mut self) -> Result<Option<Entry>> {
        if self.left == 0 {
            return Ok(None);
        }
        let entry = self.cursor.next(self.plan.reversed).transpose()?;
        self.left = if entry.is_some() { self.left - 1 } else { 0 };
        Ok(entry)
    }

    /// The next entry that has all that is wanted.
    fn next_whole(&mut self) -> Result<Option<Entry>> {
        if self.plan.covered {
            return self.next_entry();
        }
        if self.ready.is_empty() && self.failed.is_none() {
            self.failed = self.look_up().err();
        }
        match self.ready.pop_front() {
            None => self.failed.take().map_or(Ok(None), Err),
            row => Ok(row),
        }
    }

    /// The entries that `next_whole` returns.
    fn whole(&self) -> &Entries {
        match self.plan.covered {
            true => self.plan.entries(&self.layout),
            false => &self.layout.rows,
        }
    }

    fn step(&mut self) -> Result<Option<Record>> {
        let Some((key, value)) = self.next_whole()? else {
            return Ok(None);
        };
        let entry = (&key[..], &value[..]);
        let values = self.layout.read(self.whole(), entry, &self.projection)?;
        Ok(Some(Record::new(&self.plan.names, values)))
    }

    /// Calls `see` for each column of the next row, with its place; `false`: there is no row.
    /// Columns that are wanted twice are not seen again: see [`Rows::copies`].
    #[cfg(feature = "arrow")]
    pub(crate) fn visit_next(&mut self, see: impl FnMut(usize, Borrowed<'_>)) -> Result<bool> {
        let Some((key, value)) = self.next_whole()? else {
            return Ok(false);
        };
        let entry = (&key[..], &value[..]);
        self.layout
            .visit(self.whole(), entry, &self.projection, see)?;
        Ok(true)
    }

    /// Columns that are wanted again: the first place, and another.
    #[cfg(feature = "arrow")]
    pub(crate) fn copies(&self) -> &[(usize, usize)] {
        &self.projection.copies
    }

    /// Reads a chunk of entries and their rows. After an error those before it are there.
    fn look_up(&mut self) -> Result<()> {
        let mut keys = Vec::new();
        let mut failed = Ok(());
        while keys.len() < self.ahead.rows() {
            match self.next_row_key() {
                Ok(Some(key)) => keys.push(key),
                Ok(None) => break,
                Err(error) => {
                    failed = Err(error);
                    break;
                }
            }
        }
        let (found, read) = self.rows_of(&keys);
        let sizes = found.iter().flatten().map(|row| row.len());
        self.ahead.saw(sizes.max().unwrap_or(0));
        for (key, row) in keys.iter().zip(found) {
            let row = row.ok_or_else(|| {
                Error::corrupt(&self.layout.name, "an entry of an index without its row")
            })?;
            self.ready.push_back((Key::new(key), row));
        }
        read.and(failed)
    }

    /// The rows of these keys, as many as can be read before one that cannot.
    fn rows_of(&self, keys: &[Vec<u8>]) -> (Vec<Option<indexy::Value>>, Result<()>) {
        let rows = &self.layout.rows.tree;
        if keys.len() > 1
            && let Ok(found) = self.source.multi_get(rows, keys)
        {
            return (found, Ok(()));
        }
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            match self.source.get(rows, key) {
                Ok(row) => found.push(row),
                Err(error) => return (found, Err(error)),
            }
        }
        (found, Ok(()))
    }

    /// The key of the row of the next entry.
    fn next_row_key(&mut self) -> Result<Option<Vec<u8>>> {
        let Some((key, value)) = self.next_entry()? else {
            return Ok(None);
        };
        let entries = self.plan.entries(&self.layout);
        let Definition {
            columns,
            primary_key,
            ..
        } = &self.layout.definition;
        let row_key = entries.row_key(columns, (&key, &value), primary_key);
        let row_key = row_key.map_err(|what| Error::corrupt(&self.layout.name, what))?;
        Ok(Some(row_key))
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.left = 0;
            self.ready.clear();
            self.failed = None;
        }
        step.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Index, Schema, Tables, Type};

    /// Of large rows only few are looked up ahead.
    #[test]
    fn large_rows_are_not_held_in_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let db = indexy::Db::open(dir.path(), indexy::Options::new(64 << 20)).unwrap();
        let schema = Schema::new("t")
            .column("id", Type::U64)
            .column("n", Type::I64)
            .column("data", Type::Bytes)
            .primary_key(["id"])
            .index("by_n", Index::on(["n"]));
        let table = Tables::open(&db).unwrap().create_table(schema).unwrap();
        for id in 0..200u64 {
            table.insert((id, -(id as i64), vec![7; 1 << 20])).unwrap();
        }
        let mut rows = table.scan(&Query::index("by_n")).unwrap();
        let (mut seen, mut most) = (0, 0);
        while let Some(row) = rows.next() {
            row.unwrap();
            seen += 1;
            most = most.max(rows.ready.iter().map(|(_, row)| row.len()).sum());
        }
        assert_eq!(seen, 200);
        assert!(most <= 4 << 20, "{most} bytes ahead");
    }
}
