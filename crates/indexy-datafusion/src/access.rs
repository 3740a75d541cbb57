//! Which index answers a scan, and between which bounds: a pure function of the filters.
//!
//! Bounds are a beginning of the index's columns that equals given values, which may be several
//! lists of them (`IN`), and then a range of one more column. What the bounds keep exactly is not
//! looked at again; all other filters are applied to what is read.
//!
//! The choice is by cost, in rows read in order. A row that has to be looked up costs
//! [`LOOK_UP_COST`]. How many rows bounds leave is a guess by their form: there are no statistics.

use crate::{
    condition::{Columns, Condition, Kind},
    paths::Path,
};
use indexy_table::{Query, Type, Value};

/// More lists of values than these are no bounds.
const MAX_POINTS: usize = 1024;
/// Cost of a row that an index leads to, against that of one that is next.
const LOOK_UP_COST: f64 = 8.0;
/// Cost of a further range.
const SEEK_COST: f64 = 8.0;
/// Tables are taken for at least as large, so that small ones are read as large ones are.
const LEAST_ROWS: f64 = 10_000.0;

/// What part of the rows bounds leave, by their form.
const OF_VALUE: f64 = 0.005;
const OF_BOOL: f64 = 0.5;
const OF_RANGE: f64 = 0.05;
const OF_HALF_OPEN_RANGE: f64 = 0.3;
const OF_NOT_NULL: f64 = 0.9;

/// An end of a range.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Edge {
    pub value: Value,
    pub inclusive: bool,
}

/// A range of keys: those that begin with `prefix`, and of these from and to values of the next
/// column.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Bounds {
    pub prefix: Vec<Value>,
    pub from: Option<Edge>,
    pub to: Option<Edge>,
}

impl Bounds {
    /// The rows of `query` within these bounds.
    pub(crate) fn apply(&self, mut query: Query) -> Query {
        query = query.prefix(&self.prefix[..]);
        query = match self.from.clone() {
            None => query,
            Some(edge) if edge.inclusive => query.from(edge.value),
            Some(edge) => query.after(edge.value),
        };
        match self.to.clone() {
            None => query,
            Some(edge) if edge.inclusive => query.up_to(edge.value),
            Some(edge) => query.before(edge.value),
        }
    }
}

/// How a scan reads its table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Access {
    /// Number of the path.
    pub path: usize,
    /// Ascending, without a common key. All have prefixes of one length.
    pub bounds: Vec<Bounds>,
    /// By filter: whether the bounds keep it.
    pub kept: Vec<bool>,
    /// No row is looked up.
    pub covered: bool,
    /// How many rows there are, about.
    pub rows: f64,
    /// By column: there is no NULL between the bounds.
    pub not_null: Vec<bool>,
}

/// A filter of a scan.
#[derive(Debug)]
pub(crate) struct Filter {
    /// The same as conditions; `None`: it is never kept by bounds.
    pub conditions: Option<Vec<Condition>>,
    /// Columns that it reads.
    pub columns: Vec<usize>,
}

/// What a scan asks of its table.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub columns: &'a Columns,
    pub filters: &'a [Filter],
    /// Columns that are returned.
    pub projection: &'a [usize],
    /// Rows of the table, about.
    pub rows: u64,
}

/// The cheapest access; the first of equal ones.
pub(crate) fn choose(paths: &[Path], asked: &Asked<'_>) -> Access {
    let all = (0..paths.len()).map(|at| narrow(paths, at, asked));
    let cost = |access: &Access| {
        let free = access.covered || paths[access.path].is_primary();
        let each = if free { 1.0 } else { LOOK_UP_COST };
        access.rows * each + access.bounds.len() as f64 * SEEK_COST
    };
    let best = all.min_by(|a, b| cost(a).total_cmp(&cost(b)));
    best.unwrap_or_else(|| narrow(paths, 0, asked))
}

/// The access of one path: as many of its columns as filters bound.
pub(crate) fn narrow(paths: &[Path], path: usize, asked: &Asked<'_>) -> Access {
    let mut narrowing = Narrowing::new(&paths[path], asked);
    let ended = paths[path]
        .key
        .iter()
        .try_for_each(|&column| narrowing.column(column));
    debug_assert!(ended.is_none() || narrowing.range == (None, None));
    let kept: Vec<bool> = narrowing.kept().collect();
    let left = asked.filters.iter().zip(&kept).filter(|(_, kept)| !**kept);
    let left = left.flat_map(|(filter, _)| &filter.columns);
    let wanted = asked.projection.iter().chain(left).copied();
    let (from, to) = narrowing.range.clone();
    let bounds = narrowing.points.iter().map(|point| Bounds {
        prefix: point.clone(),
        from: from.clone(),
        to: to.clone(),
    });
    Access {
        path,
        covered: paths[path].covers(wanted),
        rows: narrowing.rows(),
        bounds: bounds.collect(),
        not_null: narrowing.not_null.clone(),
        kept,
    }
}

