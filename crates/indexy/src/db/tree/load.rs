//! Sorted keys straight into the disk index.

#![forbid(unsafe_code)]

use super::reads::Tree;
use crate::{
    db::handle::updating,
    error::{Error, Result},
    y::{RunEntry, RunSource},
};

/// Payload of a run: a few are less to merge than many, and a tree that is read meanwhile is not
/// held up for long by one.
const RUN_BYTES: usize = 48 << 20;

impl Tree {
    /// Writes sorted entries straight to the disk index; returns how many. Their keys ascend, and
    /// the tree has no key from the first of them on.
    ///
    /// The fast way to fill a tree: nothing goes through memory or the log. It is not atomic: after
    /// an error or a crash the first so many entries may be there. When it returns, all of them are
    /// durable. What others write meanwhile to the same keys may win or lose.
    ///
    /// Cost: the entries are written once. Errors: those of [`Tree::insert`]; `Unsupported` where
    /// keys do not ascend or the tree has keys there: what came before is written.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(4 << 20))?;
    /// # let tree = db.tree("t")?;
    /// let sorted = (0..1000u32).map(|n| (n.to_be_bytes(), n.to_string()));
    /// assert_eq!(tree.load_sorted(sorted)?, 1000);
    /// assert_eq!(tree.get(7u32.to_be_bytes())?.unwrap(), b"7");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load_sorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        let core = self.at.core();
        self.at.live()?;
        core.check_writable()?;
        updating::check(&**core)?;
        let mut entries = entries.into_iter().peekable();
        let Some((first, _)) = entries.peek() else {
            return Ok(0);
        };
        if self.range(first.as_ref()..).next().transpose()?.is_some() {
            return Err(Error::Unsupported {
                what: "to load sorted keys where the tree has keys".into(),
            });
        }
        let mut loaded = 0;
        let mut last: Option<Vec<u8>> = None;
        while let Some((from, _)) = entries.peek() {
            let from = from.as_ref().to_vec();
            if last.as_ref().is_some_and(|last| *last >= from) {
                return Err(unsorted());
            }
            let mut source = Stretch {
                tree: self,
                entries: &mut entries,
                last: &mut last,
                loaded: &mut loaded,
            };
            self.at
                .alive(self.at.joined().load_run(&from, &mut source))?;
        }
        self.at.alive(self.at.joined().writer.make_durable())?;
        Ok(loaded)
    }
}

fn unsorted() -> Error {
    Error::Unsupported {
        what: "to load keys that do not ascend".into(),
    }
}

/// The next entries, as many as make a run.
struct Stretch<'a, I: Iterator> {
    tree: &'a Tree,
    entries: &'a mut std::iter::Peekable<I>,
    /// The key that came last.
    last: &'a mut Option<Vec<u8>>,
    loaded: &'a mut u64,
}

impl<K: AsRef<[u8]>, V: AsRef<[u8]>, I: Iterator<Item = (K, V)>> RunSource for Stretch<'_, I> {
    fn drain(&mut self, sink: &mut dyn FnMut(RunEntry<'_>) -> Result<()>) -> Result<()> {
        let mut bytes = 0;
        while bytes < RUN_BYTES {
            let Some((key, value)) = self.entries.next() else {
                break;
            };
            let (key, value) = (key.as_ref(), value.as_ref());
            self.tree.at.check_key(key)?;
            self.tree.at.check_value(value.len())?;
            match self.last {
                Some(last) if &last[..] >= key => return Err(unsorted()),
                Some(last) => {
                    last.clear();
                    last.extend_from_slice(key);
                }
                None => *self.last = Some(key.to_vec()),
            }
            sink((key, Some(value)))?;
            bytes += key.len() + value.len();
            *self.loaded += 1;
        }
        Ok(())
    }

    /// Nothing of it is in the log.
    fn before_publish(&mut self) -> Result<()> {
        Ok(())
    }
}
