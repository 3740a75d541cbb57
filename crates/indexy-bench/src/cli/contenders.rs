//! Which contenders take part.

use super::{arguments::Common, execute::Failure};
use crate::{
    contender::{About, only_if_named},
    registry::Registry,
    suite::Plan,
};

/// Those that are named, or all but `left_out` and those that take part only when they are named.
pub(super) fn chosen<'a>(
    registry: &'a Registry,
    common: &Common,
    left_out: &[&str],
) -> Result<Vec<&'a About>, Failure> {
    if common.contenders.is_empty() {
        return Ok(registry
            .iter()
            .filter(|a| !left_out.contains(&a.name) && !only_if_named(a.name))
            .collect());
    }
    let named = common
        .contenders
        .iter()
        .map(|name| registry.get(name).map(|e| &e.about));
    named.collect::<Result<_, _>>().map_err(Failure::from)
}

/// Takes contenders out of jobs that they have no tables for.
pub(super) fn leave_out(registry: &Registry, plan: &mut Plan) {
    plan.leave_out(|job| {
        let entry = registry.get(&job.contender).ok()?;
        Some((&entry.about, entry.refusal(job)?))
    });
}
