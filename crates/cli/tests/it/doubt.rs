//! A call that another program of ours began and never saw the end of, answered at the command
//! line.

use std::sync::Arc;

use adjutant_core::ToolError;
use adjutant_providers::scripted::{ScriptedModel, call};
use adjutant_runtime::Agent;
use adjutant_store::sqlite::Store;
use adjutant_store::worker_id;
use adjutant_tools::FunctionTool;
use serde_json::json;

use crate::harness::Home;

/// A home in whose journal a letter may or may not have been sent.
async fn home_with_a_doubt() -> Home {
    let home = Home::new();
    let store = Arc::new(
        Store::open(home.path("data/adjutant/adjutant.db"))
            .await
            .unwrap(),
    );
    let schema = json!({"type": "object", "properties": {"to": {"type": "string"}}});
    let letters = FunctionTool::new("send_letter", "Sends a letter.", schema, |_, _| {
        std::future::ready(Err(ToolError::Unknown {
            message: "the connection was lost".to_owned(),
        }))
    });
    let agent = Agent::builder("adjutant")
        .instruction("Be brief.")
        .tool(letters.unwrap())
        .journal(store.clone(), worker_id())
        .model(ScriptedModel::new([call(
            "send_letter",
            json!({"to": "Anna"}),
        )]))
        .build()
        .unwrap();
    agent.run("write to Anna").await.unwrap();
    store.close().await;
    home
}

#[tokio::test]
async fn it_waits_for_what_became_of_it_and_for_nothing_else() {
    let home = home_with_a_doubt().await;
    let model = home.script(&[r#"{"text": "Good to know.", "repeat": true}"#]);
    let listed = home.run(&["pending", "list"]).succeeds();
    assert!(
        listed.stdout.contains("send_letter") && listed.stdout.contains("was it done?"),
        "{listed:?}"
    );
    let (_, waiting) = home.json(&["pending", "list"]);
    assert!(waiting[0]["doubt"]["since"].is_string(), "{waiting}");
    let id = waiting[0]["id"].as_str().unwrap();
    home.run(&["pending", "approve", id, "-m", &model])
        .ends_with(2)
        .says("adjutant pending resolve");
    // Neither a yes in words nor one by option says what became of it.
    home.run(&["-c", "-y", "-m", &model, "yes"])
        .ends_with(4)
        .says("done|retry|leave");
    let done = home
        .run(&["pending", "resolve", id, "done", "-m", &model])
        .succeeds();
    assert_eq!(done.stdout, "Good to know.\n");
    assert!(
        home.run(&["pending", "list"])
            .succeeds()
            .stdout
            .contains("Nothing waits")
    );
}

#[tokio::test]
async fn plain_words_that_can_mean_only_one_thing_answer_it() {
    let home = home_with_a_doubt().await;
    let model = home.script(&[r#"{"text": "Good to know.", "repeat": true}"#]);
    let (code, answer) = home.json(&["-c", "-m", &model, "Leave it."]);
    assert_eq!(
        (code, answer["outcome"].as_str()),
        (1, Some("INTERRUPTED:IN_DOUBT")),
        "{answer}"
    );
    assert!(answer["pending"].as_array().unwrap().is_empty(), "{answer}");
}
