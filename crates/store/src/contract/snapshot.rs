use std::time::Duration;

use adjutant_core::conversation::Conversation;
use adjutant_core::port::{
    Begin, Begun, Branching, ConversationStore, Finished, Journal, Known, Newer,
};
use adjutant_core::{ConversationKey, Message, Recorded};

use super::fixture::*;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::maintenance::Maintenance;

/// Messages of the history in the next request.
const MESSAGES_MAX: Option<usize> = Some(4);

/// Runs the `number`th turn, which has five events and two messages, and stores a snapshot with its
/// end if asked to.
async fn turn_with(store: &impl Journal, key: &ConversationKey, number: u32, is_stored: bool) {
    let (id, at) = (format!("i{number}"), at(i64::from(number)));
    let (input, first) = (
        message(&id, i64::from(number), "go on"),
        [started(number, &id)],
    );
    let begin = Begin {
        input: Some(&input),
        turn: &first,
        first: None,
        worker: "w".into(),
        lease: Duration::from_secs(60),
        known: None,
        at,
    };
    let begun = store.begin(key, begin).await.unwrap();
    let Begun::Started(newer) = begun else {
        panic!("{begun:?}")
    };
    let mut conversation = folded(&newer);
    assert_eq!(
        conversation,
        Conversation::from_events(MESSAGES_MAX, store.load(key).await.unwrap().events)
    );
    let mut end = finished(number, "SUCCESS:RESPONSE_GIVEN");
    if let adjutant_core::Event::TurnFinished { end, .. } = &mut end {
        end.messages = ["question", "answer"]
            .into_iter()
            .map(|text| Message::user(format!("{text} {number}")).unwrap())
            .collect();
    }
    let call = format!("call_{number}");
    let rest = [
        call_started(number, &call),
        call_finished_at_length(number, &call, 500),
        replied(number, 1),
        end,
    ];
    let rest = recorded(conversation.next_seq(), at, &rest);
    conversation.extend(rest.iter().cloned());
    let snapshot = conversation.snapshot().unwrap().filter(|_| is_stored);
    assert_eq!(
        store
            .finish(key, "w".into(), &rest, snapshot.as_ref())
            .await
            .unwrap(),
        Finished::Released
    );
}

/// Restores the conversation from the rows that the store returns.
fn folded(newer: &Newer) -> Conversation {
    let mut conversation = match &newer.restorable {
        Some(found) => {
            assert_eq!(found.snapshot.seq, newer.after);
            assert!(
                found
                    .said
                    .iter()
                    .all(|recorded| recorded.event.has_messages())
            );
            Conversation::restore(MESSAGES_MAX, &found.snapshot, found.said.iter().cloned())
                .unwrap()
        }
        None => {
            assert_eq!(newer.after, 0);
            Conversation::new(MESSAGES_MAX)
        }
    };
    conversation.extend(newer.events.iter().cloned());
    conversation
}

async fn newer(store: &impl Journal, key: &ConversationKey, known: Option<Known>) -> Newer {
    store.load_newer(key, known).await.unwrap().unwrap()
}

fn places(events: &[Recorded]) -> Vec<u64> {
    events.iter().map(|recorded| recorded.seq).collect()
}

/// A snapshot is returned with the events that have its messages. It is replaced by a later one,
/// deleted with its conversation, and not used for reads of everything.
pub async fn a_snapshot_replaces_the_events_before_it(store: &(impl Journal + ConversationStore)) {
    let key = conversation("anna", 1);
    for number in 1..=4 {
        turn_with(store, &key, number, number == 3).await;
    }
    let read = newer(store, &key, None).await;
    let found = read.restorable.as_ref().expect("it was stored");
    assert_eq!((found.snapshot.seq, found.snapshot.messages_from), (15, 10));
    assert_eq!(
        (places(&found.said), places(&read.events)),
        (vec![10, 15], vec![16, 17, 18, 19, 20])
    );
    turn_with(store, &key, 5, true).await;
    let read = newer(store, &key, None).await;
    assert_eq!((read.after, places(&read.events)), (25, vec![]));
    assert_eq!(
        places(&read.restorable.as_ref().expect("it was replaced").said),
        [20, 25]
    );
    turn_with(store, &key, 6, false).await;

    // Known events are not read again, and a full read returns all of them.
    let created_at = read.created_at;
    for (seq, events) in [(0, 30), (7, 23), (25, 5), (30, 0)] {
        let read = newer(store, &key, Some(Known { seq, created_at })).await;
        assert_eq!(
            (read.restorable, read.after, read.events.len()),
            (None, seq, events)
        );
    }
    // What is known is of another conversation.
    let read = newer(
        store,
        &key,
        Some(Known {
            seq: 7,
            created_at: at(77),
        }),
    )
    .await;
    assert_eq!((read.after, read.restorable.is_some()), (25, true));

    // Without events nothing says what a snapshot is of.
    let snapshot = read.restorable.unwrap().snapshot;
    let other = conversation("anna", 2);
    for number in 31..=32 {
        turn_with(store, &other, number, false).await;
    }
    assert!(claims(store, &other, "w", std::time::Duration::from_secs(60)).await);
    store
        .finish(&other, "w".into(), &[], Some(&snapshot))
        .await
        .unwrap();
    assert_eq!(newer(store, &other, None).await.restorable, None);
    store.delete(&key).await.unwrap();
    for number in 1..=2 {
        turn_with(store, &key, number, false).await;
    }
    assert_eq!(
        newer(store, &key, None).await.restorable,
        None,
        "it went with its conversation"
    );
}

