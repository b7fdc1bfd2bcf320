use std::time::Duration;

use adjutant_core::port::{
    Claim, ConversationFilter, ConversationStore, Deleted, Journal, Loaded, LogStore, StoreError,
};
use adjutant_core::{DecisionFilter, Input};

use super::fixture::*;

/// Inputs are kept in the order in which they were accepted, each once however often it is sent,
/// also after it was taken.
pub async fn inputs_wait_in_order_and_once(store: &impl Journal) {
    let key = conversation("anna", 1);
    assert_eq!(store.load(&key).await.unwrap(), Loaded::default());
    // Neither the ids nor the times are ordered.
    let inputs = [
        message("z", 9, "first\n\"öäü\" 👋🏽"),
        cancel("m", 3),
        message("a", 5, ""),
    ];
    for input in inputs.iter().chain(&inputs) {
        submit(store, &key, input).await;
    }
    assert_eq!(
        store.load(&key).await.unwrap(),
        Loaded {
            events: vec![],
            inbox: inputs.to_vec()
        }
    );

    append(store, &key, 1, at(10), &[started(1, "z")]).await;
    submit(store, &key, &inputs[0]).await;
    assert_eq!(store.load(&key).await.unwrap().inbox, inputs[1..]);
}

/// The same id with another fingerprint is refused, also after the input was taken. Without a
/// fingerprint it is a repeat.
pub async fn an_id_of_another_request_is_refused(store: &impl Journal) {
    let key = conversation("anna", 1);
    let named = |print: Option<&str>| Input {
        fingerprint: print.map(str::to_owned),
        ..message("i1", 0, "drop the milk")
    };
    submit(store, &key, &named(Some("a"))).await;
    assert_eq!(store.load(&key).await.unwrap().inbox, [named(Some("a"))]);
    assert_eq!(
        store.submit(&key, &named(Some("b"))).await,
        Err(StoreError::Reused)
    );
    append(store, &key, 1, at(10), &[started(1, "i1")]).await;
    assert_eq!(
        store.submit(&key, &named(Some("b"))).await,
        Err(StoreError::Reused)
    );
    for same in [Some("a"), None] {
        submit(store, &key, &named(same)).await;
    }
    assert_eq!(store.load(&key).await.unwrap().inbox, []);
}

/// Appending anywhere but at the next sequence number is a conflict and writes nothing. A
/// conversation that does not exist has no next sequence number.
pub async fn only_the_next_place_is_free(store: &impl Journal) {
    let key = conversation("anna", 1);
    assert_eq!(
        store
            .append(&key, &recorded(1, at(1), &[started(1, "i1")]))
            .await,
        Err(StoreError::Conflict)
    );
    assert_eq!(store.load(&key).await.unwrap(), Loaded::default());

    let input = message("i1", 0, "drop the milk");
    submit(store, &key, &input).await;
    for wrong in [0, 2, u64::MAX] {
        assert_eq!(
            store
                .append(&key, &recorded(wrong, at(1), &[started(1, "i1")]))
                .await,
            Err(StoreError::Conflict)
        );
        assert_eq!(
            store.load(&key).await.unwrap(),
            Loaded {
                events: vec![],
                inbox: vec![input.clone()]
            }
        );
    }
    let first = [started(1, "i1"), failed(1, 1)];
    append(store, &key, 1, at(1), &first).await;
    assert_eq!(
        store
            .append(&key, &recorded(1, at(2), &[replied(1, 2)]))
            .await,
        Err(StoreError::Conflict)
    );
    assert_eq!(
        store
            .append(&key, &recorded(2, at(2), &[replied(1, 2)]))
            .await,
        Err(StoreError::Conflict)
    );
    let loaded = store.load(&key).await.unwrap();
    assert_eq!(
        (loaded.next_seq(), loaded.events),
        (3, recorded(1, at(1), &first))
    );
    append(store, &key, 3, at(2), &[replied(1, 2)]).await;
}

