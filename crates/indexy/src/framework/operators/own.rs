//! An operator that the program brings.

#![forbid(unsafe_code)]

/// A merge operator of your own; register it with
/// [`Options::register_merge`](crate::Options::register_merge).
///
/// All methods must be pure: the same answer for the same bytes, now and after the next open.
/// They run in threads of callers and of the database, with locks held: they must not call the
/// database, wait, or panic. A panic in a thread of the database poisons it.
///
/// ```
/// use indexy::{Db, Merge, MergeOperator, Options, TreeOptions};
/// use std::sync::Arc;
///
/// /// Values and operands are bit sets.
/// struct Union;
///
/// impl Merge for Union {
///     fn name(&self) -> &str {
///         "union-of-bits"
///     }
///     fn merge(&self, _key: &[u8], base: Option<&[u8]>, operand: &[u8]) -> Vec<u8> {
///         self.combine(_key, base.unwrap_or_default(), operand)
///     }
///     fn combine(&self, _key: &[u8], earlier: &[u8], later: &[u8]) -> Vec<u8> {
///         let len = earlier.len().max(later.len());
///         let bits = |of: &[u8], i| of.get(i).copied().unwrap_or(0);
///         (0..len).map(|i| bits(earlier, i) | bits(later, i)).collect()
///     }
///     fn is_bounded(&self) -> bool {
///         true
///     }
/// }
///
/// # let dir = tempfile::tempdir()?;
/// let db = Db::open(dir.path(), Options::new(4 << 20).register_merge(Arc::new(Union))?)?;
/// let flags = TreeOptions::new().merge_operator(MergeOperator::Own("union-of-bits".into()));
/// let tree = db.tree_with("flags", flags)?;
/// tree.merge("ann", [0b01])?;
/// tree.merge("ann", [0b10])?;
/// assert_eq!(tree.get("ann")?.unwrap(), [0b11]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Merge: Send + Sync + 'static {
    /// The name under which databases remember it: 1..=255 bytes. Another behaviour needs another
    /// name.
    fn name(&self) -> &str;

    /// Whether `operand` can be merged; `Err` says why not, and
    /// [`Tree::merge`](crate::Tree::merge) returns that as `MergeRefused`. Default: it can.
    fn check(&self, key: &[u8], operand: &[u8]) -> Result<(), String> {
        let _ = (key, operand);
        Ok(())
    }

    /// The value that `operand` makes of `base`, the value of `key`; `None`: the key is absent. It
    /// must have an answer for every `base`: that may have been inserted as anything. An answer
    /// over 128 KiB, or longer than the disk index takes, leaves `base` as it is; a later operand
    /// may still do something.
    fn merge(&self, key: &[u8], base: Option<&[u8]>, operand: &[u8]) -> Vec<u8>;

    /// The operand that does what `earlier` and then `later` do:
    /// `merge(merge(base, earlier), later) == merge(base, combine(earlier, later))`.
    fn combine(&self, key: &[u8], earlier: &[u8], later: &[u8]) -> Vec<u8>;

    /// Whether [`merge`](Merge::merge) never has an answer over its limit, unless `base` is over
    /// it, and then always. `true`: operands that wait for one key are [combined](Merge::combine),
    /// and take the room of one. `false`: each is kept until it meets the value, because each fits
    /// or does not by itself; when they take more than 4 KiB, [`Tree::merge`](crate::Tree::merge)
    /// reads the key. Default: `false`. A wrong `true` lets what a merge does depend on when it
    /// meets its value.
    fn is_bounded(&self) -> bool {
        false
    }
}
