use super::*;
use indexy_table::{Column, Index, Schema};

/// `t(id, a NULL, b, c NULL)`, by `(a, b)`, and by `c`, unique.
fn schema() -> Schema {
    Schema::new("t")
        .column("id", Type::I64)
        .column("a", Column::new(Type::I64).nullable())
        .column("b", Type::Bool)
        .column("c", Column::new(Type::Text).nullable())
        .primary_key(["id"])
        .index("by_a", Index::on(["a", "b"]))
        .index("by_c", Index::on(["c"]).unique().include(["b"]))
}

const ID: usize = 0;
const A: usize = 1;
const B: usize = 2;
const C: usize = 3;
const BY_A: usize = 1;
const BY_C: usize = 2;

fn is(column: usize, value: impl Into<Value>) -> Vec<Condition> {
    let kind = Kind::Is(value.into());
    vec![Condition { column, kind }]
}

fn above(column: usize, value: impl Into<Value>, inclusive: bool) -> Vec<Condition> {
    let value = value.into();
    let kind = Kind::Above { value, inclusive };
    vec![Condition { column, kind }]
}

fn below(column: usize, value: impl Into<Value>, inclusive: bool) -> Vec<Condition> {
    let value = value.into();
    let kind = Kind::Below { value, inclusive };
    vec![Condition { column, kind }]
}

fn edge(value: impl Into<Value>, inclusive: bool) -> Option<Edge> {
    let value = value.into();
    Some(Edge { value, inclusive })
}

