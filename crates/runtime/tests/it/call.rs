//! Calls without a model: the same gate, the same journal, the same confirmations.

use adjutant_core::AgentName;
use adjutant_core::port::{Journal as _, LogStore as _, StoreError};
use adjutant_runtime::{CallOutcome, RunContext, RunError};

use super::*;

fn requested(tool: &str, arguments: Value) -> RequestedCall {
    RequestedCall::new(tool, arguments.as_object().cloned().unwrap())
}

async fn with_milk() -> (Arc<InMemory>, Agent) {
    let tasks = Arc::new(InMemory::new());
    let (agent, _) = task_agent(&tasks, []);
    let add = requested("add_task", json!({"description": "Buy milk"}));
    let added = agent
        .call_tool(&mut for_call(None), None, add)
        .await
        .unwrap();
    assert!(
        matches!(&added, CallOutcome::Done { invocation, .. } if invocation.result.success),
        "{added:?}"
    );
    (tasks, agent)
}

fn for_call(name: Option<&InputId>) -> RunContext {
    RunContext::for_call(UserId::local(), name)
}

fn name(text: &str) -> InputId {
    InputId::new(text).unwrap()
}

#[tokio::test]
async fn a_person_passes_the_same_gate() {
    let (tasks, agent) = with_milk().await;
    for (call, words) in [
        (
            requested("add_task", json!({"description": ""})),
            "description",
        ),
        (requested("add_tsk", json!({})), "add_task"),
        (requested("ask_user", json!({"question": "?"})), "ask_user"),
    ] {
        let refused = agent
            .call_tool(&mut for_call(None), None, call)
            .await
            .unwrap();
        assert!(
            matches!(&refused, CallOutcome::Refused(reason) if reason.contains(words)),
            "{refused:?}"
        );
    }
    let mut context = for_call(None);
    let delete = requested("delete_task", json!({"task_id": "milk"}));
    let asked = agent.call_tool(&mut context, None, delete).await.unwrap();
    let CallOutcome::Confirm(pending) = asked else {
        panic!("a delete is confirmed: {asked:?}")
    };
    assert_eq!(pending.preview, "Delete “Buy milk”");
    // Answers to something else change nothing, and it still waits.
    let other = Answer {
        digest: "0".repeat(64),
        ..pending.answer(Verdict::Approved)
    };
    assert!(agent.answer_call(&mut context, None, other).await.is_err());
    assert_eq!(descriptions(&tasks).await, ["Buy milk"]);
    let done = agent
        .answer_call(&mut context, None, pending.answer(Verdict::Approved))
        .await
        .unwrap();
    assert!(
        matches!(&done, CallOutcome::Done { invocation, .. } if invocation.result.success),
        "{done:?}"
    );
    assert!(descriptions(&tasks).await.is_empty());
}

/// The intent is in the journal before the effect, and the logs say what ran.
#[tokio::test]
async fn a_call_is_journaled_and_logged() {
    let (tasks, agent) = with_milk().await;
    let mut context = for_call(None);
    let delete = requested("delete_task", json!({"task_id": "milk"}));
    let CallOutcome::Confirm(pending) = agent.call_tool(&mut context, None, delete).await.unwrap()
    else {
        panic!("a delete is confirmed")
    };
    agent
        .answer_call(&mut context, None, pending.answer(Verdict::Approved))
        .await
        .unwrap();
    let events = tasks
        .load(&context.key(&AgentName::adjutant()))
        .await
        .unwrap()
        .events;
    let kinds: Vec<&str> = events
        .iter()
        .map(|recorded| recorded.event.kind())
        .collect();
    assert_eq!(
        kinds,
        [
            "turn_started",
            "call_checked",
            "turn_parked",
            "call_answered",
            "call_started",
            "call_finished",
            "turn_finished"
        ]
    );
    let turn = events[0].event.turn().unwrap();
    let row = tasks
        .decision(&UserId::local(), turn)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (
            row.message.as_str(),
            row.model.to_string(),
            row.model_calls,
            row.outcome
        ),
        (
            r#"delete_task {"task_id":"milk"}"#,
            "none/none".to_owned(),
            0,
            Some(OutcomeCategory::TaskCompleted)
        )
    );
    let calls = tasks
        .tool_invocations(&UserId::local(), turn)
        .await
        .unwrap();
    assert_eq!((calls.len(), calls[0].tool.as_str()), (1, "delete_task"));
    check_pairing(&conversation::history(&events)).unwrap();
}

