//! Every error of a query.

use datafusion::{common::tree_node::TreeNodeRecursion, error::DataFusionError};

/// Result of a query.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The statement would change something: this crate only reads. Write through
    /// [`indexy_table`].
    #[error("SQL is read only here: {statement} is not possible")]
    ReadOnly {
        /// What the statement is: `INSERT INTO`, `CREATE VIEW`.
        statement: String,
    },
    /// The tables could not be read.
    #[error(transparent)]
    Table(#[from] indexy_table::Error),
    /// The statement makes no sense, needs more memory than it may have, or failed.
    #[error("{}", text(.0))]
    Query(#[source] Box<DataFusionError>),
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        match of_tables(&error) {
            Some(error) => Self::Table(error),
            None => Self::Query(Box::new(error)),
        }
    }
}

/// The error of the tables that lies below `error`.
fn of_tables(error: &DataFusionError) -> Option<indexy_table::Error> {
    let mut found = None;
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<indexy_table::Error>() {
            found = Some(error.clone());
        }
        next = error.source();
    }
    found
}

/// The message alone: neither where in DataFusion it arose, nor a request to report it.
fn text(error: &DataFusionError) -> String {
    error.strip_backtrace()
}

/// Refuses what is not a query. `plan` is not executed yet.
pub(crate) fn check_reads_only(plan: &datafusion::logical_expr::LogicalPlan) -> Result<()> {
    use datafusion::logical_expr::LogicalPlan;
    let mut writes = None;
    plan.apply_with_subqueries(|node| {
        writes = match node {
            LogicalPlan::Ddl(ddl) => Some(ddl.name().to_owned()),
            LogicalPlan::Dml(dml) => Some(dml.op.to_string()),
            LogicalPlan::Copy(_) => Some("COPY".into()),
            LogicalPlan::Statement(statement) => Some(statement.name().to_owned()),
            _ => None,
        };
        Ok(match writes {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    })?;
    match writes {
        Some(statement) => Err(Error::ReadOnly { statement }),
        None => Ok(()),
    }
}
