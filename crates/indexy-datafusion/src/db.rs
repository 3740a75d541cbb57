//! `SqlDb`: queries over the tables of a database.

use crate::{
    catalog::{CATALOG, Moment, SCHEMA},
    error::{Result, check_reads_only},
    extremes::Extremes,
};
use datafusion::{
    dataframe::DataFrame,
    execution::{
        SessionState, SessionStateBuilder, context::SessionContext, runtime_env::RuntimeEnvBuilder,
    },
    prelude::SessionConfig,
};
use indexy::Snapshot;
use indexy_table::Tables;
use std::{fmt, num::NonZeroUsize, sync::Arc};

/// How queries are run.
///
/// ```
/// let options = indexy_datafusion::SqlOptions::new().memory_bytes(64 << 20);
/// ```
#[derive(Debug, Clone)]
pub struct SqlOptions {
    memory_bytes: usize,
    threads: Option<NonZeroUsize>,
}

/// Default of [`SqlOptions::memory_bytes`].
pub const DEFAULT_MEMORY_BYTES: usize = 1 << 30;

impl Default for SqlOptions {
    fn default() -> Self {
        Self {
            memory_bytes: DEFAULT_MEMORY_BYTES,
            threads: None,
        }
    }
}

impl SqlOptions {
    /// The defaults.
    ///
    /// ```
    /// let options = indexy_datafusion::SqlOptions::new();
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What all queries at once may hold for joins, groups and sorts, in bytes, beside the memory
    /// budget of the database; default [`DEFAULT_MEMORY_BYTES`]. Sorts and groups spill to the
    /// directory for temporary files; a join that does not fit fails.
    ///
    /// ```
    /// let options = indexy_datafusion::SqlOptions::new().memory_bytes(64 << 20);
    /// ```
    #[must_use]
    pub fn memory_bytes(mut self, bytes: usize) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// How many parts of a query run at the same time; default: one for each processor. Fewer leave
    /// more to those who write meanwhile.
    ///
    /// ```
    /// # use std::num::NonZeroUsize;
    /// let options = indexy_datafusion::SqlOptions::new().threads(NonZeroUsize::MIN);
    /// ```
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }
}

/// SQL over the tables of a database.
///
/// Each query sees the database at one moment: when [`SqlDb::query`] was called. All its tables are
/// of that moment, whoever writes meanwhile, and tables and columns that were created before are
/// there. It waits for no writer, and no writer waits for it. The snapshot lives as long as what is
/// made of the query: the data frame, its plans and streams.
///
/// ```
/// use indexy::{Db, Options};
/// use indexy_datafusion::SqlDb;
/// use indexy_table::{Schema, Tables, Type};
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let dir = tempfile::tempdir()?;
/// let db = Db::open(dir.path(), Options::new(16 << 20))?;
/// let tables = Tables::open(&db)?;
/// let people = tables.create_table(
///     Schema::new("people")
///         .column("id", Type::U64)
///         .column("city", Type::Text)
///         .primary_key(["id"]),
/// )?;
/// for (id, city) in [(1u64, "Paris"), (2, "Rome"), (3, "Paris")] {
///     people.insert((id, city))?;
/// }
/// let sql = SqlDb::new(&tables)?;
/// let answer = sql.query("SELECT city, count(*) AS n FROM people GROUP BY city ORDER BY n");
/// let batches = answer.await?.collect().await?;
/// let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
/// assert_eq!(rows, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SqlDb {
    tables: Tables,
    state: SessionState,
}

impl fmt::Debug for SqlDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlDb")
            .field("tables", &self.tables)
            .finish_non_exhaustive()
    }
}

