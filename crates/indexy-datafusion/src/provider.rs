//! Tables of one moment as DataFusion sees them: what it asks of a table, and the plan of a scan.
//!
//! A filter that is the same as conditions is taken over completely: the bounds keep it, or a
//! filter stands in the plan that this file returns. So DataFusion hands limits down, and reads
//! only the columns that it needs itself.

use crate::{
    access::{self, Asked, Filter},
    condition::Kind,
    paths::Path,
    scan::Scan,
    split, stream,
    table::Seen,
};
use async_trait::async_trait;
use datafusion::{
    arrow::datatypes::SchemaRef,
    catalog::{Session, TableProvider},
    common::{DFSchema, internal_datafusion_err},
    error::Result,
    logical_expr::{Expr, TableProviderFilterPushDown, TableType, utils::conjunction},
    physical_plan::{ExecutionPlan, filter::FilterExecBuilder},
};
use std::{collections::BTreeSet, sync::Arc};

/// A table at one moment.
#[derive(Debug)]
pub(crate) struct Provider {
    table: Arc<Seen>,
}

impl Provider {
    pub(crate) fn new(table: Seen) -> Self {
        Self {
            table: Arc::new(table),
        }
    }

    /// Whether a path has the rows that these filters leave in the order of `column`: it comes
    /// first in the key, or behind columns that filters fix.
    pub(crate) fn has_order_of(&self, column: &str, filters: &[Expr]) -> bool {
        let columns = &self.table.columns;
        let conditions = filters
            .iter()
            .filter_map(|filter| columns.conditions(filter));
        let fixed: BTreeSet<usize> = conditions
            .flatten()
            .filter(|condition| matches!(condition.kind, Kind::Is(_)))
            .map(|condition| condition.column)
            .collect();
        let column = columns.number(column);
        let first = |path: &Path| path.key.iter().find(|at| !fixed.contains(at)).copied();
        column.is_some() && self.table.paths.iter().any(|path| first(path) == column)
    }

    /// `filter` as the choice of an access sees it.
    fn filter(&self, filter: &Expr) -> Filter {
        let columns = filter.column_refs().into_iter();
        let columns: BTreeSet<usize> = columns
            .filter_map(|column| self.table.columns.number(&column.name))
            .collect();
        Filter {
            conditions: self.table.columns.conditions(filter),
            columns: columns.into_iter().collect(),
        }
    }

    /// `scan` with what `filters` the bounds do not keep, and the columns asked for.
    fn filtered(
        &self,
        state: &dyn Session,
        filters: Vec<Expr>,
        projection: &[usize],
        scan: Scan,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(filter) = conjunction(filters) else {
            return Ok(Arc::new(scan));
        };
        let schema = DFSchema::try_from(scan.schema())?;
        let predicate = state.create_physical_expr(filter, &schema)?;
        // The columns asked for come first.
        let builder = FilterExecBuilder::new(predicate, Arc::new(scan));
        let builder = builder.apply_projection(Some((0..projection.len()).collect()))?;
        Ok(Arc::new(builder.build()?))
    }
}

#[async_trait]
impl TableProvider for Provider {
    fn schema(&self) -> SchemaRef {
        self.table.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let exact = |filter: &&Expr| match self.table.columns.conditions(filter) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(exact).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.table.columns.len()).collect();
        let projection: Vec<usize> = projection.cloned().unwrap_or_else(all);
        let understood: Vec<Filter> = filters.iter().map(|filter| self.filter(filter)).collect();
        let access = Arc::new(access::choose(
            &self.table.paths,
            &Asked {
                columns: &self.table.columns,
                filters: &understood,
                projection: &projection,
                rows: self.table.snapshot.approximate_len(),
            },
        ));
        let mut wanted = projection.clone();
        let mut left = Vec::new();
        for (at, filter) in filters
            .iter()
            .enumerate()
            .filter(|(at, _)| !access.kept[*at])
        {
            left.push(filter.clone());
            for &column in &understood[at].columns {
                if !wanted.contains(&column) {
                    wanted.push(column);
                }
            }
        }
        let limit = limit.filter(|_| left.is_empty());
        let parts = match limit {
            Some(_) => vec![access.bounds.clone()],
            None => {
                let (table, access) = (self.table.clone(), access.clone());
                let most = state.config().target_partitions();
                let split =
                    tokio::task::spawn_blocking(move || split::split(&table, &access, most));
                let split = split.await;
                let split = split.map_err(|error| internal_datafusion_err!("{error}"))?;
                split.map_err(stream::external)?
            }
        };
        let scan = Scan::new(self.table.clone(), access, &wanted, parts)?.with_limit(limit);
        self.filtered(state, left, &projection, scan)
    }
}
