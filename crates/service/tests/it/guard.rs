//! Authentication, and the checks of hosts and origins.

use adjutant_core::port::TokenStore as _;
use adjutant_service::{Auth, TrustedProxy};
use serde_json::json;

use crate::harness::Running;

#[tokio::test]
async fn a_request_without_a_token_is_refused() {
    let service = Running::start(r#"{"text": "Hello."}"#).await;
    let body = json!({"message": "hi"}).to_string();
    for header in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer adj_wrong",
        "Basic YTpi",
        "adj_wrong",
    ] {
        let headers = [("Authorization", header.to_owned())];
        let refused = service.ask("POST", "/v1/chat", &headers, &body).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (401, &json!("unauthorized")),
            "{header}"
        );
        assert!(
            refused.head.contains("www-authenticate: bearer"),
            "{}",
            refused.head
        );
    }
    let token = service.token("anna").await;
    assert_eq!(
        service.chat(&token, &json!({"message": "hi"})).await.status,
        200
    );
    let id = service.store.tokens(None).await.unwrap()[0].id.clone();
    service.store.revoke_token(&id).await.unwrap();
    assert_eq!(
        service.chat(&token, &json!({"message": "hi"})).await.status,
        401
    );
    service.stop().await;
}

#[tokio::test]
async fn other_hosts_and_other_pages_are_refused() {
    let service = Running::start(r#"{"text": "Hello."}"#).await;
    let token = service.token("anna").await;
    let body = json!({"message": "hi"}).to_string();
    for (name, value) in [("Host", "evil.example"), ("Origin", "https://evil.example")] {
        let headers = [
            ("Authorization", format!("Bearer {token}")),
            (name, value.to_owned()),
        ];
        let refused = service.ask("POST", "/v1/chat", &headers, &body).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (403, &json!("forbidden")),
            "{name}"
        );
    }
    let headers = [
        ("Authorization", format!("Bearer {token}")),
        ("Host", "tasks.example".to_owned()),
    ];
    assert_eq!(
        service
            .ask("POST", "/v1/chat", &headers, &body)
            .await
            .status,
        200
    );
    service.stop().await;
}

#[tokio::test]
async fn no_proxy_names_the_machines_own_user_nor_several() {
    let service = Running::start_set(r#"{"text": "Hello."}"#, |config| {
        config.auth = Auth::Proxy(TrustedProxy::new("X-User", &["127.0.0.1".to_owned()]).unwrap());
    })
    .await;
    let me = async |names: &[&str]| {
        let headers: Vec<_> = names
            .iter()
            .map(|name| ("X-User", (*name).to_owned()))
            .collect();
        service.ask("GET", "/v1/me", &headers, "").await
    };
    for name in ["ana", "Зоя", "Local", "\u{2003}ana"] {
        assert_eq!(me(&[name]).await.body["user"], name);
    }
    // White space around a header's value is none of it.
    assert_eq!(me(&[" ana "]).await.body["user"], "ana");
    for names in [
        &["local"][..],
        &[" local "],
        &["ana, eve"],
        &["ana", "eve"],
        &["ana", "ana"],
        &["\u{a0}"],
        &[],
    ] {
        let refused = me(names).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (401, &json!("unauthorized")),
            "{names:?}"
        );
        assert!(refused.body["detail"].is_string(), "{names:?}");
    }
    let told = service.stop().await;
    assert!(
        told.iter()
            .any(|words| words.contains("named the user \"local\"")),
        "{told:?}"
    );
    assert!(
        told.iter().any(|words| words.contains("held a comma")),
        "{told:?}"
    );
}

