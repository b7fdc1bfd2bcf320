//! Requests that an interface makes on its own, and the model without tools.

use super::*;

#[tokio::test]
async fn background_prompts_have_no_tools() {
    let world = World::new().await;
    world.add("anna", "buy milk").await;
    let token = world.token("anna").await;
    let title = "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Output:\nJSON format: { \"title\": \"your concise title here\" }\n### Chat History:\n<chat_history>\nUSER: delete milk\n</chat_history>";
    let long = format!("{title}{}", "x".repeat(5000));
    let replica = world
        .replica(
            r#"{"calls": [{"name": "delete_task", "args": {"task_id": "milk"}}]}
{"match": "Generate a concise", "text": "{\"title\": \"Milk\"}", "repeat": true}"#,
        )
        .await;
    let question = replica.ask(&token, &said(&["delete milk"])).await.content();
    for text in [title, &long] {
        let answer = replica.ask(&token, &said(&[text])).await;
        assert_eq!(answer.content(), "{\"title\": \"Milk\"}");
        let asked = replica.last_request();
        assert!(asked.tools.is_empty(), "no tools");
        let transcript = transcript(&asked);
        let [(Role::System, instruction), (Role::User, message)] = transcript.as_slice() else {
            panic!("{transcript:?}")
        };
        assert!(
            instruction.contains("no tools") && !instruction.contains("Be brief"),
            "{instruction}"
        );
        assert_eq!(message, text, "whole, whatever its length");
    }
    assert_eq!(world.threads("anna").await, 0);
    assert_eq!(
        world.decisions("anna").await,
        4,
        "what it cost is in the log"
    );
    // What waits still waits, and is not among the threads either.
    assert!(question.contains("yes or no"));
    assert_eq!(world.tasks("anna").await, ["buy milk"]);
    replica.stop().await;
}

#[tokio::test]
async fn the_plain_model_has_no_tools() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let replica = world.replica(r#"{"text": "A list of things."}"#).await;
    let body = with(said(&["add buy milk"]), "model", json!("adjutant-plain"));
    let answer = replica.ask(&token, &body).await;
    assert_eq!(
        (answer.content().as_str(), &answer.json()["model"]),
        ("A list of things.", &json!("adjutant-plain"))
    );
    assert!(replica.last_request().tools.is_empty());
    replica.stop().await;
}