/// A step has one event of each kind. An append with a second one is refused as a whole, with its
/// logs and inbox changes.
pub async fn a_step_has_one_event_of_a_kind(store: &(impl Journal + LogStore)) {
    let key = conversation("anna", 1);
    submit(store, &key, &message("i1", 0, "drop the milk")).await;
    submit(store, &key, &message("i2", 1, "and the bread")).await;
    append(
        store,
        &key,
        1,
        at(2),
        &[started(1, "i1"), replied(1, 1), call_finished(1, "call_1")],
    )
    .await;
    let (before, logged) = (
        store.load(&key).await.unwrap(),
        store.decision(&key.user, turn(1)).await.unwrap(),
    );
    for again in [started(1, "i2"), replied(1, 1), call_finished(1, "call_1")] {
        let events = [
            unclear(1, "i2"),
            replied(1, 2),
            call_finished(1, "call_2"),
            started(2, "i2"),
            again,
        ];
        assert_eq!(
            store.append(&key, &recorded(4, at(3), &events)).await,
            Err(StoreError::Conflict)
        );
        assert_eq!(store.load(&key).await.unwrap(), before);
        assert_eq!(store.decision(&key.user, turn(1)).await.unwrap(), logged);
        assert_eq!(store.decision(&key.user, turn(2)).await.unwrap(), None);
        assert_eq!(
            store
                .tool_invocations(&key.user, turn(1))
                .await
                .unwrap()
                .len(),
            1
        );
    }
    // The same step of another kind, and events without a step, may follow.
    let events = [
        in_doubt(1, "call_1"),
        call_started(1, "call_1"),
        call_started(1, "call_1"),
        parked(1, &[]),
    ];
    append(store, &key, 4, at(3), &events).await;
}

/// Every kind of event is read as equal and as exactly the same JSON, whether it was appended alone
/// or with others.
pub async fn every_kind_of_event_comes_back_as_it_was(store: &impl Journal) {
    let (alone, together) = (conversation("anna", 1), conversation("bert", 1));
    let events = every_kind();
    for key in [&alone, &together] {
        submit(store, key, &message("i1", 0, "drop the milk")).await;
    }
    for (seq, event) in (1..).zip(&events) {
        append(store, &alone, seq, at(5), std::slice::from_ref(event)).await;
    }
    append(store, &together, 1, at(5), &events).await;
    let json = |events| serde_json::to_string(&events).unwrap();
    for key in [alone, together] {
        let loaded = store.load(&key).await.unwrap().events;
        assert_eq!(loaded, recorded(1, at(5), &events));
        assert_eq!(json(loaded), json(recorded(1, at(5), &events)));
    }
}

/// A body too large for a row is read as it was written, also among small ones, twice in a
/// conversation, and where a turn waits.
pub async fn large_bodies_come_back_as_they_were(store: &impl Journal) {
    let key = conversation("anna", 1);
    submit(store, &key, &message("i1", 0, "read it all")).await;
    let events = [
        started(1, "i1"),
        call_finished_at_length(1, "call_1", 600_000),
        call_finished(1, "call_2"),
        call_finished_at_length(1, "call_3", 1_000_000),
        parked(1, &["call_4"]),
    ];
    append(store, &key, 1, at(1), &events).await;
    assert_eq!(
        store.load(&key).await.unwrap().events,
        recorded(1, at(1), &events)
    );
    assert_eq!(
        store.parked(&agent(), Some(&key.user)).await.unwrap()[0]
            .1
            .seq,
        5
    );
    let elsewhere = conversation("bert", 1);
    submit(store, &elsewhere, &message("i1", 0, "read it all")).await;
    append(store, &elsewhere, 1, at(1), &events).await;
    assert_eq!(
        store.load(&elsewhere).await.unwrap().events,
        recorded(1, at(1), &events)
    );
}

