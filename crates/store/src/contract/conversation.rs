use adjutant_core::port::{
    ConversationFilter, ConversationStore, Cursor, Deleted, Journal, Loaded, LogStore, StoreError,
};
use adjutant_core::{ConversationKey, DecisionFilter, Event};

use super::fixture::*;

/// The conversation with the newest input comes first. The title is the first message until a user
/// renames it. Deleting leaves nothing, and a worker that still runs cannot bring it back.
pub async fn conversations_are_listed_renamed_and_deleted(
    store: &(impl Journal + LogStore + ConversationStore),
) {
    let [first, second, third] = [1, 2, 3].map(|number| conversation("anna", number));
    let anna = &first.user;
    submit(
        store,
        &first,
        &message("i1", 10, "  Add a task:\n buy milk "),
    )
    .await;
    submit(store, &second, &cancel("i1", 20)).await;
    submit(store, &third, &message("i1", 30, &"word ".repeat(50))).await;
    submit(store, &second, &message("i2", 40, "Hello")).await;
    let greeted = store.summary(&second).await.unwrap().unwrap();
    assert_eq!(greeted.title, "Hello", "the words of the only message");
    // A late arrival with an old time does not make the conversation older.
    submit(store, &second, &message("i3", 5, "Hello again")).await;

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
        // A greeting makes no title; the message after it does.
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

    // The conversation of a single request is found by its id, and in no list.
    let request = ConversationKey {
        agent: agent(),
        user: anna.clone(),
        conversation: "00000000-0000-8000-8000-000000000001".parse().unwrap(),
    };
    submit(store, &request, &message("i1", 70, "hi")).await;
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

    // A generated title comes too late once a user has renamed the conversation.
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
    submit(store, &second, &message("i4", 41, "And more")).await;
    assert_eq!(
        store
            .list(&agent(), anna, &ConversationFilter::newest(1))
            .await
            .unwrap()[0]
            .title,
        "Greetings 👋🏽"
    );

    append(
        store,
        &first,
        1,
        at(50),
        &[started(1, "i1"), call_finished(1, "call_1")],
    )
    .await;
    let stands = async || {
        let summary = store.summary(&first).await.unwrap().unwrap();
        (summary.turns, summary.last_activity, summary.ended)
    };
    assert_eq!(stands().await, (1, at(50), false));
    append(store, &first, 3, at(51), &[Event::SessionEnded {}]).await;
    assert_eq!(stands().await, (1, at(51), true));
    // A new input opens the session again, before a turn has taken it.
    submit(store, &first, &message("i2", 52, "One more thing")).await;
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
    // The ids of the conversation, its inputs and turns can be used again.
    submit(store, &first, &message("i1", 60, "Once more")).await;
    append(store, &first, 1, at(61), &[started(1, "i1")]).await;
}

/// Paging returns each conversation once, even if some have the same time and new ones appear
/// meanwhile. A search ignores the case of the title.
pub async fn conversations_are_paged_and_searched(store: &(impl Journal + ConversationStore)) {
    let (anna, bert) = (user("anna"), user("bert"));
    // Number, seconds, message.
    let said = [
        (1, 10, "Buy milk"),
        (2, 20, "ÜBERWEISUNG an Erika"),
        (3, 20, "The weather"),
        (4, 20, "Milk again"),
        (5, 30, "100% sure_thing"),
    ];
    for (number, seconds, words) in said {
        submit(
            store,
            &conversation("anna", number),
            &message("i1", seconds, words),
        )
        .await;
    }
    submit(
        store,
        &conversation("bert", 1),
        &message("i1", 0, "Bert's milk"),
    )
    .await;
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
                // It comes before everything that is still to be read.
                submit(
                    store,
                    &conversation("anna", 6),
                    &message("i1", 60, "New milk"),
                )
                .await;
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
    // A wildcard of LIKE is an ordinary character.
    assert_eq!(read(search("%")).await, numbers(&[5]));
    assert_eq!(read(search("_")).await, numbers(&[5]));
    assert_eq!(read(search("bert")).await, []);
    // Case is compared beyond ASCII: the Kelvin sign is a k.
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

/// A conversation that a live worker runs is not deleted; one that waits for a person is, with its
/// pending calls.
pub async fn a_conversation_that_runs_is_not_deleted(store: &(impl Journal + ConversationStore)) {
    let key = conversation("anna", 1);
    submit(store, &key, &message("i1", 0, "drop the milk")).await;
    assert!(claims(store, &key, "a", std::time::Duration::from_secs(3600)).await);
    assert_eq!(store.delete(&key).await.unwrap(), Deleted::Running);
    let berts = conversation("bert", 1);
    assert_eq!(
        store.delete(&berts).await.unwrap(),
        Deleted::NoSuchConversation
    );
    append(
        store,
        &key,
        1,
        at(1),
        &[started(1, "i1"), parked(1, &["call_1"])],
    )
    .await;
    store.release(&key, "a".into()).await.unwrap();
    assert!(store.summary(&key).await.unwrap().unwrap().pending);
    assert_eq!(store.summary(&berts).await.unwrap(), None);
    assert_eq!(store.delete(&key).await.unwrap(), Deleted::Yes);
    assert_eq!(store.parked(&agent(), Some(&key.user)).await.unwrap(), []);
    assert_eq!(store.summary(&key).await.unwrap(), None);
}
