//! Calls of a foreign server's tool with arguments that miss its schema by a slip: what the server
//! gets, and what the model is told.

use adjutant_core::{Message, Permission, Policy};
use adjutant_mcp::client::Servers;
use adjutant_providers::scripted::{Reply, ScriptedModel, call, text};
use adjutant_runtime::Agent;
use serde_json::{Value, json};

use super::place::{odd, started};

/// The end of a call, as its caller sees it.
#[derive(Debug, PartialEq)]
enum Became {
    /// The server got these arguments, and the model no note.
    AsWritten,
    /// The server got these arguments, and the model a note with these words.
    Corrected(Value, &'static str),
    /// The server got nothing, and the model an error with these words.
    Refused(&'static str),
}

use Became::{AsWritten, Corrected, Refused};

/// Returns the messages that a model is sent after a call of these servers' tools.
async fn messages_after(servers: &Servers, reply: Reply) -> Vec<Message> {
    let model = ScriptedModel::new([reply, text("Well.")]).with_requests_kept(usize::MAX);
    // The calls are not in the words of the message.
    let policy = ["odd__typed", "odd__echo"]
        .into_iter()
        .fold(Policy::default(), |policy, tool| {
            policy.rule(tool, None, Permission::Allow)
        });
    let agent = Agent::builder("adjutant")
        .model(model.clone())
        .instruction("Be brief.")
        .tools(servers.tools())
        .policy(policy)
        .build()
        .unwrap();
    agent.run("please").await.unwrap();
    model.requests().swap_remove(1).messages
}

#[tokio::test]
async fn slips_are_corrected_before_a_server_is_called() {
    let servers = started(odd("usual")).await;
    let corrected = |arguments| move |words| Corrected(arguments, words);
    let with_id = |name: &str, value: Value| json!({"id": "a", name: value});
    for (tool, arguments, expected) in [
        (
            "odd__typed",
            with_id("count", json!("1")),
            corrected(with_id("count", json!(1)))("/count"),
        ),
        (
            "odd__typed",
            json!({"id": 5}),
            corrected(json!({"id": "5"}))("/id"),
        ),
        (
            "odd__typed",
            with_id("all", json!("true")),
            corrected(with_id("all", json!(true)))("/all"),
        ),
        (
            "odd__typed",
            with_id("count", Value::Null),
            corrected(json!({"id": "a"}))("/count"),
        ),
        (
            "odd__typed",
            with_id("all", Value::Null),
            corrected(json!({"id": "a"}))("/all"),
        ),
        (
            "odd__typed",
            with_id("count", json!("")),
            corrected(json!({"id": "a"}))("/count"),
        ),
        (
            "odd__typed",
            with_id("tags", json!("x")),
            corrected(with_id("tags", json!(["x"])))("/tags"),
        ),
        (
            "odd__typed",
            with_id("tags", json!("[\"x\", \"y\"]")),
            corrected(with_id("tags", json!(["x", "y"])))("/tags"),
        ),
        (
            "odd__typed",
            with_id("level", json!("Error")),
            corrected(with_id("level", json!("error")))("/level"),
        ),
        (
            "odd__typed",
            json!({"arguments": {"id": "a"}}),
            corrected(json!({"id": "a"}))("arguments"),
        ),
        ("odd__typed", with_id("maybe", Value::Null), AsWritten),
        ("odd__typed", with_id("maybe", json!("")), AsWritten),
        ("odd__typed", with_id("count", json!(1.0)), AsWritten),
        ("odd__typed", with_id("count", json!(1e3)), AsWritten),
        ("odd__echo", json!({"text": "a", "more": 1}), AsWritten),
        ("odd__typed", json!({"id": Value::Null}), Refused("/id")),
        ("odd__typed", with_id("more", json!(1)), Refused("more")),
        (
            "odd__type",
            json!({"id": "a"}),
            Refused("did you mean \"odd__typed\"?"),
        ),
        (
            "typed",
            json!({"id": "a"}),
            Refused("did you mean \"odd__typed\"?"),
        ),
        (
            "odd_typed",
            json!({"id": "a"}),
            Refused("did you mean \"odd__typed\"?"),
        ),
    ] {
        let messages = messages_after(&servers, call(tool, arguments.clone())).await;
        let written = messages
            .iter()
            .flat_map(Message::tool_calls)
            .next()
            .unwrap();
        assert_eq!(Value::Object(written.arguments.clone()), arguments);
        let (_, _, result) = messages.last().unwrap().tool_result().unwrap();
        let sent = result.data.as_deref();
        let note = result.note.as_deref().unwrap_or_default();
        match expected {
            AsWritten => assert_eq!((sent, note), (Some(&arguments), ""), "{tool}"),
            Corrected(used, words) => {
                assert_eq!(sent, Some(&used), "{arguments}");
                assert!(note.contains(words), "{arguments}: {note}");
            }
            Refused(words) => {
                let error = result.error.as_deref().unwrap_or_default();
                assert!(error.contains(words), "{tool} {arguments}: {error}");
                assert_eq!((sent, note), (None, ""));
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_name_is_answered_with_the_nearest_names_only() {
    // A server with 512 tools.
    let servers = started(odd("endless")).await;
    let messages = messages_after(&servers, call("odd__tool_nine", json!({}))).await;
    let (_, _, result) = messages.last().unwrap().tool_result().unwrap();
    let error = result.error.as_deref().unwrap();
    assert_eq!(error.matches("odd__").count(), 1 + 5, "{error}");
    assert!(error.contains("of 512"), "{error}");
}
