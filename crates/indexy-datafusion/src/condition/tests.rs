use super::*;
use datafusion::logical_expr::{col, lit};

fn columns() -> Columns {
    use indexy_table::Column;
    Columns::of(
        &Schema::new("t")
            .column("id", Type::I64)
            .column("text", Column::new(Type::Text).nullable())
            .column("flag", Column::new(Type::Bool).nullable())
            .primary_key(["id"]),
    )
}

fn of(filter: Expr) -> Option<Vec<Condition>> {
    columns().conditions(&filter)
}

fn one(column: usize, kind: Kind) -> Option<Vec<Condition>> {
    Some(vec![Condition { column, kind }])
}

fn above(value: impl Into<Value>, inclusive: bool) -> Kind {
    let value = value.into();
    Kind::Above { value, inclusive }
}

fn below(value: impl Into<Value>, inclusive: bool) -> Kind {
    let value = value.into();
    Kind::Below { value, inclusive }
}

#[test]
fn comparisons_from_both_sides() {
    assert_eq!(of(col("id").eq(lit(5i64))), one(0, Kind::Is(5i64.into())));
    assert_eq!(of(col("id").lt(lit(5i64))), one(0, below(5i64, false)));
    assert_eq!(of(lit(5i64).lt(col("id"))), one(0, above(5i64, false)));
    assert_eq!(of(lit(5i64).gt_eq(col("id"))), one(0, below(5i64, true)));
    assert_eq!(of(col("id").not_eq(lit(5i64))), None);
    assert_eq!(of(col("id").lt(lit(5i32))), None);
    assert_eq!(of(col("id").lt(col("id"))), None);
    assert_eq!(of((col("id") + lit(1i64)).lt(lit(5i64))), None);
}

#[test]
fn lists_are_sorted_and_different() {
    let expected = || one(0, Kind::In(vec![1i64.into(), 2i64.into(), 3i64.into()]));
    let list = vec![lit(3i64), lit(1i64), lit(2i64), lit(1i64)];
    assert_eq!(of(col("id").in_list(list.clone(), false)), expected());
    assert_eq!(of(col("id").in_list(list, true)), None);
    let either = col("id").eq(lit(2i64)).or(col("id").eq(lit(3i64)));
    assert_eq!(of(either.clone().or(col("id").eq(lit(1i64)))), expected());
    assert_eq!(of(either.or(col("text").eq(lit("a")))), None);
    let or_null = col("text").eq(lit("a")).or(col("text").is_null());
    let values = vec![Value::Null, "a".into()];
    assert_eq!(of(or_null), one(1, Kind::In(values)));
}

#[test]
fn nulls_and_bools() {
    assert_eq!(of(col("text").is_null()), one(1, Kind::Is(Value::Null)));
    assert_eq!(of(col("id").is_null()), None);
    assert_eq!(of(col("text").is_not_null()), one(1, Kind::NotNull));
    assert_eq!(of(col("text").eq(lit(ScalarValue::Utf8(None)))), None);
    assert_eq!(of(col("flag")), one(2, Kind::Is(true.into())));
    assert_eq!(of(!col("flag")), one(2, Kind::Is(false.into())));
    assert_eq!(of(col("text")), None);
}

#[test]
fn texts_that_begin_so() {
    let begins = |end: &str| {
        let conditions = [above("ab", true), below(end, false)];
        Some(conditions.map(|kind| Condition { column: 1, kind }).into())
    };
    assert_eq!(of(col("text").like(lit("ab%"))), begins("ac"));
    for other in ["ab", "%", "a_%", "%a%", "a\\%%"] {
        assert_eq!(of(col("text").like(lit(other))), None, "{other}");
    }
    assert_eq!(of(col("text").not_like(lit("ab%"))), None);
    assert_eq!(of(col("text").ilike(lit("ab%"))), None);
    assert_eq!(after_all_that_begin_with("a\u{d7ff}").unwrap(), "a\u{e000}");
    assert_eq!(after_all_that_begin_with("a\u{10ffff}").unwrap(), "b");
    assert_eq!(after_all_that_begin_with("\u{10ffff}"), None);
}
