use std::time::Duration;

use adjutant_core::port::{
    Beat, Begin, Begun, Change, Claim, Due, Finished, Journal, Recipients, RelayItem, Running,
    StoreError, Take, Taken, WorkPlace, Worker,
};
use adjutant_core::{AgentName, ConversationKey, Event, Input, UserId};

use super::fixture::*;

const LONG: Duration = Duration::from_secs(3600);

/// A lease excludes other workers until it is released or expires; its holder may renew it.
pub async fn leases_exclude_until_released_or_expired(store: &impl Journal) {
    let key = conversation("anna", 1);
    assert!(
        !claims(store, &key, "a", LONG).await,
        "there is nothing to claim"
    );
    store.release(&key, "a".into()).await.unwrap();

    submit(store, &key, &message("i1", 0, "hello")).await;
    assert!(claims(store, &key, "a", LONG).await);
    assert!(!claims(store, &key, "b", LONG).await);
    assert!(claims(store, &key, "a", LONG).await);
    // A heartbeat extends the worker's own lease only.
    assert!(store.renew(&key, "a".into(), LONG).await.unwrap());
    assert!(!store.renew(&key, "b".into(), LONG).await.unwrap());
    // Another worker's lease cannot be released.
    store.release(&key, "b".into()).await.unwrap();
    assert!(!claims(store, &key, "b", LONG).await);
    store.release(&key, "a".into()).await.unwrap();
    // A renewal after the release takes no lease.
    assert!(!store.renew(&key, "a".into(), LONG).await.unwrap());
    assert!(claims(store, &key, "b", LONG).await);

    assert!(claims(store, &key, "b", Duration::ZERO).await);
    assert!(claims(store, &key, "a", Duration::MAX).await);
    assert!(!claims(store, &key, "b", LONG).await);
    // Writers are excluded by the journal, not by leases.
    append(store, &key, 1, at(1), &[started(1, "i1")]).await;
}

/// The lease of a dead worker is free at once. Only for stores whose workers are on one machine.
/// `dead`: its worker id.
pub async fn a_dead_workers_lease_is_free_at_once(store: &impl Journal, dead: &str) {
    let key = conversation("anna", 1);
    submit(store, &key, &message("i1", 0, "hello")).await;
    assert!(claims(store, &key, dead, LONG).await);
    assert_eq!(unsettled(store).await, std::slice::from_ref(&key));
    let taken = take(store, crate::worker_id(), Due::Unsettled, None, None, 9).await;
    assert_eq!(keys(&taken), [(key.clone(), Claim::TakenOver)]);
    assert!(claims(store, &key, crate::worker_id(), LONG).await);
    assert_eq!(unsettled(store).await, []);
    assert!(!claims(store, &key, "another", LONG).await);
}

/// A conversation has work if an input was not taken, or a turn neither ended nor waits. It is
/// found for its user and for all users, unless it is leased.
pub async fn work_is_found_until_it_is_settled(store: &impl Journal) {
    let (key, other) = (conversation("anna", 1), conversation("bert", 2));
    check_work(store, &key, false, false).await;
    submit(store, &key, &message("i1", 0, "drop the milk")).await;
    check_work(store, &key, true, false).await;

    submit(store, &other, &message("i1", 5, "hello")).await;
    assert_eq!(unsettled(store).await, [key.clone(), other.clone()]);
    assert!(claims(store, &key, "a", LONG).await);
    assert_eq!(unsettled(store).await, std::slice::from_ref(&other));
    append(store, &other, 1, at(6), &[ignored("i1")]).await;
    store.release(&key, "a".into()).await.unwrap();
    assert_eq!(unsettled(store).await, std::slice::from_ref(&key));

    // A whole turn, event by event: (event, has work, waits).
    let steps = [
        (started(1, "i1"), true, false),
        (replied(1, 1), true, false),
        (checked(1, "call_1"), true, false),
        (parked(1, &["call_1"]), false, true),
    ];
    follow(store, &key, 1, &steps).await;
    submit(store, &key, &message("i2", 10, "hm")).await;
    check_work(store, &key, true, true).await;
    follow(store, &key, 5, &[(unclear(1, "i2"), false, true)]).await;
    submit(store, &key, &message("i3", 11, "yes")).await;
    check_work(store, &key, true, true).await;
    let steps = [
        (answered(1, "call_1", Some("i3")), true, false),
        (call_started(1, "call_1"), true, false),
        (call_finished(1, "call_1"), true, false),
        (failed(1, 2), true, false),
        (finished(1, "SUCCESS:TASK_COMPLETED"), false, false),
    ];
    follow(store, &key, 6, &steps).await;

    submit(store, &key, &cancel("i4", 20)).await;
    check_work(store, &key, true, false).await;
    follow(store, &key, 11, &[(ignored("i4"), false, false)]).await;
}

