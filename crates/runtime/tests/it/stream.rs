//! The event stream, and stopping.

use adjutant_providers::scripted::{Fault, call, fault, text};
use adjutant_runtime::{RunContext, RunEvent};

use super::*;

#[tokio::test]
async fn the_stream_and_the_blocking_call_agree() {
    let replies = || {
        [
            call("add_task", json!({"description": "a"})).saying("Let me see."),
            text("Added it all.").in_pieces(3),
        ]
    };
    let blocking = {
        let tasks = Arc::new(InMemory::new());
        task_agent(&tasks, replies()).0.run("add a").await.unwrap()
    };
    let tasks = Arc::new(InMemory::new());
    let mut stream = task_agent(&tasks, replies())
        .0
        .stream(&RunContext::default(), "add a");
    let (mut said, mut seen) = (String::new(), Vec::new());
    while let Some(event) = stream.next().await {
        match event {
            RunEvent::Text(piece) => said.push_str(&piece),
            RunEvent::ModelStarted { .. } => said.clear(),
            RunEvent::ToolStarted { call } => {
                seen.push(format!("{} {}", call.name, call.arguments["description"]))
            }
            RunEvent::ToolFinished { summary, .. } => seen.extend(summary),
            RunEvent::Finished(response) => {
                assert_eq!(
                    (&response.content, response.outcome),
                    (&blocking.content, blocking.outcome)
                );
            }
            _ => {}
        }
    }
    assert_eq!(said, "Added it all.");
    assert_eq!(seen, ["add_task \"a\"", "Added “a”."]);
    let (response, context) = stream.finish().await.unwrap();
    assert_eq!(response.content, blocking.content);
    assert_eq!(context.history.len(), 4);
}

#[tokio::test]
async fn stopping_ends_a_silent_model_and_keeps_the_conversation() {
    let tasks = Arc::new(InMemory::new());
    let (agent, _) = task_agent(&tasks, [fault(Fault::Stall), text("Here again.")]);
    let mut context = RunContext::default();
    let mut stream = agent.stream(&context, "hello");
    while let Some(event) = stream.next().await {
        if matches!(event, RunEvent::ModelStarted { .. }) {
            context.cancelled.cancel();
        }
    }
    let (response, after) = stream.finish().await.unwrap();
    assert_eq!(response.outcome, OutcomeCategory::Cancelled);
    context = RunContext {
        cancelled: CancellationToken::new(),
        ..after
    };
    assert_eq!(
        agent
            .run_in(&mut context, "still there?")
            .await
            .unwrap()
            .content,
        "Here again."
    );
}

#[tokio::test]
async fn a_changing_tool_is_waited_for_when_the_person_stops() {
    let (begun, mut has_begun) = tokio::sync::watch::channel(false);
    let tool = FunctionTool::new(
        "send",
        "Sends.",
        json!({"type": "object"}),
        move |context, _| {
            let begun = begun.clone();
            async move {
                begun.send_replace(true);
                context.cancelled.cancelled().await;
                Ok(json!("sent"))
            }
        },
    );
    let agent = builder(ScriptedModel::new([
        call("send", json!({})).and_call("send", json!({"x": 1})),
        text("never said"),
    ]))
    .tool(tool.unwrap())
    .build()
    .unwrap();
    let context = RunContext::default();
    let stream = agent.stream(&context, "send it");
    has_begun.wait_for(|begun| *begun).await.unwrap();
    context.cancelled.cancel();
    let (response, _) = stream.finish().await.unwrap();
    assert_eq!(response.outcome, OutcomeCategory::Cancelled);
    assert_eq!(
        response.tools_used.len(),
        1,
        "the first ended, the second never began"
    );
    assert_eq!(response.tools_used[0].outcome(), Ok(&json!("sent")));
    assert!(
        response.content.contains("Send: this was carried out."),
        "what was done is said: {}",
        response.content
    );
}

#[tokio::test]
async fn dropping_the_stream_stops_the_turn() {
    let tasks = Arc::new(InMemory::new());
    let (agent, _) = task_agent(&tasks, [fault(Fault::Stall), text("Here.")]);
    let context = RunContext::default();
    let mut stream = agent.stream(&context, "hello");
    stream.next().await;
    drop(stream);
    // The next message waits for the stopped turn to end, and is answered.
    let mut context = context;
    assert_eq!(
        agent.run_in(&mut context, "hello?").await.unwrap().content,
        "Here."
    );
}
