//! The physical plan of a scan: some columns of a table, between bounds, in the order of a path.

use crate::{
    access::{Access, Bounds},
    stream::{self, Reading},
    table::Seen,
};
use datafusion::{
    arrow::{compute::SortOptions, datatypes::SchemaRef},
    common::{
        ColumnStatistics, Statistics, internal_datafusion_err, stats::Precision,
        tree_node::TreeNodeRecursion,
    },
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::{
        ConstExpr, EquivalenceProperties, PhysicalExpr, PhysicalSortExpr, expressions::Column,
    },
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
        ReplaceChildrenOptions, SortOrderPushdownResult,
        execution_plan::{Boundedness, EmissionType},
        metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet},
        statistics::StatisticsArgs,
    },
};
use std::{fmt, sync::Arc};

/// See the module header.
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    table: Arc<Seen>,
    access: Arc<Access>,
    /// Numbers of the columns that are returned.
    wanted: Arc<[usize]>,
    /// By partition, ascending.
    parts: Arc<[Vec<Bounds>]>,
    reversed: bool,
    /// Rows of each partition at most.
    limit: Option<usize>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl Scan {
    pub(crate) fn new(
        table: Arc<Seen>,
        access: Arc<Access>,
        wanted: &[usize],
        parts: Vec<Vec<Bounds>>,
    ) -> Result<Self> {
        let schema = Arc::new(table.schema.project(wanted)?);
        let (wanted, parts) = (wanted.into(), parts.into());
        let empty = EquivalenceProperties::new(schema.clone());
        let properties = properties(empty, 1);
        let scan = Self {
            table,
            access,
            wanted,
            parts,
            reversed: false,
            limit: None,
            schema,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        };
        scan.in_order(false)
    }

    /// At most so many rows.
    pub(crate) fn with_limit(self, limit: Option<usize>) -> Self {
        Self { limit, ..self }
    }

    /// The same rows, in the opposite order with `reversed`.
    fn in_order(mut self, reversed: bool) -> Result<Self> {
        self.reversed = reversed;
        let expr = |at: usize| {
            let name = self.table.columns.name(self.wanted[at]);
            Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>
        };
        let order = self.order();
        let sorted = order.iter().map_while(|&column| {
            let options = SortOptions {
                descending: reversed,
                nulls_first: !reversed,
            };
            let at = self.place(column)?;
            Some(PhysicalSortExpr::new(expr(at), options))
        });
        let orderings = [sorted.collect::<Vec<_>>()];
        let mut known = EquivalenceProperties::new_with_orderings(self.schema.clone(), orderings);
        let fixed = self.fixed().iter().filter_map(|&column| self.place(column));
        known.add_constants(
            fixed
                .map(|at| ConstExpr::from(expr(at)))
                .collect::<Vec<_>>(),
        )?;
        self.properties = Arc::new(properties(known, self.parts.len()));
        Ok(self)
    }

    /// Leading columns of the path that have one value.
    fn fixed(&self) -> &[usize] {
        let order = &self.table.paths[self.access.path].order;
        match &self.access.bounds[..] {
            [one] => &order[..one.prefix.len()],
            _ => &[],
        }
    }

    /// The columns by which rows are ordered, without those that have one value.
    fn order(&self) -> &[usize] {
        &self.table.paths[self.access.path].order[self.fixed().len()..]
    }

    /// Where a column of the table is among those that are returned.
    fn place(&self, column: usize) -> Option<usize> {
        self.wanted.iter().position(|&wanted| wanted == column)
    }

    /// Whether reading forwards, or with `true` backwards, has this order; `None`: neither has.
    fn direction(&self, asked: &[PhysicalSortExpr]) -> Option<bool> {
        let mut reversed = None;
        let mut order = self.order().iter();
        for asked in asked {
            let column = asked.expr.downcast_ref::<Column>()?;
            let column = *self.wanted.get(column.index())?;
            if self.fixed().contains(&column) {
                continue;
            }
            (*order.next()? == column).then_some(())?;
            let SortOptions {
                descending,
                nulls_first,
            } = asked.options;
            // NULL comes first where keys ascend.
            let fits = self.access.not_null[column] || nulls_first != descending;
            fits.then_some(())?;
            (*reversed.get_or_insert(descending) == descending).then_some(())?;
        }
        Some(reversed.unwrap_or(self.reversed))
    }

    /// All rows by an index that has this order and all columns; only where no bounds keep the scan
    /// to a path.
    fn by_another_path(&self, asked: &[PhysicalSortExpr]) -> Option<Result<Self>> {
        let everything = [Bounds::default()];
        let free = self.access.bounds == everything && !self.access.kept.contains(&true);
        let paths = free.then_some(&self.table.paths)?;
        let mut covering = (0..paths.len())
            .filter(|&at| at != self.access.path && paths[at].covers(self.wanted.iter().copied()));
        covering.find_map(|path| {
            let access = Access {
                path,
                covered: true,
                ..(*self.access).clone()
            };
            let scan = Self {
                access: Arc::new(access),
                parts: [everything.to_vec()].into(),
                ..self.clone()
            };
            scan.direction(asked)
                .map(|reversed| scan.in_order(reversed))
        })
    }

    fn rows(&self) -> usize {
        let real = self.table.snapshot.approximate_len() as f64;
        let rows = self.access.rows.min(real) as usize;
        self.limit.map_or(rows, |limit| rows.min(limit))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>, between: &str) -> fmt::Result {
        let path = &self.table.paths[self.access.path];
        write!(f, "table={}{between}by={}", self.table.name, path.name())?;
        if !path.is_primary() {
            let covered = if self.access.covered {
                "covering"
            } else {
                "look up rows"
            };
            write!(f, "{between}{covered}")?;
        }
        let [bounds, ..] = &self.access.bounds[..] else {
            return Ok(());
        };
        for (column, value) in path.key.iter().zip(&bounds.prefix) {
            let name = self.table.columns.name(*column);
            match self.access.bounds.len() {
                1 => write!(f, "{between}{name}={value}")?,
                count => write!(f, "{between}{name}={value}.. ({count} ranges)")?,
            }
        }
        if let Some(column) = path.key.get(bounds.prefix.len()) {
            let name = self.table.columns.name(*column);
            if let Some(edge) = &bounds.from {
                let sign = if edge.inclusive { ">=" } else { ">" };
                write!(f, "{between}{name}{sign}{}", edge.value)?;
            }
            if let Some(edge) = &bounds.to {
                let sign = if edge.inclusive { "<=" } else { "<" };
                write!(f, "{between}{name}{sign}{}", edge.value)?;
            }
        }
        if self.reversed {
            write!(f, "{between}backwards")?;
        }
        match self.limit {
            Some(limit) => write!(f, "{between}limit={limit}"),
            None => Ok(()),
        }
    }
}

