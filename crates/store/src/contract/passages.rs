use adjutant_core::port::{
    Branched, Branching, Candidate, ConversationIndex, ConversationStore, Deleted, IndexMatches,
    IndexQuery, IndexedPart, Journal, Passage, Unindexed,
};
use adjutant_core::{AgentName, ConversationId, ConversationKey, Event};

use super::fixture::{
    agent, append, at, call_finished, conversation, finished, message, recorded, started, submit,
    turn, two_agents, user,
};
use crate::maintenance::Maintenance;

/// Number of events of a turn in [`say`].
const EVENTS: u64 = 3;

/// Appends a turn; an open one if it does not end.
async fn say(store: &impl Journal, key: &ConversationKey, number: u32, ends: bool) {
    let input = format!("i{number}");
    submit(
        store,
        key,
        &message(&input, number.into(), &format!("words {number}")),
    )
    .await;
    let next = store.load(key).await.unwrap().next_seq();
    let mut events = vec![
        started(number, &input),
        call_finished(number, &format!("call_{number}")),
    ];
    events.extend(ends.then(|| finished(number, "SUCCESS:TASK_COMPLETED")));
    append(store, key, next, at(number.into()), &events).await;
}

/// Returns the passage of a turn: its number, and a word that all have.
fn passage_of(unindexed: &Unindexed) -> (ConversationKey, IndexedPart, Vec<Passage>) {
    let passages = unindexed
        .events
        .iter()
        .filter_map(|recorded| match &*recorded.event {
            Event::TurnStarted { turn, .. } => {
                let number = recorded.at.as_second() - at(0).as_second();
                Some(Passage {
                    seq: recorded.seq,
                    number: 0,
                    turn: *turn,
                    at: recorded.at,
                    length: 3,
                    words: format!("all n{number} all"),
                })
            }
            _ => None,
        });
    (unindexed.key.clone(), unindexed.part, passages.collect())
}

/// Indexes everything, at most `turns` at a time. Returns the number of rounds.
async fn index_all(store: &impl ConversationIndex, turns: u32) -> usize {
    for times in 0.. {
        let unindexed = store.unindexed(&agent(), turns).await.unwrap();
        if unindexed.is_empty() {
            return times;
        }
        let parts: Vec<_> = unindexed.iter().map(passage_of).collect();
        assert_eq!(store.index(&parts).await.unwrap(), parts.len() as u64);
    }
    usize::MAX
}

async fn search(store: &impl ConversationIndex, name: &str, words: &[&str]) -> IndexMatches {
    search_except(store, name, words, None).await
}

async fn search_except(
    store: &impl ConversationIndex,
    name: &str,
    words: &[&str],
    except: Option<ConversationId>,
) -> IndexMatches {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let query = IndexQuery {
        words: &words,
        except,
        candidates_max: 500,
        unindexed_max: 500,
    };
    store.search(&agent(), &user(name), query).await.unwrap()
}

/// The conversations and turns of candidates.
fn places(found: &[Candidate]) -> Vec<(ConversationId, u64)> {
    found
        .iter()
        .map(|candidate| (candidate.conversation, candidate.passage.seq))
        .collect()
}

