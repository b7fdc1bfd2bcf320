//! Who may ask.

use adjutant_core::port::TokenStore as _;
use serde_json::json;

use crate::harness::Running;

#[tokio::test]
async fn without_a_token_nobody_is_anybody() {
    let service = Running::start(r#"{"text": "Hello."}"#).await;
    let body = json!({"message": "hi"}).to_string();
    for header in ["", "Bearer", "Bearer ", "Bearer adj_wrong", "Basic YTpi", "adj_wrong"] {
        let headers = [("Authorization", header.to_owned())];
        let refused = service.ask("POST", "/v1/chat", &headers, &body).await;
        assert_eq!((refused.status, &refused.body["code"]), (401, &json!("unauthorized")), "{header}");
        assert!(refused.head.contains("www-authenticate: bearer"), "{}", refused.head);
    }
    let token = service.token("anna").await;
    assert_eq!(service.chat(&token, &json!({"message": "hi"})).await.status, 200);
    let id = service.store.tokens(None).await.unwrap()[0].id.clone();
    service.store.revoke_token(&id).await.unwrap();
    assert_eq!(service.chat(&token, &json!({"message": "hi"})).await.status, 401);
    service.stop().await;
}

#[tokio::test]
async fn other_hosts_and_other_pages_are_refused() {
    let service = Running::start(r#"{"text": "Hello."}"#).await;
    let token = service.token("anna").await;
    let body = json!({"message": "hi"}).to_string();
    for (name, value) in [("Host", "evil.example"), ("Origin", "https://evil.example")] {
        let headers = [("Authorization", format!("Bearer {token}")), (name, value.to_owned())];
        let refused = service.ask("POST", "/v1/chat", &headers, &body).await;
        assert_eq!((refused.status, &refused.body["code"]), (403, &json!("forbidden")), "{name}");
    }
    let headers = [("Authorization", format!("Bearer {token}")), ("Host", "tasks.example".to_owned())];
    assert_eq!(service.ask("POST", "/v1/chat", &headers, &body).await.status, 200);
    service.stop().await;
}

#[tokio::test]
async fn health_needs_no_token() {
    let service = Running::start(r#"{"text": "Hello."}"#).await;
    assert_eq!(service.ask("GET", "/healthz", &[], "").await.body, json!({"status": "ok"}));
    assert_eq!(service.ask("GET", "/readyz", &[], "").await.body, json!({"status": "ready"}));
    service.store.close().await;
    let not_ready = service.ask("GET", "/readyz", &[], "").await;
    assert_eq!((not_ready.status, &not_ready.body["status"]), (503, &json!("not ready")));
    service.stop().await;
}
