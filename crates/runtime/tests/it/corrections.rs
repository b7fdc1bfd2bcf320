//! Corrected arguments from the call to the journal: what runs, what a person is shown, what the
//! model is told, and that its own call stays as it wrote it.

use std::sync::Mutex;

use adjutant_core::port::Journal as _;
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::RunContext;
use adjutant_store::sqlite;

use super::*;

/// A tool that keeps the arguments that it was called with.
fn keeping(destructive: bool, kept: &Arc<Mutex<Vec<Arguments>>>) -> FunctionTool {
    let kept = Arc::clone(kept);
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "level": {"enum": ["low", "high"]},
            "count": {"type": "integer"}
        },
        "required": ["id"],
        "additionalProperties": false
    });
    let tool = FunctionTool::new("keep", "Keeps.", schema, move |_, arguments| {
        let kept = Arc::clone(&kept);
        async move {
            kept.lock().unwrap().push(arguments);
            Ok(json!("kept"))
        }
    });
    tool.unwrap().annotated(Annotations {
        destructive,
        ..Annotations::default()
    })
}

fn written() -> Value {
    json!({"id": 7, "level": "HIGH", "count": null})
}

fn used() -> Arguments {
    let used = json!({"id": "7", "level": "high"});
    used.as_object().cloned().unwrap()
}

/// Asserts that a request shows the call as the model wrote it, and its result with the note.
fn assert_told(request: &GenerateRequest, data: &Value) {
    let mut calls = request.messages.iter().flat_map(Message::tool_calls);
    let call = calls.next().unwrap();
    assert_eq!(Value::Object(call.arguments.clone()), written());
    let (_, _, result) = request.messages.last().unwrap().tool_result().unwrap();
    let shown: Value = serde_json::from_str(&result.to_text()).unwrap();
    assert_eq!(&shown["data"], data);
    let note = shown["note"].as_str().unwrap();
    for place in ["/id", "/level", "/count"] {
        assert!(note.contains(place), "{note}");
    }
}

#[tokio::test]
async fn corrected_arguments_run_and_are_journaled_and_the_model_is_told() {
    let store = Arc::new(sqlite::Store::in_memory().await.unwrap());
    let kept = Arc::default();
    let model =
        ScriptedModel::new([call("keep", written()), text("Done.")]).with_requests_kept(usize::MAX);
    let agent = builder(model.clone())
        .tool(keeping(false, &kept))
        .journal(store.clone(), "test")
        .build()
        .unwrap();
    let response = agent.run("keep 7").await.unwrap();
    assert_eq!(*kept.lock().unwrap(), [used()]);
    assert_eq!(response.tools_used[0].arguments, used());
    assert_told(&model.requests()[1], &json!("kept"));

    // The same from the database.
    let key = ConversationKey {
        agent: AgentName::adjutant(),
        user: UserId::local(),
        conversation: response.conversation,
    };
    let events = store.load(&key).await.unwrap().events;
    let told = events.iter().find_map(|recorded| match &*recorded.event {
        Event::CallChecked {
            verdict: GateVerdict::Run { arguments },
            corrections,
            ..
        } => Some((arguments.clone(), corrections.clone())),
        _ => None,
    });
    let (arguments, corrections) = told.unwrap();
    assert_eq!(arguments, used());
    let notes = events.iter().find_map(|recorded| match &*recorded.event {
        Event::CallFinished {
            arguments, result, ..
        } if *arguments == used() => Some(result.note.clone()),
        _ => None,
    });
    assert_eq!(notes, Some(corrections));
}

#[tokio::test]
async fn a_person_is_asked_about_the_corrected_arguments() {
    let kept = Arc::default();
    let model =
        ScriptedModel::new([call("keep", written()), text("Done.")]).with_requests_kept(usize::MAX);
    let agent = builder(model.clone())
        .tool(keeping(true, &kept))
        .build()
        .unwrap();
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "keep 7").await.unwrap();
    let pending = &asked.decision.pending[0];
    assert_eq!(pending.arguments, used());
    assert!(pending.preview.contains("high") && !pending.preview.contains("HIGH"));
    agent.run_in(&mut context, "yes").await.unwrap();
    assert_eq!(*kept.lock().unwrap(), [used()]);
    assert_told(&model.requests()[1], &json!("kept"));
}

#[tokio::test]
async fn a_program_gets_corrected_arguments_of_its_own_tool() {
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "level": {"enum": ["low", "high"]},
            "count": {"type": "integer"}
        },
        "required": ["id"]
    });
    let client = ClientSide {
        tools: vec![ClientTool::new("keep", "Keeps.", Some(schema)).unwrap()],
        ..ClientSide::default()
    };
    let model =
        ScriptedModel::new([call("keep", written()), text("Done.")]).with_requests_kept(usize::MAX);
    let agent = builder(model.clone())
        .build()
        .unwrap()
        .with_client(client)
        .unwrap();
    let mut context = RunContext::default();
    let handed = agent.run_in(&mut context, "keep 7").await.unwrap();
    let pending = handed.decision.pending[0].clone();
    assert_eq!(pending.arguments, used());
    let sunny = ToolResult::verbatim("sunny".into());
    let answer = pending.provided(sunny);
    agent.answer(&mut context, vec![answer]).await.unwrap();
    assert_told(&model.requests()[1], &json!("sunny"));
}
