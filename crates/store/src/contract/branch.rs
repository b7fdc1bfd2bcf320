use std::collections::BTreeMap;
use std::time::Duration;

use adjutant_core::port::{
    Alternatives, Begin, Begun, BranchPoint, Branched, Branching, Claim, ConversationFilter,
    ConversationStore, Deleted, Entries, Journal, Known, Loaded, LogStore, StoreError, Versions,
};
use adjutant_core::{ConversationId, ConversationKey, DecisionFilter, Event, Recorded, TurnId};

use super::fixture::*;

/// Number of events in [`said`].
const EVENTS: u64 = 3;

/// The events of a turn in which a tool was called.
fn said(number: u32) -> Vec<Event> {
    vec![
        started(number, &format!("i{number}")),
        call_finished(number, &format!("call_{number}")),
        finished(number, "SUCCESS:TASK_COMPLETED"),
    ]
}

/// Appends turns to the conversation.
async fn say(store: &impl Journal, key: &ConversationKey, turns: &[u32]) {
    for number in turns {
        submit(
            store,
            key,
            &message(&format!("i{number}"), 0, &format!("words {number}")),
        )
        .await;
        let next = store.load(key).await.unwrap().next_seq();
        append(store, key, next, at(next.cast_signed()), &said(*number)).await;
    }
}

async fn branch(
    store: &impl ConversationStore,
    from: &ConversationKey,
    seq: u64,
    to: &ConversationKey,
) -> Result<Branched, StoreError> {
    store
        .branch(Branching {
            from,
            seq,
            id: to.conversation,
            at: at(500),
        })
        .await
}

fn turns_of(events: &[Recorded]) -> Vec<TurnId> {
    let started = events
        .iter()
        .filter(|recorded| matches!(*recorded.event, Event::TurnStarted { .. }));
    started
        .filter_map(|recorded| recorded.event.turn())
        .collect()
}

fn numbered(turns: &[u32]) -> Vec<TurnId> {
    turns.iter().map(|number| turn(*number)).collect()
}

