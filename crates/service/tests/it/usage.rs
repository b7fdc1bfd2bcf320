//! Limits of a user, and how they learn of them.

use std::num::NonZeroU32;

use adjutant_core::{Allowance, Budgets};
use serde_json::json;

use crate::harness::{Answer, Running};

fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    let start = format!("{name}: ");
    let line = answer
        .head
        .lines()
        .find_map(|line| line.strip_prefix(start.as_str()));
    line.unwrap_or_else(|| panic!("{name}: {}", answer.head))
}

#[tokio::test]
async fn every_answer_says_what_is_left_of_the_requests() {
    let service = Running::start_set(r#"{"text": "Hello.", "repeat": true}"#, |config| {
        config.limits.requests_per_minute = NonZeroU32::new(3).unwrap();
    })
    .await;
    let token = service.token("anna").await;
    let bearer = [("Authorization", format!("Bearer {token}"))];
    let asked = [
        ("GET", "/v1/me", 200, 2),
        ("POST", "/v1/chat", 422, 1),
        ("GET", "/v1/threads/none", 404, 0),
    ];
    for (method, path, status, left) in asked {
        let answer = service.ask(method, path, &bearer, "{}").await;
        assert_eq!(answer.status, status, "{}", answer.text);
        assert_eq!(header(&answer, "ratelimit-policy"), "\"requests\";q=3;w=60");
        assert_eq!(
            header(&answer, "ratelimit"),
            format!("\"requests\";r={left};t={}", (3 - left) * 20)
        );
        assert_eq!(header(&answer, "ratelimit-limit"), "3");
        assert_eq!(header(&answer, "ratelimit-remaining"), left.to_string());
    }
    let refused = service.ask("GET", "/v1/models", &bearer, "").await;
    assert_eq!(refused.status, 429);
    assert_eq!(header(&refused, "ratelimit-remaining"), "0");
    assert!((1..=20).contains(&header(&refused, "retry-after").parse::<u64>().unwrap()));
    // Whoever is nobody has no requests, and another user has all of theirs.
    let nobody = service.ask("GET", "/v1/me", &[], "").await;
    assert!(!nobody.head.contains("ratelimit"), "{}", nobody.head);
    let other = [(
        "Authorization",
        format!("Bearer {}", service.token("bert").await),
    )];
    assert_eq!(
        header(
            &service.ask("GET", "/v1/me", &other, "").await,
            "ratelimit-remaining"
        ),
        "2"
    );
    service.stop().await;
}

#[tokio::test]
async fn usage_shows_the_callers_own_budget() {
    let per_day = Allowance {
        model_calls: Some(3),
        tokens: Some(1_000_000),
        ..Allowance::default()
    };
    let script = r#"{"text": "Hello.", "usage": {"input": 10, "output": 5}, "repeat": true}"#;
    let service = Running::start_within(
        script,
        Budgets {
            per_day,
            ..Budgets::default()
        },
    )
    .await;
    let (anna, bert) = (service.token("anna").await, service.token("bert").await);
    assert_eq!(
        service.chat(&anna, &json!({"message": "hi"})).await.status,
        200
    );
    let usage = async |token: &str| {
        let bearer = [("Authorization", format!("Bearer {token}"))];
        service
            .ask("GET", "/v1/usage?user=anna", &bearer, "")
            .await
            .body
    };
    let of_anna = usage(&anna).await;
    assert_eq!(
        of_anna["budget"]["bounds"],
        json!([
            {"quantity": "tokens", "limit": 1_000_000.0, "used": 15.0, "remaining": 999_985.0},
            {"quantity": "model_calls", "limit": 3.0, "used": 1.0, "remaining": 2.0},
        ]),
        "{of_anna}"
    );
    assert!((1..=86_400).contains(&of_anna["budget"]["reset_s"].as_u64().unwrap()));
    assert_eq!(of_anna["requests"]["limit"], 60);
    assert_eq!(of_anna["turns"], json!({"limit": 4, "running": 0}));
    assert_eq!(usage(&bert).await["budget"]["bounds"][1]["used"], 0.0);
    service.stop().await;
    // Where nothing is bounded, nothing is counted.
    let service = Running::start(script).await;
    let token = service.token("anna").await;
    let bearer = [("Authorization", format!("Bearer {token}"))];
    assert_eq!(
        service.ask("GET", "/v1/usage", &bearer, "").await.body["budget"],
        json!(null)
    );
    service.stop().await;
}
