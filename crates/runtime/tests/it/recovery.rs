//! Recovery: the next start finishes what a crash left open; nothing is lost, nothing done twice.

use adjutant_core::AgentName;
use adjutant_core::port::Journal as _;
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::{RunContext, RunError, RunEvent};
use adjutant_store::sqlite;
use jiff::Timestamp;
use uuid::Uuid;

use super::*;
use crate::logged::Logged;

/// A conversation on SQLite in which a turn stopped after `events`.
async fn stopped_after(events: Vec<Event>) -> (Arc<sqlite::Store>, ConversationKey) {
    let store = Arc::new(sqlite::Store::in_memory().await.unwrap());
    let key = RunContext::default().key(&AgentName::adjutant());
    let input = Input::new(
        InputId::new("i1").unwrap(),
        Timestamp::UNIX_EPOCH,
        InputBody::message("go"),
    );
    store.submit(&key, &input).await.unwrap();
    if !events.is_empty() {
        store
            .append(&key, &Recorded::sequence(1, Timestamp::UNIX_EPOCH, &events))
            .await
            .unwrap();
    }
    (store, key)
}

fn turn() -> TurnId {
    TurnId(Uuid::from_u128(42))
}

fn started() -> Event {
    Event::TurnStarted {
        turn: turn(),
        agent: None,
        version: None,
        metadata: serde_json::Map::new(),
        sent_at: None,
        recalled_texts: Vec::new(),
        input: InputId::new("i1").unwrap(),
        accepted_at: None,
        request_id: None,
        message: "go".to_owned(),
        message_chars: 2,
        model: ModelId::new("scripted", "script").unwrap(),
        local: None,
        limits: TurnLimits::default(),
        output_schema: None,
        call: None,
        client: None,
        from_others: false,
    }
}

/// The answer that called `tool` once, as the journal has it.
fn replied(tool: &str) -> Event {
    let part = Part::ours(Content::ToolCall(ToolCall::from_object(
        0,
        None,
        tool.to_owned(),
        Arguments::new(),
    )));
    let reply = GenerateResponse {
        parts: vec![part],
        finish: FinishReason::ToolCalls,
        usage: Usage::default(),
        model: ModelId::new("scripted", "script").unwrap(),
        counters: adjutant_core::Counters::default(),
        cost: None,
        losses: Vec::new(),
        certainty: None,
    };
    Event::ModelReplied {
        turn: turn(),
        number: 1,
        reply: Ok(reply),
        ms: 1,
        attempts: 1,
        counted: None,
        notices: Vec::new(),
        past: None,
    }
}

/// The id the turn machine mints for the first call of [`turn`].
fn call_id() -> CallId {
    CallId::new(format!("call_{}_1", &turn().0.simple().to_string()[16..])).unwrap()
}

fn intent(tool: &str, effect: Effect) -> [Event; 2] {
    let verdict = GateVerdict::Run {
        arguments: Arguments::new(),
    };
    [
        Event::CallChecked {
            turn: turn(),
            call: call_id(),
            verdict,
            corrections: None,
        },
        Event::CallStarted {
            turn: turn(),
            call: call_id(),
            tool: tool.to_owned(),
            arguments: Arguments::new(),
            key: IdempotencyKey::new("k").unwrap(),
            effect,
        },
    ]
}

/// Resumes with a counting tool and says how often it ran, how often the model was asked, and how
/// the turn ended.
async fn resume(
    events: Vec<Event>,
    annotations: Annotations,
    replies: Vec<Reply>,
) -> (usize, usize, OutcomeCategory) {
    let (store, _) = stopped_after(events).await;
    let count = Arc::new(AtomicUsize::new(0));
    let model = ScriptedModel::new(replies);
    let agent = builder(model.clone())
        .tool(counting("count", annotations, &count))
        .journal(store.clone(), adjutant_store::worker_id())
        .build()
        .unwrap();
    let responses = agent.recover(Some(&UserId::local())).await.unwrap();
    assert_eq!(responses.len(), 1);
    assert!(
        store
            .unsettled(&AgentName::adjutant(), None)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        agent.recover(None).await.unwrap().is_empty(),
        "nothing is left to resume"
    );
    (
        count.load(Ordering::SeqCst),
        model.calls_made(),
        responses[0].outcome,
    )
}

