use adjutant_core::port::{AcceptedInput, Journal};
use adjutant_core::{ConversationKey, Event, Recorded};

use super::fixture::*;

/// Appends three events for each of some turns.
async fn talk(
    store: &impl Journal,
    key: &ConversationKey,
    first: u64,
    turns: std::ops::RangeInclusive<u32>,
) {
    for (number, seq) in turns.zip((first..).step_by(3)) {
        let input = format!("i{number}");
        submit(store, key, &message(&input, 0, "go on")).await;
        let events = [
            started(number, &input),
            replied(number, 1),
            finished(number, "SUCCESS:RESPONSE_GIVEN"),
        ];
        append(store, key, seq, at(1), &events).await;
    }
}

fn places(events: &[Recorded]) -> Vec<u64> {
    events.iter().map(|recorded| recorded.seq).collect()
}

/// Turns are read from the end backwards, whole, and only as many as requested. Places stay the
/// same while the conversation grows.
pub async fn turns_are_read_from_the_end(store: &impl Journal) {
    let key = conversation("anna", 1);
    assert_eq!(
        store.load_turns(&key, None, 1).await.unwrap(),
        None,
        "there is no such conversation"
    );
    let input = message("i1", 0, "hello");
    submit(store, &key, &input).await;
    let nothing = store.load_turns(&key, None, 1).await.unwrap().unwrap();
    assert_eq!(
        (nothing.after, &nothing.events, &nothing.inbox),
        (0, &Vec::new(), &vec![input])
    );

    append(store, &key, 1, at(1), &[history_set()]).await;
    // Turn 1 is at 2 to 4, turn 2 at 5 to 7, turn 3 at 8 to 10.
    talk(store, &key, 2, 1..=3).await;
    for (before, turns, after, expected) in [
        (None, 1, 7, 8..=10),
        (None, 2, 4, 5..=10),
        (Some(8), 1, 4, 5..=7),
        (Some(8), 2, 1, 2..=7),
        // Inside of a turn: up to there.
        (Some(7), 1, 4, 5..=6),
        (Some(100), 1, 7, 8..=10),
        (Some(u64::MAX), 1, 7, 8..=10),
        // Fewer than were asked for: from the beginning.
        (None, 4, 0, 1..=10),
        (None, u32::MAX, 0, 1..=10),
        (Some(2), 1, 0, 1..=1),
    ] {
        let read = store
            .load_turns(&key, before, turns)
            .await
            .unwrap()
            .unwrap();
        let all = store.load(&key).await.unwrap().events;
        let case = format!("{turns} before {before:?}");
        assert_eq!(
            (read.after, places(&read.events)),
            (after, expected.collect()),
            "{case}"
        );
        assert!(
            read.events.iter().all(|event| all.contains(event)),
            "{case}"
        );
    }
    for before in [0, 1] {
        let read = store
            .load_turns(&key, Some(before), 1)
            .await
            .unwrap()
            .unwrap();
        assert_eq!((read.after, read.events), (0, Vec::new()));
    }

    // Appending moves no event, so a reader can continue where it stopped.
    let known = store
        .load_turns(&key, None, 1)
        .await
        .unwrap()
        .unwrap()
        .known();
    let page = store.load_turns(&key, Some(8), 1).await.unwrap();
    talk(store, &key, 11, 4..=4).await;
    assert_eq!(store.load_turns(&key, Some(8), 1).await.unwrap(), page);
    let newer = store.load_newer(&key, Some(known)).await.unwrap().unwrap();
    assert_eq!(
        (newer.after, places(&newer.events)),
        (10, (11..=13).collect())
    );

    // Each turn by its id, up to the next one.
    for (number, after, expected) in [(1, 1, 2..=4), (3, 7, 8..=10), (4, 10, 11..=13)] {
        let read = store.load_turn(&key, turn(number)).await.unwrap().unwrap();
        assert_eq!(
            (read.after, places(&read.events)),
            (after, expected.collect()),
            "turn {number}"
        );
    }
    assert_eq!(
        store.load_turn(&key, turn(9)).await.unwrap(),
        None,
        "there is no such turn"
    );
    append(store, &key, 14, at(1), &[history_set()]).await;
    assert_eq!(
        places(
            &store
                .load_turn(&key, turn(4))
                .await
                .unwrap()
                .unwrap()
                .events
        ),
        [11, 12, 13, 14]
    );

    let berts = ConversationKey {
        user: user("bert"),
        ..key
    };
    assert_eq!(
        store.load_turns(&berts, None, 1).await.unwrap(),
        None,
        "it is another user's"
    );
    assert_eq!(
        store.load_turn(&berts, turn(1)).await.unwrap(),
        None,
        "it is another user's"
    );
}

/// An event too large for its row is read with its turn.
pub async fn large_events_come_with_their_turn(store: &impl Journal) {
    let key = conversation("anna", 1);
    submit(store, &key, &message("i1", 0, "go on")).await;
    let long = call_finished_at_length(1, "c1", 100_000);
    let events: Vec<Event> = vec![
        started(1, "i1"),
        long,
        finished(1, "SUCCESS:RESPONSE_GIVEN"),
    ];
    let events = recorded(1, at(1), &events);
    store.append(&key, &events).await.unwrap();
    assert_eq!(
        store
            .load_turns(&key, None, 1)
            .await
            .unwrap()
            .unwrap()
            .events,
        events
    );
}

/// An input is found by its id, with the event that took it.
pub async fn an_input_is_found_by_its_id(store: &impl Journal) {
    let key = conversation("anna", 1);
    assert_eq!(store.find_input(&key, &input_id("i1")).await.unwrap(), None);
    submit(store, &key, &message("i1", 0, "hello")).await;
    assert_eq!(
        store.find_input(&key, &input_id("i1")).await.unwrap(),
        Some(AcceptedInput { taken_at: None })
    );
    append(store, &key, 1, at(1), &[history_set(), started(1, "i1")]).await;
    assert_eq!(
        store.find_input(&key, &input_id("i1")).await.unwrap(),
        Some(AcceptedInput { taken_at: Some(2) })
    );
    assert_eq!(store.find_input(&key, &input_id("i2")).await.unwrap(), None);
    let elsewhere = ConversationKey {
        user: user("bert"),
        ..key
    };
    assert_eq!(
        store.find_input(&elsewhere, &input_id("i1")).await.unwrap(),
        None,
        "it is another user's"
    );
}
