//! The in-memory store keeps the contract of every store.

use adjutant_core::port::{ConversationFilter, ConversationStore as _, Journal as _};
use adjutant_core::{
    AgentName, ConversationId, ConversationKey, Event, Input, InputBody, InputId, LogContent,
    Recorded, UserId,
};
use adjutant_runtime::InMemory;
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
