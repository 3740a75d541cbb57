//! Replays traces through policies, on all threads that there are: each pair alone, so that the
//! result does not depend on how many.

use super::{
    Access, Cache, LEAST_ENTRIES, Memory, PoliciesError, Policy, Settings, Size, Trace, trace,
};
use indexy::replay::SAMPLED_ONE_IN;
use serde::{Deserialize, Serialize};
use std::{
    num::NonZero,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

/// What is replayed.
#[derive(Debug)]
pub struct Plan {
    /// Names of traces of [`super::TRACES`].
    pub traces: Vec<String>,
    /// A trace of the user's, before the others.
    pub own: Option<Trace>,
    /// Policies.
    pub policies: Vec<Policy>,
    /// How large the traces are.
    pub size: Size,
    /// Bytes of entries.
    pub bytes: u64,
    /// Bytes of one.
    pub entry_bytes: u64,
}

impl Plan {
    fn settings(&self) -> Result<Settings, PoliciesError> {
        let entries = self.bytes / self.entry_bytes.max(1);
        if entries < LEAST_ENTRIES {
            return Err(PoliciesError::TooSmall {
                bytes: self.bytes,
                entries,
            });
        }
        Ok(Settings {
            bytes: self.bytes,
            entry_bytes: self.entry_bytes.max(1),
            region_divisor: None,
            sampled_one_in: SAMPLED_ONE_IN,
            seed: self.size.seed,
        })
    }

    /// Calls `each` with one trace after the other: all of them at once would not fit in memory.
    fn for_traces(&self, mut each: impl FnMut(&Trace)) -> Result<(), PoliciesError> {
        if let Some(own) = &self.own {
            each(own);
        }
        for name in &self.traces {
            let trace = trace::make(name, &self.size);
            let unknown = || PoliciesError::UnknownTrace { name: name.clone() };
            each(&trace.ok_or_else(unknown)?);
        }
        Ok(())
    }
}

/// What was counted of one replay.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Reads that count: those of the second half of the trace.
    pub reads: u64,
    /// Of these, reads that memory answered.
    pub hits: u64,
}

impl Counts {
    /// Hits of 100 reads.
    pub fn percent(&self) -> f64 {
        self.hits as f64 * 100.0 / self.reads.max(1) as f64
    }
}

/// One trace through one policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Name of the trace.
    pub trace: String,
    /// Name of the policy.
    pub policy: String,
    /// What was counted.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Replays `trace`: the first half fills memory, the second one counts.
pub(super) fn replay(trace: &Trace, cache: &mut dyn Cache) -> Counts {
    let mut counts = Counts::default();
    let warm = trace.len() / 2;
    for (index, (key, access)) in trace.iter().enumerate() {
        let hit = cache.access(key, access);
        if index >= warm && matches!(access, Access::Read | Access::Update) {
            counts.reads += 1;
            counts.hits += u64::from(hit);
        }
    }
    counts
}

/// Replays every trace of `plan` through every policy; `tell` hears of each trace that is done.
///
/// Memory: four bytes an access and up to 24 bytes a key and thread; [`Policy`] `belady` 16 bytes
/// an access more. Errors: a trace that there is not, memory for next to nothing.
pub fn run(plan: &Plan, mut tell: impl FnMut(&str)) -> Result<Vec<Outcome>, PoliciesError> {
    let settings = plan.settings()?;
    let mut outcomes = Vec::new();
    plan.for_traces(|trace| {
        let counts = on_threads(plan.policies.len(), |index| {
            let mut cache = plan.policies[index].cache(settings, trace);
            replay(trace, cache.as_mut())
        });
        let named = plan.policies.iter().zip(counts);
        outcomes.extend(named.map(|(policy, counts)| Outcome {
            trace: trace.name.clone(),
            policy: policy.name(),
            counts,
        }));
        tell(&trace.name);
    })?;
    Ok(outcomes)
}

/// Algorithm 1's tree against the coldest region first, at one size of regions and one sampling
/// rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Swept {
    /// Name of the trace.
    pub trace: String,
    /// A region holds this part of the budget.
    pub divisor: u64,
    /// One access in so many is counted.
    pub sampled_one_in: u32,
    /// With the tree.
    pub density: Counts,
    /// Without.
    pub coldest: Counts,
    /// With the tree, without second chance.
    pub density_plain: Counts,
    /// Without either.
    pub coldest_plain: Counts,
}

