//! Every route, asked as a client would.

use super::{open, routes};
use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
};
use http_body_util::BodyExt;
use tower::ServiceExt;

async fn ask(
    routes: &Router,
    method: &str,
    path: &str,
    body: &'static str,
) -> (StatusCode, String) {
    let request = Request::builder().method(method).uri(path);
    let request = request.body(Body::from(body)).unwrap();
    let answer = routes.clone().oneshot(request).await.unwrap();
    let status = answer.status();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn what_is_put_is_found_until_it_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let db = store.db.clone();
    let routes = routes(store);
    let done = (StatusCode::NO_CONTENT, String::new());
    assert_eq!(ask(&routes, "PUT", "/kv/fruit/1", "apple").await, done);
    assert_eq!(ask(&routes, "PUT", "/kv/fruit/2", "pear").await, done);
    assert_eq!(ask(&routes, "PUT", "/kv/nut", "hazel").await, done);

    let found = ask(&routes, "GET", "/kv/fruit/1", "").await;
    assert_eq!(found, (StatusCode::OK, "apple".into()));
    let list = ask(&routes, "GET", "/kv?prefix=fruit/", "").await.1;
    assert_eq!(list, "fruit/1\tapple\nfruit/2\tpear\n");

    assert_eq!(ask(&routes, "DELETE", "/kv/fruit/1", "").await, done);
    let absent = ask(&routes, "GET", "/kv/fruit/1", "").await;
    assert_eq!(absent.0, StatusCode::NOT_FOUND);
    assert!(ask(&routes, "GET", "/stats", "").await.1.contains("x_keys"));
    db.close().unwrap();
}

#[tokio::test]
async fn a_key_that_is_too_long_is_the_clients_mistake() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let error = store.tree.insert([0; 70_000], "").unwrap_err();
    assert_eq!(super::status(&error), StatusCode::PAYLOAD_TOO_LARGE);
}
