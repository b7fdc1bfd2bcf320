use std::time::Duration;

use adjutant_core::limits::MESSAGES_QUEUED_MAX;
use adjutant_core::port::{Begin, Begun, Journal, StoreError};
use adjutant_core::{ConversationKey, Event, Input, InputBody};

use super::fixture::*;

const FULL: StoreError = StoreError::QueueFull {
    limit: MESSAGES_QUEUED_MAX,
};

fn begin<'a>(input: &'a Input, turn: &'a [Event], worker: &'a str) -> Begin<'a> {
    let lease = Duration::from_secs(3600);
    Begin {
        input: Some(input),
        turn,
        first: None,
        worker: worker.into(),
        lease,
        known: None,
        at: at(1),
    }
}

/// Submits inputs until the queue is full.
async fn fill(store: &impl Journal, key: &ConversationKey) {
    for number in 0..MESSAGES_QUEUED_MAX.get() {
        submit(store, key, &message(&format!("i{number}"), 0, "go on")).await;
    }
}

fn answers(id: &str, seconds: i64) -> Input {
    Input::new(
        input_id(id),
        at(seconds),
        InputBody::Answers {
            answers: Vec::new(),
        },
    )
}

async fn waiting(store: &impl Journal, key: &ConversationKey) -> usize {
    store.load(key).await.unwrap().inbox.len()
}

/// The number of messages that wait in a conversation is bounded, however they are submitted.
/// Accepted messages stay accepted, and answers and cancellations are accepted always.
pub async fn messages_that_wait_in_a_conversation_are_bounded(store: &impl Journal) {
    let (key, max) = (conversation("anna", 1), MESSAGES_QUEUED_MAX.get() as usize);
    fill(store, &key).await;
    let more = message("more", 1, "and more");
    assert_eq!(store.submit(&key, &more).await, Err(FULL));
    assert_eq!(
        store
            .begin(&key, begin(&more, &[started(1, "more")], "a"))
            .await,
        Err(FULL)
    );
    assert_eq!(waiting(store, &key).await, max);
    assert_eq!(store.find_input(&key, &more.id).await.unwrap(), None);
    assert_eq!(
        store.submit(&conversation("anna", 2), &more).await,
        Ok(()),
        "another conversation has a queue of its own"
    );

    // A repeat of an accepted message is accepted and takes the lease, which no refused message has
    // taken.
    let first = message("i0", 0, "go on");
    assert_eq!(store.submit(&key, &first).await, Ok(()));
    let begun = store
        .begin(&key, begin(&first, &[started(1, "i0")], "b"))
        .await
        .unwrap();
    assert!(matches!(begun, Begun::Claimed { .. }), "{begun:?}");
    // It is refused as well if another worker holds the lease.
    assert_eq!(
        store
            .begin(&key, begin(&more, &[started(1, "more")], "a"))
            .await,
        Err(FULL)
    );
    for always in [cancel("stop", 1), answers("yes", 1)] {
        assert_eq!(store.submit(&key, &always).await, Ok(()));
    }
    assert_eq!(waiting(store, &key).await, max + 2);

    // As many others are accepted as messages were taken.
    append(store, &key, 1, at(2), &[started(1, "i0")]).await;
    assert_eq!(store.submit(&key, &more).await, Ok(()));
    assert_eq!(
        store.submit(&key, &message("most", 1, "and most")).await,
        Err(FULL)
    );
}

/// Messages that are queued for the end of the open turn count as waiting.
pub async fn messages_that_wait_for_the_end_of_a_turn_are_bounded_too(store: &impl Journal) {
    let key = conversation("anna", 1);
    submit(store, &key, &message("first", 0, "drop the milk")).await;
    append(store, &key, 1, at(1), &[started(1, "first")]).await;
    fill(store, &key).await;
    let queued = (0..MESSAGES_QUEUED_MAX.get()).map(|number| queued(1, &format!("i{number}")));
    let events: Vec<Event> = std::iter::once(parked(1, &["call_1"]))
        .chain(queued)
        .collect();
    append(store, &key, 2, at(2), &events).await;
    assert_eq!(
        store.submit(&key, &message("more", 3, "yes")).await,
        Err(FULL)
    );
    assert_eq!(store.submit(&key, &answers("answer", 3)).await, Ok(()));
}

/// Concurrent submissions do not exceed the bound of the queue.
pub async fn of_many_messages_at_once_as_many_are_accepted_as_may_wait(store: &impl Journal) {
    let (key, max) = (conversation("anna", 1), MESSAGES_QUEUED_MAX.get() as usize);
    fill(store, &key).await;
    append(store, &key, 1, at(1), &[ignored("i0"), ignored("i1")]).await;
    let more = ["a", "b", "c", "d"].map(|id| message(id, 1, "hello"));
    let submit = |at: usize| store.submit(&key, &more[at]);
    let (a, b, c, d) = tokio::join!(submit(0), submit(1), submit(2), submit(3));
    let answers = [a, b, c, d];
    let accepted = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(
        (accepted, waiting(store, &key).await),
        (2, max),
        "{answers:?}"
    );
    assert!(
        answers
            .iter()
            .all(|answer| answer.is_ok() || *answer == Err(FULL)),
        "{answers:?}"
    );
}