/// A branch consists of the original's events up to its place, followed by its own; the original
/// does not change. It can be read from any place on.
pub async fn a_branch_begins_with_the_events_before_its_place<T>(store: &T)
where
    T: Journal + LogStore + ConversationStore,
{
    let (parent, child) = (conversation("anna", 1), conversation("anna", 2));
    say(store, &parent, &[1, 2]).await;
    let before = store.load(&parent).await.unwrap();
    let point = BranchPoint {
        conversation: parent.conversation,
        seq: EVENTS,
    };
    for _ in 0..2 {
        assert_eq!(
            branch(store, &parent, EVENTS, &child).await,
            Ok(Branched::At(point))
        );
    }
    let common = before.events[..3].to_vec();
    assert_eq!(
        store.load(&child).await.unwrap(),
        Loaded {
            events: common.clone(),
            inbox: vec![]
        }
    );

    let summary = store.summary(&child).await.unwrap().unwrap();
    assert_eq!(
        (summary.title.as_str(), summary.turns, summary.pending),
        ("words 1", 1, false)
    );
    assert_eq!(
        (summary.created_at, summary.branched_from),
        (at(500), Some(point))
    );
    assert_eq!(
        store.summary(&parent).await.unwrap().unwrap().branched_from,
        None
    );
    assert_eq!(unsettled(store).await, []);

    let input = message("i3", 600, "other words");
    let turn_3 = [started(3, "i3")];
    let begin = Begin {
        input: Some(&input),
        turn: &turn_3,
        first: Some(&history_set()),
        worker: "w".into(),
        lease: Duration::from_secs(60),
        known: None,
        at: at(600),
    };
    let Begun::Started(newer) = store.begin(&child, begin).await.unwrap() else {
        panic!("it is free")
    };
    let expected: Vec<Recorded> = common
        .iter()
        .cloned()
        .chain(recorded(4, at(600), &turn_3))
        .collect();
    assert_eq!(
        (newer.after, &newer.events),
        (0, &expected),
        "what is first of all is not first here"
    );
    let end = [finished(3, "SUCCESS:TASK_COMPLETED")];
    for taken in [1, 4, 7] {
        assert_eq!(
            store.append(&child, &recorded(taken, at(601), &end)).await,
            Err(StoreError::Conflict)
        );
    }
    store
        .finish(&child, "w".into(), &recorded(5, at(601), &end), None)
        .await
        .unwrap();

    let whole = store.load(&child).await.unwrap().events;
    assert_eq!((whole.len(), turns_of(&whole)), (5, numbered(&[1, 3])));
    for seq in 0..=5_u64 {
        let known = Some(Known {
            seq,
            created_at: at(500),
        });
        let newer = store.load_newer(&child, known).await.unwrap().unwrap();
        let rest = whole
            .iter()
            .filter(|recorded| recorded.seq > seq)
            .cloned()
            .collect::<Vec<_>>();
        assert_eq!((newer.after, newer.events), (seq, rest));
    }
    assert_eq!(store.load(&parent).await.unwrap(), before);
    // Earlier decisions are not logged or charged again.
    let of = |key: &ConversationKey| DecisionFilter {
        conversation: Some(key.conversation),
        ..DecisionFilter::default()
    };
    let decided = async |key| {
        let rows = store.decisions(&user("anna"), &of(key)).await.unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(
        (decided(&parent).await.len(), decided(&child).await),
        (2, numbered(&[3]))
    );
    let listed = store
        .list(&agent(), &user("anna"), &ConversationFilter::newest(9))
        .await
        .unwrap();
    assert_eq!(listed.len(), 2);
}

/// A branch can be made where no turn is open, of an existing conversation, under an unused id.
pub async fn a_branch_begins_between_turns<T: Journal + ConversationStore>(store: &T) {
    let (parent, child) = (conversation("anna", 1), conversation("anna", 2));
    assert_eq!(
        branch(store, &parent, 0, &child).await,
        Ok(Branched::NoSuchConversation)
    );
    say(store, &parent, &[1]).await;
    submit(store, &parent, &message("i2", 0, "and more")).await;
    append(
        store,
        &parent,
        4,
        at(9),
        &[started(2, "i2"), parked(2, &["call_2"])],
    )
    .await;
    for seq in [1, 2, 4, 5, 6, u64::MAX] {
        assert_eq!(
            branch(store, &parent, seq, &child).await,
            Ok(Branched::NotBetweenTurns),
            "{seq}"
        );
    }
    assert_eq!(store.summary(&child).await.unwrap(), None);
    let (_, theirs) = two_agents();
    for stranger in [conversation("bert", 1), theirs] {
        assert_eq!(
            branch(store, &stranger, 0, &child).await,
            Ok(Branched::NoSuchConversation)
        );
        assert_eq!(store.alternatives(&stranger).await.unwrap(), []);
    }
    for (seq, number) in [(0, 2), (3, 3)] {
        let made = branch(store, &parent, seq, &conversation("anna", number))
            .await
            .unwrap();
        assert_eq!(
            made,
            Branched::At(BranchPoint {
                conversation: parent.conversation,
                seq
            })
        );
    }
    let other = conversation("anna", 3);
    assert_eq!(
        store.summary(&child).await.unwrap().unwrap().title,
        "",
        "they have nothing in common"
    );
    assert_eq!(
        branch(store, &parent, 3, &child).await,
        Err(StoreError::Reused),
        "it begins elsewhere"
    );
    assert_eq!(
        branch(store, &parent, 3, &parent).await,
        Err(StoreError::Reused)
    );
    assert_eq!(
        branch(store, &other, 0, &parent).await,
        Err(StoreError::Reused)
    );
}

/// Pending calls, inputs and leases stay with the original conversation.
pub async fn a_branch_inherits_nothing_that_waits<T: Journal + ConversationStore>(store: &T) {
    let (parent, child) = (conversation("anna", 1), conversation("anna", 2));
    say(store, &parent, &[1]).await;
    submit(store, &parent, &message("i2", 0, "and more")).await;
    append(
        store,
        &parent,
        4,
        at(9),
        &[started(2, "i2"), parked(2, &["call_2"])],
    )
    .await;
    submit(store, &parent, &message("i9", 1, "hm")).await;
    let ttl = Duration::from_secs(60);
    assert_eq!(
        store.claim(&parent, "w", ttl).await.unwrap(),
        Claim::Granted
    );
    branch(store, &parent, 3, &child).await.unwrap();

    let waiting = async || {
        let parked = store.parked(&agent(), None).await.unwrap();
        parked.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(waiting().await, std::slice::from_ref(&parent));
    assert_eq!(
        store.expired(&agent(), None, at(1000)).await.unwrap(),
        [],
        "it is claimed"
    );
    assert_eq!(store.load(&child).await.unwrap().inbox, []);
    assert_eq!(
        store.claim(&child, "other", ttl).await.unwrap(),
        Claim::Granted
    );
    store.release(&child, "other".into()).await.unwrap();
    // An input's id belongs to the conversation that accepted it.
    submit(store, &child, &message("i1", 2, "once more")).await;
    assert_eq!(store.load(&child).await.unwrap().inbox.len(), 1);
    assert_eq!(unsettled(store).await, [child]);
}

/// Alternatives are listed from each conversation's point of view: the original, if it continues,
/// and the branches that have events of their own. A branch of a branch at a place that it shares
/// with the original is a branch of the original.
pub async fn alternatives_are_listed_where_they_differ<T: Journal + ConversationStore>(store: &T) {
    let [a, b, c, d, e] = [1, 2, 3, 4, 5].map(|number| conversation("anna", number));
    let point = |key: &ConversationKey, seq| {
        Branched::At(BranchPoint {
            conversation: key.conversation,
            seq,
        })
    };
    let place = |seq, of: &[&ConversationKey], current: usize| Alternatives {
        seq,
        conversations: of.iter().map(|key| key.conversation).collect(),
        current,
    };
    say(store, &a, &[1, 2, 3]).await;
    assert_eq!(branch(store, &a, 6, &b).await, Ok(point(&a, 6)));
    assert_eq!(
        store.alternatives(&a).await.unwrap(),
        [],
        "nothing was said in it"
    );
    assert_eq!(store.alternatives(&b).await.unwrap(), []);
    say(store, &b, &[4, 5]).await;
    assert_eq!(
        store.alternatives(&a).await.unwrap(),
        [place(6, &[&a, &b], 0)]
    );
    assert_eq!(
        store.alternatives(&b).await.unwrap(),
        [place(6, &[&a, &b], 1)]
    );
    // The same place again, by way of the branch; one before it; and one of its own.
    assert_eq!(branch(store, &b, 6, &c).await, Ok(point(&a, 6)));
    assert_eq!(branch(store, &b, 3, &d).await, Ok(point(&a, 3)));
    assert_eq!(branch(store, &b, 9, &e).await, Ok(point(&b, 9)));
    for (key, number) in [(&c, 6), (&d, 7), (&e, 8)] {
        say(store, key, &[number]).await;
    }
    let (at_3, at_6, at_9) = (&[&a, &d][..], &[&a, &b, &c][..], &[&b, &e][..]);
    assert_eq!(
        store.alternatives(&a).await.unwrap(),
        [place(3, at_3, 0), place(6, at_6, 0)]
    );
    assert_eq!(
        store.alternatives(&c).await.unwrap(),
        [place(3, at_3, 0), place(6, at_6, 2)]
    );
    assert_eq!(store.alternatives(&d).await.unwrap(), [place(3, at_3, 1)]);
    let of_e = [place(3, at_3, 0), place(6, at_6, 1), place(9, at_9, 1)];
    assert_eq!(store.alternatives(&e).await.unwrap(), of_e);
    assert_eq!(
        turns_of(&store.load(&e).await.unwrap().events),
        numbered(&[1, 2, 4, 8])
    );
    // A copy at the end differs once both have gone on.
    let [end, copy] = [6, 7].map(|number| conversation("anna", number));
    say(store, &end, &[9]).await;
    branch(store, &end, 3, &copy).await.unwrap();
    say(store, &copy, &[10]).await;
    assert_eq!(store.alternatives(&copy).await.unwrap(), []);
    say(store, &end, &[11]).await;
    assert_eq!(
        store.alternatives(&copy).await.unwrap(),
        [place(3, &[&end, &copy], 1)]
    );
}

/// The common events of branches, with their logs, survive the deletion of the original; events
/// that no branch has are deleted.
pub async fn a_deleted_conversation_leaves_its_branches_whole<T>(store: &T)
where
    T: Journal + LogStore + ConversationStore,
{
    let [a, b, c, d] = [1, 2, 3, 4].map(|number| conversation("anna", number));
    let anna = user("anna");
    say(store, &a, &[1]).await;
    submit(store, &a, &message("i2", 0, "read it all")).await;
    let long = [
        started(2, "i2"),
        call_finished_at_length(2, "call_2", 600_000),
        finished(2, "SUCCESS:TASK_COMPLETED"),
    ];
    append(store, &a, 4, at(4), &long).await;
    say(store, &a, &[3]).await;
    for (seq, key) in [(3, &b), (6, &c), (6, &d)] {
        branch(store, &a, seq, key).await.unwrap();
    }
    for (key, number) in [(&b, 4), (&c, 5), (&d, 6)] {
        say(store, key, &[number]).await;
    }
    let before = [
        store.load(&b).await.unwrap(),
        store.load(&c).await.unwrap(),
        store.load(&d).await.unwrap(),
    ];

    assert_eq!(store.delete(&a).await.unwrap(), Deleted::Yes);
    assert_eq!(store.load(&a).await.unwrap(), Loaded::default());
    assert_eq!(store.delete(&a).await.unwrap(), Deleted::NoSuchConversation);
    for (key, before) in [&b, &c, &d].into_iter().zip(&before) {
        assert_eq!(store.load(key).await.unwrap(), *before);
    }
    assert_eq!(
        store.decision(&anna, turn(3)).await.unwrap(),
        None,
        "no conversation shows it"
    );
    assert_eq!(
        store.tool_invocations(&anna, turn(3)).await.unwrap().len(),
        0
    );
    for number in [1, 2] {
        let decision = store.decision(&anna, turn(number)).await.unwrap().unwrap();
        assert_eq!(
            decision.conversation, c.conversation,
            "the log is where the events are"
        );
        assert_eq!(
            store
                .tool_invocations(&anna, turn(number))
                .await
                .unwrap()
                .len(),
            1
        );
    }
    let from = async |key| store.summary(key).await.unwrap().unwrap().branched_from;
    assert_eq!(from(&c).await, None);
    assert_eq!(
        from(&b).await,
        Some(BranchPoint {
            conversation: c.conversation,
            seq: 3
        })
    );
    assert_eq!(
        from(&d).await,
        Some(BranchPoint {
            conversation: c.conversation,
            seq: 6
        })
    );
    let at_3 = Alternatives {
        seq: 3,
        conversations: vec![c.conversation, b.conversation],
        current: 1,
    };
    assert_eq!(store.alternatives(&b).await.unwrap(), [at_3]);

    // The id can be used again, and the new conversation has no relation to the branches.
    say(store, &a, &[7]).await;
    assert_eq!(store.alternatives(&a).await.unwrap(), []);
    assert_eq!(store.delete(&a).await.unwrap(), Deleted::Yes);
    for key in [&c, &b] {
        assert_eq!(store.delete(key).await.unwrap(), Deleted::Yes);
    }
    assert_eq!(store.load(&d).await.unwrap(), before[2]);
    assert_eq!(store.delete(&d).await.unwrap(), Deleted::Yes);
    for number in 1..=7 {
        assert_eq!(store.decision(&anna, turn(number)).await.unwrap(), None);
    }
}

/// A pseudorandom sequence that is the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// After random appends, branches and deletions, each remaining conversation reads as its common
/// events and its own, and a turn is in the log as long as a conversation contains it.
pub async fn every_conversation_of_a_tree_reads_as_it_was_appended<T>(store: &T, seed: u64)
where
    T: Journal + LogStore + ConversationStore,
{
    let mut dice = Dice(seed);
    let mut known: BTreeMap<ConversationId, Vec<Recorded>> = BTreeMap::new();
    let key = |id: ConversationId| ConversationKey {
        conversation: id,
        ..conversation("anna", 1)
    };
    let mut turns = 0;
    for number in 1..=30 {
        let ids: Vec<ConversationId> = known.keys().copied().collect();
        let picked = (!ids.is_empty()).then(|| ids[dice.below(ids.len())]);
        match (dice.below(10), picked) {
            (0, _) | (_, None) => {
                let id = conversation("anna", number).conversation;
                turns += 1;
                say(store, &key(id), &[turns]).await;
                known.insert(id, store.load(&key(id)).await.unwrap().events);
            }
            (1..=4, Some(id)) => {
                turns += 1;
                say(store, &key(id), &[turns]).await;
                let events = known.get_mut(&id).unwrap();
                let next = events.len() as u64 + 1;
                events.extend(recorded(next, at(next.cast_signed()), &said(turns)));
            }
            (5..=7, Some(id)) => {
                let place = dice.below(known[&id].len() / 3 + 1) * 3;
                let new = conversation("anna", number);
                let made = branch(store, &key(id), place as u64, &new).await.unwrap();
                assert!(matches!(made, Branched::At(_)), "{made:?}");
                known.insert(new.conversation, known[&id][..place].to_vec());
            }
            (_, Some(id)) => {
                assert_eq!(store.delete(&key(id)).await.unwrap(), Deleted::Yes);
                known.remove(&id);
            }
        }
        for id in ids.iter().chain(known.keys()) {
            let events = known.get(id).cloned().unwrap_or_default();
            assert_eq!(
                store.load(&key(*id)).await.unwrap().events,
                events,
                "step {number} of seed {seed}"
            );
        }
        // Turns are read across the places where branches begin.
        if let Some((id, events)) = known.iter().nth(dice.below(known.len().max(1))) {
            let (before, turns) = (dice.below(events.len() / 3 + 1), dice.below(4) + 1);
            let from = before.saturating_sub(turns) * 3;
            let (key, until) = (key(*id), Some(before as u64 * 3 + 1));
            let read = store
                .load_turns(&key, until, u32::try_from(turns).unwrap())
                .await
                .unwrap()
                .unwrap();
            assert_eq!(
                (read.after, &read.events[..]),
                (from as u64, &events[from..before * 3])
            );
            for (at, one) in events.chunks(3).enumerate() {
                let read = store
                    .load_turn(&key, one[0].event.turn().unwrap())
                    .await
                    .unwrap()
                    .unwrap();
                assert_eq!((read.after, &read.events[..]), (at as u64 * 3, one));
            }
        }
    }
    for number in 1..=turns {
        let is_shown = known
            .values()
            .any(|events| turns_of(events).contains(&turn(number)));
        let decision = store.decision(&user("anna"), turn(number)).await.unwrap();
        assert_eq!(decision.is_some(), is_shown, "turn {number} of seed {seed}");
        if let Some(decision) = decision {
            assert!(turns_of(&known[&decision.conversation]).contains(&turn(number)));
        }
    }
}

/// A database with branches passes the check, and damage to one is found. Retention removes old
/// conversations, while younger branches keep their common events.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub async fn branches_are_checked_and_removed<T, F>(make: impl AsyncFn() -> (T, F))
where
    T: Journal + LogStore + ConversationStore + crate::maintenance::Maintenance,
    F: AsyncFn(&'static str),
{
    let (store, hand) = make().await;
    every_conversation_of_a_tree_reads_as_it_was_appended(&store, 5).await;
    assert_eq!(store.check().await.unwrap(), []);
    hand("UPDATE adjutant_conversation SET branched_from_seq = branched_from_seq - 1 WHERE branched_from_seq > 0").await;
    assert_ne!(store.check().await.unwrap(), []);

    let (store, _) = make().await;
    let [old, young, leaf] = [1, 2, 3].map(|number| conversation("anna", number));
    say(&store, &old, &[1, 2]).await;
    branch(&store, &old, 3, &leaf).await.unwrap();
    say(&store, &leaf, &[3]).await;
    store
        .branch(Branching {
            from: &old,
            seq: 3,
            id: young.conversation,
            at: at(5000),
        })
        .await
        .unwrap();
    let removed = store.remove_older_than(at(1000)).await.unwrap();
    assert_eq!((removed.conversations, removed.events), (2, 6));
    assert_eq!(
        turns_of(&store.load(&young).await.unwrap().events),
        numbered(&[1])
    );
    assert_eq!(store.decision(&user("anna"), turn(2)).await.unwrap(), None);
    assert_eq!(store.check().await.unwrap(), []);
    let removed = store.remove_older_than(at(9000)).await.unwrap();
    assert_eq!((removed.conversations, removed.events), (1, 3));
    let status = store.status().await.unwrap();
    let left: Vec<_> = status
        .tables
        .iter()
        .filter(|table| table.rows > 0)
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Accepts a message that nobody has answered yet.
async fn ask(store: &impl Journal, key: &ConversationKey, seconds: i64, words: &str) {
    submit(
        store,
        key,
        &message(&format!("at {seconds}"), seconds, words),
    )
    .await;
}

/// All versions of a conversation are one entry: the one that was used last. Versions in which
/// nothing was said do not count, and a conversation without branches is its only version.
pub async fn versions_are_one_entry_of_the_list<T: Journal + ConversationStore>(store: &T) {
    let [a, b, c, d, other] = [1, 2, 3, 4, 5].map(|number| conversation("anna", number));
    let listed = async |search: Option<&str>| -> Vec<(ConversationId, ConversationId, u64)> {
        let mut filter = ConversationFilter {
            search: search.map(str::to_owned),
            entries: Entries::Conversations,
            ..ConversationFilter::newest(1)
        };
        let mut seen = Vec::new();
        loop {
            let page = store.list(&agent(), &user("anna"), &filter).await.unwrap();
            let Some(last) = page.last() else { break };
            filter.after = Some(last.cursor());
            seen.extend(page.iter().map(|entry| {
                let versions = entry.versions.unwrap();
                (entry.id, versions.root, versions.count)
            }));
        }
        seen
    };
    let id = |key: &ConversationKey| key.conversation;
    say(store, &a, &[1]).await;
    ask(store, &other, 20, "something else").await;
    assert_eq!(
        listed(None).await,
        [(id(&other), id(&other), 1), (id(&a), id(&a), 1)]
    );

    branch(store, &a, 0, &b).await.unwrap();
    branch(store, &a, EVENTS, &c).await.unwrap();
    assert_eq!(
        listed(None).await,
        [(id(&other), id(&other), 1), (id(&a), id(&a), 1)],
        "nothing was said in the branches"
    );
    let versions = async |key: &ConversationKey| store.versions(key).await.unwrap();
    assert_eq!(
        versions(&c)
            .await
            .map(|found| (found.root, found.ids[0], found.ids.len())),
        Some((id(&a), id(&a), 3))
    );

    ask(store, &b, 610, "other words").await;
    ask(store, &c, 620, "words 1, once more").await;
    branch(store, &c, EVENTS, &d).await.unwrap();
    ask(store, &d, 630, "and again").await;
    assert_eq!(
        listed(None).await,
        [(id(&d), id(&a), 4), (id(&other), id(&other), 1)]
    );
    assert_eq!(listed(Some("WORDS")).await, [(id(&d), id(&a), 4)]);
    let all = Versions {
        root: id(&a),
        ids: [&d, &c, &b, &a].map(id).to_vec(),
    };
    for key in [&a, &b, &c, &d] {
        assert_eq!(versions(key).await, Some(all.clone()));
    }
    assert_eq!(versions(&conversation("bert", 1)).await, None);

    // The version used last is the entry.
    ask(store, &a, 640, "back to the first").await;
    assert_eq!(listed(None).await[0], (id(&a), id(&a), 4));
    // Other lists have an entry for each version.
    let each = ConversationFilter::newest(9);
    let each = store.list(&agent(), &user("anna"), &each).await.unwrap();
    assert_eq!(each.len(), 5);
    assert!(each.iter().all(|entry| entry.versions.is_none()));

    // Without the first, another one takes its place.
    assert_eq!(store.delete(&a).await.unwrap(), Deleted::Yes);
    let entries = listed(None).await;
    assert_eq!(
        entries.iter().map(|(entry, ..)| *entry).collect::<Vec<_>>()[0],
        id(&d)
    );
}

/// All versions are deleted together, or none if a turn runs in one of them.
pub async fn versions_are_deleted_together<T: Journal + LogStore + ConversationStore>(store: &T) {
    let [a, b, c, other] = [1, 2, 3, 4].map(|number| conversation("anna", number));
    say(store, &a, &[1, 2]).await;
    for (from, seq, to, number) in [(&a, EVENTS, &b, 3), (&b, EVENTS * 2, &c, 4)] {
        branch(store, from, seq, to).await.unwrap();
        say(store, to, &[number]).await;
    }
    ask(store, &other, 20, "something else").await;
    let bert = conversation("bert", 1);
    assert_eq!(
        store.delete_versions(&bert).await.unwrap(),
        Deleted::NoSuchConversation
    );

    assert!(claims(store, &c, "w", Duration::from_secs(3600)).await);
    assert_eq!(store.delete_versions(&b).await.unwrap(), Deleted::Running);
    for key in [&a, &b, &c] {
        assert!(store.summary(key).await.unwrap().is_some());
    }
    store.release(&c, "w".into()).await.unwrap();

    assert_eq!(store.delete_versions(&b).await.unwrap(), Deleted::Yes);
    for key in [&a, &b, &c] {
        assert_eq!(store.load(key).await.unwrap(), Loaded::default());
    }
    for number in 1..=4 {
        assert_eq!(
            store.decision(&user("anna"), turn(number)).await.unwrap(),
            None
        );
    }
    assert!(store.summary(&other).await.unwrap().is_some());
}
