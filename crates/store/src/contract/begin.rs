use std::time::Duration;

use adjutant_core::port::{
    Begin, Begun, Claim, Finished, Journal, Known, LogStore, Newer, StoreError,
};
use adjutant_core::{ConversationKey, Event, Input};

use super::fixture::*;

const LEASE: Duration = Duration::from_secs(3600);

fn begin<'a>(input: Option<&'a Input>, turn: &'a [Event], worker: &'a str) -> Begin<'a> {
    Begin {
        input,
        turn,
        first: None,
        worker: worker.into(),
        lease: LEASE,
        known: None,
        at: at(1),
    }
}

async fn newer(store: &impl Journal, key: &ConversationKey) -> Newer {
    store.load_newer(key, None).await.unwrap().unwrap()
}

fn known(newer: &Newer) -> Known {
    Known {
        seq: newer.events.last().map_or(newer.after, |last| last.seq),
        created_at: newer.created_at,
    }
}

/// Accepting an input, taking the lease and starting the turn are one commit. A second worker's
/// input waits, and is returned at the end of the turn instead of releasing the lease.
pub async fn a_turn_begins_and_ends_with_its_lease(store: &(impl Journal + LogStore)) {
    let key = conversation("anna", 1);
    assert_eq!(
        store.begin(&key, begin(None, &[], "a")).await.unwrap(),
        Begun::Nothing
    );
    let (first, second) = (
        message("i1", 0, "drop the milk"),
        message("i2", 3, "and the bread"),
    );
    let turn = [started(1, "i1")];
    let history = history_set();
    let begun = store
        .begin(
            &key,
            Begin {
                first: Some(&history),
                ..begin(Some(&first), &turn, "a")
            },
        )
        .await
        .unwrap();
    let events = recorded(1, at(1), &[history.clone(), started(1, "i1")]);
    let Begun::Started(new) = begun else {
        panic!("{begun:?}")
    };
    assert_eq!(
        (new.after, &new.events, &new.inbox),
        (0, &events, &Vec::new())
    );
    assert_eq!(
        store
            .decision(&key.user, self::turn(1))
            .await
            .unwrap()
            .unwrap()
            .outcome,
        None,
        "it is open"
    );
    assert_eq!(unsettled(store).await, [], "a worker has the lease");

    // Another worker's input is accepted and waits; the same input again is the same.
    for _ in 0..2 {
        let elsewhere = store
            .begin(&key, begin(Some(&second), &[started(2, "i2")], "b"))
            .await
            .unwrap();
        assert_eq!(elsewhere, Begun::Elsewhere);
    }
    let end = recorded(
        3,
        at(4),
        &[replied(1, 1), finished(1, "SUCCESS:RESPONSE_GIVEN")],
    );
    let kept = store.finish(&key, "a".into(), &end, None).await.unwrap();
    let Finished::Kept(inbox) = kept else {
        panic!("{kept:?}")
    };
    assert_eq!(
        inbox
            .iter()
            .map(|input| input.id.as_str())
            .collect::<Vec<_>>(),
        ["i2"]
    );
    assert_eq!(
        store.begin(&key, begin(None, &[], "b")).await.unwrap(),
        Begun::Elsewhere,
        "the claim was kept"
    );

    let rest = recorded(
        5,
        at(5),
        &[started(2, "i2"), finished(2, "SUCCESS:RESPONSE_GIVEN")],
    );
    assert_eq!(
        store.finish(&key, "a".into(), &rest, None).await.unwrap(),
        Finished::Released
    );
    let all = [events, end, rest].concat();
    assert_eq!(store.load(&key).await.unwrap().events, all);
    // No work is left and the lease is free: another worker gets it at once.
    let begun = store.begin(&key, begin(None, &[], "b")).await.unwrap();
    let Begun::Claimed {
        claim: Claim::Granted,
        newer,
    } = begun
    else {
        panic!("{begun:?}")
    };
    assert_eq!((newer.events, newer.inbox), (all, Vec::new()));
    assert_eq!(
        store.finish(&key, "b".into(), &[], None).await.unwrap(),
        Finished::Released
    );
}