/// Turns are indexed in parts, each once, and found by any of their words, those with rare words
/// first.
pub async fn turns_are_indexed_once_and_found<T>(store: &T)
where
    T: ConversationIndex + ConversationStore,
{
    let (one, two) = (conversation("anna", 1), conversation("anna", 2));
    for number in 1..=5 {
        say(store, &one, number, true).await;
    }
    say(store, &two, 6, true).await;
    store.rename(&one, "A title").await.unwrap();
    let first = store.unindexed(&agent(), 3).await.unwrap();
    let parts: Vec<_> = first
        .iter()
        .map(|part| (part.key.clone(), part.part.turns, part.events.len()))
        .collect();
    // The conversation with the newest input first, and of the other as much as fits: of each turn
    // the first and last event.
    assert_eq!(parts, [(two.clone(), Some(1), 2), (one.clone(), None, 4)]);
    assert_eq!(first[1].title, "A title");
    let indexed: Vec<_> = first.iter().map(passage_of).collect();
    assert_eq!(store.index(&indexed).await.unwrap(), 2);
    // A second process that has read the same parts changes nothing.
    assert_eq!(store.index(&indexed).await.unwrap(), 0);
    let found = search(store, "anna", &["n2", "all", "nothing"]).await;
    assert_eq!(
        (found.conversations, found.passages, found.length),
        (2, 3, 9)
    );
    assert_eq!(
        (found.holding.as_slice(), found.is_complete),
        ([1, 3, 0].as_slice(), true)
    );
    let place = |turn: u64| (turn - 1) * EVENTS + 1;
    assert_eq!(places(&found.candidates)[0], (one.conversation, place(2)));
    assert_eq!(found.candidates.len(), 3);
    let best = &found.candidates[0];
    assert_eq!(
        (best.title.as_str(), best.conversation_length),
        ("A title", 6)
    );
    let whole = Passage {
        seq: place(2),
        number: 0,
        turn: turn(2),
        at: at(2),
        length: 3,
        words: "all n2 all".to_owned(),
    };
    assert_eq!(best.passage, whole);
    // A search also returns the turns that are not indexed.
    let newer: Vec<_> = found
        .unindexed
        .iter()
        .map(|part| (part.key.clone(), part.part.after))
        .collect();
    assert_eq!(newer, [(one.clone(), place(3) - 1)]);
    assert_eq!(found.unindexed[0].events.len(), 6);
    assert_eq!(index_all(store, 2).await, 2);
    let found = search(store, "anna", &["n1", "n3", "n5"]).await;
    assert_eq!((found.passages, found.unindexed.len()), (6, 0));
    assert_eq!(
        places(&found.candidates),
        [5, 3, 1].map(|turn| (one.conversation, place(turn)))
    );
    // A new turn is found, and the mark goes on from where it was.
    say(store, &one, 7, true).await;
    assert_eq!(
        store.unindexed(&agent(), 9).await.unwrap()[0].part.after,
        5 * EVENTS
    );
    assert_eq!(index_all(store, 9).await, 1);
    let words = ["n7".to_owned(), "all".to_owned()];
    let bounded = IndexQuery {
        words: &words,
        except: None,
        candidates_max: 2,
        unindexed_max: 0,
    };
    let found = store
        .search(&agent(), &user("anna"), bounded)
        .await
        .unwrap();
    assert_eq!(found.candidates.len(), 2);
    assert_eq!(places(&found.candidates)[0], (one.conversation, place(6)));
}

/// An open turn is not indexed, but is returned by each search, and so are the turns beyond the
/// limit, with a flag that there are more.
pub async fn turns_that_are_not_indexed_come_with_a_search<T: ConversationIndex>(store: &T) {
    let (one, two) = (conversation("anna", 1), conversation("anna", 2));
    say(store, &one, 1, true).await;
    say(store, &one, 2, false).await;
    say(store, &two, 3, true).await;
    let open = search(store, "anna", &["all"]).await;
    let turns: Vec<_> = open
        .unindexed
        .iter()
        .map(|part| (part.key.clone(), part.events.len()))
        .collect();
    assert_eq!(turns, [(two.clone(), 2), (one.clone(), 3)]);
    assert_eq!((open.passages, open.is_complete), (0, true));
    let words = ["all".to_owned()];
    for (unindexed_max, all) in [(0, false), (1, false), (2, false), (3, true)] {
        let query = IndexQuery {
            words: &words,
            except: None,
            candidates_max: 9,
            unindexed_max,
        };
        let found = store.search(&agent(), &user("anna"), query).await.unwrap();
        let turns = found.unindexed.iter().flat_map(|part| &part.events);
        let turns = turns
            .filter(|recorded| matches!(*recorded.event, Event::TurnStarted { .. }))
            .count();
        assert_eq!((turns, found.is_complete), (unindexed_max as usize, all));
    }
    let except = search_except(store, "anna", &["all"], Some(one.conversation)).await;
    assert_eq!(except.unindexed.len(), 1);
    // A conversation is indexed when no worker runs it.
    let at_rest = store.unindexed(&agent(), 9).await.unwrap();
    assert_eq!(
        at_rest.iter().map(|part| &part.key).collect::<Vec<_>>(),
        [&two]
    );
    index_all(store, 9).await;
    let end = recorded(6, at(4), &[finished(2, "SUCCESS:TASK_COMPLETED")]);
    store.append(&one, &end).await.unwrap();
    assert_eq!(index_all(store, 9).await, 1);
    let found = search(store, "anna", &["n1", "n2", "n3"]).await;
    assert_eq!(
        (found.passages, found.holding.as_slice()),
        (3, [1, 1, 1].as_slice())
    );
    let found = search_except(store, "anna", &["all"], Some(one.conversation)).await;
    assert_eq!(places(&found.candidates), [(two.conversation, 1)]);
}

