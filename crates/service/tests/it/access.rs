//! Lifetimes and roles of sessions and tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adjutant_core::port::{Role, StoreError, TokenGrant, TokenKind, TokenRecord, TokenStore};
use adjutant_core::{BoxFuture, UserId};
use adjutant_service::{Auth, TrustedProxy, new_token};
use adjutant_store::sqlite::Store;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::harness::Running;
use crate::runs::Listening;

const SCRIPT: &str = r#"{"text": "Hello.", "repeat": true}"#;

fn bearer(token: &str) -> [(&'static str, String); 1] {
    [("Authorization", format!("Bearer {token}"))]
}

async fn made(service: &Running, grant: TokenGrant) -> (String, TokenRecord) {
    let token = new_token().unwrap();
    let record = service
        .store
        .create_token(&grant, &token.digest)
        .await
        .unwrap();
    (token.secret, record)
}

fn anna() -> TokenGrant {
    TokenGrant::token(UserId::new("anna").unwrap(), "test")
}

#[expect(
    clippy::disallowed_methods,
    reason = "a token expires at a time of the real world"
)]
fn from_now(seconds: i64) -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(seconds)
}

/// Signs in with a token, and returns the cookie as it came: the harness has heads in lower case.
async fn signed_in(service: &Running, token: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let body = json!({ "token": token }).to_string();
    let head = format!(
        "POST /v1/session HTTP/1.1\r\nHost: {}\r\nUser-Agent: Firefox\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        service.address,
        body.len()
    );
    let mut connection = tokio::net::TcpStream::connect(service.address)
        .await
        .unwrap();
    connection
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let set = answer
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .unwrap();
    set.split(';').next().unwrap().to_owned()
}

async fn me(service: &Running, cookie: &str) -> u16 {
    service
        .ask("GET", "/v1/me", &[("Cookie", cookie.to_owned())], "")
        .await
        .status
}

#[tokio::test]
async fn an_expired_token_is_refused_with_an_explanation() {
    let service = Running::start(SCRIPT).await;
    let (old, _) = made(
        &service,
        TokenGrant {
            expires_at: Some(from_now(-1)),
            ..anna()
        },
    )
    .await;
    let (good, _) = made(
        &service,
        TokenGrant {
            expires_at: Some(from_now(600)),
            ..anna()
        },
    )
    .await;
    let refused = service.ask("GET", "/v1/me", &bearer(&old), "").await;
    assert_eq!(
        (refused.status, &refused.body["detail"]),
        (401, &json!("the token has expired"))
    );
    assert_eq!(
        service
            .ask("GET", "/v1/me", &bearer(&good), "")
            .await
            .status,
        200
    );
    let refused = service
        .ask(
            "POST",
            "/v1/session",
            &[],
            &json!({ "token": old }).to_string(),
        )
        .await;
    assert_eq!(refused.status, 401);
    service.stop().await;
}

#[tokio::test]
async fn a_session_ends_with_its_token_by_signing_out_and_everywhere() {
    let service = Running::start(SCRIPT).await;
    let (token, record) = made(&service, anna()).await;
    let (first, second, third) = (
        signed_in(&service, &token).await,
        signed_in(&service, &token).await,
        signed_in(&service, &token).await,
    );
    assert!(!first.contains(&token), "the cookie is not the token");
    let own = format!("http://{}", service.address);
    let out = async |cookie: &str, query: &str| {
        let headers = [("Cookie", cookie.to_owned()), ("Origin", own.clone())];
        service
            .ask("DELETE", &format!("/v1/session{query}"), &headers, "")
            .await
            .status
    };
    assert_eq!(out(&first, "").await, 204);
    assert_eq!(
        (me(&service, &first).await, me(&service, &second).await),
        (401, 200)
    );
    // A token stays; only browsers are signed out.
    assert_eq!(out(&second, "?everywhere=true").await, 204);
    assert_eq!(
        (me(&service, &second).await, me(&service, &third).await),
        (401, 401)
    );
    assert_eq!(out(&second, "?everywhere=true").await, 401);
    assert_eq!(
        service
            .ask("GET", "/v1/me", &bearer(&token), "")
            .await
            .status,
        200
    );
    let fourth = signed_in(&service, &token).await;
    assert_eq!(me(&service, &fourth).await, 200);
    service.store.revoke_token(&record.id).await.unwrap();
    assert_eq!(me(&service, &fourth).await, 401);
    service.stop().await;
}