/// A worker gets the events that it does not know yet, or all if those it knows are of another
/// conversation.
pub async fn known_events_are_not_read_again(
    store: &(impl Journal + adjutant_core::port::ConversationStore),
) {
    let key = conversation("anna", 1);
    let begun = store
        .begin(
            &key,
            begin(Some(&message("i1", 0, "hi")), &[started(1, "i1")], "a"),
        )
        .await
        .unwrap();
    let Begun::Started(first) = begun else {
        panic!("{begun:?}")
    };
    let end = recorded(2, at(2), &[finished(1, "SUCCESS:RESPONSE_GIVEN")]);
    store.finish(&key, "a".into(), &end, None).await.unwrap();

    let new = store
        .load_newer(&key, Some(known(&first)))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((new.after, new.events), (1, end.clone()));
    let all = newer(store, &key).await;
    assert_eq!((all.after, all.events.len()), (0, 2));
    let (input, turn) = (message("i2", 5, "again"), [started(2, "i2")]);
    let next = Begin {
        known: Some(known(&all)),
        ..begin(Some(&input), &turn, "a")
    };
    let begun = store.begin(&key, next).await.unwrap();
    let Begun::Started(second) = begun else {
        panic!("{begun:?}")
    };
    assert_eq!(
        (second.after, second.events),
        (2, recorded(3, at(1), &[started(2, "i2")]))
    );
    store
        .finish(
            &key,
            "a".into(),
            &recorded(4, at(6), &[finished(2, "SUCCESS:RESPONSE_GIVEN")]),
            None,
        )
        .await
        .unwrap();

    // A place that is not there, and the same conversation of another time.
    let beyond = Known {
        seq: 99,
        ..known(&all)
    };
    assert_eq!(
        store
            .load_newer(&key, Some(beyond))
            .await
            .unwrap()
            .unwrap()
            .after,
        0
    );
    store.delete(&key).await.unwrap();
    assert_eq!(
        store.load_newer(&key, Some(known(&all))).await.unwrap(),
        None
    );
    let (input, turn) = (message("i9", 100, "new"), [started(9, "i9")]);
    let again = Begin {
        known: Some(known(&first)),
        ..begin(Some(&input), &turn, "a")
    };
    let begun = store.begin(&key, again).await.unwrap();
    let Begun::Started(new) = begun else {
        panic!("{begun:?}")
    };
    assert_eq!(
        (new.after, new.events),
        (0, recorded(1, at(1), &[started(9, "i9")]))
    );
}

/// An input that is accepted with its turn waits for the worker that takes the lease next, with the
/// turn started or in the inbox. In both cases it is handled once. No turn is started while another
/// worker holds the lease.
pub async fn a_turn_may_begin_before_a_worker_has_the_lease(store: &(impl Journal + LogStore)) {
    let key = conversation("anna", 1);
    let (i1, i2) = (message("i1", 0, "one"), message("i2", 1, "two"));
    for _ in 0..2 {
        store
            .submit_with_turn(&key, &i1, &started(1, "i1"))
            .await
            .unwrap();
    }
    assert_eq!(unsettled(store).await, std::slice::from_ref(&key));
    // While other inputs wait, no turn is started.
    store
        .submit_with_turn(&key, &i2, &started(2, "i2"))
        .await
        .unwrap();
    let begun = store.begin(&key, begin(None, &[], "b")).await.unwrap();
    let Begun::Claimed {
        claim: Claim::Granted,
        newer,
    } = begun
    else {
        panic!("{begun:?}")
    };
    assert_eq!(
        store.load_newer(&key, None).await.unwrap().unwrap(),
        newer,
        "it is read with the claim"
    );
    let waiting: Vec<&str> = newer.inbox.iter().map(|input| input.id.as_str()).collect();
    let mut next = newer.after + 1 + newer.events.len() as u64;
    if newer.events.is_empty() {
        assert_eq!(waiting, ["i1", "i2"]);
        store
            .append_held(&key, "b".into(), &recorded(1, at(1), &[started(1, "i1")]))
            .await
            .unwrap();
        next += 1;
    } else {
        assert_eq!(
            (newer.events, waiting),
            (recorded(1, at(0), &[started(1, "i1")]), vec!["i2"])
        );
    }
    let end = recorded(
        next,
        at(2),
        &[replied(1, 1), finished(1, "SUCCESS:RESPONSE_GIVEN")],
    );
    let kept = store.finish(&key, "b".into(), &end, None).await.unwrap();
    let Finished::Kept(inbox) = kept else {
        panic!("{kept:?}")
    };
    assert_eq!(
        inbox
            .iter()
            .map(|input| input.id.as_str())
            .collect::<Vec<_>>(),
        ["i2"]
    );
    let decision = store.decision(&key.user, turn(1)).await.unwrap().unwrap();
    assert_eq!(
        decision
            .outcome
            .map(|outcome| outcome.to_string())
            .as_deref(),
        Some("SUCCESS:RESPONSE_GIVEN")
    );
    // While another worker holds the lease, the input is only accepted.
    let rest = recorded(
        next + 2,
        at(3),
        &[started(2, "i2"), finished(2, "SUCCESS:RESPONSE_GIVEN")],
    );
    store.append_held(&key, "b".into(), &rest).await.unwrap();
    store
        .submit_with_turn(&key, &message("i3", 4, "three"), &started(3, "i3"))
        .await
        .unwrap();
    let new = self::newer(store, &key).await;
    assert_eq!((new.events.len(), new.inbox.len()), (5, 1));
    store
        .append_held(&key, "b".into(), &recorded(6, at(5), &[started(3, "i3")]))
        .await
        .unwrap();
    // A repeat of an input that was answered starts nothing.
    let end = recorded(7, at(6), &[finished(3, "SUCCESS:RESPONSE_GIVEN")]);
    assert_eq!(
        store.finish(&key, "b".into(), &end, None).await.unwrap(),
        Finished::Released
    );
    store
        .submit_with_turn(&key, &i1, &started(4, "i1"))
        .await
        .unwrap();
    assert_eq!(unsettled(store).await, []);
}

