//! Settings of users, and their effect on messages.

use std::sync::Arc;

use adjutant_providers::scripted::ScriptedModel;
use adjutant_store::sqlite::Store;
use serde_json::{Value, json};

use crate::harness::{Answer, Running};
use crate::resources::ask;

const NOTED: &str = r#"{"text": "Noted.", "repeat": true}"#;

/// A service that stores settings, and the model that it asks.
async fn start() -> (Running, ScriptedModel) {
    let store = Arc::new(Store::in_memory().await.unwrap());
    let model = ScriptedModel::from_jsonl(NOTED)
        .unwrap()
        .with_requests_kept(usize::MAX);
    let service = Running::start_on(store.clone(), NOTED, |builder| {
        builder.user_settings(store).model(model.clone())
    });
    (service.await, model)
}

async fn change(service: &Running, token: &str, change: Value) -> Answer {
    ask(service, token, "PATCH", "/v1/settings", &change).await
}

/// Returns the last message that the model was sent.
fn last_message(model: &ScriptedModel) -> String {
    let request = model.requests().pop().unwrap();
    request.messages.last().unwrap().text()
}

#[tokio::test]
async fn the_stored_time_zone_counts_where_a_message_names_none() {
    let (service, model) = start().await;
    let (anna, ben) = (service.token("anna").await, service.token("ben").await);
    let changed = change(&service, &anna, json!({"time_zone": "Asia/Kolkata"})).await;
    assert_eq!(changed.body, json!({"time_zone": "Asia/Kolkata"}));

    let through_openai =
        json!({"model": "adjutant", "messages": [{"role": "user", "content": "in 20 minutes"}]});
    let in_kolkata = "(Asia/Kolkata, UTC+05:30).]\n\nin 20 minutes";
    let path = "/v1/chat/completions";
    let answer = ask(&service, &anna, "POST", path, &through_openai).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let told = last_message(&model);
    assert!(told.ends_with(in_kolkata), "{told}");

    let named = json!({"message": "in 20 minutes", "time_zone": "America/New_York"});
    service.chat(&anna, &named).await;
    let told = last_message(&model);
    assert!(told.contains("(America/New_York, UTC-"), "{told}");

    ask(&service, &ben, "POST", path, &through_openai).await;
    assert_eq!(last_message(&model), "in 20 minutes", "another user's zone");

    change(&service, &anna, json!({"time_zone": null})).await;
    ask(&service, &anna, "POST", path, &through_openai).await;
    assert_eq!(last_message(&model), "in 20 minutes", "it was removed");
}

#[tokio::test]
async fn a_wrong_setting_changes_nothing_and_an_absent_one_stays() {
    let (service, _) = start().await;
    let anna = service.token("anna").await;
    change(&service, &anna, json!({"time_zone": "Europe/Berlin"})).await;
    for wrong in [
        json!({"time_zone": "Mars/Olympus"}),
        json!({"time_zone": ""}),
        json!({"time_zone": 1}),
        json!({"timezone": "Europe/Paris"}),
        json!([]),
    ] {
        let refused = change(&service, &anna, wrong.clone()).await;
        assert_eq!(refused.status, 422, "{wrong}: {refused:?}");
    }
    let unchanged = change(&service, &anna, json!({})).await;
    assert_eq!(unchanged.body, json!({"time_zone": "Europe/Berlin"}));
    let shown = ask(&service, &anna, "GET", "/v1/settings", &Value::Null).await;
    assert_eq!(shown.body, json!({"time_zone": "Europe/Berlin"}));
}

#[tokio::test]
async fn an_agent_without_storage_of_settings_has_none() {
    let service = Running::start(NOTED).await;
    let anna = service.token("anna").await;
    let shown = ask(&service, &anna, "GET", "/v1/settings", &Value::Null).await;
    assert_eq!(shown.status, 404, "{shown:?}");
}