/// A turn with several pending calls waits for all answers. It also stops waiting when it parks
/// again, times out or ends. Waiting turns are listed oldest first.
pub async fn a_turn_waits_until_its_last_call_is_answered(store: &impl Journal) {
    let key = conversation("anna", 1);
    for id in ["i1", "i2"] {
        submit(store, &key, &message(id, 0, id)).await;
    }
    let steps = [
        (started(1, "i1"), true, false),
        (parked(1, &["a", "b"]), true, true), // i2 is not taken yet
        (answered(1, "a", Some("i2")), false, true),
        (call_started(1, "a"), false, true),
        (call_finished(1, "a"), false, true),
        (parked(1, &["b"]), false, true),
        (answered(1, "b", None), true, false),
        (parked(1, &["c"]), false, true),
        (finished(1, "CANCELLED:BY_USER"), false, false),
    ];
    follow(store, &key, 1, &steps).await;

    let (later, earlier) = (conversation("anna", 2), conversation("anna", 3));
    for (key, seconds) in [(&later, 9), (&earlier, 8)] {
        submit(store, key, &message("i1", 0, "drop the milk")).await;
        let number = u32::try_from(seconds).unwrap();
        append(
            store,
            key,
            1,
            at(seconds),
            &[started(number, "i1"), parked(number, &["a"])],
        )
        .await;
    }
    let waiting = store.parked(&agent(), Some(&key.user)).await.unwrap();
    assert_eq!(
        waiting,
        [
            (earlier, recorded(2, at(8), &[parked(8, &["a"])]).remove(0)),
            (later, recorded(2, at(9), &[parked(9, &["a"])]).remove(0)),
        ]
    );
}

/// A parked turn is found once its first pending call has expired, for its user and for all users,
/// until it is answered, unless a live worker holds the lease.
pub async fn expired_calls_are_found(store: &impl Journal) {
    let key = conversation("anna", 1);
    for id in ["i1", "i2"] {
        submit(store, &key, &message(id, 0, id)).await;
    }
    let over = async |user: Option<&UserId>, seconds| {
        store.expired(&agent(), user, at(seconds)).await.unwrap()
    };
    // Calls of the fixture expire at 60.
    append(
        store,
        &key,
        1,
        at(1),
        &[started(1, "i1"), parked(1, &["a", "b"])],
    )
    .await;
    assert_eq!(over(None, 59).await, []);
    assert_eq!(over(None, 60).await, std::slice::from_ref(&key));
    assert_eq!(
        over(Some(&key.user), 1000).await,
        std::slice::from_ref(&key)
    );
    assert_eq!(over(Some(&user("stranger")), 1000).await, []);
    assert!(claims(store, &key, "a", LONG).await);
    assert_eq!(over(None, 60).await, []);
    store.release(&key, "a".into()).await.unwrap();

    append(store, &key, 3, at(2), &[answered(1, "a", Some("i2"))]).await;
    assert_eq!(over(None, 60).await, std::slice::from_ref(&key));
    append(store, &key, 4, at(3), &[answered(1, "b", None)]).await;
    assert_eq!(over(None, 1000).await, []);

    // A call in doubt waits and expires like a question.
    let events = [asked_about(1, "b", 1), parked(1, &["b"])];
    append(store, &key, 5, at(4), &events).await;
    assert_eq!(over(None, 60).await, std::slice::from_ref(&key));
    check_work(store, &key, false, true).await;
    append(store, &key, 7, at(5), &[resolved(1, "b", 1, None)]).await;
    assert_eq!(over(None, 1000).await, []);
    check_work(store, &key, true, false).await;
    let again = [parked(1, &["b"]), finished(1, "CANCELLED:BY_USER")];
    append(store, &key, 8, at(6), &again).await;
    assert_eq!(over(None, 1000).await, []);
}

