//! Random queries, in both languages.

use crate::{
    random::Random,
    schemas::{Tabled, value},
};
use indexy_table::{Query, Value};

/// A query.
#[derive(Debug)]
pub struct Asked {
    pub query: Query,
    pub sql: String,
    pub parameters: Vec<Value>,
}

/// A beginning of an order's columns, a bound or two on the next column, an order, columns, and a
/// limit.
pub fn query(random: &mut Random, tabled: &Tabled) -> Asked {
    let by = random.below(tabled.indexes.len() + 1);
    let (mut query, order) = match tabled.indexes.get(by) {
        Some((name, columns, unique)) => {
            let rest = tabled
                .key
                .iter()
                .filter(|at| !columns.contains(at) && !unique);
            (
                Query::index(name),
                columns.iter().chain(rest).copied().collect(),
            )
        }
        None => (Query::all(), tabled.key.clone()),
    };
    let (mut conditions, mut parameters) = (Vec::new(), Vec::new());
    let name = |at: usize| &tabled.columns[at].0;
    let leading = random.below(order.len() + 1);
    let mut prefix = Vec::new();
    for &at in &order[..leading] {
        let (_, ty, nullable) = tabled.columns[at];
        let value = value(random, ty, nullable);
        conditions.push(format!("{} IS ?", name(at)));
        parameters.push(value.clone());
        prefix.push(value);
    }
    query = query.prefix(prefix);
    if let Some(&at) = order.get(leading) {
        let mut bound = || value(random, tabled.columns[at].1, false);
        let (from, to) = (bound(), bound());
        let column = name(at);
        // NULL comes before all values.
        let (query_from, condition) = match random.below(4) {
            0 => (query.clone().from(from.clone()), format!("{column} >= ?")),
            1 => (query.clone().after(from.clone()), format!("{column} > ?")),
            _ => (query, String::new()),
        };
        query = query_from;
        if !condition.is_empty() {
            conditions.push(condition);
            parameters.push(from);
        }
        let (query_to, condition) = match random.below(4) {
            0 => (query.clone().up_to(to.clone()), "<="),
            1 => (query.clone().before(to.clone()), "<"),
            _ => (query, ""),
        };
        query = query_to;
        if !condition.is_empty() {
            conditions.push(format!("({column} {condition} ? OR {column} IS NULL)"));
            parameters.push(to);
        }
    }
    let columns = match random.below(3) {
        0 => (0..tabled.columns.len()).collect(),
        // Often covered.
        1 => order.clone(),
        _ => {
            let count = 1 + random.below(tabled.columns.len());
            random.different(tabled.columns.len(), count)
        }
    };
    query = query.columns(tabled.names(&columns));
    let descending = if random.one_in(2) { " DESC" } else { "" };
    if !descending.is_empty() {
        query = query.rev();
    }
    let ordered = order.iter().chain(&tabled.key);
    let ordered: Vec<String> = ordered
        .map(|&at| format!("{}{descending}", name(at)))
        .collect();
    let condition = match conditions.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", conditions.join(" AND ")),
    };
    let mut sql = format!(
        "SELECT {} FROM t{condition} ORDER BY {}",
        tabled.names(&columns).join(", "),
        ordered.join(", ")
    );
    if random.one_in(3) {
        let limit = random.below(8) as u64;
        query = query.limit(limit);
        sql.push_str(&format!(" LIMIT {limit}"));
    }
    Asked {
        query,
        sql,
        parameters,
    }
}
