//! A turn whose worker was lost is taken up, and counted before; one that gets no further is ended.

use adjutant_core::AgentName;
use adjutant_core::port::{Journal as _, LogStore as _};
use adjutant_providers::scripted::text;
use adjutant_runtime::RunContext;
use adjutant_store::sqlite;
use jiff::Timestamp;

use super::*;

fn input(id: &str) -> Input {
    Input::new(
        InputId::new(id).unwrap(),
        Timestamp::UNIX_EPOCH,
        InputBody::message("go"),
    )
}

fn turn() -> TurnId {
    TurnId(uuid::Uuid::from_u128(42))
}

fn started() -> Event {
    started_with(turn(), TurnLimits::default())
}

pub(super) fn started_with(turn: TurnId, limits: TurnLimits) -> Event {
    Event::TurnStarted {
        turn,
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
        limits,
        output_schema: None,
        call: None,
        client: None,
        from_others: false,
    }
}

fn taken_up(worker: &str) -> Event {
    Event::TurnTakenUp {
        turn: turn(),
        worker: worker.to_owned(),
    }
}

/// A turn as workers leave it that were lost after these events, the last of them with its claim.
async fn lost_after(events: &[Event]) -> (Arc<sqlite::Store>, ConversationKey) {
    let store = Arc::new(sqlite::Store::in_memory().await.unwrap());
    let key = RunContext::default().key(&AgentName::adjutant());
    store.submit(&key, &input("i1")).await.unwrap();
    store
        .append(&key, &Recorded::sequence(1, Timestamp::UNIX_EPOCH, events))
        .await
        .unwrap();
    assert!(
        store
            .claim(&key, "a lost worker", std::time::Duration::ZERO)
            .await
            .unwrap()
            .is_held()
    );
    (store, key)
}

fn agent(store: &Arc<sqlite::Store>) -> Agent {
    builder(ScriptedModel::new([text("Here I am."), text("And again.")]))
        .journal(store.clone(), adjutant_store::worker_id())
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_turn_whose_worker_was_lost_is_counted_before_it_is_tried_again() {
    for before in [vec![started()], vec![started(), taken_up("a")]] {
        let (store, key) = lost_after(&before).await;
        let swept = agent(&store)
            .recover_until(None, &CancellationToken::new())
            .await
            .unwrap();
        assert_eq!(
            (swept.responses[0].content.as_str(), swept.given_up.len()),
            ("Here I am.", 0)
        );
        let events = store.load(&key).await.unwrap().events;
        let next = &events[before.len()].event;
        assert!(
            matches!(&**next, Event::TurnTakenUp { worker, .. } if *worker == adjutant_store::worker_id()),
            "before anything else: {next:?}"
        );
    }
}

#[tokio::test]
async fn the_third_time_it_is_ended_and_the_conversation_goes_on() {
    let (store, key) = lost_after(&[started(), taken_up("a"), taken_up("b")]).await;
    let agent = agent(&store);
    let swept = agent
        .recover_until(None, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(swept.given_up, [(key.clone(), turn())]);
    let response = &swept.responses[0];
    assert_eq!(
        (response.outcome, response.content.as_str()),
        (OutcomeCategory::Poisoned, words::POISONED)
    );
    assert_eq!(response.error, Some(TurnError::Poisoned { times: 3 }));
    let row = store.decision(&key.user, turn()).await.unwrap().unwrap();
    assert_eq!(row.outcome, Some(OutcomeCategory::Poisoned));
    assert!(
        agent
            .recover_until(None, &CancellationToken::new())
            .await
            .unwrap()
            .responses
            .is_empty()
    );

    let mut context = agent.context(&key).await.unwrap();
    check_pairing(&context.history).unwrap();
    assert_eq!(
        agent.run_in(&mut context, "hello").await.unwrap().content,
        "Here I am."
    );
}

/// Each worker begins the same call again, and none sees its end.
#[tokio::test]
async fn a_call_that_is_started_again_and_again_is_no_new_step() {
    let begun = || Event::CallStarted {
        turn: turn(),
        call: CallId::new("c1").unwrap(),
        tool: "look".to_owned(),
        arguments: Arguments::new(),
        key: IdempotencyKey::for_call(
            RunContext::default()
                .key(&AgentName::adjutant())
                .conversation,
            turn(),
            &CallId::new("c1").unwrap(),
        ),
        effect: Effect::None,
    };
    let before = [
        started(),
        begun(),
        taken_up("a"),
        begun(),
        taken_up("b"),
        begun(),
    ];
    let (store, key) = lost_after(&before).await;
    let swept = agent(&store)
        .recover_until(None, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(swept.given_up, [(key, turn())]);
}

/// A step in between shows that it is not the turn that takes its workers down; nor is it when they
/// give it back.
#[tokio::test]
async fn a_step_in_between_begins_the_count_anew() {
    let reply = Event::ModelReplied {
        turn: turn(),
        number: 1,
        reply: Err(ModelError::ContextTooLong {
            provider: ProviderId::new("scripted").unwrap(),
            message: "too long".to_owned(),
        }),
        ms: 1,
        attempts: 1,
        counted: None,
        notices: Vec::new(),
        past: None,
    };
    let (store, _) = lost_after(&[
        started(),
        taken_up("a"),
        taken_up("b"),
        reply,
        taken_up("c"),
    ])
    .await;
    let swept = agent(&store)
        .recover_until(None, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        (swept.responses[0].content.as_str(), swept.given_up.len()),
        ("Here I am.", 0)
    );

    let (store, key) = lost_after(&[started(), taken_up("a"), taken_up("b")]).await;
    store.release(&key, "a lost worker".into()).await.unwrap();
    let swept = agent(&store)
        .recover_until(None, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(swept.responses[0].content, "Here I am.");
}

#[tokio::test]
async fn a_turn_can_be_ended_from_outside() {
    let (store, key) = lost_after(&[started()]).await;
    let agent = agent(&store);
    assert!(
        store
            .claim(&key, "somebody alive", std::time::Duration::from_secs(60))
            .await
            .unwrap()
            .is_held()
    );
    assert_eq!(
        agent.drop_turn(&key).await,
        Err(adjutant_runtime::RunError::Busy)
    );
    store.release(&key, "somebody alive".into()).await.unwrap();
    assert_eq!(agent.drop_turn(&key).await, Ok(Some(turn())));
    assert_eq!(agent.drop_turn(&key).await, Ok(None));
    let row = store.decision(&key.user, turn()).await.unwrap().unwrap();
    assert_eq!(row.outcome, Some(OutcomeCategory::Cancelled));
    assert!(
        agent
            .recover_until(None, &CancellationToken::new())
            .await
            .unwrap()
            .responses
            .is_empty()
    );
}
