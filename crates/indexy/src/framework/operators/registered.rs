//! The operators that a program brings, by the names under which trees remember them.

#![forbid(unsafe_code)]

use super::{
    named::{MergeOperator, check_name},
    own::Merge,
    run::Operator,
};
use crate::error::Result;
use std::{
    collections::BTreeMap,
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

/// The operators that a program registered, by name.
#[derive(Clone, Default)]
pub(crate) struct Registered(BTreeMap<String, Arc<dyn Merge>>);

/// So that `Options` may cross `catch_unwind`: operators are pure.
impl UnwindSafe for Registered {}
impl RefUnwindSafe for Registered {}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The same operators, not others that do the same.
impl PartialEq for Registered {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&Arc<dyn Merge>, &Arc<dyn Merge>)| Arc::ptr_eq(a, b);
        self.0.keys().eq(other.0.keys()) && self.0.values().zip(other.0.values()).all(same)
    }
}

impl Eq for Registered {}

impl Registered {
    /// The last one registered under a name counts. Errors: `InvalidOption`.
    pub(crate) fn add(&mut self, operator: Arc<dyn Merge>) -> Result<()> {
        let name = operator.name().to_string();
        check_name(&name)?;
        self.0.insert(name, operator);
        Ok(())
    }

    /// What runs `operator`; `None`: this program has none of that name.
    pub(crate) fn operator(&self, operator: &MergeOperator) -> Option<Operator> {
        Some(match operator {
            MergeOperator::AddU64 => Operator::AddU64,
            MergeOperator::AddI64 => Operator::AddI64,
            MergeOperator::Max => Operator::Max,
            MergeOperator::Append { separator, limit } => Operator::Append {
                separator: separator.clone(),
                limit: *limit,
            },
            MergeOperator::Own(name) => Operator::Own(self.0.get(name)?.clone()),
        })
    }
}