const ONCE: Annotations = Annotations {
    read_only: false,
    destructive: false,
    idempotent: false,
    keyed: false,
    parallel: false,
    closed_world: false,
};
const KEYED: Annotations = Annotations {
    keyed: true,
    ..ONCE
};

#[tokio::test]
async fn an_accepted_input_is_answered() {
    let got = resume(Vec::new(), ONCE, vec![text("Hi.")]).await;
    assert_eq!(got, (0, 1, OutcomeCategory::ResponseGiven));
}

#[tokio::test]
async fn a_recorded_answer_is_not_asked_for_again() {
    // A fresh script skips what the request holds already, so only the second reply is asked for.
    let replies = vec![call("count", json!({})), text("Counted.")];
    let got = resume(vec![started(), replied("count")], ONCE, replies).await;
    assert_eq!(got, (1, 1, OutcomeCategory::TaskCompleted));
}

#[tokio::test]
async fn an_open_once_call_is_in_doubt_and_an_open_keyed_call_runs_again() {
    let open = |effect| {
        [
            vec![started(), replied("count")],
            intent("count", effect).to_vec(),
        ]
        .concat()
    };
    let replies = || vec![call("count", json!({})), text("Counted.")];
    // It waits for the person; doubt.rs has what follows.
    assert_eq!(
        resume(open(Effect::Once), ONCE, replies()).await,
        (0, 0, OutcomeCategory::InDoubt)
    );
    // What it was begun as counts, whatever the tool says of itself by now.
    assert_eq!(
        resume(open(Effect::Once), KEYED, replies()).await,
        (0, 0, OutcomeCategory::InDoubt)
    );
    assert_eq!(
        resume(open(Effect::Keyed), KEYED, replies()).await,
        (1, 1, OutcomeCategory::TaskCompleted)
    );
}

#[tokio::test]
async fn a_finished_call_is_not_run_again() {
    let finished = Event::CallFinished {
        turn: turn(),
        call: call_id(),
        tool: "count".to_owned(),
        arguments: Arguments::new(),
        result: ToolResult::ok(json!(1)),
        summary: None,
        ms: 1,
        attempt: 1,
    };
    let events = [
        vec![started(), replied("count")],
        intent("count", Effect::Once).to_vec(),
        vec![finished],
    ]
    .concat();
    let got = resume(
        events,
        ONCE,
        vec![call("count", json!({})), text("Counted.")],
    )
    .await;
    assert_eq!(got, (0, 1, OutcomeCategory::TaskCompleted));
}

#[tokio::test]
async fn a_waiting_turn_survives_its_process() {
    let store = Arc::new(sqlite::Store::in_memory().await.unwrap());
    let add = TaskChange::Add {
        description: TaskDescription::new("Buy milk").unwrap(),
        from_others: false,
    };
    TaskStore::apply(store.as_ref(), &UserId::local(), &add, None)
        .await
        .unwrap();
    let agent = |replies: Vec<Reply>| {
        builder(ScriptedModel::new(replies))
            .tools(task_tools(store.clone()))
            .journal(store.clone(), adjutant_store::worker_id())
            .build()
            .unwrap()
    };
    let script = || {
        vec![
            call("delete_task", json!({"task_id": "milk"})),
            text("Gone."),
        ]
    };
    let mut context = RunContext::default();
    agent(script())
        .run_in(&mut context, "delete milk")
        .await
        .unwrap();

    let other = agent(script());
    assert!(
        other.recover(None).await.unwrap().is_empty(),
        "what waits for a human is settled"
    );
    let mut reloaded = other
        .context(&context.key(&AgentName::adjutant()))
        .await
        .unwrap();
    assert_eq!(reloaded.pending, context.pending);
    let done = other.run_in(&mut reloaded, "yes").await.unwrap();
    assert_eq!(
        (done.content.as_str(), done.outcome),
        ("Gone.", OutcomeCategory::TaskCompleted)
    );
}

