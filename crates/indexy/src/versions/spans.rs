//! Ranges of keys that were absent: what a sorted load leaves in place of an image of each key.
//!
//! A span holds for snapshots before its `until`, as an image does. It is left with all stripes and
//! the gate held, and no image that was left before has a larger `until`; one that is left later
//! has a larger one. So where an image and a span both speak of a key, the smaller `until` is
//! right, and of equal ones the image.
//!
//! Spans stay in memory until no open snapshot needs them: nothing spills them. What they take is
//! in the budget (I7), and has a limit of its own (`mod.rs`).
//!
//! Threads: spans do not change once readers see them. Who leaves one copies the list.

#![forbid(unsafe_code)]

use super::clock::Epoch;
use crate::mem::budget::{Budget, Holder};
use std::sync::Arc;

/// The keys from `from` up to `to`, without it, were absent until `until`.
#[derive(Debug)]
struct Span {
    from: Box<[u8]>,
    to: Box<[u8]>,
    until: Epoch,
    budget: Arc<Budget>,
}

impl Span {
    fn new(budget: &Arc<Budget>, from: &[u8], to: &[u8], until: Epoch) -> Self {
        let span = Self {
            from: from.into(),
            to: to.into(),
            until,
            budget: budget.clone(),
        };
        budget.take(Holder::Transfer, span.bytes());
        span
    }

    /// With its places in a list that readers have, and in the next one.
    fn bytes(&self) -> usize {
        size_of::<Self>() + 2 * size_of::<Placed>() + self.from.len() + self.to.len()
    }

    /// One span says what both do.
    fn joins(&self, other: &Self) -> bool {
        self.until == other.until && self.from <= other.to && other.from <= self.to
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        self.budget.give(Holder::Transfer, self.bytes());
    }
}

#[derive(Debug, Clone)]
struct Placed {
    span: Arc<Span>,
    /// Which of those up to here ends last.
    last: usize,
}

/// The spans of a tree. A copy costs nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Spans {
    /// By where they begin; `None`: there is none.
    list: Option<Arc<[Placed]>>,
    /// What they take.
    bytes: usize,
}

impl Spans {
    fn of(spans: impl Iterator<Item = Arc<Span>>) -> Self {
        let mut list: Vec<Placed> = Vec::with_capacity(spans.size_hint().1.unwrap_or(0));
        for span in spans {
            let at = list.len();
            let last = list.last().map_or(at, |before| before.last);
            let last = match list.get(last) {
                Some(longest) if longest.span.to >= span.to => last,
                _ => at,
            };
            list.push(Placed { span, last });
        }
        Self {
            bytes: list.iter().map(|placed| placed.span.bytes()).sum(),
            list: (!list.is_empty()).then(|| list.into()),
        }
    }

    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn list(&self) -> &[Placed] {
        self.list.as_deref().unwrap_or_default()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_none()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.list().len()
    }

    /// With `[from, to)`. Cost: a copy of the list.
    pub(super) fn push(&mut self, budget: &Arc<Budget>, from: &[u8], to: &[u8], until: Epoch) {
        let mut spans: Vec<_> = self.list().iter().map(|p| p.span.clone()).collect();
        let mut span = Span::new(budget, from, to, until);
        let mut at = spans.partition_point(|other| *other.from <= *from);
        for next_to in [at.checked_sub(1), Some(at)].into_iter().flatten().rev() {
            if let Some(other) = spans.get(next_to).filter(|other| other.joins(&span)) {
                let (from, to) = ((&*other.from).min(&span.from), (&*other.to).max(&span.to));
                span = Span::new(budget, from, to, until);
                spans.remove(next_to);
                at = at.min(next_to);
            }
        }
        spans.insert(at, Arc::new(span));
        *self = Self::of(spans.into_iter());
    }

    /// Drops those that no snapshot from `oldest` on needs.
    pub(super) fn collect(&mut self, oldest: Epoch) {
        let needed = |placed: &&Placed| placed.span.until > oldest;
        if !self.list().iter().all(|placed| needed(&placed)) {
            let left: Vec<_> = self.list().iter().filter(needed).collect();
            *self = Self::of(left.into_iter().map(|placed| placed.span.clone()));
        }
    }