#[tokio::test]
async fn a_session_is_known_to_every_replica_and_after_a_restart() {
    let store = Arc::new(Store::in_memory().await.unwrap());
    let first = Running::start_replica(store.clone()).await;
    let token = first.token("anna").await;
    let cookie = signed_in(&first, &token).await;
    // The cookie is called by the port, so another replica is asked under the same name as behind a
    // balancer.
    let host = first.address.to_string();
    let second = Running::start_replica(store).await;
    let ask = async |service: &Running| {
        let headers = [("Cookie", cookie.clone()), ("Host", host.clone())];
        service.ask("GET", "/v1/me", &headers, "").await.status
    };
    assert_eq!((ask(&first).await, ask(&second).await), (200, 200));
    first.stop().await;
    assert_eq!(ask(&second).await, 200);
    second.stop().await;
}

#[tokio::test]
async fn a_token_makes_no_token_that_opens_or_holds_more() {
    let service = Running::start(SCRIPT).await;
    let make = async |token: &str, body: Value| {
        service
            .ask("POST", "/v1/tokens", &bearer(token), &body.to_string())
            .await
    };
    let expiry = from_now(3_600);
    let (short, _) = made(
        &service,
        TokenGrant {
            expires_at: Some(expiry),
            ..anna()
        },
    )
    .await;
    let (operator, _) = made(
        &service,
        TokenGrant {
            role: Role::Operator,
            ..anna()
        },
    )
    .await;
    for role in ["operator", "metrics"] {
        let refused = make(&short, json!({"name": "x", "role": role})).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (403, &json!("forbidden")),
            "{role}"
        );
        assert_eq!(
            make(&operator, json!({"name": "x", "role": role, "days": 1}))
                .await
                .status,
            201
        );
    }
    for body in [
        json!({"name": ""}),
        json!({"name": " "}),
        json!({"name": "a\nb"}),
        json!({"name": "x".repeat(101)}),
        json!({"name": "x", "days": 0}),
        json!({"name": "x", "days": 366}),
        json!({"name": "x", "days": u64::MAX}),
        json!({"name": "x", "role": "root"}),
        json!({"name": "x", "user": "bert"}),
        json!({}),
    ] {
        assert_eq!(make(&short, body.clone()).await.status, 422, "{body}");
    }
    // What it makes ends with it at the latest, and is revoked with it.
    let child = make(&short, json!({"name": "Open WebUI", "days": 300})).await;
    assert_eq!(child.status, 201, "{child:?}");
    let until: Timestamp = child.body["expires_at"].as_str().unwrap().parse().unwrap();
    assert!(until <= expiry, "{child:?}");
    let secret = child.body["token"].as_str().unwrap().to_owned();
    let listed = service.ask("GET", "/v1/tokens", &bearer(&secret), "").await;
    let tokens = listed.body["tokens"].as_array().unwrap();
    assert_eq!(tokens.len(), 5, "{listed:?}");
    assert!(!listed.text.contains("adj_"));
    let current: Vec<&Value> = tokens
        .iter()
        .filter(|token| token["current"] == true)
        .collect();
    assert_eq!(current.len(), 1);
    assert_eq!(current[0]["id"], child.body["id"]);
    // Another's is not there.
    let other = service.token("bert").await;
    let path = format!("/v1/tokens/{}", child.body["id"].as_str().unwrap());
    assert_eq!(
        service
            .ask("DELETE", &path, &bearer(&other), "")
            .await
            .status,
        404
    );
    assert_eq!(
        service
            .ask("DELETE", &path, &bearer(&secret), "")
            .await
            .status,
        204
    );
    let refused = service.ask("GET", "/v1/me", &bearer(&secret), "").await;
    assert_eq!(
        (refused.status, &refused.body["detail"]),
        (401, &json!("the token was revoked"))
    );
    service.stop().await;
}