impl SqlDb {
    /// With default options. Cost: about a millisecond; a clone shares everything.
    ///
    /// Errors: `Query` if no directory for temporary files can be named.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # let tables = indexy_table::Tables::open(&db)?;
    /// let sql = indexy_datafusion::SqlDb::new(&tables)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(tables: &Tables) -> Result<Self> {
        Self::with_options(tables, &SqlOptions::default())
    }

    /// As [`SqlDb::new`], with options.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # let tables = indexy_table::Tables::open(&db)?;
    /// use indexy_datafusion::{SqlDb, SqlOptions};
    /// let sql = SqlDb::with_options(&tables, &SqlOptions::new().memory_bytes(64 << 20))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_options(tables: &Tables, options: &SqlOptions) -> Result<Self> {
        let mut config = SessionConfig::new()
            .with_default_catalog_and_schema(CATALOG, SCHEMA)
            .with_create_default_catalog_and_schema(false)
            .with_information_schema(true);
        if let Some(threads) = options.threads {
            config = config.with_target_partitions(threads.get());
        }
        // As keys are ordered: NULL before all values.
        config.options_mut().sql_parser.default_null_ordering = "nulls_min".into();
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(options.memory_bytes, 1.0);
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime.build_arc()?)
            .with_default_features()
            .with_optimizer_rule(Arc::new(Extremes))
            .build();
        Ok(Self {
            tables: tables.clone(),
            state,
        })
    }

    /// A query over the database as it is now: `SELECT`, `EXPLAIN`, `DESCRIBE`, `SHOW TABLES`.
    /// [`SqlDb`] has an example. It runs when the data frame is collected or streamed, which a
    /// runtime of tokio must do: reads of the tables block its blocking threads only.
    ///
    /// Names that are not in quotes are of small letters. NULL sorts before all values.
    ///
    /// Errors: `ReadOnly`, `Table`, `Query`.
    pub async fn query(&self, sql: &str) -> Result<DataFrame> {
        let snapshot = self.tables.db().snapshot();
        self.query_at(sql, &snapshot.map_err(indexy_table::Error::from)?)
            .await
    }

    /// A query over the database as it was at the moment of `snapshot`: several queries of one
    /// moment. Errors: those of [`SqlDb::query`]; `Table` for a table that was dropped since.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # let tables = indexy_table::Tables::open(&db)?;
    /// # let schema = indexy_table::Schema::new("t").column("id", indexy_table::Type::U64);
    /// let table = tables.create_table(schema.primary_key(["id"]))?;
    /// let sql = indexy_datafusion::SqlDb::new(&tables)?;
    /// let before = db.snapshot()?;
    /// table.insert(1u64)?;
    /// let found = sql.query_at("SELECT * FROM t", &before).await?;
    /// assert_eq!(found.count().await?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn query_at(&self, sql: &str, snapshot: &Snapshot) -> Result<DataFrame> {
        let context = self.context_at(snapshot)?;
        let plan = context.state().create_logical_plan(sql).await?;
        check_reads_only(&plan)?;
        Ok(context.execute_logical_plan(plan).await?)
    }

    /// A context of DataFusion over the database at the moment of `snapshot`, for what this crate
    /// does not offer: functions of one's own, tables of other sources beside these, data frames.
    ///
    /// What it is told to do it does: its `COPY` writes files. Errors: `Table`.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let db = indexy::Db::open(dir.path(), indexy::Options::new(8 << 20))?;
    /// # let tables = indexy_table::Tables::open(&db)?;
    /// # let schema = indexy_table::Schema::new("t").column("id", indexy_table::Type::U64);
    /// tables.create_table(schema.primary_key(["id"]))?;
    /// let sql = indexy_datafusion::SqlDb::new(&tables)?;
    /// let context = sql.context_at(&db.snapshot()?)?;
    /// assert_eq!(context.table("t").await?.count().await?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn context_at(&self, snapshot: &Snapshot) -> Result<SessionContext> {
        let moment = Moment::new(&self.tables, snapshot)?;
        let mut state = self.state.clone();
        state.register_catalog_list(moment.list());
        Ok(SessionContext::new_with_state(state))
    }
}
