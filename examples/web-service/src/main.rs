//! A key-value store behind HTTP: `PUT`, `GET` and `DELETE` of `/kv/KEY`, `GET /kv?prefix=..` for
//! a range, `GET /stats`.
//!
//!     cargo run --release -- DIRECTORY
//!     curl -X PUT -d apples localhost:3000/kv/fruit
//!
//! A call of IndeXY may wait for the disk, so each runs on a thread that may block.

use axum::{
    Router,
    body::Bytes,
    extract::{Path, Query, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use indexy::{Db, Durability, Error, Options, Tree};
use std::collections::HashMap;

/// Entries of one answer at most.
const PAGE_ENTRIES: usize = 1_000;

#[derive(Clone)]
struct Store {
    db: Db,
    tree: Tree,
}

impl Store {
    /// Runs `call` where it may wait, and turns its error into a status.
    async fn run<R: IntoResponse + Send + 'static>(
        self,
        call: impl FnOnce(&Tree, &Db) -> indexy::Result<R> + Send + 'static,
    ) -> Response {
        let done = tokio::task::spawn_blocking(move || call(&self.tree, &self.db)).await;
        match done {
            Ok(Ok(answer)) => answer.into_response(),
            Ok(Err(error)) => (status(&error), error.to_string()).into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

/// Whose turn it is: the client's, anybody's later, or the operator's.
fn status(error: &Error) -> StatusCode {
    match error {
        Error::KeyTooLong { .. } | Error::ValueTooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Error::MemoryStalled { .. } => StatusCode::SERVICE_UNAVAILABLE,
        Error::OutOfSpace { .. } => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn routes(store: Store) -> Router {
    Router::new()
        .route("/kv", get(list))
        .route("/kv/{*key}", get(read).put(write).delete(remove))
        .route("/stats", get(stats))
        .with_state(store)
}

async fn read(State(store): State<Store>, Path(key): Path<String>) -> Response {
    let found = |value: Option<indexy::Value>| match value {
        Some(value) => value.to_vec().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    };
    store.run(move |tree, _| tree.get(key).map(found)).await
}

async fn write(State(store): State<Store>, Path(key): Path<String>, value: Bytes) -> Response {
    let written = |()| StatusCode::NO_CONTENT;
    store
        .run(move |tree, _| tree.insert(key, value).map(written))
        .await
}

async fn remove(State(store): State<Store>, Path(key): Path<String>) -> Response {
    let removed = |()| StatusCode::NO_CONTENT;
    store
        .run(move |tree, _| tree.remove(key).map(removed))
        .await
}

/// One `key TAB value` a line.
async fn list(
    State(store): State<Store>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    let prefix = query.get("prefix").cloned().unwrap_or_default();
    let lines = move |tree: &Tree, _: &Db| {
        let mut lines = Vec::new();
        for entry in tree.prefix(prefix).take(PAGE_ENTRIES) {
            let (key, value) = entry?;
            lines.extend([&key[..], b"\t", &value[..], b"\n"].concat());
        }
        Ok(lines)
    };
    store.run(lines).await
}

async fn stats(State(store): State<Store>) -> Response {
    store.run(|_, db| Ok(format!("{:#?}\n", db.stats()))).await
}

/// Opens the store. `Sync`: when an answer confirms a write, the write survives a crash.
fn open(path: impl AsRef<std::path::Path>) -> indexy::Result<Store> {
    let options = Options::new(64 << 20).durability(Durability::Sync);
    let db = Db::open(path, options)?;
    let tree = db.tree("default")?;
    Ok(Store { db, tree })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args()
        .nth(1)
        .ok_or("usage: web-service DIRECTORY")?;
    let store = open(directory)?;
    let db = store.db.clone();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}", listener.local_addr()?);
    let stop = async { drop(tokio::signal::ctrl_c().await) };
    let server = axum::serve(listener, routes(store)).with_graceful_shutdown(stop);
    server.await?;
    db.close()?;
    Ok(())
}

#[cfg(test)]
mod tests;