#[tokio::test]
async fn only_an_operator_revokes_the_access_of_another_user() {
    let service = Running::start(SCRIPT).await;
    let (operator, _) = made(
        &service,
        TokenGrant {
            role: Role::Operator,
            ..anna()
        },
    )
    .await;
    let bert = service.token("bert").await;
    let session = signed_in(&service, &bert).await;
    let path = "/v1/admin/access/bert";
    assert_eq!(
        service.ask("DELETE", path, &bearer(&bert), "").await.status,
        403
    );
    let shut = service.ask("DELETE", path, &bearer(&operator), "").await;
    assert_eq!((shut.status, &shut.body), (200, &json!({"revoked": 2})));
    assert_eq!(me(&service, &session).await, 401);
    assert_eq!(
        service
            .ask("GET", "/v1/me", &bearer(&bert), "")
            .await
            .status,
        401
    );
    assert_eq!(
        service
            .ask("GET", "/v1/me", &bearer(&operator), "")
            .await
            .status,
        200
    );
    service.stop().await;
}

#[tokio::test]
async fn a_metrics_token_reads_the_metrics_only() {
    let service = Running::start(SCRIPT).await;
    let (metrics, _) = made(
        &service,
        TokenGrant {
            role: Role::Metrics,
            ..anna()
        },
    )
    .await;
    let (operator, _) = made(
        &service,
        TokenGrant {
            role: Role::Operator,
            ..anna()
        },
    )
    .await;
    let user = service.token("anna").await;
    for (token, status) in [(&metrics, 200), (&operator, 200), (&user, 403)] {
        assert_eq!(
            service
                .ask("GET", "/metrics", &bearer(token), "")
                .await
                .status,
            status
        );
    }
    let described = service.ask("GET", "/openapi.json", &[], "").await.body;
    let mut refused = 0;
    for (path, methods) in described["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let is_open =
                operation["security"] == json!([]) || operation["security"] == json!([{}]);
            if is_open || path == "/metrics" {
                continue;
            }
            let path = path.replace(['{', '}'], "");
            let answer = service
                .ask(&method.to_uppercase(), &path, &bearer(&metrics), "{}")
                .await;
            assert_eq!(answer.status, 403, "{method} {path}: {answer:?}");
            refused += 1;
        }
    }
    assert!(refused > 30, "{refused}");
    for method in ["GET", "POST", "DELETE"] {
        assert_eq!(
            service
                .ask(method, "/mcp", &bearer(&metrics), "{}")
                .await
                .status,
            403,
            "{method}"
        );
    }
    // Nor is it exchanged for a session.
    let exchange = service
        .ask(
            "POST",
            "/v1/session",
            &[],
            &json!({ "token": metrics }).to_string(),
        )
        .await;
    assert_eq!(exchange.status, 403);
    service.stop().await;
}

#[tokio::test]
async fn a_proxy_may_say_roles() {
    let service = Running::start_set(SCRIPT, |config| {
        config.auth = Auth::Proxy(TrustedProxy::new("X-User", &["127.0.0.1".to_owned()]).unwrap());
        config.access.roles.header = Some("X-Groups".to_owned());
        config.access.roles.operator_roles = vec!["admins".to_owned()];
        config.access.roles.operators = vec!["olga".to_owned()];
    })
    .await;
    for (user, groups, status) in [
        ("ana", "users,admins", 200),
        ("ana", "users", 403),
        ("olga", "", 200),
    ] {
        let headers = [("X-User", user.to_owned()), ("X-Groups", groups.to_owned())];
        assert_eq!(
            service.ask("GET", "/metrics", &headers, "").await.status,
            status,
            "{user} {groups}"
        );
    }
    // Tokens are not how this service knows its users.
    let headers = [("X-User", "ana".to_owned())];
    assert_eq!(
        service.ask("GET", "/v1/tokens", &headers, "").await.status,
        404
    );
    service.stop().await;
}

