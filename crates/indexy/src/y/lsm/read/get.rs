//! Point reads: the partition in memory, then its tables from the newest on, each by its filter.

use crate::{
    error::Result,
    key::Value,
    y::lsm::{
        stored::Stored,
        table::{Answer, FilterUse, hash_of},
        tree::{FilterUses, LsmY},
        version::Partition,
    },
};

impl LsmY {
    /// The newest value of `key`.
    ///
    /// Cost: a search of the partitions in memory. For each layer over the key, and for the base: a
    /// page of the filter, and where that does not deny the key, inner pages and the leaf. Inner
    /// pages and filters in use stay in frames, so a key in the base costs one read of the device;
    /// so does an absent one where the base's filters do not fit.
    pub(in crate::y::lsm) fn get_newest(&self, key: &[u8]) -> Result<Option<Value>> {
        let version = self.versions.current();
        let Some(partition) = version.partition(key) else {
            return Ok(None);
        };
        let hash = hash_of(key);
        let uses = self.filter_uses();
        let mut in_vain = 0;
        let mut newest = None;
        for (table, filter) in tables_for(partition, key, uses) {
            let answer = table.table().ask(key, hash, filter.how)?;
            if filter.of_base {
                let absent = matches!(answer, Answer::Denied | Answer::Nothing);
                self.absent.note(hash, absent);
            }
            match answer {
                Answer::Denied => {}
                Answer::Nothing => in_vain += 1,
                Answer::Deleted => break,
                Answer::Value(value) => {
                    newest = Some(value);
                    break;
                }
            }
        }
        if in_vain > 0 && !partition.layers.is_empty() {
            partition.reads().waste(in_vain);
        }
        Ok(newest)
    }
}

/// How the filter of a table is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) how: FilterUse,
    pub(super) of_base: bool,
}

/// The tables that may have `key`, newest first, and how their filters are asked.
pub(super) fn tables_for<'p>(
    partition: &'p Partition<Stored>,
    key: &'p [u8],
    uses: FilterUses,
) -> impl Iterator<Item = (&'p Stored, Asked)> {
    let of = move |table, of_base| Asked {
        how: uses.of(table, of_base),
        of_base,
    };
    let over = partition
        .layers
        .iter()
        .filter(move |table| table.table().meta().spans(key))
        .map(move |table| (&**table, of(table, false)));
    let base = partition.base_for(key);
    over.chain(base.map(move |table| (&**table, of(table, true))))
}
