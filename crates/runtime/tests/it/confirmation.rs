//! What destroys waits for a human, as data.

use adjutant_core::port::Journal as _;
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::{HumanCall, RunContext};
use jiff::{SignedDuration, Timestamp};

use super::*;

async fn with_task(words: &str) -> Arc<InMemory> {
    let tasks = Arc::new(InMemory::new());
    let change = TaskChange::Add { description: TaskDescription::new(words).unwrap() };
    port::TaskStore::apply(tasks.as_ref(), &UserId::local(), &change, None).await.unwrap();
    tasks
}

fn delete_milk() -> Vec<Reply> {
    vec![call("delete_task", json!({"task_id": "milk"})), text("As you wish.")]
}

#[tokio::test]
async fn a_delete_waits_and_a_yes_runs_exactly_what_was_shown() {
    let tasks = with_task("Buy milk").await;
    let (agent, model) = task_agent(&tasks, delete_milk());
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "delete the milk one").await.unwrap();
    assert_eq!(asked.outcome, OutcomeCategory::PendingConfirmation);
    assert!(asked.content.contains("Buy milk"));
    let pending = asked.decision.pending[0].clone();
    assert_eq!(pending.arguments["task_id"], "1");
    assert_eq!(descriptions(&tasks).await, ["Buy milk"]);

    // Unclear words ask again, and neither they nor a wrong digest run anything.
    let again = agent.run_in(&mut context, "maybe").await.unwrap();
    assert_eq!(again.decision.kind, DecisionKind::RequestConfirmation);
    let forged =
        Answer { call_id: pending.call_id.clone(), digest: "0".repeat(64), verdict: Verdict::Approved };
    assert!(agent.answer(&mut context, vec![forged]).await.is_err());
    assert_eq!(descriptions(&tasks).await, ["Buy milk"]);
    assert_eq!(model.calls_made(), 1, "no model reads an answer");

    let done = agent.run_in(&mut context, "yes").await.unwrap();
    assert_eq!((done.decision.kind, done.turn), (DecisionKind::ExecutePending, asked.turn));
    assert!(descriptions(&tasks).await.is_empty());
    assert!(context.pending.is_empty());
}

#[tokio::test]
async fn a_denial_is_a_result_and_leaves_everything() {
    let tasks = with_task("Buy milk").await;
    let (agent, model) = task_agent(&tasks, delete_milk());
    let mut context = RunContext::default();
    agent.run_in(&mut context, "delete the milk one").await.unwrap();
    let done = agent.run_in(&mut context, "no").await.unwrap();
    assert_eq!(done.outcome, OutcomeCategory::ConfirmationDenied);
    assert_eq!(descriptions(&tasks).await, ["Buy milk"]);
    let told = model.requests()[1].messages.last().unwrap().tool_result().unwrap().2.clone();
    assert!(!told.success && told.error.unwrap().contains("refused"));
}

#[tokio::test]
async fn a_cancelled_confirmation_ends_the_turn_and_runs_nothing() {
    let tasks = with_task("Buy milk").await;
    let (agent, model) = task_agent(&tasks, delete_milk());
    let mut context = RunContext::default();
    agent.run_in(&mut context, "delete the milk one").await.unwrap();
    let stopped = agent.cancel(&mut context).await.unwrap();
    assert_eq!(stopped.outcome, OutcomeCategory::Cancelled);
    assert_eq!(
        (descriptions(&tasks).await, context.pending.len(), model.calls_made()),
        (vec!["Buy milk".to_owned()], 0, 1)
    );
    check_pairing(&context.history).unwrap();
    assert!(agent.cancel(&mut context).await.is_err(), "nothing waits any more");
}

#[tokio::test]
async fn an_answer_after_the_expiry_runs_nothing() {
    let tasks = with_task("Buy milk").await;
    let clock = Arc::new(std::sync::Mutex::new(Timestamp::UNIX_EPOCH));
    let time = Arc::clone(&clock);
    let agent = builder(ScriptedModel::new(delete_milk()))
        .tools(task_tools(tasks.clone()))
        .journal(tasks.clone(), "test")
        .clock(move || *time.lock().unwrap())
        .build()
        .unwrap();
    let mut context = RunContext::default();
    agent.run_in(&mut context, "delete the milk one").await.unwrap();
    *clock.lock().unwrap() += SignedDuration::from_hours(7 * 24);
    let error = agent.run_in(&mut context, "yes").await;
    assert_eq!(descriptions(&tasks).await, ["Buy milk"]);
    // The late "yes" is not lost either: it is a message of its own after the turn ended.
    assert!(error.is_ok(), "{error:?}");
    let expired = tasks.load(&context.key()).await.unwrap();
    let ended = expired.events.iter().find_map(|recorded| match &recorded.event {
        Event::TurnFinished { end, .. } => Some(end.outcome),
        _ => None,
    });
    assert_eq!(ended, Some(OutcomeCategory::ConfirmationExpired));
}

#[tokio::test]
async fn a_human_passes_the_same_gate() {
    let tasks = with_task("Buy milk").await;
    let (agent, _) = task_agent(&tasks, []);
    let user = UserId::local();
    let object = |value: Value| value.as_object().cloned().unwrap();
    let bad = agent.call_tool(&user, "add_task", object(json!({"description": ""})), None).await.unwrap();
    assert!(matches!(bad, HumanCall::Refused(_)), "{bad:?}");
    let arguments = object(json!({"task_id": "milk"}));
    let HumanCall::Confirm(pending) =
        agent.call_tool(&user, "delete_task", arguments.clone(), None).await.unwrap()
    else {
        panic!("a delete is confirmed")
    };
    let done = agent.call_tool(&user, "delete_task", arguments, Some(&pending)).await.unwrap();
    assert!(matches!(done, HumanCall::Done { invocation, .. } if invocation.result.success));
    assert!(descriptions(&tasks).await.is_empty());
}
