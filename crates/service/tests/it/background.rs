//! Requests that chat interfaces make on their own.

use adjutant_service::BackgroundPrompts;
use serde_json::json;

use crate::harness::{Answer, Running};

/// The texts of a file, divided by lines that begin with a percent sign.
fn texts(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.split("\n%")
        .filter_map(|text| text.split_once('\n'))
        .map(|(_, text)| text.trim())
}

async fn asked(service: &Running, token: &str, model: &str, text: &str) -> Answer {
    let headers = [("Authorization", format!("Bearer {token}"))];
    let body = json!({"model": model, "messages": [{"role": "user", "content": text}]}).to_string();
    service
        .ask("POST", "/v1/chat/completions", &headers, &body)
        .await
}

/// Returns whether an answer says that its request was taken for an interface's.
fn is_said(answer: &Answer) -> bool {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let notices = answer.body["adjutant"]["notices"].as_array();
    notices.is_some_and(|all| {
        all.iter()
            .any(|notice| notice["code"] == "background_prompt")
    })
}

#[tokio::test]
async fn an_interface_is_answered_without_tools_and_gets_a_notice() {
    let service = Running::start_set(r#"{"text": "Milk", "repeat": true}"#, |config| {
        config.limits.requests_per_minute = std::num::NonZeroU32::new(1_000).unwrap();
    })
    .await;
    let token = service.token("anna").await;
    for text in texts(include_str!("../../src/openai/background/interfaces.txt")) {
        assert!(
            is_said(&asked(&service, &token, "adjutant", text).await),
            "{text}"
        );
    }
    for text in texts(include_str!("../../src/openai/background/people.txt")) {
        assert!(
            !is_said(&asked(&service, &token, "adjutant", text).await),
            "{text}"
        );
    }
    service.stop().await;
}

#[tokio::test]
async fn a_setting_lets_the_agent_answer_interfaces() {
    let text = "Give this chat a title.\n<chat_history>\nUSER: add buy milk\n</chat_history>";
    let service = Running::start_set(r#"{"text": "Milk", "repeat": true}"#, |config| {
        config.background_prompts = BackgroundPrompts::Agent;
    })
    .await;
    let token = service.token("anna").await;
    assert!(!is_said(&asked(&service, &token, "adjutant", text).await));
    service.stop().await;
    let service = Running::start(r#"{"text": "Milk", "repeat": true}"#).await;
    let token = service.token("anna").await;
    // Nothing changed for whoever asked for the model without tools.
    assert!(!is_said(
        &asked(&service, &token, "adjutant-plain", text).await
    ));
    assert!(is_said(&asked(&service, &token, "adjutant", text).await));
    service.stop().await;
}