fn properties(known: EquivalenceProperties, parts: usize) -> PlanProperties {
    PlanProperties::new(
        known,
        Partitioning::UnknownPartitioning(parts),
        EmissionType::Incremental,
        Boundedness::Bounded,
    )
}

impl DisplayAs for Scan {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::TreeRender => self.describe(f, "\n"),
            _ => {
                f.write_str("IndexyScan: ")?;
                self.describe(f, ", ")
            }
        }
    }
}

impl ExecutionPlan for Scan {
    fn name(&self) -> &'static str {
        "IndexyScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let bounds = self.parts.get(partition);
        let mut bounds = bounds
            .ok_or_else(|| internal_datafusion_err!("no partition {partition}"))?
            .clone();
        let columns = self.wanted.iter().map(|&at| self.table.columns.name(at));
        let mut query = self.table.paths[self.access.path].query().columns(columns);
        if self.reversed {
            bounds.reverse();
            query = query.rev();
        }
        Ok(stream::read(Reading {
            table: self.table.clone(),
            query,
            bounds,
            limit: self.limit,
            schema: self.schema.clone(),
            batch_rows: context.session_config().batch_size(),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let parts = args.partition().map_or(1, |_| self.parts.len());
        Ok(Arc::new(Statistics {
            num_rows: Precision::Inexact(self.rows() / parts.max(1)),
            total_byte_size: Precision::Absent,
            column_statistics: vec![ColumnStatistics::new_unknown(); self.wanted.len()],
        }))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(self.clone().with_limit(limit)))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn ExecutionPlan>>> {
        // A limit takes the first rows of one order.
        if self.limit.is_some() {
            return Ok(SortOrderPushdownResult::Unsupported);
        }
        let ordered = match self.direction(order) {
            Some(reversed) => Some(self.clone().in_order(reversed)),
            None => self.by_another_path(order),
        };
        Ok(match ordered.transpose()? {
            Some(scan) => SortOrderPushdownResult::Exact {
                inner: Arc::new(scan),
            },
            None => SortOrderPushdownResult::Unsupported,
        })
    }
}