/// A branch starts without a snapshot. Its own may cover events of the original, also after that is
/// deleted.
pub async fn a_branch_goes_on_from_its_own_snapshot(store: &(impl Journal + ConversationStore)) {
    let (parent, child, grandchild) = (
        conversation("anna", 1),
        conversation("anna", 2),
        conversation("anna", 3),
    );
    for number in 1..=4 {
        turn_with(store, &parent, number, true).await;
    }
    let branching = |from, to: &ConversationKey, seq| {
        let branching = Branching {
            from,
            seq,
            id: to.conversation,
            at: at(500),
        };
        async move { store.branch(branching).await.unwrap() }
    };
    branching(&parent, &child, 5).await;
    let read = newer(store, &child, None).await;
    assert_eq!((read.restorable.is_none(), read.events.len()), (true, 5));
    turn_with(store, &child, 11, true).await;
    // A question and an answer are of the conversation it comes from.
    let read = newer(store, &child, None).await;
    assert_eq!(
        (places(&read.restorable.as_ref().unwrap().said), read.after),
        (vec![5, 10], 10)
    );
    turn_with(store, &child, 12, false).await;
    branching(&child, &grandchild, 10).await;
    turn_with(store, &grandchild, 21, true).await;
    let of_grandchild = newer(store, &grandchild, None).await;
    assert_eq!(
        places(&of_grandchild.restorable.as_ref().unwrap().said),
        [10, 15]
    );
    // The parent goes on from its own.
    assert_eq!(newer(store, &parent, None).await.after, 20);

    let before = newer(store, &child, None).await;
    store.delete(&parent).await.unwrap();
    assert_eq!(newer(store, &child, None).await, before);
    store.delete(&child).await.unwrap();
    assert_eq!(newer(store, &grandchild, None).await, of_grandchild);
    turn_with(store, &grandchild, 22, true).await;
}

/// A snapshot that is damaged or has another format version is ignored, and a check reports it.
/// `make` returns an empty store and a function that runs statements.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub async fn a_snapshot_that_does_not_fit_is_found<T, F>(make: impl AsyncFn() -> (T, F))
where
    T: Journal + Maintenance,
    F: AsyncFn(&'static str),
{
    let cases: &[(&'static str, bool, &str)] = &[
        ("UPDATE adjutant_snapshot SET v = v", true, ""),
        (
            "UPDATE adjutant_snapshot SET body = replace(body, '880', '881')",
            false,
            "event 20 is damaged",
        ),
        (
            "UPDATE adjutant_snapshot SET messages_from = 19",
            false,
            "event 20 is damaged",
        ),
        ("UPDATE adjutant_snapshot SET v = 9", false, ""),
        (
            "UPDATE adjutant_event SET body = replace(body, '\"input_tokens\":220', '\"input_tokens\":221') WHERE seq = 5",
            true,
            "the snapshot at event 20 is not what the events come to",
        ),
    ];
    for (statement, is_used, words) in cases {
        let (store, hand) = make().await;
        let key = conversation("anna", 1);
        for number in 1..=5 {
            turn_with(&store, &key, number, number == 4).await;
        }
        hand(statement).await;
        let read = newer(&store, &key, None).await;
        let expected = if *is_used { (20, 5) } else { (0, 25) };
        assert_eq!((read.after, read.events.len()), expected, "{statement}");
        assert_eq!(read.restorable.is_some(), *is_used, "{statement}");
        let findings = store.check().await.unwrap();
        let said = findings
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n");
        assert!(
            said.contains(words) && said.is_empty() == words.is_empty(),
            "{statement}: {said}"
        );
        if !is_used {
            // The next one takes its place.
            turn_with(&store, &key, 6, true).await;
            assert_eq!(newer(&store, &key, None).await.after, 30, "{statement}");
        }
    }
}
