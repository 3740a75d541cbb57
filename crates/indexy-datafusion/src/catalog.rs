//! The tables of a database at one moment, as a catalog of DataFusion.

use crate::{provider::Provider, stream, table::Seen};
use async_trait::async_trait;
use datafusion::{
    catalog::{
        CatalogProvider, CatalogProviderList, MemoryCatalogProviderList, SchemaProvider,
        TableProvider,
    },
    common::internal_datafusion_err,
    error::Result,
};
use indexy::Snapshot;
use indexy_table::{Error, Tables};
use std::{fmt, sync::Arc};

/// Name of the catalog.
pub(crate) const CATALOG: &str = "indexy";
/// Name of its only schema.
pub(crate) const SCHEMA: &str = "public";

/// Catalog and schema at once. It keeps the snapshot open.
#[derive(Clone)]
pub(crate) struct Moment {
    tables: Tables,
    snapshot: Snapshot,
    names: Arc<[String]>,
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moment")
            .field("tables", &self.names)
            .finish_non_exhaustive()
    }
}

impl Moment {
    pub(crate) fn new(tables: &Tables, snapshot: &Snapshot) -> indexy_table::Result<Self> {
        Ok(Self {
            tables: tables.clone(),
            snapshot: snapshot.clone(),
            names: tables.names_at(snapshot)?.into(),
        })
    }

    /// A list of catalogs with this one alone.
    pub(crate) fn list(self) -> Arc<dyn CatalogProviderList> {
        let list = MemoryCatalogProviderList::new();
        list.register_catalog(CATALOG.into(), Arc::new(self));
        Arc::new(list)
    }
}

impl CatalogProvider for Moment {
    fn schema_names(&self) -> Vec<String> {
        vec![SCHEMA.into()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        (name == SCHEMA).then(|| Arc::new(self.clone()) as Arc<dyn SchemaProvider>)
    }
}

#[async_trait]
impl SchemaProvider for Moment {
    fn table_names(&self) -> Vec<String> {
        self.names.to_vec()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let (moment, name) = (self.clone(), name.to_owned());
        let table = move || moment.tables.table_at(&name, &moment.snapshot);
        // The definition may have to be read from disk.
        let found = tokio::task::spawn_blocking(table).await;
        match found.map_err(|error| internal_datafusion_err!("{error}"))? {
            Ok(table) => Ok(Some(Arc::new(Provider::new(Seen::new(table))))),
            Err(Error::UnknownTable { .. }) => Ok(None),
            Err(error) => Err(stream::external(error)),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }
}
