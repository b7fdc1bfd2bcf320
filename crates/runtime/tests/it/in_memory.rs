//! The in-memory store keeps the contract of every store.

use std::num::NonZeroUsize;
use std::sync::Arc;

use adjutant_core::port::{ConversationFilter, ConversationStore as _, Journal as _};
use adjutant_core::{
    AgentName, ConversationId, ConversationKey, Event, Input, InputBody, InputId, LogContent,
    Recorded, UserId,
};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::{Agent, InMemory};
use adjutant_store::contract;
use jiff::Timestamp;
use uuid::Uuid;

#[tokio::test]
async fn in_memory_keeps_the_task_contract() {
    contract::task_store(async || InMemory::new()).await;
}

#[tokio::test]
async fn in_memory_keeps_the_journal_contract() {
    contract::journal(async || InMemory::new()).await;
    contract::a_change_is_written_with_its_events(&InMemory::new()).await;
    for content in [LogContent::Redacted, LogContent::None] {
        contract::logs_have_the_content_that_the_store_allows(
            &InMemory::new().with_log_content(content),
        )
        .await;
    }
}

#[tokio::test]
async fn in_memory_keeps_the_budget_contract() {
    contract::budget_store(async || InMemory::new()).await;
}

#[tokio::test]
async fn in_memory_keeps_the_contract_of_settings() {
    contract::user_setting_store(async || InMemory::new()).await;
}

/// Conversations that are kept, if nobody waits for anything in them.
const KEPT: usize = 1024;

fn key() -> ConversationKey {
    ConversationKey {
        agent: AgentName::adjutant(),
        user: UserId::local(),
        conversation: ConversationId(Uuid::now_v7()),
    }
}

/// Says something in a conversation that nobody goes on with.
async fn say(store: &InMemory, key: &ConversationKey) -> InputId {
    let id = InputId::from(Uuid::now_v7());
    let input = Input {
        id: id.clone(),
        at: Timestamp::UNIX_EPOCH,
        request_id: None,
        fingerprint: None,
        after: 0,
        body: InputBody::message("Hello."),
    };
    store.submit(key, &input).await.unwrap();
    id
}

/// Leaves nothing to do in a conversation.
async fn settle(store: &InMemory, key: &ConversationKey, input: InputId) {
    let ignored = Event::InputIgnored {
        input,
        reason: "nobody goes on with it".to_owned(),
    };
    store
        .append(
            key,
            &Recorded::sequence(1, Timestamp::UNIX_EPOCH, &[ignored]),
        )
        .await
        .unwrap();
}

/// Runs one-shot messages of 20 kB.
async fn run_large_messages(store: &Arc<InMemory>, runs: u32) {
    let model = ScriptedModel::from_jsonl(r#"{"text": "Read.", "repeat": true}"#).unwrap();
    let agent = Agent::builder("adjutant")
        .model(model)
        .instruction("Be brief.")
        .journal(store.clone(), "worker")
        .build()
        .unwrap();
    let text = "twenty kilobytes of text ".repeat(800);
    for _ in 0..runs {
        agent.run(text.as_str()).await.unwrap();
    }
}

/// Returns the bytes of all events that the store has, as JSON.
async fn event_bytes(store: &InMemory) -> usize {
    let filter = ConversationFilter::newest(u32::MAX);
    let (agent, user) = (AgentName::adjutant(), UserId::local());
    let mut bytes = 0;
    for kept in store.list(&agent, &user, &filter).await.unwrap() {
        let key = ConversationKey {
            agent: agent.clone(),
            user: user.clone(),
            conversation: kept.id,
        };
        for recorded in store.load(&key).await.unwrap().events {
            bytes += serde_json::to_string(&recorded).unwrap().len();
        }
    }
    bytes
}

#[tokio::test]
async fn one_shot_runs_leave_no_more_than_the_bounds() {
    const BYTES_MAX: usize = 16 * 1024 * 1024;
    // Bounds are applied when an input arrives, so the last run may exceed them.
    const LAST_RUN: usize = 100_000;
    let store = Arc::new(InMemory::new());
    run_large_messages(&store, 3_000).await;
    let left = event_bytes(&store).await;
    assert!(
        (BYTES_MAX / 4..BYTES_MAX).contains(&left) && store.bytes() <= BYTES_MAX + LAST_RUN,
        "{left} bytes of events are left, {} are counted",
        store.bytes()
    );
    // The bounds can be set.
    let few = NonZeroUsize::new(20).unwrap();
    let store = Arc::new(InMemory::new().with_conversations_max(few));
    run_large_messages(&store, 100).await;
    assert!(kept(&store).await <= 20);
    let bytes = NonZeroUsize::new(1_000_000).unwrap();
    let store = Arc::new(InMemory::new().with_bytes_max(bytes));
    run_large_messages(&store, 100).await;
    assert!(event_bytes(&store).await < 1_000_000);
}

#[tokio::test]
async fn conversations_with_open_work_are_kept_whatever_their_size() {
    let bytes = NonZeroUsize::new(100_000).unwrap();
    let store = Arc::new(InMemory::new().with_bytes_max(bytes));
    let open = key();
    say(&store, &open).await;
    run_large_messages(&store, 100).await;
    let left = store.load(&open).await.unwrap();
    assert_eq!(left.inbox.len(), 1, "open work was forgotten");
}

async fn kept(store: &InMemory) -> usize {
    let filter = ConversationFilter::newest(u32::MAX);
    store
        .list(&AgentName::adjutant(), &UserId::local(), &filter)
        .await
        .unwrap()
        .len()
}

#[tokio::test]
async fn what_has_work_to_do_is_kept_and_the_rest_makes_room_however_much_there_was() {
    let store = InMemory::new();
    let mut open = Vec::new();
    for _ in 0..3 * KEPT {
        let key = key();
        let input = say(&store, &key).await;
        open.push((key, input));
    }
    assert_eq!(
        kept(&store).await,
        3 * KEPT,
        "something with work to do was forgotten"
    );
    for (key, input) in open {
        settle(&store, &key, input).await;
    }
    for number in 0..2 * KEPT {
        let key = key();
        let input = say(&store, &key).await;
        settle(&store, &key, input).await;
        assert!(
            number < KEPT || kept(&store).await <= KEPT,
            "{} are kept after {number}",
            kept(&store).await
        );
    }
}