    /// Those that begin where `begins` says so, which is up to some key, and end behind `from`.
    /// Cost: a search, and a look at each span between the first and the last of them.
    #[inline]
    fn reaching<'a>(
        &'a self,
        from: &'a [u8],
        begins: impl Fn(&[u8]) -> bool,
    ) -> impl Iterator<Item = &'a Span> {
        let list = self.list();
        let end = list.partition_point(|placed| begins(&placed.span.from));
        let before = list.get(..end).unwrap_or_default().iter().rev();
        let reach = move |placed: &&Placed| {
            list.get(placed.last)
                .is_some_and(|longest| *longest.span.to > *from)
        };
        let spans = before.take_while(reach).map(|placed| &*placed.span);
        spans.filter(move |span| *span.to > *from)
    }

    /// The `until` of those that have `key`.
    #[inline]
    fn of_key<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = Epoch> + 'a {
        let spans = self.reaching(key, move |begin| begin <= key);
        spans.map(|span| span.until)
    }

    /// The largest `until` of those that have `key`; 0: none has it.
    #[inline]
    pub(super) fn newest_of(&self, key: &[u8]) -> Epoch {
        self.of_key(key).max().unwrap_or(0)
    }

    /// The smallest `until` over `epoch` of those that have `key`.
    #[inline]
    pub(super) fn at(&self, key: &[u8], epoch: Epoch) -> Option<Epoch> {
        self.of_key(key).filter(|until| *until > epoch).min()
    }

    /// A key that one of them which is newer than `epoch` shares with `[from, to)`.
    pub(super) fn written_in<'k>(
        &'k self,
        from: &'k [u8],
        to: Option<&[u8]>,
        epoch: Epoch,
    ) -> Option<&'k [u8]> {
        let spans = self.reaching(from, |begin| to.is_none_or(|to| begin < to));
        let mut newer = spans.filter(|span| span.until > epoch);
        newer.next().map(|span| from.max(&*span.from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    /// What the spans say is what each of them, looked at, says.
    #[test]
    fn random_spans_say_what_a_list_of_all_says() {
        for seed in 0..40 {
            let mut rng = StdRng::seed_from_u64(seed);
            let budget = Arc::new(Budget::new(1 << 30));
            let (mut spans, mut all) = (Spans::default(), Vec::new());
            let mut until = 1;
            for _ in 0..60 {
                let from = rng.random_range(0..200u8);
                let to = from + rng.random_range(1..40);
                until += u64::from(rng.random_bool(0.2));
                spans.push(&budget, &[from], &[to], until);
                all.push((from, to, until));
                if rng.random_bool(0.1) {
                    let oldest = until.saturating_sub(rng.random_range(0..5));
                    spans.collect(oldest);
                    all.retain(|span| span.2 > oldest);
                }
                check(&spans, &all, until);
                assert_eq!(budget.held(Holder::Transfer), spans.bytes());
            }
            assert!(spans.len() <= all.len());
            drop(spans);
            assert_eq!(budget.held(Holder::Transfer), 0);
        }
    }

    fn check(spans: &Spans, all: &[(u8, u8, Epoch)], now: Epoch) {
        for key in (0..=240).step_by(3) {
            let has = |&&(from, to, _): &&(u8, u8, Epoch)| (from..to).contains(&key);
            let of = || all.iter().filter(has).map(|span| span.2);
            assert_eq!(spans.newest_of(&[key]), of().max().unwrap_or(0), "{key}");
            for epoch in now.saturating_sub(4)..=now {
                let expected = of().filter(|until| *until > epoch).min();
                assert_eq!(spans.at(&[key], epoch), expected, "{key} at {epoch}");
                let end = key.saturating_add(9);
                let shared =
                    |&(from, to, until): &(u8, u8, Epoch)| from < end && key < to && until > epoch;
                let from = [key];
                let found = spans.written_in(&from, Some(&[end]), epoch);
                assert_eq!(
                    found.is_some(),
                    all.iter().any(shared),
                    "{key} since {epoch}"
                );
                assert!(found.is_none_or(|found| found >= &[key][..] && found < &[end][..]));
            }
        }
        let any = all.iter().any(|span| span.2 > now.saturating_sub(1));
        let found = spans.written_in(b"", None, now.saturating_sub(1));
        assert_eq!(found.is_some(), any);
    }

    #[test]
    fn spans_that_touch_are_one() {
        let (budget, mut spans) = (Arc::new(Budget::new(1 << 30)), Spans::default());
        for n in 0..1000u32 {
            let n = if n % 2 == 0 { n / 2 } else { 999 - n / 2 };
            spans.push(&budget, &n.to_be_bytes(), &(n + 1).to_be_bytes(), 7);
        }
        assert_eq!(spans.len(), 1);
        assert!(spans.bytes() < 1000, "{}", spans.bytes());
        assert_eq!(spans.newest_of(&999u32.to_be_bytes()), 7);
        assert_eq!(spans.newest_of(&1000u32.to_be_bytes()), 0);
    }
}
