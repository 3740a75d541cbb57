//! Filters as conditions on columns, which bounds of an index can keep.
//!
//! A filter is either the same as a list of conditions that all hold, for every row, or it is left
//! to DataFusion: nothing is approximated here. NULL by the rule of SQL: a comparison with NULL is
//! not true, so that no condition but [`Kind::Is`] and [`Kind::In`] with NULL holds for it.

use crate::literal;
use datafusion::{
    common::ScalarValue,
    logical_expr::{Between, BinaryExpr, Expr, Like, Operator, expr::InList},
};
use indexy_table::{Schema, Type, Value};

/// What holds for one column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    /// Number of the column.
    pub column: usize,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// It is this value, which may be NULL.
    Is(Value),
    /// It is one of these, which ascend and are different.
    In(Vec<Value>),
    /// It is not NULL and above; with `inclusive` it may be the value.
    Above { value: Value, inclusive: bool },
    /// It is not NULL and below; with `inclusive` it may be the value.
    Below { value: Value, inclusive: bool },
    /// It is not NULL.
    NotNull,
}

/// The columns of a table, as conditions see them.
#[derive(Debug)]
pub(crate) struct Columns {
    columns: Vec<(String, Type, bool)>,
}

impl Columns {
    pub(crate) fn of(schema: &Schema) -> Self {
        let columns = schema.columns();
        let columns =
            columns.map(|(name, column)| (name.to_owned(), column.ty(), column.is_nullable()));
        Self {
            columns: columns.collect(),
        }
    }

    /// Number of a column.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.0 == name)
    }

    pub(crate) fn name(&self, column: usize) -> &str {
        &self.columns[column].0
    }

    pub(crate) fn ty(&self, column: usize) -> Type {
        self.columns[column].1
    }

    pub(crate) fn is_nullable(&self, column: usize) -> bool {
        self.columns[column].2
    }

    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    fn column(&self, expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Column(column) => self.number(&column.name),
            _ => None,
        }
    }

    fn value(&self, column: usize, expr: &Expr) -> Option<Value> {
        match expr {
            Expr::Literal(literal, _) => literal::value(literal, self.ty(column)),
            _ => None,
        }
    }

    /// The conditions that are the same as `filter`; `None`: there are none.
    pub(crate) fn conditions(&self, filter: &Expr) -> Option<Vec<Condition>> {
        let one = |column, kind| Some(vec![Condition { column, kind }]);
        match filter {
            Expr::BinaryExpr(binary) => self.binary(binary),
            Expr::Between(between) => self.between(between),
            Expr::InList(list) => self.in_list(list),
            Expr::Like(like) => self.like(like),
            Expr::IsNull(of) => {
                let column = self.column(of)?;
                self.is_nullable(column).then_some(())?;
                one(column, Kind::Is(Value::Null))
            }
            Expr::IsNotNull(of) => one(self.column(of)?, Kind::NotNull),
            Expr::Column(_) | Expr::IsTrue(_) => self.boolean(filter, true),
            Expr::Not(of) => self.boolean(of, false),
            Expr::IsFalse(of) => self.boolean(of, false),
            _ => None,
        }
    }

    /// A column of type bool that stands alone.
    fn boolean(&self, expr: &Expr, value: bool) -> Option<Vec<Condition>> {
        let column = match expr {
            Expr::IsTrue(of) if value => self.column(of)?,
            _ => self.column(expr)?,
        };
        let kind = Kind::Is(Value::Bool(value));
        (self.ty(column) == Type::Bool).then(|| vec![Condition { column, kind }])
    }

    fn binary(&self, binary: &BinaryExpr) -> Option<Vec<Condition>> {
        let BinaryExpr { left, op, right } = binary;
        match op {
            Operator::And => {
                let mut all = self.conditions(left)?;
                all.extend(self.conditions(right)?);
                return Some(all);
            }
            Operator::Or => return self.either(left, right),
            _ => {}
        }
        let (column, value, op) = match self.column(left) {
            Some(column) => (column, self.value(column, right)?, *op),
            None => {
                let column = self.column(right)?;
                (column, self.value(column, left)?, op.swap()?)
            }
        };
        let above = |inclusive| Kind::Above {
            value: value.clone(),
            inclusive,
        };
        let below = |inclusive| Kind::Below {
            value: value.clone(),
            inclusive,
        };
        let kind = match op {
            Operator::Eq => Kind::Is(value),
            Operator::Gt => above(false),
            Operator::GtEq => above(true),
            Operator::Lt => below(false),
            Operator::LtEq => below(true),
            _ => return None,
        };
        Some(vec![Condition { column, kind }])
    }

    /// Two lists of values of one column: DataFusion writes short `IN`s so.
    fn either(&self, left: &Expr, right: &Expr) -> Option<Vec<Condition>> {
        let values = |side: &Expr| match &self.conditions(side)?[..] {
            [Condition { column, kind }] => match kind {
                Kind::Is(value) => Some((*column, vec![value.clone()])),
                Kind::In(values) => Some((*column, values.clone())),
                _ => None,
            },
            _ => None,
        };
        let ((column, mut all), (other, more)) = (values(left)?, values(right)?);
        (column == other).then_some(())?;
        all.extend(more);
        Some(vec![among(column, all)])
    }

    fn between(&self, between: &Between) -> Option<Vec<Condition>> {
        (!between.negated).then_some(())?;
        let column = self.column(&between.expr)?;
        let (low, high) = (&between.low, &between.high);
        let (low, high) = (self.value(column, low)?, self.value(column, high)?);
        let above = Kind::Above {
            value: low,
            inclusive: true,
        };
        let below = Kind::Below {
            value: high,
            inclusive: true,
        };
        Some([above, below].map(|kind| Condition { column, kind }).into())
    }

    fn in_list(&self, list: &InList) -> Option<Vec<Condition>> {
        (!list.negated && !list.list.is_empty()).then_some(())?;
        let column = self.column(&list.expr)?;
        let values = list.list.iter().map(|value| self.value(column, value));
        Some(vec![among(column, values.collect::<Option<_>>()?)])
    }

    /// Text that begins so: `LIKE 'abc%'`.
    fn like(&self, like: &Like) -> Option<Vec<Condition>> {
        (!like.negated && !like.case_insensitive && like.escape_char.is_none()).then_some(())?;
        let column = self.column(&like.expr)?;
        (self.ty(column) == Type::Text).then_some(())?;
        let Expr::Literal(
            ScalarValue::Utf8(Some(pattern))
            | ScalarValue::LargeUtf8(Some(pattern))
            | ScalarValue::Utf8View(Some(pattern)),
            _,
        ) = &*like.pattern
        else {
            return None;
        };
        let prefix = pattern.strip_suffix('%')?;
        (!prefix.is_empty() && !prefix.contains(['%', '_', '\\'])).then_some(())?;
        let mut all = vec![Condition {
            column,
            kind: Kind::Above {
                value: prefix.into(),
                inclusive: true,
            },
        }];
        all.extend(after_all_that_begin_with(prefix).map(|end| Condition {
            column,
            kind: Kind::Below {
                value: end.into(),
                inclusive: false,
            },
        }));
        Some(all)
    }
}

fn among(column: usize, mut values: Vec<Value>) -> Condition {
    values.sort();
    values.dedup();
    let kind = match values.len() {
        1 => Kind::Is(values.remove(0)),
        _ => Kind::In(values),
    };
    Condition { column, kind }
}

/// The smallest text above all texts that begin with `prefix`; `None`: there is none.
fn after_all_that_begin_with(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // The successor of a character: the range steps over the numbers that are none.
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests;