/// Appending an event that takes an input removes it from the inbox. Several events may take the
/// same input.
pub async fn events_take_their_inputs(store: &impl Journal) {
    let key = conversation("anna", 1);
    let inputs = ["i1", "i2", "i3", "i4", "i5"].map(|id| message(id, 0, id));
    for input in &inputs {
        submit(store, &key, input).await;
    }
    let left = async || store.load(&key).await.unwrap().inbox;
    append(
        store,
        &key,
        1,
        at(1),
        &[started(1, "i1"), parked(1, &["a", "b"])],
    )
    .await;
    assert_eq!(left().await, inputs[1..]);
    append(store, &key, 3, at(2), &[unclear(1, "i3")]).await;
    assert_eq!(
        left().await,
        [inputs[1].clone(), inputs[3].clone(), inputs[4].clone()]
    );
    append(
        store,
        &key,
        4,
        at(3),
        &[answered(1, "a", Some("i2")), answered(1, "b", Some("i2"))],
    )
    .await;
    append(store, &key, 6, at(4), &[ignored("i5")]).await;
    assert_eq!(left().await, [inputs[3].clone()]);
}

/// Another user's conversation looks empty, and cannot be appended to, leased, renamed or deleted.
/// The same id is a conversation of their own.
pub async fn conversations_belong_to_their_user(store: &(impl Journal + ConversationStore)) {
    let (annas, berts) = (conversation("anna", 1), conversation("bert", 1));
    submit(store, &annas, &message("i1", 0, "anna's secret")).await;
    append(store, &annas, 1, at(1), &[started(1, "i1")]).await;
    let before = store.load(&annas).await.unwrap();

    assert_eq!(store.load(&berts).await.unwrap(), Loaded::default());
    for seq in [1, 2] {
        assert_eq!(
            store
                .append(&berts, &recorded(seq, at(2), &[failed(1, 1)]))
                .await,
            Err(StoreError::Conflict)
        );
    }
    assert!(!claims(store, &berts, "b", std::time::Duration::from_secs(60)).await);
    assert!(!store.rename(&berts, "mine").await.unwrap());
    assert!(
        !store
            .retitle(&berts, "anna's secret", "mine")
            .await
            .unwrap()
    );
    assert_eq!(
        store.delete(&berts).await.unwrap(),
        Deleted::NoSuchConversation
    );
    assert_eq!(
        store
            .list(&agent(), &berts.user, &ConversationFilter::newest(10))
            .await
            .unwrap(),
        []
    );

    let hello = message("i1", 5, "bert's own");
    submit(store, &berts, &hello).await;
    assert_eq!(
        store.load(&berts).await.unwrap(),
        Loaded {
            events: vec![],
            inbox: vec![hello]
        }
    );
    assert_eq!(store.delete(&berts).await.unwrap(), Deleted::Yes);
    assert_eq!(store.load(&annas).await.unwrap(), before);
}