#[tokio::test]
async fn health_needs_no_token() {
    let service = Running::start(r#"{"text": "Hello."}"#).await;
    assert_eq!(
        service.ask("GET", "/healthz", &[], "").await.body,
        json!({"status": "ok"})
    );
    assert_eq!(
        service.ask("GET", "/readyz", &[], "").await.body,
        json!({"status": "ready"})
    );
    service.store.close().await;
    let not_ready = service.ask("GET", "/readyz", &[], "").await;
    assert_eq!(
        (not_ready.status, &not_ready.body["status"]),
        (503, &json!("not ready"))
    );
    service.stop().await;
}

#[tokio::test]
async fn pages_of_allowed_origins_ask_with_a_token_alone() {
    const APP: &str = "http://localhost:5173";
    let service = Running::start_set(r#"{"text": "Hello.", "repeat": true}"#, |config| {
        config.origins = vec![APP.parse().unwrap()];
    })
    .await;
    let token = service.token("anna").await;
    let body = json!({"message": "hi"}).to_string();
    let bearer = ("Authorization", format!("Bearer {token}"));
    let cookie = (
        "Cookie",
        format!("adjutant-{}={token}", service.address.port()),
    );
    let from = |origin: &str| ("Origin", origin.to_owned());
    // The cookie is good where our own page asks.
    let own = from(&format!("http://{}", service.address));
    assert_eq!(
        service
            .ask("POST", "/v1/chat", &[cookie.clone(), own], &body)
            .await
            .status,
        200
    );
    for site in ["cross-site", "same-site", "same-origin"] {
        let site = ("Sec-Fetch-Site", site.to_owned());
        let answered = service
            .ask(
                "POST",
                "/v1/chat",
                &[bearer.clone(), from(APP), site.clone()],
                &body,
            )
            .await;
        assert_eq!(answered.status, 200, "{site:?} {}", answered.text);
        assert!(
            answered
                .head
                .contains(&format!("access-control-allow-origin: {APP}")),
            "{}",
            answered.head
        );
        assert!(answered.head.contains("vary: origin"), "{}", answered.head);
        assert!(
            !answered.head.contains("allow-credentials"),
            "{}",
            answered.head
        );
        for method in ["GET", "POST"] {
            let path = if method == "GET" {
                "/v1/me"
            } else {
                "/v1/chat"
            };
            let refused = service
                .ask(
                    method,
                    path,
                    &[cookie.clone(), from(APP), site.clone()],
                    &body,
                )
                .await;
            assert_eq!(
                (refused.status, &refused.body["code"]),
                (403, &json!("forbidden")),
                "{method} {site:?}"
            );
            // It can read why.
            assert!(
                refused.head.contains("access-control-allow-origin"),
                "{}",
                refused.head
            );
        }
    }
    for (origin, path) in [
        ("http://localhost:5174", "/v1/chat"),
        ("null", "/v1/chat"),
        (APP, "/v1/session"),
        ("null", "/mcp"),
    ] {
        let refused = service
            .ask("POST", path, &[bearer.clone(), from(origin)], &body)
            .await;
        // There it is the data of a JSON-RPC error.
        let problem = match path {
            "/mcp" => &refused.body["error"]["data"],
            _ => &refused.body,
        };
        assert_eq!(
            (refused.status, &problem["code"]),
            (403, &json!("forbidden")),
            "{origin} {path}"
        );
        assert!(
            problem["detail"]
                .as_str()
                .unwrap()
                .contains("serve.origins"),
            "{}",
            refused.text
        );
        assert!(
            !refused.head.contains("access-control-allow-origin"),
            "{}",
            refused.head
        );
    }
    let preflight = async |origin: &str, path: &str| {
        let headers = [
            from(origin),
            ("Access-Control-Request-Method", "POST".to_owned()),
            (
                "Access-Control-Request-Headers",
                "authorization,x-stainless-lang".to_owned(),
            ),
        ];
        service.ask("OPTIONS", path, &headers, "").await
    };
    let yes = preflight(APP, "/v1/runs").await;
    assert_eq!(yes.status, 200);
    for header in [
        "access-control-allow-origin: http://localhost:5173",
        "access-control-allow-headers: authorization,x-stainless-lang",
        "access-control-max-age: 7200",
    ] {
        assert!(yes.head.contains(header), "{}", yes.head);
    }
    for (origin, path) in [
        ("https://evil.example", "/v1/runs"),
        (APP, "/v1/session"),
        (APP, "/"),
    ] {
        let no = preflight(origin, path).await;
        assert!(
            !no.head.contains("access-control-allow-origin"),
            "{origin} {path}: {}",
            no.head
        );
    }
    service.stop().await;
}

#[tokio::test]
async fn without_a_setting_no_other_origin_is_allowed() {
    let service = Running::start(r#"{"text": "Hello."}"#).await;
    let token = service.token("anna").await;
    let headers = [
        ("Authorization", format!("Bearer {token}")),
        ("Origin", "http://localhost:5173".to_owned()),
        ("Access-Control-Request-Method", "GET".to_owned()),
    ];
    for (method, status) in [("OPTIONS", 405), ("GET", 200)] {
        let answered = service.ask(method, "/v1/me", &headers, "").await;
        assert_eq!(answered.status, status);
        assert!(
            !answered.head.contains("access-control"),
            "{}",
            answered.head
        );
    }
    service.stop().await;
}

#[tokio::test]
async fn a_request_to_an_unknown_host_names_the_setting() {
    let service = Running::start(r#"{"text": "Hello."}"#).await;
    let headers = [("Host", "host.docker.internal:8080".to_owned())];
    let refused = service.ask("GET", "/v1/models", &headers, "").await;
    assert_eq!(refused.status, 403);
    for words in ["serve.hosts", "host.docker.internal", "--host"] {
        assert!(refused.text.contains(words), "{}", refused.text);
    }
    service.stop().await;
}