#[tokio::test]
async fn a_stream_ends_once_its_token_is_revoked() {
    let service = Running::start_set(r#"{"text": "Hello.", "delay_ms": 60000}"#, |config| {
        config.access.recheck = Duration::from_millis(20);
    })
    .await;
    let (token, record) = made(&service, anna()).await;
    let run = json!({"threadId": "t", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "hi"}],
        "tools": [], "context": [], "state": {}, "forwardedProps": {}});
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Accept", "text/event-stream"),
        ("Content-Type", "application/json"),
    ];
    let mut stream =
        Listening::start(service.address, "POST /v1/runs", &headers, &run.to_string()).await;
    assert_eq!(stream.next().await.unwrap().event["type"], "RUN_STARTED");
    service.store.revoke_token(&record.id).await.unwrap();
    // It ends by itself, long before the model answers.
    let rest = stream.rest().await;
    assert!(
        !rest.contains("RUN_FINISHED") && !rest.contains("RUN_ERROR"),
        "{rest}"
    );
    service.stop().await;
}

/// Counts what is written about the use of tokens.
struct Counting {
    store: Arc<Store>,
    used: AtomicUsize,
}

impl TokenStore for Counting {
    fn create_token<'a>(
        &'a self,
        grant: &'a TokenGrant,
        digest: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<TokenRecord, StoreError>> {
        self.store.create_token(grant, digest)
    }

    fn find_token<'a>(
        &'a self,
        digest: &'a [u8; 32],
    ) -> BoxFuture<'a, Result<Option<TokenRecord>, StoreError>> {
        self.store.find_token(digest)
    }

    fn token_used<'a>(
        &'a self,
        id: &'a str,
        at: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.used.fetch_add(1, Ordering::SeqCst);
        self.store.token_used(id, at, expires_at)
    }

    fn tokens<'a>(
        &'a self,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<TokenRecord>, StoreError>> {
        self.store.tokens(user)
    }

    fn revoke_token<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.store.revoke_token(id)
    }

    fn revoke_tokens_of<'a>(
        &'a self,
        user: &'a UserId,
        kind: Option<TokenKind>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.store.revoke_tokens_of(user, kind)
    }
}

#[tokio::test]
async fn many_requests_note_one_use() {
    let store = Arc::new(Store::in_memory().await.unwrap());
    let counting = Arc::new(Counting {
        store: store.clone(),
        used: AtomicUsize::new(0),
    });
    let (auth, expiry) = (counting.clone(), from_now(3_600));
    let service = Running::start_set(SCRIPT, move |config| config.auth = Auth::Token(auth)).await;
    let token = new_token().unwrap();
    store
        .create_token(
            &TokenGrant {
                expires_at: Some(expiry),
                ..anna()
            },
            &token.digest,
        )
        .await
        .unwrap();
    let headers = bearer(&token.secret);
    let asked = (0..20).map(|_| service.ask("GET", "/v1/me", &headers, ""));
    for answer in futures::future::join_all(asked).await {
        assert_eq!(answer.status, 200);
    }
    service.stop().await;
    assert_eq!(counting.used.load(Ordering::SeqCst), 1);
    let kept = store.find_token(&token.digest).await.unwrap().unwrap();
    assert!(
        kept.used_at.is_some() && kept.grant.expires_at == Some(expiry),
        "{kept:?}"
    );
}
