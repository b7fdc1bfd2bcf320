//! Who may ask.

use adjutant_core::port::TokenStore as _;
use adjutant_service::{Auth, TrustedProxy};
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
async fn no_proxy_names_the_machines_own_user_nor_several() {
    let service = Running::start_set(r#"{"text": "Hello."}"#, |config| {
        config.auth = Auth::Proxy(TrustedProxy::new("X-User", &["127.0.0.1".to_owned()]).unwrap());
    })
    .await;
    let me = async |names: &[&str]| {
        let headers: Vec<_> = names.iter().map(|name| ("X-User", (*name).to_owned())).collect();
        service.ask("GET", "/v1/me", &headers, "").await
    };
    for name in ["ana", "Зоя", "Local", "\u{2003}ana"] {
        assert_eq!(me(&[name]).await.body["user"], name);
    }
    // White space around a header's value is none of it.
    assert_eq!(me(&[" ana "]).await.body["user"], "ana");
    for names in
        [&["local"][..], &[" local "], &["ana, eve"], &["ana", "eve"], &["ana", "ana"], &["\u{a0}"], &[]]
    {
        let refused = me(names).await;
        assert_eq!((refused.status, &refused.body["code"]), (401, &json!("unauthorized")), "{names:?}");
        assert!(refused.body["detail"].is_string(), "{names:?}");
    }
    let told = service.stop().await;
    assert!(told.iter().any(|words| words.contains("named the user \"local\"")), "{told:?}");
    assert!(told.iter().any(|words| words.contains("held a comma")), "{told:?}");
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
