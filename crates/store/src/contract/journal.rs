use std::time::Duration;

use adjutant_core::port::{
    Claim, ConversationFilter, ConversationStore, Cursor, Deleted, Journal, Loaded, LogStore,
    StoreError,
};
use adjutant_core::{ConversationKey, DecisionFilter, Event, Input};

use super::sample::*;

/// Inputs are kept in the order they were accepted, each once, however often it is sent; also after
/// it was taken.
pub async fn inputs_wait_in_order_and_once(store: &impl Journal) {
    let key = conversation("anna", 1);
    assert_eq!(store.load(&key).await.unwrap(), Loaded::default());
    // Neither ids nor times are in order.
    let inputs = [
        message("z", 9, "first\n\"öäü\" 👋🏽"),
        cancel("m", 3),
        message("a", 5, ""),
    ];
    for input in inputs.iter().chain(&inputs) {
        store.submit(&key, input).await.unwrap();
    }
    assert_eq!(
        store.load(&key).await.unwrap(),
        Loaded {
            events: vec![],
            inbox: inputs.to_vec()
        }
    );

    store
        .append(&key, &recorded(1, at(10), &[started(1, "z")]))
        .await
        .unwrap();
    store.submit(&key, &inputs[0]).await.unwrap();
    assert_eq!(store.load(&key).await.unwrap().inbox, inputs[1..]);
}

/// The same id with another fingerprint is refused, also after the input was taken; without one it
/// is a repeat.
pub async fn an_id_of_another_request_is_refused(store: &impl Journal) {
    let key = conversation("anna", 1);
    let named = |print: Option<&str>| Input {
        fingerprint: print.map(str::to_owned),
        ..message("i1", 0, "drop the milk")
    };
    store.submit(&key, &named(Some("a"))).await.unwrap();
    assert_eq!(store.load(&key).await.unwrap().inbox, [named(Some("a"))]);
    assert_eq!(
        store.submit(&key, &named(Some("b"))).await,
        Err(StoreError::Reused)
    );
    store
        .append(&key, &recorded(1, at(10), &[started(1, "i1")]))
        .await
        .unwrap();
    assert_eq!(
        store.submit(&key, &named(Some("b"))).await,
        Err(StoreError::Reused)
    );
    for same in [Some("a"), None] {
        store.submit(&key, &named(same)).await.unwrap();
    }
    assert_eq!(store.load(&key).await.unwrap().inbox, []);
}

/// Appending anywhere but at the next free place is a conflict and writes nothing, nor does a
/// conversation that is not there have a free place.
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
    store.submit(&key, &input).await.unwrap();
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
    store
        .append(&key, &recorded(1, at(1), &first))
        .await
        .unwrap();
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
    store
        .append(&key, &recorded(3, at(2), &[replied(1, 2)]))
        .await
        .unwrap();
}

/// A step has one event of a kind; an append that holds a second one is refused as a whole, logs
/// and inbox included.
pub async fn a_step_has_one_event_of_a_kind(store: &(impl Journal + LogStore)) {
    let key = conversation("anna", 1);
    store
        .submit(&key, &message("i1", 0, "drop the milk"))
        .await
        .unwrap();
    store
        .submit(&key, &message("i2", 1, "and the bread"))
        .await
        .unwrap();
    store
        .append(
            &key,
            &recorded(
                1,
                at(2),
                &[started(1, "i1"), replied(1, 1), call_finished(1, "call_1")],
            ),
        )
        .await
        .unwrap();
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
    store
        .append(&key, &recorded(4, at(3), &events))
        .await
        .unwrap();
}