/// Takes work of the fixture's agent.
async fn take(
    store: &impl Journal,
    worker: &str,
    due: Due,
    user: Option<&UserId>,
    after: Option<WorkPlace>,
    limit: usize,
) -> Vec<Taken> {
    let agent = agent();
    store
        .take(Take {
            agent: &agent,
            user,
            due,
            worker: worker.into(),
            lease: LONG,
            after,
            limit,
        })
        .await
        .unwrap()
}

fn keys(taken: &[Taken]) -> Vec<(ConversationKey, Claim)> {
    taken
        .iter()
        .map(|taken| (taken.key.clone(), taken.claim))
        .collect()
}

/// Work is leased when it is taken: the longest waiting first, up to the limit, without what live
/// workers hold, and only after the place given.
pub async fn work_is_taken_in_order_and_once(store: &impl Journal) {
    let (first, second, third) = (
        conversation("anna", 1),
        conversation("bert", 2),
        conversation("anna", 3),
    );
    for (key, seconds) in [(&third, 9), (&first, 1), (&second, 5)] {
        submit(store, key, &message("i1", seconds, "hello")).await;
    }
    let other = AgentName::new("other").unwrap();
    let theirs = Take {
        agent: &other,
        user: None,
        due: Due::Unsettled,
        worker: "a".into(),
        lease: LONG,
        after: None,
        limit: 9,
    };
    assert_eq!(store.take(theirs).await.unwrap(), []);
    let due = Due::Unsettled;
    assert_eq!(
        take(store, "a", Due::Expired(at(1_000_000)), None, None, 9).await,
        []
    );
    assert_eq!(
        take(store, "a", due, Some(&user("stranger")), None, 9).await,
        []
    );

    let taken = take(store, "a", due, None, None, 2).await;
    assert_eq!(
        keys(&taken),
        [
            (first.clone(), Claim::Granted),
            (second.clone(), Claim::Granted)
        ]
    );
    assert!(taken[0].place < taken[1].place);
    // It is leased against every other worker.
    assert!(!claims(store, &first, "b", LONG).await);
    assert_eq!(unsettled(store).await, std::slice::from_ref(&third));
    assert!(store.renew(&first, "a".into(), LONG).await.unwrap());
    let rest = take(store, "b", due, None, None, 9).await;
    assert_eq!(keys(&rest), [(third.clone(), Claim::Granted)]);
    assert_eq!(take(store, "b", due, None, None, 9).await, []);
    // A worker does not take what it holds.
    assert_eq!(take(store, "a", due, None, None, 9).await, []);

    // Released work can be taken again, but not by a request that continues after its place.
    store.release(&first, "a".into()).await.unwrap();
    assert_eq!(
        take(store, "b", due, None, Some(taken[0].place), 9).await,
        []
    );
    assert_eq!(take(store, "b", due, Some(&second.user), None, 9).await, []);
    let again = take(store, "b", due, Some(&first.user), None, 9).await;
    assert_eq!(keys(&again), [(first.clone(), Claim::Granted)]);
    assert_eq!(again[0].place, taken[0].place);

    // An expired lease is taken over, unless it was the worker's own.
    for key in [&first, &third] {
        assert!(claims(store, key, "b", Duration::ZERO).await);
    }
    let over = take(store, "b", due, None, None, 1).await;
    assert_eq!(keys(&over), [(first.clone(), Claim::Granted)]);
    let over = take(store, "c", due, None, None, 9).await;
    assert_eq!(keys(&over), [(third.clone(), Claim::TakenOver)]);

    append(store, &first, 1, at(10), &[ignored("i1")]).await;
    store.release(&first, "b".into()).await.unwrap();
    assert_eq!(
        take(store, "c", due, None, None, 9).await,
        [],
        "nothing is to be done"
    );
}

/// A turn that waits for a person is taken once its first pending call has expired.
pub async fn expired_calls_are_taken(store: &impl Journal) {
    let key = conversation("anna", 1);
    submit(store, &key, &message("i1", 0, "drop the milk")).await;
    // Calls of the fixture expire at 60.
    append(
        store,
        &key,
        1,
        at(1),
        &[started(1, "i1"), parked(1, &["a", "b"])],
    )
    .await;
    let due = |seconds| Due::Expired(at(seconds));
    assert_eq!(take(store, "a", Due::Unsettled, None, None, 9).await, []);
    assert_eq!(take(store, "a", due(59), None, None, 9).await, []);
    assert_eq!(
        take(store, "a", due(60), Some(&user("stranger")), None, 9).await,
        []
    );
    let taken = take(store, "a", due(60), Some(&key.user), None, 9).await;
    assert_eq!(keys(&taken), [(key.clone(), Claim::Granted)]);
    assert_eq!(take(store, "b", due(60), None, None, 9).await, []);
    assert_eq!(store.expired(&agent(), None, at(60)).await.unwrap(), []);
    store.release(&key, "a".into()).await.unwrap();
    assert_eq!(
        take(store, "b", due(60), None, Some(taken[0].place), 9).await,
        []
    );
    let events = [answered(1, "a", None), answered(1, "b", None)];
    append(store, &key, 3, at(3), &events).await;
    assert_eq!(take(store, "b", due(1000), None, None, 9).await, []);
}