/// A turn is not started while one is open, nor before earlier inputs, nor for a repeated input.
pub async fn a_turn_begins_only_where_no_other_work_waits(store: &impl Journal) {
    let (open, busy, again) = (
        conversation("anna", 1),
        conversation("anna", 2),
        conversation("anna", 3),
    );
    let (i1, i2) = (message("i1", 0, "one"), message("i2", 1, "two"));
    let claimed = |begun: Begun| match begun {
        Begun::Claimed { newer, .. } => newer,
        other => panic!("{other:?}"),
    };
    // A worker was lost in the middle of a turn.
    store
        .begin(
            &open,
            Begin {
                lease: Duration::ZERO,
                ..begin(Some(&i1), &[started(1, "i1")], "a")
            },
        )
        .await
        .unwrap();
    let begun = store
        .begin(&open, begin(Some(&i2), &[started(2, "i2")], "b"))
        .await
        .unwrap();
    assert!(
        matches!(
            begun,
            Begun::Claimed {
                claim: Claim::TakenOver,
                ..
            }
        ),
        "{begun:?}"
    );
    let new = claimed(begun);
    assert_eq!(
        (new.events, new.inbox.len()),
        (recorded(1, at(1), &[started(1, "i1")]), 1)
    );
    // Another input came first.
    submit(store, &busy, &i1).await;
    let new = claimed(
        store
            .begin(&busy, begin(Some(&i2), &[started(2, "i2")], "a"))
            .await
            .unwrap(),
    );
    assert_eq!((new.events.len(), new.inbox.len()), (0, 2));
    // A repeat of the input starts nothing new.
    store
        .begin(&again, begin(Some(&i1), &[started(3, "i1")], "a"))
        .await
        .unwrap();
    store
        .finish(
            &again,
            "a".into(),
            &recorded(2, at(2), &[finished(3, "SUCCESS:RESPONSE_GIVEN")]),
            None,
        )
        .await
        .unwrap();
    let new = claimed(
        store
            .begin(&again, begin(Some(&i1), &[started(4, "i1")], "a"))
            .await
            .unwrap(),
    );
    assert_eq!((new.events.len(), new.inbox), (2, Vec::new()));
    store.finish(&again, "a".into(), &[], None).await.unwrap();
    // Another request under the same id is refused, and takes no lease.
    let named = |print: &str| Input {
        fingerprint: Some(print.to_owned()),
        ..message("i5", 5, "five")
    };
    store
        .begin(&again, begin(Some(&named("x")), &[started(5, "i5")], "a"))
        .await
        .unwrap();
    store
        .finish(
            &again,
            "a".into(),
            &recorded(4, at(6), &[finished(5, "SUCCESS:RESPONSE_GIVEN")]),
            None,
        )
        .await
        .unwrap();
    let refused = store
        .begin(&again, begin(Some(&named("y")), &[started(6, "i5")], "a"))
        .await;
    assert_eq!(refused, Err(StoreError::Reused));
    assert!(matches!(
        store.begin(&again, begin(None, &[], "b")).await.unwrap(),
        Begun::Claimed { .. }
    ));
}

/// The lease of a turn that waits for a person is released unless an answer came meanwhile. An
/// input that is queued for the end of the turn is no answer.
pub async fn the_lease_of_a_waiting_turn_is_released_unless_an_answer_came(store: &impl Journal) {
    let key = conversation("anna", 1);
    let i1 = message("i1", 0, "drop the milk");
    store
        .begin(&key, begin(Some(&i1), &[started(1, "i1")], "a"))
        .await
        .unwrap();
    submit(store, &key, &message("i2", 1, "and then?")).await;
    let parked = recorded(2, at(2), &[parked(1, &["call_1"])]);
    assert!(
        matches!(store.finish(&key, "a".into(), &parked, None).await.unwrap(), Finished::Kept(inbox) if inbox.len() == 1)
    );
    append(store, &key, 3, at(3), &[queued(1, "i2")]).await;
    assert_eq!(
        store.finish(&key, "a".into(), &[], None).await.unwrap(),
        Finished::Released
    );
    // The answer comes: the queued input is there too, in order.
    let begun = store
        .begin(&key, begin(Some(&message("i3", 4, "yes")), &[], "b"))
        .await
        .unwrap();
    let Begun::Claimed {
        claim: Claim::Granted,
        newer,
    } = begun
    else {
        panic!("{begun:?}")
    };
    assert_eq!(
        newer
            .inbox
            .iter()
            .map(|input| input.id.as_str())
            .collect::<Vec<_>>(),
        ["i2", "i3"]
    );
    // At the end of the turn, the queued input is next.
    let end = [
        answered(1, "call_1", Some("i3")),
        finished(1, "SUCCESS:TASK_COMPLETED"),
    ];
    let kept = store
        .finish(&key, "b".into(), &recorded(4, at(5), &end), None)
        .await
        .unwrap();
    assert!(matches!(kept, Finished::Kept(inbox) if inbox[0].id.as_str() == "i2"));
    assert_eq!(
        store
            .finish(
                &key,
                "b".into(),
                &recorded(6, at(6), &[ignored("i2")]),
                None
            )
            .await
            .unwrap(),
        Finished::Released
    );
}