/// Sizes of regions that [`sweep`] tries, as parts of the budget.
pub const SWEEP_DIVISORS: [u64; 5] = [32, 128, 512, 2048, 8192];
/// Sampling rates that it tries.
pub const SWEEP_PERIODS: [u32; 4] = [1, 10, SAMPLED_ONE_IN, 1000];

/// Replays the traces of `plan` with Algorithm 1 and with the coldest region first, over sizes of
/// regions and sampling rates. Errors: those of [`run`].
pub fn sweep(plan: &Plan, mut tell: impl FnMut(&str)) -> Result<Vec<Swept>, PoliciesError> {
    const POLICIES: [&str; 4] = ["density", "coldest", "density+plain", "coldest+plain"];
    let settings = plan.settings()?;
    let periods = SWEEP_PERIODS.into_iter();
    let points: Vec<(u64, u32)> = periods
        .flat_map(|period| SWEEP_DIVISORS.map(|divisor| (divisor, period)))
        .collect();
    let mut swept = Vec::new();
    plan.for_traces(|trace| {
        let counts = on_threads(points.len() * POLICIES.len(), |index| {
            let (divisor, sampled_one_in) = points[index / POLICIES.len()];
            let Ok(Policy::Ours(ours)) = Policy::parse(POLICIES[index % POLICIES.len()]) else {
                return Counts::default();
            };
            let settings = Settings {
                region_divisor: Some(divisor),
                sampled_one_in,
                ..settings
            };
            replay(trace, &mut Memory::new(trace.keys, ours, settings))
        });
        for ((divisor, sampled_one_in), counts) in points.iter().zip(counts.chunks(4)) {
            swept.push(Swept {
                trace: trace.name.clone(),
                divisor: *divisor,
                sampled_one_in: *sampled_one_in,
                density: counts[0],
                coldest: counts[1],
                density_plain: counts[2],
                coldest_plain: counts[3],
            });
        }
        tell(&trace.name);
    })?;
    Ok(swept)
}

/// The results of `work` for `0..count`, in this order.
fn on_threads(count: usize, work: impl Fn(usize) -> Counts + Sync) -> Vec<Counts> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(vec![Counts::default(); count]);
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Relaxed);
                    if index >= count {
                        break;
                    }
                    let counts = work(index);
                    done.lock().unwrap_or_else(PoisonError::into_inner)[index] = counts;
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::{TRACES, default_policies};

    fn plan(traces: &[&str]) -> Plan {
        Plan {
            traces: traces.iter().map(|name| (*name).to_owned()).collect(),
            own: None,
            policies: default_policies(),
            size: Size {
                keys: 30_000,
                accesses: 60_000,
                seed: 1,
            },
            bytes: 5000 * 24,
            entry_bytes: 24,
        }
    }

    #[test]
    fn the_best_possible_is_the_best_and_the_same_seed_counts_the_same() {
        let names = TRACES.map(|t| t.0);
        let outcomes = run(&plan(&names), |_| ()).unwrap();
        assert_eq!(outcomes.len(), names.len() * default_policies().len());
        for of_trace in outcomes.chunks(default_policies().len()) {
            let best = of_trace
                .iter()
                .find(|o| o.policy == "belady")
                .unwrap()
                .counts;
            for outcome in of_trace {
                assert_eq!(outcome.counts.reads, best.reads);
                // It is the best over both halves, not over the second one.
                let slack = best.reads / 100;
                assert!(
                    outcome.counts.hits <= best.hits + slack,
                    "{outcome:?}: {best:?}"
                );
            }
        }
        let again = run(&plan(&names[..2]), |_| ()).unwrap();
        assert_eq!(again, outcomes[..again.len()]);
    }

    #[test]
    fn a_sweep_has_a_row_for_each_size_and_rate() {
        let plan = plan(&["side-0.99"]);
        let swept = sweep(&plan, |_| ()).unwrap();
        assert_eq!(swept.len(), SWEEP_DIVISORS.len() * SWEEP_PERIODS.len());
        assert!(
            swept
                .iter()
                .all(|s| s.density.hits > 0 && s.coldest.hits > 0)
        );
    }

    #[test]
    fn what_cannot_be_replayed_is_refused() {
        let small = Plan {
            bytes: 100,
            ..plan(&["tatp"])
        };
        let error = run(&small, |_| ()).unwrap_err();
        assert!(matches!(error, PoliciesError::TooSmall { entries: 4, .. }));
        let error = run(&plan(&["zipf"]), |_| ()).unwrap_err();
        assert!(
            error.to_string().contains("valid ones are: zipf-0.5, "),
            "{error}"
        );
    }
}