/// Every event comes back equal and as the very same JSON, whether appended alone or with others.
pub async fn every_kind_of_event_comes_back_as_it_was(store: &impl Journal) {
    let (alone, together) = (conversation("anna", 1), conversation("bert", 1));
    let events = every_kind();
    for key in [&alone, &together] {
        store
            .submit(key, &message("i1", 0, "drop the milk"))
            .await
            .unwrap();
    }
    for (seq, event) in (1..).zip(&events) {
        store
            .append(&alone, &recorded(seq, at(5), std::slice::from_ref(event)))
            .await
            .unwrap();
    }
    store
        .append(&together, &recorded(1, at(5), &events))
        .await
        .unwrap();
    let json = |events| serde_json::to_string(&events).unwrap();
    for key in [alone, together] {
        let loaded = store.load(&key).await.unwrap().events;
        assert_eq!(loaded, recorded(1, at(5), &events));
        assert_eq!(json(loaded), json(recorded(1, at(5), &events)));
    }
}

/// A body too large for a row comes back as it was, also beside small ones, twice the same, and
/// where a turn waits.
pub async fn large_bodies_come_back_as_they_were(store: &impl Journal) {
    let key = conversation("anna", 1);
    store
        .submit(&key, &message("i1", 0, "read it all"))
        .await
        .unwrap();
    let events = [
        started(1, "i1"),
        call_finished_at_length(1, "call_1", 600_000),
        call_finished(1, "call_2"),
        call_finished_at_length(1, "call_3", 1_000_000),
        parked(1, &["call_4"]),
    ];
    store
        .append(&key, &recorded(1, at(1), &events))
        .await
        .unwrap();
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
    store
        .submit(&elsewhere, &message("i1", 0, "read it all"))
        .await
        .unwrap();
    store
        .append(&elsewhere, &recorded(1, at(1), &events))
        .await
        .unwrap();
    assert_eq!(
        store.load(&elsewhere).await.unwrap().events,
        recorded(1, at(1), &events)
    );
}

/// The append that takes an input takes it out of the inbox; several events may take the same one.
pub async fn events_take_their_inputs(store: &impl Journal) {
    let key = conversation("anna", 1);
    let inputs = ["i1", "i2", "i3", "i4", "i5"].map(|id| message(id, 0, id));
    for input in &inputs {
        store.submit(&key, input).await.unwrap();
    }
    let left = async || store.load(&key).await.unwrap().inbox;
    store
        .append(
            &key,
            &recorded(1, at(1), &[started(1, "i1"), parked(1, &["a", "b"])]),
        )
        .await
        .unwrap();
    assert_eq!(left().await, inputs[1..]);
    store
        .append(&key, &recorded(3, at(2), &[unclear(1, "i3")]))
        .await
        .unwrap();
    assert_eq!(
        left().await,
        [inputs[1].clone(), inputs[3].clone(), inputs[4].clone()]
    );
    store
        .append(
            &key,
            &recorded(
                4,
                at(3),
                &[answered(1, "a", Some("i2")), answered(1, "b", Some("i2"))],
            ),
        )
        .await
        .unwrap();
    store
        .append(&key, &recorded(6, at(4), &[ignored("i5")]))
        .await
        .unwrap();
    assert_eq!(left().await, [inputs[3].clone()]);
}