fn with<R>(
    filters: Vec<Vec<Condition>>,
    projection: &[usize],
    body: impl FnOnce(&[Path], &Asked<'_>) -> R,
) -> R {
    let columns = Columns::of(&schema());
    let paths = Path::all(&schema(), &columns);
    let filter = |conditions: Vec<Condition>| Filter {
        columns: conditions
            .iter()
            .map(|condition| condition.column)
            .collect(),
        conditions: Some(conditions),
    };
    let filters: Vec<Filter> = filters.into_iter().map(filter).collect();
    let asked = Asked {
        columns: &columns,
        filters: &filters,
        projection,
        rows: 1_000_000,
    };
    body(&paths, &asked)
}

fn chosen(filters: Vec<Vec<Condition>>, projection: &[usize]) -> Access {
    with(filters, projection, choose)
}

fn by_a(filters: Vec<Vec<Condition>>) -> Access {
    with(filters, &[ID], |paths, asked| narrow(paths, BY_A, asked))
}

#[test]
fn values_and_then_a_range() {
    let access = by_a(vec![
        is(B, true),
        is(A, 5i64),
        above(ID, 7i64, false),
        is(C, "x"),
    ]);
    let bounds = Bounds {
        prefix: vec![5i64.into(), true.into()],
        from: edge(7i64, false),
        to: None,
    };
    assert_eq!(access.bounds, [bounds]);
    assert_eq!(access.kept, [true, true, true, false]);
    assert!(!access.covered);
}

#[test]
fn a_gap_ends_the_bounds() {
    let access = by_a(vec![is(A, 5i64), above(ID, 7i64, false)]);
    assert_eq!(access.bounds.len(), 1);
    assert_eq!(access.bounds[0].prefix, [5i64.into()]);
    assert_eq!(access.bounds[0].from, None);
    assert_eq!(access.kept, [true, false]);
    let access = by_a(vec![above(A, 5i64, true), is(B, true)]);
    assert_eq!(access.kept, [true, false]);
    assert_eq!(access.bounds[0].from, edge(5i64, true));
}

#[test]
fn the_tightest_of_several_ends() {
    let ends = |filters| {
        let access = by_a(filters);
        assert!(access.kept.iter().all(|kept| *kept));
        (access.bounds[0].from.clone(), access.bounds[0].to.clone())
    };
    let (above, below) = (|v: i64, i| above(A, v, i), |v: i64, i| below(A, v, i));
    assert_eq!(
        ends(vec![above(5, true), above(5, false)]),
        (edge(5i64, false), None)
    );
    assert_eq!(
        ends(vec![above(5, false), above(6, true)]),
        (edge(6i64, true), None)
    );
    let low = edge(Value::Null, false);
    assert_eq!(
        ends(vec![below(5, true), below(5, false)]),
        (low.clone(), edge(5i64, false))
    );
    assert_eq!(
        ends(vec![below(5, false), below(4, true)]),
        (low, edge(4i64, true))
    );
}

#[test]
fn nulls_are_in_no_range() {
    for filter in [
        below(A, 5i64, true),
        vec![Condition {
            column: A,
            kind: Kind::NotNull,
        }],
    ] {
        let access = by_a(vec![filter]);
        assert_eq!(access.bounds[0].from, edge(Value::Null, false));
        assert!(access.not_null[A] && access.kept[0]);
    }
    let access = by_a(vec![is(A, Value::Null)]);
    assert_eq!(access.bounds[0].prefix, [Value::Null]);
    assert!(!access.not_null[A]);
    // No NULL, and no bound that a column without it would refuse.
    let access = with(vec![below(ID, 5i64, true)], &[ID], |paths, asked| {
        narrow(paths, 0, asked)
    });
    assert_eq!(access.bounds[0].from, None);
}

/// Two different values of one column: one bounds, the other is looked at.
#[test]
fn a_contradiction_is_kept_once() {
    let access = by_a(vec![is(A, 5i64), is(A, 6i64), above(A, 9i64, true)]);
    assert_eq!(access.kept, [true, false, false]);
    assert_eq!(access.bounds[0].prefix, [5i64.into()]);
}

/// Half of a filter is not the filter.
#[test]
fn a_filter_of_two_columns_is_kept_whole_or_not() {
    let both = [is(A, 5i64), is(C, "x")].concat();
    assert_eq!(by_a(vec![both]).kept, [false]);
    let both = [is(A, 5i64), is(B, true)].concat();
    assert_eq!(by_a(vec![both]).kept, [true]);
}

#[test]
fn lists_multiply_up_to_a_limit() {
    let among = |column, count: i64| {
        let kind = Kind::In((0..count).map(Value::I64).collect());
        vec![Condition { column, kind }]
    };
    let access = by_a(vec![among(A, 3), is(B, true), among(ID, 2)]);
    let prefixes: Vec<_> = access
        .bounds
        .iter()
        .map(|bounds| bounds.prefix.clone())
        .collect();
    assert_eq!(prefixes.len(), 6);
    assert!(prefixes.is_sorted());
    assert!(access.kept.iter().all(|kept| *kept));
    let access = by_a(vec![among(A, 600), is(B, true), among(ID, 2)]);
    assert_eq!(access.bounds.len(), 600);
    assert_eq!(access.kept, [true, true, false]);
}

#[test]
fn the_cheapest_path_is_chosen() {
    assert_eq!(chosen(vec![], &[ID]).path, 0);
    assert_eq!(chosen(vec![is(ID, 5i64), is(C, "x")], &[B]).path, 0);
    assert_eq!(chosen(vec![is(C, "x")], &[A]).path, BY_C);
    assert_eq!(chosen(vec![is(C, "x")], &[A]).rows, 1.0);
    // NULL is not unique.
    assert!(chosen(vec![is(C, Value::Null)], &[B]).rows > 1.0);
    // Half of the rows are cheaper in order than by looking each up, unless that is not needed.
    assert_eq!(chosen(vec![above(A, 5i64, true)], &[C]).path, 0);
    assert_eq!(chosen(vec![above(A, 5i64, true)], &[B]).path, BY_A);
    // What a filter that is left needs counts, too.
    assert_eq!(
        chosen(vec![above(A, 5i64, true), is(C, "x")], &[B]).path,
        BY_C
    );
    let access = chosen(vec![is(A, 5i64), above(C, "x", true)], &[ID]);
    assert_eq!((access.path, access.covered), (BY_A, false));
}