/// However many workers request work concurrently, each conversation is leased to one of them.
pub async fn of_many_takers_one_gets_each(store: &impl Journal) {
    const CONVERSATIONS: u32 = 40;
    for number in 0..CONVERSATIONS {
        let key = conversation("anna", number);
        submit(store, &key, &message("i1", number.into(), "hello")).await;
    }
    let taker = |worker: &'static str| async move {
        let mut all = Vec::new();
        loop {
            let taken = take(store, worker, Due::Unsettled, None, None, 3).await;
            if taken.is_empty() {
                return all;
            }
            assert!(taken.len() <= 3);
            all.extend(taken.into_iter().map(|taken| taken.key));
        }
    };
    let (a, b, c, d) = tokio::join!(taker("a"), taker("b"), taker("c"), taker("d"));
    let mut all = [a, b, c, d].concat();
    all.sort_by_key(|key| key.conversation);
    let expected: Vec<_> = (0..CONVERSATIONS)
        .map(|number| conversation("anna", number))
        .collect();
    assert_eq!(all, expected);
}

/// A cancellation is seen until it is taken, in order, and only in its conversation.
pub async fn a_cancellation_is_seen_until_it_is_taken(store: &impl Journal) {
    let key = conversation("anna", 1);
    assert_eq!(store.cancellation(&key).await.unwrap(), None);
    submit(store, &key, &message("i1", 0, "cancel")).await;
    append(store, &key, 1, at(1), &[started(1, "i1")]).await;
    assert_eq!(store.cancellation(&key).await.unwrap(), None);
    // Neither the ids nor the times are ordered.
    for (id, seconds) in [("z", 9), ("a", 5)] {
        submit(store, &key, &cancel(id, seconds)).await;
    }
    let berts = conversation("bert", 1);
    let seen =
        async |key: &ConversationKey| store.cancellation(key).await.unwrap().map(String::from);
    assert_eq!(seen(&key).await.as_deref(), Some("z"));
    assert_eq!(seen(&berts).await, None);
    append(store, &key, 2, at(6), &[ignored("z")]).await;
    assert_eq!(seen(&key).await.as_deref(), Some("a"));
    append(store, &key, 3, at(7), &[ignored("a")]).await;
    assert_eq!(seen(&key).await, None);
}

/// Subscribers are notified of inputs that come while a worker holds the lease, and of its end.
/// Without a lease there are no notifications.
pub async fn subscribers_receive_changes(store: &impl Journal) {
    let key = conversation("anna", 1);
    let mut changes = store.changes();
    submit(store, &key, &message("i1", 0, "hello")).await;
    let claimed = store.begin(&key, begin("w1", None)).await.unwrap();
    assert!(matches!(claimed, Begun::Claimed { .. }), "{claimed:?}");
    submit(store, &key, &message("i2", 1, "and more")).await;
    assert_eq!(changes.next().await, Some(Change::Input(key.clone())));
    let third = message("i3", 2, "from elsewhere");
    assert_eq!(
        store.begin(&key, begin("w2", Some(&third))).await.unwrap(),
        Begun::Elsewhere
    );
    assert_eq!(changes.next().await, Some(Change::Input(key.clone())));
    store.release(&key, "w1".into()).await.unwrap();
    assert_eq!(changes.next().await, Some(Change::Free(key.clone())));
    // A later subscriber gets only later changes.
    let mut later = store.changes();
    let claimed = store.begin(&key, begin("w2", None)).await.unwrap();
    assert!(matches!(claimed, Begun::Claimed { .. }), "{claimed:?}");
    let ignored = ["i1", "i2", "i3"].map(ignored);
    let finished = store
        .finish(&key, "w2".into(), &recorded(1, at(3), &ignored), None)
        .await
        .unwrap();
    assert_eq!(finished, Finished::Released);
    for changes in [&mut changes, &mut later] {
        assert_eq!(changes.next().await, Some(Change::Free(key.clone())));
    }
}