/// Another user's conversation looks empty, cannot be appended to, claimed, renamed or deleted; the
/// same id is then a conversation of their own.
pub async fn conversations_belong_to_their_user(store: &(impl Journal + ConversationStore)) {
    let (annas, berts) = (conversation("anna", 1), conversation("bert", 1));
    store
        .submit(&annas, &message("i1", 0, "anna's secret"))
        .await
        .unwrap();
    store
        .append(&annas, &recorded(1, at(1), &[started(1, "i1")]))
        .await
        .unwrap();
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
    assert!(
        !store
            .claim(&berts, "b", std::time::Duration::from_secs(60))
            .await
            .unwrap()
            .is_held()
    );
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
    store.submit(&berts, &hello).await.unwrap();
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

/// Agents share a store and nothing in it: another agent's conversation is not there, and its work
/// is not found.
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
    store
        .submit(&ours, &message("i1", 0, "drop the milk"))
        .await
        .unwrap();
    store.submit(&ours, &cancel("i2", 1)).await.unwrap();
    store
        .append(&ours, &recorded(1, at(2), &waits))
        .await
        .unwrap();
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
    store
        .submit(&theirs, &message("i1", 5, "hello"))
        .await
        .unwrap();
    store
        .append(&theirs, &recorded(1, at(6), &[started(2, "i1")]))
        .await
        .unwrap();
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

/// Of writers that race for one place exactly one gets it.
pub async fn of_many_writers_one_wins(store: &impl Journal) {
    let key = conversation("anna", 1);
    store
        .submit(&key, &message("i1", 0, "drop the milk"))
        .await
        .unwrap();
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

/// The newest input comes first; the title is the first words until somebody renames it; deleting
/// leaves nothing, and what still runs cannot bring it back.
pub async fn conversations_are_listed_renamed_and_deleted(
    store: &(impl Journal + LogStore + ConversationStore),
) {
    let [first, second, third] = [1, 2, 3].map(|number| conversation("anna", number));
    let anna = &first.user;
    store
        .submit(&first, &message("i1", 10, "  Add a task:\n buy milk "))
        .await
        .unwrap();
    store.submit(&second, &cancel("i1", 20)).await.unwrap();
    store
        .submit(&third, &message("i1", 30, &"word ".repeat(50)))
        .await
        .unwrap();
    store
        .submit(&second, &message("i2", 40, "Hello"))
        .await
        .unwrap();
    // A late arrival with an old time does not make the conversation older.
    store
        .submit(&second, &message("i3", 5, "Hello again"))
        .await
        .unwrap();

    let listed = store
        .list(&agent(), anna, &ConversationFilter::newest(10))
        .await
        .unwrap();
    let ids: Vec<_> = listed.iter().map(|summary| summary.id).collect();
    assert_eq!(
        ids,
        [second.conversation, third.conversation, first.conversation]
    );
    assert_eq!(
        (
            listed[0].title.as_str(),
            listed[0].created_at,
            listed[0].updated_at
        ),
        // A greeting says nothing; what follows it does.
        ("Hello again", at(20), at(40))
    );
    assert_eq!(listed[2].title, "Add a task: buy milk");
    assert!(listed.iter().all(|summary| !summary.pending));
    assert_eq!(
        store.summary(&second).await.unwrap().as_ref(),
        Some(&listed[0])
    );
    let cut = &listed[1].title;
    assert!(
        cut.chars().count() <= 60 && cut.starts_with("word word") && cut.ends_with("word…"),
        "{cut:?}"
    );
    assert_eq!(
        store
            .list(&agent(), anna, &ConversationFilter::newest(2))
            .await
            .unwrap(),
        listed[..2]
    );
    assert_eq!(
        store
            .list(&agent(), anna, &ConversationFilter::newest(0))
            .await
            .unwrap(),
        []
    );

    // A single request of a client that keeps the conversation itself is found by its id, and in no
    // list.
    let request = ConversationKey {
        agent: agent(),
        user: anna.clone(),
        conversation: "00000000-0000-8000-8000-000000000001".parse().unwrap(),
    };
    store
        .submit(&request, &message("i1", 70, "hi"))
        .await
        .unwrap();
    assert_eq!(
        store
            .list(&agent(), anna, &ConversationFilter::newest(10))
            .await
            .unwrap(),
        listed
    );
    assert_eq!(
        store
            .summary(&request)
            .await
            .unwrap()
            .map(|summary| summary.id),
        Some(request.conversation)
    );

    // What is found for the title that it had is too late once somebody has renamed it.
    let before = store.summary(&second).await.unwrap().unwrap().title;
    assert!(store.retitle(&second, &before, "Found").await.unwrap());
    assert!(!store.summary(&second).await.unwrap().unwrap().named);
    assert!(store.rename(&second, "Found").await.unwrap());
    assert!(store.summary(&second).await.unwrap().unwrap().named);
    assert!(
        !store
            .retitle(&second, "Found", "Found again")
            .await
            .unwrap(),
        "a person chose what it was called"
    );
    assert!(store.rename(&second, "Greetings 👋🏽").await.unwrap());
    assert!(
        !store
            .retitle(&second, "Found", "Found again")
            .await
            .unwrap()
    );
    assert!(
        !store
            .retitle(&conversation("anna", 9), "", "x")
            .await
            .unwrap()
    );
    assert!(!store.rename(&conversation("anna", 9), "x").await.unwrap());
    store
        .submit(&second, &message("i4", 41, "And more"))
        .await
        .unwrap();
    assert_eq!(
        store
            .list(&agent(), anna, &ConversationFilter::newest(1))
            .await
            .unwrap()[0]
            .title,
        "Greetings 👋🏽"
    );

    store
        .append(
            &first,
            &recorded(1, at(50), &[started(1, "i1"), call_finished(1, "call_1")]),
        )
        .await
        .unwrap();
    let stands = async || {
        let summary = store.summary(&first).await.unwrap().unwrap();
        (summary.turns, summary.last_activity, summary.ended)
    };
    assert_eq!(stands().await, (1, at(50), false));
    store
        .append(&first, &recorded(3, at(51), &[Event::SessionEnded {}]))
        .await
        .unwrap();
    assert_eq!(stands().await, (1, at(51), true));
    // Whoever says something again opens it again, before anybody has taken that.
    store
        .submit(&first, &message("i2", 52, "One more thing"))
        .await
        .unwrap();
    assert_eq!(stands().await, (1, at(52), false));
    assert_eq!(store.delete(&first).await.unwrap(), Deleted::Yes);
    assert_eq!(
        store.delete(&first).await.unwrap(),
        Deleted::NoSuchConversation
    );
    assert_eq!(
        store
            .append(&first, &recorded(4, at(53), &[failed(1, 1)]))
            .await,
        Err(StoreError::Conflict)
    );
    assert_eq!(store.load(&first).await.unwrap(), Loaded::default());
    assert_eq!(
        store
            .decisions(anna, &DecisionFilter::default())
            .await
            .unwrap(),
        []
    );
    assert_eq!(store.tool_invocations(anna, turn(1)).await.unwrap(), []);
    assert_eq!(
        store
            .list(&agent(), anna, &ConversationFilter::newest(10))
            .await
            .unwrap()
            .len(),
        2
    );
    // The id, the input ids and the turn ids are as new.
    store
        .submit(&first, &message("i1", 60, "Once more"))
        .await
        .unwrap();
    store
        .append(&first, &recorded(1, at(61), &[started(1, "i1")]))
        .await
        .unwrap();
}

/// Page by page, each conversation is seen once, also if some are of one moment and new ones come
/// in between; a search looks for words in titles, whatever case they have.
pub async fn conversations_are_paged_and_searched(store: &(impl Journal + ConversationStore)) {
    let (anna, bert) = (user("anna"), user("bert"));
    // Number, seconds, words.
    let said = [
        (1, 10, "Buy milk"),
        (2, 20, "ÜBERWEISUNG an Erika"),
        (3, 20, "The weather"),
        (4, 20, "Milk again"),
        (5, 30, "100% sure_thing"),
    ];
    for (number, seconds, words) in said {
        store
            .submit(
                &conversation("anna", number),
                &message("i1", seconds, words),
            )
            .await
            .unwrap();
    }
    store
        .submit(&conversation("bert", 1), &message("i1", 0, "Bert's milk"))
        .await
        .unwrap();
    let read = async |filter: ConversationFilter| {
        let (mut seen, mut after, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = store
                .list(
                    &agent(),
                    &anna,
                    &ConversationFilter {
                        after,
                        ..filter.clone()
                    },
                )
                .await
                .unwrap();
            assert!(page.len() <= usize::try_from(filter.limit).unwrap());
            let Some(last) = page.last() else { break };
            after = Some(last.cursor());
            if pages == 0 && filter.search.is_none() {
                // It comes before all that is still to be read.
                store
                    .submit(&conversation("anna", 6), &message("i1", 60, "New milk"))
                    .await
                    .unwrap();
            }
            seen.extend(page.iter().map(|summary| summary.id));
            pages += 1;
        }
        seen
    };
    let numbers = |numbers: &[u32]| -> Vec<_> {
        numbers
            .iter()
            .map(|number| conversation("anna", *number).conversation)
            .collect()
    };
    assert_eq!(
        read(ConversationFilter::newest(2)).await,
        numbers(&[5, 4, 3, 2, 1])
    );
    let search = |words: &str| ConversationFilter {
        search: Some(words.to_owned()),
        ..ConversationFilter::newest(1)
    };
    assert_eq!(read(search("MILK")).await, numbers(&[6, 4, 1]));
    assert_eq!(read(search("überweisung")).await, numbers(&[2]));
    // What databases take for a wildcard is a character.
    assert_eq!(read(search("%")).await, numbers(&[5]));
    assert_eq!(read(search("_")).await, numbers(&[5]));
    assert_eq!(read(search("bert")).await, []);
    // Letters that are small or large in another alphabet: the sign of Kelvin is a k.
    store
        .rename(&conversation("anna", 3), "3 \u{212a} of weather")
        .await
        .unwrap();
    assert_eq!(read(search("3 K of")).await, numbers(&[3]));
    assert_eq!(read(search("\u{212a} of")).await, numbers(&[3]));
    let everything = Cursor {
        at: at(999),
        id: conversation("bert", 1).conversation.0,
    };
    let from_there = ConversationFilter {
        after: Some(everything),
        ..ConversationFilter::newest(9)
    };
    assert_eq!(
        store
            .list(&agent(), &bert, &from_there)
            .await
            .unwrap()
            .len(),
        1
    );
}

/// A conversation somebody alive works on is not deleted under their hands; one that waits for a
/// human is, with what waits.
pub async fn a_conversation_that_runs_is_not_deleted(store: &(impl Journal + ConversationStore)) {
    let key = conversation("anna", 1);
    store
        .submit(&key, &message("i1", 0, "drop the milk"))
        .await
        .unwrap();
    assert!(
        store
            .claim(&key, "a", std::time::Duration::from_secs(3600))
            .await
            .unwrap()
            .is_held()
    );
    assert_eq!(store.delete(&key).await.unwrap(), Deleted::Running);
    let berts = conversation("bert", 1);
    assert_eq!(
        store.delete(&berts).await.unwrap(),
        Deleted::NoSuchConversation
    );
    store
        .append(
            &key,
            &recorded(1, at(1), &[started(1, "i1"), parked(1, &["call_1"])]),
        )
        .await
        .unwrap();
    store.release(&key, "a".into()).await.unwrap();
    assert!(store.summary(&key).await.unwrap().unwrap().pending);
    assert_eq!(store.summary(&berts).await.unwrap(), None);
    assert_eq!(store.delete(&key).await.unwrap(), Deleted::Yes);
    assert_eq!(store.parked(&agent(), Some(&key.user)).await.unwrap(), []);
    assert_eq!(store.summary(&key).await.unwrap(), None);
}

/// What was confirmed is there again, byte for byte, in a store that is opened anew. Not for stores
/// in memory.
pub async fn everything_is_there_after_reopening<J: Journal + LogStore + ConversationStore>(
    store: J,
    reopen: impl AsyncFnOnce(J) -> J,
) {
    let key = conversation("anna", 1);
    store
        .submit(&key, &message("i1", 0, "drop the milk"))
        .await
        .unwrap();
    store.submit(&key, &message("i9", 1, "wait")).await.unwrap();
    store
        .append(&key, &recorded(1, at(2), &every_kind()))
        .await
        .unwrap();
    store
        .submit(&conversation("anna", 2), &message("i1", 0, "hello"))
        .await
        .unwrap();
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
            store.unsettled(&agent(), None).await.unwrap(),
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
    store
        .append(&key, &recorded(after.0.next_seq(), at(3), &[ignored("i9")]))
        .await
        .unwrap();
}
