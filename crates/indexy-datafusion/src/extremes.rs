//! `min` and `max` of a column that is in order: the first row of that order is enough.
//!
//! A rule of DataFusion's optimizer: `SELECT max(c) FROM t WHERE ...` reads only
//! `... AND c IS NOT NULL ORDER BY c DESC LIMIT 1`, whose order and limit reach the scan. Not for
//! floats, whose order in DataFusion's `min` and `max` is not promised for NaN.

use crate::provider::Provider;
use datafusion::{
    arrow::datatypes::DataType,
    common::{Column, tree_node::Transformed},
    datasource::source_as_provider,
    error::Result,
    logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, TableScan},
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};
use std::sync::Arc;

/// See the module header.
#[derive(Debug)]
pub(crate) struct Extremes;

impl OptimizerRule for Extremes {
    fn name(&self) -> &'static str {
        "indexy_extremes"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = &plan else {
            return Ok(Transformed::no(plan));
        };
        let Some((column, largest)) = extreme(aggregate) else {
            return Ok(Transformed::no(plan));
        };
        let column = Expr::Column(column.clone());
        let first = LogicalPlanBuilder::from((*aggregate.input).clone())
            .filter(column.clone().is_not_null())?
            .sort([column.sort(!largest, !largest)])?
            .limit(0, Some(1))?
            .build()?;
        let (groups, values) = (aggregate.group_expr.clone(), aggregate.aggr_expr.clone());
        let rewritten = Aggregate::try_new(Arc::new(first), groups, values)?;
        Ok(Transformed::yes(LogicalPlan::Aggregate(rewritten)))
    }
}

/// The column whose extreme alone is asked for, where it is in order, and whether the largest is.
fn extreme(aggregate: &Aggregate) -> Option<(&Column, bool)> {
    let ([], [value]) = (&aggregate.group_expr[..], &aggregate.aggr_expr[..]) else {
        return None;
    };
    let Expr::AggregateFunction(call) = value else {
        return None;
    };
    let largest = match call.func.name() {
        "max" => true,
        "min" => false,
        _ => return None,
    };
    let ([Expr::Column(column)], None) = (&call.params.args[..], &call.params.filter) else {
        return None;
    };
    let scan = scan(&aggregate.input)?;
    let provider = source_as_provider(&scan.source).ok()?;
    let provider = provider.downcast_ref::<Provider>()?;
    let ty = scan
        .projected_schema
        .field_with_unqualified_name(&column.name);
    let float = *ty.ok()?.data_type() == DataType::Float64;
    (!float && provider.has_order_of(&column.name, &scan.filters)).then_some((column, largest))
}

/// The scan that `plan` is, perhaps under another name.
fn scan(plan: &LogicalPlan) -> Option<&TableScan> {
    match plan {
        LogicalPlan::TableScan(scan) if scan.fetch.is_none() => Some(scan),
        LogicalPlan::SubqueryAlias(alias) => scan(&alias.input),
        _ => None,
    }
}
