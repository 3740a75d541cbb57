//! One range of keys as several, which are read at the same time.
//!
//! Only where the column that follows the prefix is a whole number or a timestamp: its smallest and
//! largest value between the bounds are two reads, and the space between them is divided evenly.
//! Keys that lie unevenly in it make uneven parts.

use crate::{
    access::{Access, Bounds, Edge},
    table::Seen,
};
use indexy_table::{Result, Timestamp, Type, Value};

/// A part has at least so many rows, by the estimate.
const LEAST_ROWS: f64 = 100_000.0;

/// The bounds of `access` for each of at most `parts` threads; parts ascend, as the bounds of each
/// do. Cost: two reads at most.
pub(crate) fn split(table: &Seen, access: &Access, parts: usize) -> Result<Vec<Vec<Bounds>>> {
    let whole = || vec![access.bounds.clone()];
    let most = (access.rows / LEAST_ROWS) as usize;
    let path = &table.paths[access.path];
    let [bounds] = &access.bounds[..] else {
        return Ok(whole());
    };
    let column = path.key.get(bounds.prefix.len());
    let (Some(&column), 2..) = (column, parts.min(most)) else {
        return Ok(whole());
    };
    let ends = match table.columns.ty(column) {
        Type::I32 | Type::I64 | Type::U64 | Type::Timestamp => ends(table, access, bounds, column)?,
        _ => None,
    };
    let Some((low, high)) = ends else {
        return Ok(whole());
    };
    let between = divide(low, high, parts.min(most));
    let values = between.map(|number| value(number, table.columns.ty(column)));
    let mut all = vec![vec![bounds.clone()]];
    for value in values.collect::<Option<Vec<_>>>().unwrap_or_default() {
        let Some(last) = all.last_mut().and_then(|part| part.last_mut()) else {
            break;
        };
        let next = Bounds {
            prefix: bounds.prefix.clone(),
            from: Some(Edge {
                value: value.clone(),
                inclusive: true,
            }),
            to: last.to.take(),
        };
        last.to = Some(Edge {
            value,
            inclusive: false,
        });
        all.push(vec![next]);
    }
    Ok(all)
}

/// The smallest and the largest value of `column`; `None`: there is none.
fn ends(
    table: &Seen,
    access: &Access,
    bounds: &Bounds,
    column: usize,
) -> Result<Option<(i128, i128)>> {
    let mut bounds = bounds.clone();
    if bounds.from.is_none() && table.columns.is_nullable(column) {
        bounds.from = Some(Edge {
            value: Value::Null,
            inclusive: false,
        });
    }
    let path = &table.paths[access.path];
    let query = bounds
        .apply(path.query())
        .columns([table.columns.name(column)])
        .limit(1);
    let first = |query| -> Result<Option<i128>> {
        let row = table.snapshot.scan(&query)?.next().transpose()?;
        Ok(row.and_then(|row| number(row.values().first()?)))
    };
    Ok(first(query.clone())?.zip(first(query.rev())?))
}

/// Numbers between `low` and `high` that divide the space into `parts` of equal size.
fn divide(low: i128, high: i128, parts: usize) -> impl Iterator<Item = i128> {
    let parts = parts as i128;
    let space = (high - low).max(0);
    let mut before = low;
    (1..parts)
        .map(move |part| low + space * part / parts)
        .filter(move |&at| std::mem::replace(&mut before, at) < at)
}

fn number(value: &Value) -> Option<i128> {
    Some(match value {
        Value::I32(v) => i128::from(*v),
        Value::I64(v) => i128::from(*v),
        Value::U64(v) => i128::from(*v),
        Value::Timestamp(v) => i128::from(v.0),
        _ => return None,
    })
}

fn value(number: i128, ty: Type) -> Option<Value> {
    Some(match ty {
        Type::I32 => Value::I32(i32::try_from(number).ok()?),
        Type::I64 => Value::I64(i64::try_from(number).ok()?),
        Type::U64 => Value::U64(u64::try_from(number).ok()?),
        Type::Timestamp => Value::Timestamp(Timestamp(i64::try_from(number).ok()?)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_divided_evenly() {
        let divide = |low, high, parts| divide(low, high, parts).collect::<Vec<_>>();
        assert_eq!(divide(0, 100, 4), [25, 50, 75]);
        assert_eq!(divide(5, 6, 4), [] as [i128; 0]);
        assert_eq!(divide(5, 5, 4), [] as [i128; 0]);
        assert_eq!(divide(0, 2, 4), [1]);
        let (low, high) = (i128::from(i64::MIN), i128::from(i64::MAX));
        assert_eq!(divide(low, high, 2), [-1]);
        assert_eq!(divide(0, i128::from(u64::MAX), 3).len(), 2);
    }
}