/// A request of a worker that starts no turn.
fn begin<'a>(worker: &'a str, input: Option<&'a Input>) -> Begin<'a> {
    let lease = Duration::from_secs(60);
    Begin {
        input,
        turn: &[],
        first: None,
        worker: worker.into(),
        lease,
        known: None,
        at: at(0),
    }
}

/// Writes through one of two stores on one database are announced through the other.
pub async fn changes_are_told_to_other_processes(one: &impl Journal, two: &impl Journal) {
    let key = conversation("anna", 1);
    let mut at_one = one.changes();
    one.submit(&key, &message("i1", 0, "hello")).await.unwrap();
    let claimed = one.begin(&key, begin("w1", None)).await.unwrap();
    assert!(matches!(claimed, Begun::Claimed { .. }), "{claimed:?}");
    let second = message("i2", 1, "from elsewhere");
    assert_eq!(
        two.begin(&key, begin("w2", Some(&second))).await.unwrap(),
        Begun::Elsewhere
    );
    assert_eq!(at_one.next().await, Some(Change::Input(key.clone())));
    let mut at_two = two.changes();
    one.release(&key, "w1".into()).await.unwrap();
    // The notification of the input may come before that of the released lease.
    while at_two.next().await.unwrap() != Change::Free(key.clone()) {}
}

/// A heartbeat extends all leases that the worker took in its epoch, and returns them. One that
/// comes too late finds the epoch over; its leases can be taken by others, and the worker's writes
/// are refused.
pub async fn a_heartbeat_extends_all_leases_of_its_epoch(store: &impl Journal) {
    let (first, second) = (conversation("anna", 1), conversation("bert", 2));
    let of = |epoch| Worker { id: "w1", epoch };
    let beat = async |epoch, lease, is_first| {
        let beat = Beat {
            agent: &agent(),
            worker: of(epoch),
            lease,
            is_first,
        };
        store.beat(beat).await.unwrap()
    };
    for key in [&first, &second] {
        submit(store, key, &message("i1", 0, "hello")).await;
        // Without a heartbeat the lease ends after this time.
        let begin = Begin {
            worker: of(7),
            lease: Duration::ZERO,
            ..begin("", None)
        };
        let claimed = store.begin(key, begin).await.unwrap();
        assert!(
            matches!(
                claimed,
                Begun::Claimed {
                    claim: Claim::Granted,
                    ..
                }
            ),
            "{claimed:?}"
        );
    }
    assert_eq!(unsettled(store).await.len(), 2);
    let mut claimed = beat(7, LONG, true).await.unwrap();
    claimed.sort_by_key(|running| running.key.conversation);
    let running = |key: &ConversationKey| Running {
        key: key.clone(),
        has_inputs: true,
    };
    assert_eq!(claimed, [running(&first), running(&second)]);
    assert_eq!(unsettled(store).await, []);
    assert_eq!(take(store, "w2", Due::Unsettled, None, None, 9).await, []);
    assert_eq!(
        store.claim(&first, "w2", LONG).await.unwrap(),
        Claim::Refused
    );
    assert_eq!(
        beat(7, LONG, false).await.map(|claimed| claimed.len()),
        Some(2)
    );
    // The answer to the first heartbeat was lost, so it is repeated.
    assert_eq!(
        beat(7, LONG, true).await.map(|claimed| claimed.len()),
        Some(2)
    );
    // Another epoch of the worker has no lease, and an epoch cannot begin with its second
    // heartbeat.
    assert_eq!(beat(8, LONG, true).await, Some(Vec::new()));
    assert_eq!(beat(9, LONG, false).await, None);
    let taken = recorded(1, at(1), &[ignored("i1")]);
    assert_eq!(
        store.append_held(&first, of(8).into(), &taken).await,
        Err(StoreError::Conflict)
    );
    assert_eq!(
        store.finish(&first, of(8).into(), &taken, None).await,
        Err(StoreError::Conflict)
    );
    assert!(!store.renew(&first, of(8), LONG).await.unwrap());
    store
        .append_held(&first, of(7).into(), &taken)
        .await
        .unwrap();
    // The lease of its last heartbeat is over at once.
    assert!(beat(7, Duration::ZERO, false).await.is_some());
    assert_eq!(beat(7, LONG, false).await, None);
    assert_eq!(
        store.claim(&second, "w2", LONG).await.unwrap(),
        Claim::TakenOver
    );
    assert_eq!(
        store.append_held(&second, of(7).into(), &taken).await,
        Err(StoreError::Conflict)
    );
    assert!(!store.renew(&second, of(7), LONG).await.unwrap());
}