#[tokio::test]
async fn what_cannot_go_on_stops_no_other_conversation_and_loses_nothing() {
    // The answer would have to fit what is no JSON Schema.
    let Event::TurnStarted {
        turn,
        input,
        accepted_at,
        request_id,
        message,
        message_chars,
        model,
        limits,
        call,
        ..
    } = started()
    else {
        panic!("a sample of another kind")
    };
    let output_schema = Some(json!({"type": "nothing"}));
    let begun = Event::TurnStarted {
        turn,
        agent: None,
        version: None,
        metadata: serde_json::Map::new(),
        sent_at: None,
        recalled_texts: Vec::new(),
        input,
        accepted_at,
        request_id,
        message,
        message_chars,
        model,
        local: None,
        limits,
        output_schema,
        call,
        client: None,
        from_others: false,
    };
    let (store, key) = stopped_after(vec![begun]).await;
    let other = RunContext::default().key(&AgentName::adjutant());
    let input = Input::new(
        InputId::new("i1").unwrap(),
        Timestamp::UNIX_EPOCH,
        InputBody::message("go"),
    );
    store.submit(&other, &input).await.unwrap();
    let agent = builder(ScriptedModel::new([text("Hi.")]))
        .journal(store.clone(), adjutant_store::worker_id())
        .build()
        .unwrap();
    let before = store.load(&key).await.unwrap();
    let swept = agent
        .recover_until(None, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(swept.responses[0].content, "Hi.");
    let [(left, RunError::CannotContinue(why))] = swept.failed.as_slice() else {
        panic!("{:?}", swept.failed)
    };
    assert!(*left == key && why.contains("schema"), "{why}");
    assert_eq!(
        store.load(&key).await.unwrap(),
        before,
        "it waits for an agent that can"
    );
}

#[tokio::test]
async fn the_recovery_of_one_conversation_is_streamed_and_can_be_stopped() {
    let agent = |store: &Arc<sqlite::Store>, answer| {
        let model = ScriptedModel::new([answer]);
        builder(model)
            .journal(store.clone(), adjutant_store::worker_id())
            .build()
            .unwrap()
    };
    let (store, key) = stopped_after(vec![started()]).await;
    let first = agent(&store, text("Here I am."));
    let mut stream = first.stream_recovery(&first.context(&key).await.unwrap());
    let mut said = String::new();
    while let Some(event) = stream.next().await {
        if let RunEvent::Text(text) = event {
            said.push_str(&text);
        }
    }
    let (response, after) = stream.finish().await.unwrap();
    assert_eq!(
        (
            said.as_str(),
            response.content.as_str(),
            after.history.len()
        ),
        ("Here I am.", "Here I am.", 2)
    );

    let (store, key) = stopped_after(vec![started()]).await;
    let second = agent(
        &store,
        text("Never.").after(std::time::Duration::from_secs(3_600)),
    );
    let context = second.context(&key).await.unwrap();
    let mut stream = second.stream_recovery(&context);
    while !matches!(stream.next().await, Some(RunEvent::ModelStarted { .. })) {}
    context.cancelled.cancel();
    let (response, _) = stream.finish().await.unwrap();
    assert_eq!(response.outcome, OutcomeCategory::Cancelled);
    assert!(
        second
            .recover_until(None, &CancellationToken::new())
            .await
            .unwrap()
            .responses
            .is_empty()
    );

    let nothing = second
        .stream_recovery(&RunContext::default())
        .finish()
        .await;
    assert!(
        matches!(nothing, Err(RunError::CannotContinue(_))),
        "{nothing:?}"
    );
}

#[tokio::test]
async fn a_turn_that_continues_with_another_model_is_warned_about() {
    for (name, warns) in [("script", false), ("another", true)] {
        let mut begun = started();
        if let Event::TurnStarted { model, .. } = &mut begun {
            *model = ModelId::new("scripted", name).unwrap();
        }
        let (store, _) = stopped_after(vec![begun]).await;
        let agent = builder(ScriptedModel::new([text("Here I am.")]))
            .journal(store.clone(), adjutant_store::worker_id())
            .build()
            .unwrap();
        let logged = Logged::begin(tracing::Level::WARN);
        agent
            .recover_until(None, &CancellationToken::new())
            .await
            .unwrap();
        let told = logged.lines();
        assert_eq!(told.len(), usize::from(warns), "{told:?}");
        let words =
            "the turn began with the model scripted/another and goes on with scripted/script";
        assert!(told.iter().all(|told| told.contains(words)), "{told:?}");
    }
}