/// A search finds only passages of its user and agent.
pub async fn passages_belong_to_their_user_and_agent<T: ConversationIndex>(store: &T) {
    let (ours, theirs) = two_agents();
    say(store, &ours, 1, true).await;
    say(store, &theirs, 2, true).await;
    say(store, &conversation("bert", 1), 3, true).await;
    let other = AgentName::new("other").unwrap();
    let parts: Vec<_> = store
        .unindexed(&other, 9)
        .await
        .unwrap()
        .iter()
        .map(passage_of)
        .collect();
    assert_eq!(
        parts.iter().map(|(key, _, _)| key).collect::<Vec<_>>(),
        [&theirs]
    );
    store.index(&parts).await.unwrap();
    for is_indexed in [false, true] {
        for (name, own) in [("anna", 1), ("bert", 3), ("cleo", 0)] {
            let found = search(store, name, &["all", "n1", "n2", "n3"]).await;
            let keys = found.unindexed.iter().map(|part| part.key.user.as_str());
            assert!(keys.clone().all(|user| user == name), "{found:?}");
            let turns: Vec<_> = found
                .candidates
                .iter()
                .map(|found| found.passage.turn)
                .collect();
            assert_eq!(
                turns,
                if is_indexed && own > 0 {
                    vec![turn(own)]
                } else {
                    Vec::new()
                }
            );
            assert_eq!(found.holding[0], u64::from(is_indexed && own > 0));
            assert_eq!(keys.count(), usize::from(!is_indexed && own > 0));
        }
        index_all(store, 9).await;
    }
}

/// A deleted conversation is removed from the index, by whatever deletes it. A new conversation
/// with its id is another one.
pub async fn a_deleted_conversation_leaves_the_index<T>(store: &T)
where
    T: ConversationIndex + ConversationStore + Maintenance,
{
    let keys = [
        conversation("anna", 1),
        conversation("anna", 2),
        conversation("anna", 3),
    ];
    for (number, key) in (1..).zip(&keys) {
        say(store, key, number, true).await;
    }
    let before: Vec<_> = store
        .unindexed(&agent(), 9)
        .await
        .unwrap()
        .iter()
        .map(passage_of)
        .collect();
    index_all(store, 9).await;
    assert_eq!(search(store, "anna", &["all"]).await.holding, [3]);
    assert_eq!(
        ConversationStore::delete(store, &keys[0]).await.unwrap(),
        Deleted::Yes
    );
    let found = search(store, "anna", &["all", "n1"]).await;
    assert_eq!(
        (found.passages, found.holding.as_slice()),
        (2, [2, 0].as_slice())
    );
    // It was read before, and is another now.
    say(store, &keys[0], 4, true).await;
    assert_eq!(store.index(&before).await.unwrap(), 0);
    assert_eq!(index_all(store, 9).await, 1);
    assert_eq!(search(store, "anna", &["n1", "n4"]).await.holding, [0, 1]);
    assert_eq!(
        store.remove_older_than(at(3)).await.unwrap().conversations,
        1
    );
    assert_eq!(search(store, "anna", &["all", "n2"]).await.holding, [2, 0]);
    assert_eq!(
        store
            .remove_user(&user("anna"))
            .await
            .unwrap()
            .conversations,
        2
    );
    let found = search(store, "anna", &["all", "n3", "n4"]).await;
    assert_eq!(
        (found.passages, found.holding.as_slice()),
        (0, [0, 0, 0].as_slice())
    );
    let rows = store
        .status()
        .await
        .unwrap()
        .tables
        .into_iter()
        .find(|table| table.name == "passage");
    assert_eq!(rows.map(|table| table.rows), Some(0));
    assert_eq!(store.check().await.unwrap(), []);
}