#[tokio::test]
async fn a_name_makes_a_repeat_harmless_and_is_for_one_call() {
    let (tasks, agent) = with_milk().await;
    let id = name("k1");
    let add = async |words: &str| {
        let call = requested("add_task", json!({ "description": words }));
        let mut context = for_call(Some(&id));
        context.fingerprint = Some(call.fingerprint());
        agent.call_tool(&mut context, Some(id.clone()), call).await
    };
    let first = add("Call Bob").await.unwrap();
    assert_eq!(add("Call Bob").await.unwrap(), first);
    assert_eq!(
        add("Call Ann").await,
        Err(RunError::Store(StoreError::Reused))
    );
    assert_eq!(descriptions(&tasks).await, ["Buy milk", "Call Bob"]);
    let known = agent
        .requested_call(&for_call(Some(&id)).key(&AgentName::adjutant()))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        known,
        (
            requested("add_task", json!({"description": "Call Bob"})),
            first
        )
    );
    // Another user's call of that name is another call.
    let bob = RunContext::for_call(UserId::new("bob").unwrap(), Some(&id));
    assert_eq!(
        agent
            .requested_call(&bob.key(&AgentName::adjutant()))
            .await
            .unwrap(),
        None
    );
}

#[tokio::test]
async fn of_a_hundred_uses_of_one_confirmation_one_has_an_effect() {
    let (count, store) = (Arc::new(AtomicUsize::new(0)), Arc::new(InMemory::new()));
    let launch = counting(
        "launch",
        Annotations {
            destructive: true,
            ..Annotations::default()
        },
        &count,
    );
    let agent = builder(ScriptedModel::new([]))
        .tool(launch)
        .journal(store, "test")
        .build()
        .unwrap();
    let mut context = for_call(None);
    let asked = agent
        .call_tool(&mut context, None, requested("launch", json!({})))
        .await
        .unwrap();
    let CallOutcome::Confirm(pending) = asked else {
        panic!("{asked:?}")
    };
    let uses = (0..100).map(|_| {
        let (agent, mut context) = (agent.clone(), context.clone());
        let answer = pending.answer(Verdict::Approved);
        tokio::spawn(async move { agent.answer_call(&mut context, None, answer).await })
    });
    for outcome in futures::future::join_all(uses).await {
        let outcome = outcome.unwrap().unwrap();
        let CallOutcome::Done { invocation, .. } = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(
            invocation.result.data.as_deref(),
            Some(&json!(1)),
            "everybody hears of the one that ran"
        );
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_a_person_refuses_or_withdraws_is_not_done() {
    let (tasks, agent) = with_milk().await;
    for cancelled in [false, true] {
        let mut context = for_call(None);
        let delete = requested("delete_task", json!({"task_id": "1"}));
        let CallOutcome::Confirm(pending) =
            agent.call_tool(&mut context, None, delete).await.unwrap()
        else {
            panic!("a delete is confirmed")
        };
        if cancelled {
            agent.cancel(&mut context).await.unwrap();
        } else {
            agent
                .answer_call(&mut context, None, pending.answer(Verdict::Denied))
                .await
                .unwrap();
        }
        let (_, outcome) = agent
            .requested_call(&context.key(&AgentName::adjutant()))
            .await
            .unwrap()
            .unwrap();
        assert!(matches!(outcome, CallOutcome::Declined(_)), "{outcome:?}");
    }
    assert_eq!(descriptions(&tasks).await, ["Buy milk"]);
}