/// Appends events one after the other, checking after each.
async fn follow(
    store: &impl Journal,
    key: &ConversationKey,
    first: u64,
    steps: &[(Event, bool, bool)],
) {
    for (seq, (event, work, waits)) in (first..).zip(steps) {
        append(store, key, seq, at(50), std::slice::from_ref(event)).await;
        check_work(store, key, *work, *waits).await;
    }
}

async fn check_work(store: &impl Journal, key: &ConversationKey, work: bool, waits: bool) {
    let events = store.load(key).await.unwrap().events;
    let last = events.last().map(|recorded| recorded.event.kind());
    let expected: &[ConversationKey] = if work { std::slice::from_ref(key) } else { &[] };
    assert_eq!(unsettled(store).await, expected, "after {last:?}");
    assert_eq!(
        store.unsettled(&agent(), Some(&key.user)).await.unwrap(),
        expected,
        "after {last:?}"
    );
    let parked = events
        .iter()
        .rev()
        .find(|recorded| recorded.event.kind() == "turn_parked");
    let expected: Vec<_> = parked
        .filter(|_| waits)
        .map(|recorded| (key.clone(), recorded.clone()))
        .into_iter()
        .collect();
    assert_eq!(
        store.parked(&agent(), Some(&key.user)).await.unwrap(),
        expected,
        "after {last:?}"
    );
    let stranger = user("stranger");
    assert_eq!(
        store.unsettled(&agent(), Some(&stranger)).await.unwrap(),
        []
    );
    assert_eq!(store.parked(&agent(), Some(&stranger)).await.unwrap(), []);
}

/// A message sent through one of two stores on one database arrives through the other, byte for
/// byte and in order, at all or at the one it is for, and not at its sender.
pub async fn relayed_messages_reach_other_processes(one: &impl Journal, two: &impl Journal) {
    let (one, two) = (one.relay(), two.relay());
    let (mut at_one, mut at_two) = (one.subscribe().unwrap(), two.subscribe().unwrap());
    for (relay, hearing) in [(&one, &mut at_one), (&two, &mut at_two)] {
        // Listening starts at once when a message is to be sent.
        if !relay.send(Recipients::All, "is a process there?") {
            assert_eq!(hearing.next().await, Some(RelayItem::Missed));
        }
    }
    // Earlier messages may have been lost.
    assert!(one.send(Recipients::All, "it's \\ \"ö\" 🦀\n$1"));
    let from = loop {
        match at_two.next().await {
            Some(RelayItem::Message { from, text: words }) if &*words == "it's \\ \"ö\" 🦀\n$1" =>
            {
                break from;
            }
            Some(_) => {}
            None => panic!("no message will come any more"),
        }
    };
    // The longest message, of characters of more than one byte, to one process.
    let long = |number: usize| format!("{number} {}", "ä".repeat(two.bytes_max() / 2 - 2));
    for number in 0..20 {
        assert!(two.send(Recipients::One(&from), &long(number)), "{number}");
    }
    let mut received = Vec::new();
    while received.len() < 20 {
        match at_one.next().await {
            Some(RelayItem::Message { text: words, .. }) if words.contains('ä') => {
                received.push(words.to_string())
            }
            Some(_) => {}
            None => panic!("no message will come any more"),
        }
    }
    assert_eq!(received, (0..20).map(long).collect::<Vec<_>>());
    assert!(
        !two.send(Recipients::One(&from), &"x".repeat(two.bytes_max() + 1)),
        "too long"
    );
    assert!(
        !two.send(Recipients::One("'; DROP TABLE adjutant_task"), "x"),
        "no process is called so"
    );
    // Without a receiver the queue is bounded.
    let said = (0..10_000)
        .take_while(|_| one.send(Recipients::All, &long(0)))
        .count();
    assert!(said < 100, "{said}");
}

/// A store that has no other processes has no relay.
pub async fn nobody_else_is_heard(store: &impl Journal) {
    let relay = store.relay();
    assert!(relay.subscribe().is_none() && !relay.send(Recipients::All, "is a process there?"));
}