/// Agents share a database and nothing in it: another agent's conversations and work are invisible.
pub async fn conversations_belong_to_their_agent(
    store: &(impl Journal + LogStore + ConversationStore),
) {
    let (ours, theirs) = two_agents();
    let waits = [
        started(1, "i1"),
        replied(1, 1),
        checked(1, "call_1"),
        parked(1, &["call_1"]),
    ];
    submit(store, &ours, &message("i1", 0, "drop the milk")).await;
    submit(store, &ours, &cancel("i2", 1)).await;
    append(store, &ours, 1, at(2), &waits).await;
    let loaded = store.load(&ours).await.unwrap();

    let nothing = async || {
        assert_eq!(store.load(&theirs).await.unwrap(), Loaded::default());
        assert_eq!(store.unsettled(&theirs.agent, None).await.unwrap(), []);
        assert_eq!(
            store
                .expired(&theirs.agent, None, at(1_000_000))
                .await
                .unwrap(),
            []
        );
        assert_eq!(store.parked(&theirs.agent, None).await.unwrap(), []);
        assert_eq!(store.cancellation(&theirs).await.unwrap(), None);
        assert_eq!(store.summary(&theirs).await.unwrap(), None);
        let all = ConversationFilter::newest(9);
        assert_eq!(
            store.list(&theirs.agent, &theirs.user, &all).await.unwrap(),
            []
        );
    };
    nothing().await;
    assert_eq!(
        store
            .claim(&theirs, "w", Duration::from_secs(60))
            .await
            .unwrap(),
        Claim::Refused
    );
    assert!(!store.rename(&theirs, "mine").await.unwrap());
    assert_eq!(
        store.delete(&theirs).await.unwrap(),
        Deleted::NoSuchConversation
    );
    assert_eq!(
        store
            .append(
                &theirs,
                &recorded(5, at(3), &[finished(1, "SUCCESS:RESPONSE_GIVEN")])
            )
            .await,
        Err(StoreError::Conflict)
    );
    nothing().await;
    assert_eq!(store.load(&ours).await.unwrap(), loaded);
    assert_eq!(
        store.unsettled(&ours.agent, None).await.unwrap(),
        std::slice::from_ref(&ours)
    );

    // The same id of the same user with the other agent is another conversation.
    submit(store, &theirs, &message("i1", 5, "hello")).await;
    append(store, &theirs, 1, at(6), &[started(2, "i1")]).await;
    assert_eq!(store.load(&ours).await.unwrap(), loaded);
    assert_eq!(
        store.unsettled(&theirs.agent, None).await.unwrap(),
        std::slice::from_ref(&theirs)
    );
    assert_eq!(store.delete(&theirs).await.unwrap(), Deleted::Yes);
    assert_eq!(store.load(&ours).await.unwrap(), loaded);
    assert_eq!(
        store
            .decisions(&ours.user, &DecisionFilter::default())
            .await
            .unwrap()
            .len(),
        1
    );
}

/// Of writers that race for one sequence number exactly one gets it.
pub async fn of_many_writers_one_succeeds(store: &impl Journal) {
    let key = conversation("anna", 1);
    submit(store, &key, &message("i1", 0, "drop the milk")).await;
    for seq in 1..=20 {
        let number = u32::try_from(seq).unwrap();
        let event = recorded(seq, at(1), &[failed(1, number)]);
        let append = || store.append(&key, &event);
        let (a, b, c, d) = tokio::join!(append(), append(), append(), append());
        let results = [a, b, c, d];
        assert_eq!(
            results.iter().filter(|result| result.is_ok()).count(),
            1,
            "{results:?}"
        );
        assert!(
            results
                .iter()
                .all(|result| matches!(result, Ok(()) | Err(StoreError::Conflict))),
            "{results:?}"
        );
    }
    assert_eq!(store.load(&key).await.unwrap().next_seq(), 21);
}

/// Everything confirmed is there again, byte for byte, in a reopened store. Not for stores in
/// memory.
pub async fn all_rows_are_there_after_reopening<J: Journal + LogStore + ConversationStore>(
    store: J,
    reopen: impl AsyncFnOnce(J) -> J,
) {
    let key = conversation("anna", 1);
    submit(&store, &key, &message("i1", 0, "drop the milk")).await;
    submit(&store, &key, &message("i9", 1, "wait")).await;
    append(&store, &key, 1, at(2), &every_kind()).await;
    submit(&store, &conversation("anna", 2), &message("i1", 0, "hello")).await;
    let all = async |store: &J| {
        (
            store.load(&key).await.unwrap(),
            store
                .list(&agent(), &key.user, &ConversationFilter::newest(10))
                .await
                .unwrap(),
            store
                .decisions(&key.user, &DecisionFilter::default())
                .await
                .unwrap(),
            store.tool_invocations(&key.user, turn(1)).await.unwrap(),
            unsettled(store).await,
        )
    };
    let before = all(&store).await;
    let store = reopen(store).await;
    let after = all(&store).await;
    assert_eq!(after, before);
    let json = |events| serde_json::to_string(events).unwrap();
    assert_eq!(
        json(&after.0.events),
        json(&recorded(1, at(2), &every_kind()))
    );
    append(&store, &key, after.0.next_seq(), at(3), &[ignored("i9")]).await;
}