/// Bounds as they are found, column by column.
struct Narrowing<'a> {
    path: &'a Path,
    asked: &'a Asked<'a>,
    /// All conditions, the filter of each, and whether the bounds keep it.
    conditions: Vec<(usize, &'a Condition, bool)>,
    points: Vec<Vec<Value>>,
    range: (Option<Edge>, Option<Edge>),
    not_null: Vec<bool>,
    /// What part of the rows is left.
    part: f64,
}

impl<'a> Narrowing<'a> {
    fn new(path: &'a Path, asked: &'a Asked<'a>) -> Self {
        let filters = asked.filters.iter().enumerate();
        let conditions = filters.flat_map(|(at, filter)| {
            let conditions = filter.conditions.iter().flatten();
            conditions.map(move |condition| (at, condition, false))
        });
        let columns = 0..asked.columns.len();
        Self {
            path,
            asked,
            conditions: conditions.collect(),
            points: vec![Vec::new()],
            range: (None, None),
            not_null: columns.map(|at| !asked.columns.is_nullable(at)).collect(),
            part: 1.0,
        }
    }

    /// Bounds `column`, which follows those of the points; `None` if no column may follow.
    fn column(&mut self, column: usize) -> Option<()> {
        let here = |at: &usize| self.conditions[*at].1.column == column;
        let here: Vec<usize> = (0..self.conditions.len()).filter(here).collect();
        let values = here.iter().copied().find_map(|at| {
            let values = match &self.conditions[at].1.kind {
                Kind::Is(value) => std::slice::from_ref(value),
                Kind::In(values) => &values[..],
                _ => return None,
            };
            (self.points.len() * values.len() <= MAX_POINTS).then_some((at, values))
        });
        let Some((at, values)) = values else {
            self.range(column, &here);
            return None;
        };
        self.conditions[at].2 = true;
        self.not_null[column] |= values.iter().all(|value| !value.is_null());
        let of_one = match self.asked.columns.ty(column) {
            Type::Bool => OF_BOOL,
            _ => OF_VALUE,
        };
        self.part *= (of_one * values.len() as f64).min(1.0);
        let extend = |point: &Vec<Value>| {
            let point = point.clone();
            values.iter().map(move |value| {
                let mut longer = point.clone();
                longer.push(value.clone());
                longer
            })
        };
        self.points = self.points.iter().flat_map(extend).collect();
        Some(())
    }

    /// Bounds `column` by all conditions of `here` that are ends of a range.
    fn range(&mut self, column: usize, here: &[usize]) {
        let (mut from, mut to): (Option<Edge>, Option<Edge>) = (None, None);
        let mut any = false;
        for &at in here {
            let (_, condition, kept) = &mut self.conditions[at];
            match &condition.kind {
                Kind::Is(_) | Kind::In(_) => continue,
                Kind::NotNull => {}
                Kind::Above { value, inclusive } => {
                    let edge = Edge {
                        value: value.clone(),
                        inclusive: *inclusive,
                    };
                    // Of equal values the one that is not inclusive is above.
                    let above =
                        |old: &Edge| (&edge.value, !edge.inclusive) > (&old.value, !old.inclusive);
                    if from.as_ref().is_none_or(above) {
                        from = Some(edge);
                    }
                }
                Kind::Below { value, inclusive } => {
                    let edge = Edge {
                        value: value.clone(),
                        inclusive: *inclusive,
                    };
                    let below =
                        |old: &Edge| (&edge.value, edge.inclusive) < (&old.value, old.inclusive);
                    if to.as_ref().is_none_or(below) {
                        to = Some(edge);
                    }
                }
            }
            *kept = true;
            any = true;
        }
        if !any {
            return;
        }
        self.part *= match (&from, &to) {
            (None, None) => OF_NOT_NULL,
            (Some(_), Some(_)) => OF_RANGE,
            _ => OF_HALF_OPEN_RANGE,
        };
        if from.is_none() && self.asked.columns.is_nullable(column) {
            // NULL comes before all values, and is below none.
            from = Some(Edge {
                value: Value::Null,
                inclusive: false,
            });
        }
        self.not_null[column] = true;
        self.range = (from, to);
    }

    fn kept(&self) -> impl Iterator<Item = bool> {
        self.asked.filters.iter().enumerate().map(|(at, filter)| {
            let mut conditions = self.conditions.iter().filter(|(filter, ..)| *filter == at);
            filter.conditions.is_some() && conditions.all(|(_, _, kept)| *kept)
        })
    }

    fn rows(&self) -> f64 {
        let points = self.points.len() as f64;
        let whole = self
            .points
            .iter()
            .all(|point| point.len() == self.path.key.len());
        let known = self.path.key.iter().all(|&at| self.not_null[at]);
        if self.path.unique && whole && known {
            return points;
        }
        (self.asked.rows as f64).max(LEAST_ROWS) * self.part
    }
}

#[cfg(test)]
mod tests;
