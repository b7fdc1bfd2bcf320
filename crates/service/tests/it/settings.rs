//! Settings of users, and their effect on messages.

use std::sync::Arc;

use adjutant_core::Annotations;
use adjutant_providers::scripted::ScriptedModel;
use adjutant_store::sqlite::Store;
use adjutant_tools::FunctionTool;
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
    assert_eq!(
        changed.body,
        json!({"time_zone": "Asia/Kolkata", "allowed_tools": []})
    );

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
    assert_eq!(
        unchanged.body,
        json!({"time_zone": "Europe/Berlin", "allowed_tools": []})
    );
    let shown = ask(&service, &anna, "GET", "/v1/settings", &Value::Null).await;
    assert_eq!(
        shown.body,
        json!({"time_zone": "Europe/Berlin", "allowed_tools": []})
    );
}

#[tokio::test]
async fn a_tool_that_is_always_allowed_asks_again_when_the_setting_leaves_it_out() {
    const SCRIPT: &str = r#"
{"match": "empty", "calls": [{"name": "mail__empty_trash", "args": {}}], "repeat": true}
{"text": "Done.", "repeat": true}
"#;
    let store = Arc::new(Store::in_memory().await.unwrap());
    let schema = json!({"type": "object"});
    let empty = FunctionTool::new("mail__empty_trash", "Empties.", schema, |_, _| async {
        Ok(json!("emptied"))
    });
    let destructive = Annotations {
        destructive: true,
        ..Annotations::default()
    };
    let empty = empty.unwrap().annotated(destructive).reading_from_others();
    let service = Running::start_on(store.clone(), SCRIPT, |builder| {
        builder.user_settings(store).tool(empty)
    });
    let service = service.await;
    let (anna, ben) = (service.token("anna").await, service.token("ben").await);
    let say = async |token: &str, thread: &str| {
        service
            .chat(
                token,
                &json!({"thread_id": thread, "message": "empty the trash of my mail"}),
            )
            .await
    };
    let allowed = async || {
        let shown = ask(&service, &anna, "GET", "/v1/settings", &Value::Null).await;
        shown.body["allowed_tools"].clone()
    };

    let asked = say(&anna, "t_1").await.body["pending"][0].clone();
    assert_eq!(asked["always"], true, "{asked}");
    let answer = json!({"interrupt_id": asked["interrupt_id"], "approved": true, "always": true});
    let done = service
        .chat(&anna, &json!({"thread_id": "t_1", "resume": [answer]}))
        .await;
    assert_eq!(done.body["tools_used"][0]["tool"], "mail__empty_trash");
    assert_eq!(allowed().await, json!(["mail__empty_trash"]));

    let unasked = say(&anna, "t_2").await;
    assert_eq!(unasked.body["pending"], json!([]), "{unasked:?}");
    let of_ben = say(&ben, "t_2").await;
    assert_eq!(of_ben.body["pending"][0]["always"], true, "{of_ben:?}");

    let more = json!({"allowed_tools": ["mail__empty_trash", "mail__send"]});
    let refused = change(&service, &anna, more).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert_eq!(allowed().await, json!(["mail__empty_trash"]));
    change(&service, &anna, json!({"allowed_tools": []})).await;
    assert_eq!(allowed().await, json!([]));
    let asked = say(&anna, "t_3").await;
    assert_eq!(asked.body["pending"][0]["always"], true, "{asked:?}");
}

#[tokio::test]
async fn an_agent_without_storage_of_settings_has_none() {
    let service = Running::start(NOTED).await;
    let anna = service.token("anna").await;
    let shown = ask(&service, &anna, "GET", "/v1/settings", &Value::Null).await;
    assert_eq!(shown.status, 404, "{shown:?}");
}
