//! The history that later requests begin with: what was said, and nothing that the program says.

use adjutant_core::port::Journal as _;
use adjutant_core::{AgentName, words};
use adjutant_providers::scripted::{Fault, call, fault, text};
use adjutant_runtime::{RunContext, RunEvent};

use super::*;

fn failing() -> FunctionTool {
    let schema = json!({"type": "object"});
    FunctionTool::new("route", "Finds a route.", schema, |_, _| async {
        Err(ToolError::Failed {
            message: "no route".to_owned(),
        })
    })
    .unwrap()
}

/// Returns role and text of the messages of a request behind the instruction.
fn said(request: &GenerateRequest) -> Vec<(Role, String)> {
    let messages = request.messages.iter().skip(1);
    messages
        .map(|message| (message.role(), message.text()))
        .collect()
}

#[tokio::test]
async fn an_answer_after_a_failed_tool_is_the_models_and_is_kept_once() {
    let model = ScriptedModel::new([
        call("route", json!({})),
        text("It failed, so here is another way."),
        text("Yes."),
    ])
    .with_requests_kept(usize::MAX);
    let agent = builder(model.clone()).tool(failing()).build().unwrap();
    let mut context = RunContext::default();
    let response = agent.run_in(&mut context, "to Graz").await.unwrap();
    assert_eq!(response.content, "It failed, so here is another way.");
    assert_eq!(response.outcome, OutcomeCategory::ResponseGiven);
    assert_eq!(
        response.failed_calls,
        [FailedCall {
            tool: "route".to_owned(),
            message: "no route".to_owned()
        }]
    );
    agent.run_in(&mut context, "sure?").await.unwrap();
    let said = said(&model.requests()[2]);
    let roles: Vec<Role> = said.iter().map(|(role, _)| *role).collect();
    assert_eq!(
        roles,
        [
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::Assistant,
            Role::User
        ]
    );
    assert_eq!(said[3].1, "It failed, so here is another way.");
}

#[tokio::test]
async fn a_claim_that_no_call_bears_out_is_replaced_and_never_shown() {
    let model = ScriptedModel::new([call("route", json!({})), text("I found a route!")]);
    let agent = builder(model)
        .tool(failing())
        .report_failed_calls(true)
        .build()
        .unwrap();
    let mut stream = agent.stream(&RunContext::default(), "to Graz");
    while let Some(event) = stream.next().await {
        assert!(!matches!(event, RunEvent::Text(_)), "{event:?}");
    }
    let (response, _) = stream.finish().await.unwrap();
    assert_eq!(response.content, "no route");
    assert_eq!(response.outcome, OutcomeCategory::ToolFailure);
}

#[tokio::test]
async fn a_failure_of_the_model_is_not_sent_back_as_its_answer() {
    let model = ScriptedModel::new([fault(Fault::Authentication), text("Hello.")])
        .with_requests_kept(usize::MAX);
    let agent = builder(model.clone()).build().unwrap();
    let mut context = RunContext::default();
    let failed = agent.run_in(&mut context, "one").await.unwrap();
    assert_eq!(failed.outcome, OutcomeCategory::LlmFailure);
    agent.run_in(&mut context, "two").await.unwrap();
    let requests = model.requests();
    let said = said(requests.last().unwrap());
    assert!(said.iter().all(|(role, _)| *role == Role::User), "{said:?}");
    assert_eq!((&*said[0].1, &*said[2].1), ("one", "two"));
    assert!(said[1].1.starts_with('['), "a note of what became of it");
    assert!(!said[1].1.contains(&failed.content));
}

#[tokio::test]
async fn the_shown_part_of_a_stopped_answer_is_kept() {
    let shown = "one two three four f";
    let model = ScriptedModel::new([fault(Fault::Stall).saying(shown), text("ive six")])
        .with_requests_kept(usize::MAX);
    let agent = builder(model.clone()).build().unwrap();
    let context = RunContext::default();
    let mut stream = agent.stream(&context, "count");
    let mut read = String::new();
    while read != shown {
        if let Some(RunEvent::Text(text)) = stream.next().await {
            read.push_str(&text);
        }
    }
    context.cancelled.cancel();
    let (stopped, mut context) = stream.finish().await.unwrap();
    assert_eq!(stopped.outcome, OutcomeCategory::Cancelled);
    assert_eq!(stopped.content, format!("{shown}\n{}", words::STOPPED));
    context.cancelled = CancellationToken::new();
    agent.run_in(&mut context, "go on").await.unwrap();
    assert_eq!(
        said(&model.requests()[1]),
        [
            (Role::User, "count".to_owned()),
            (Role::Assistant, shown.to_owned()),
            (Role::User, "go on".to_owned()),
        ]
    );
}

#[tokio::test]
async fn a_call_that_cannot_be_made_has_its_result_while_others_wait() {
    let tasks = Arc::new(InMemory::new());
    for words in ["Buy milk", "Call Anna"] {
        let change = TaskChange::Add {
            description: TaskDescription::new(words).unwrap(),
            from_others: false,
        };
        TaskStore::apply(tasks.as_ref(), &UserId::local(), &change, None)
            .await
            .unwrap();
    }
    let delete = |task: &str| json!({ "task_id": task });
    let deletions = call("delete_task", delete("1"))
        .and_call("delete_task", delete("9"))
        .and_call("delete_task", delete("2"));
    let (agent, _) = task_agent(&tasks, [deletions]);
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "delete them").await.unwrap();
    assert_eq!(asked.decision.pending.len(), 2, "{asked:?}");
    let key = context.key(&AgentName::adjutant());
    let read = tasks.load_turns(&key, None, 1).await.unwrap().unwrap();
    let results: Vec<ToolResult> = transcript(&read.events)
        .into_iter()
        .filter_map(|message| message.result)
        .collect();
    assert_eq!(results.len(), 1, "{results:?}");
    assert!(!results[0].success);

    let no = |call: &PendingCall| call.answer(Verdict::Denied);
    let answers = asked.decision.pending.iter().map(no).collect();
    let kept = agent.answer(&mut context, answers).await.unwrap();
    let said = kept.content.matches(words::NOTHING_CHANGED).count();
    assert_eq!(said, 1, "{}", kept.content);
    assert!(kept.content.contains('9'), "{}", kept.content);
}