/// A branch is indexed from its place on. If its origin is deleted, the common passages become its
/// own: those in the index stay, and the others are indexed.
pub async fn a_branch_is_indexed_from_its_place_on<T>(store: &T)
where
    T: ConversationIndex + ConversationStore + Maintenance,
{
    for is_indexed in [true, false] {
        let (parent, child) = (conversation("anna", 1), conversation("anna", 2));
        for number in 1..=3 {
            say(store, &parent, number, true).await;
        }
        if is_indexed {
            index_all(store, 9).await;
        }
        let from = Branching {
            from: &parent,
            seq: 2 * EVENTS,
            id: child.conversation,
            at: at(9),
        };
        assert!(matches!(store.branch(from).await.unwrap(), Branched::At(_)));
        say(store, &child, 4, true).await;
        if is_indexed {
            index_all(store, 9).await;
        } else {
            let unindexed = store.unindexed(&agent(), 9).await.unwrap();
            let child = unindexed
                .iter()
                .filter(|part| part.key == child)
                .map(passage_of)
                .collect::<Vec<_>>();
            assert_eq!(store.index(&child).await.unwrap(), 1);
        }
        let found = search(store, "anna", &["n4", "n2", "n3"]).await;
        let own = (child.conversation, 2 * EVENTS + 1);
        assert!(places(&found.candidates).contains(&own), "{found:?}");
        assert_eq!(
            found.holding,
            if is_indexed { [1, 1, 1] } else { [1, 0, 0] }
        );
        assert_eq!(
            ConversationStore::delete(store, &parent).await.unwrap(),
            Deleted::Yes
        );
        index_all(store, 9).await;
        let found = search(store, "anna", &["n1", "n2", "n3", "n4"]).await;
        assert_eq!(found.holding, [1, 1, 0, 1]);
        assert_eq!(
            (found.conversations, found.passages, found.length),
            (1, 3, 9)
        );
        assert!(
            found
                .candidates
                .iter()
                .all(|found| found.conversation == child.conversation)
        );
        assert_eq!(store.check().await.unwrap(), []);
        assert_eq!(
            ConversationStore::delete(store, &child).await.unwrap(),
            Deleted::Yes
        );
    }
}

/// Indexed text may contain quotes, operators of the search syntax, and other special characters.
pub async fn index_words_hold_any_signs<T: ConversationIndex>(store: &T) {
    let words = [
        "en:don't",
        "10.5",
        "de:straße",
        "茶茶",
        "a\"b",
        "''",
        "\\",
        "\\'",
        "a&b|!c",
        "(x)",
        "x:*",
        "$1",
        "*",
        "NEAR",
        "AND",
        "नमस्ते",
        "@",
        "-x",
        "^y",
        "{}",
        "[]",
        "😀",
        "');DROP--",
    ];
    for number in 1..=words.len() as u32 {
        say(store, &conversation("anna", number), number, true).await;
    }
    let unindexed = store.unindexed(&agent(), 99).await.unwrap();
    let parts: Vec<_> = unindexed
        .iter()
        .map(|part| {
            let (key, part, mut passages) = passage_of(part);
            for passage in &mut passages {
                passage.words =
                    words[(passage.at.as_second() - at(1).as_second()) as usize].to_owned();
            }
            (key, part, passages)
        })
        .collect();
    assert_eq!(store.index(&parts).await.unwrap(), words.len() as u64);
    for (number, word) in (1..).zip(words) {
        let found = search(store, "anna", &[word]).await;
        let turns: Vec<_> = found
            .candidates
            .iter()
            .map(|found| found.passage.turn)
            .collect();
        assert_eq!(
            (turns, found.holding),
            (vec![turn(number)], vec![1]),
            "{word}"
        );
    }
}
