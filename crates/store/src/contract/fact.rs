use adjutant_core::port::{FactStore, FactsChange, FactsUpdate, MemoryLedger};
use adjutant_core::{CallId, MemoryChange, MemoryScope, MemorySource, MemoryState, StoredFact};

use super::fixture::{at, conversation, key, turn, user};
use super::memory_ledger::fact as change;

/// A fact that was created at this second.
fn stored(text: &str, second: i64) -> StoredFact {
    let source = MemorySource {
        conversation: conversation("anna", 1).conversation,
        turn: turn(1),
        call: CallId::new("call_1").unwrap(),
    };
    StoredFact {
        text: text.to_owned(),
        important: second % 2 == 1,
        created_at: at(second),
        updated_at: at(second + 5),
        source: (second != 2).then_some(source),
    }
}

fn scope(name: &str) -> MemoryScope {
    MemoryScope::database(user(name))
}

async fn revision_of(store: &impl FactStore, scope: &MemoryScope) -> i64 {
    let update = store.facts_since(&scope.user, None).await;
    update.unwrap().revision
}

/// Facts that are added, replaced and removed are read as they were written, oldest first, and each
/// change is in the history.
pub async fn facts_are_added_changed_and_removed_with_their_history(
    store: &(impl FactStore + MemoryLedger),
) {
    let anna = scope("anna");
    let long = format!("{} é e\u{301} 漢字 '$1' \"", "x".repeat(5_000));
    let (first, second, third) = (
        stored("Josh has a cat", 2),
        stored(&long, 1),
        stored("Tea", 2),
    );
    assert_eq!(store.facts(&anna.user).await.unwrap(), Default::default());
    let mut revision = 0;
    for (number, fact) in [(1, &first), (2, &second), (3, &third)] {
        let record = change(number, None, Some(&fact.text));
        let change = FactsChange {
            revision,
            removed: None,
            put: Some(fact),
            record: &record,
        };
        assert!(store.change_facts(&anna, change).await.unwrap());
        revision = revision_of(store, &anna).await;
    }
    let known = store.facts(&anna.user).await.unwrap().facts;
    assert_eq!(known, [second.clone(), first.clone(), third.clone()]);

    // Replaced in its place with its time of creation, then removed.
    let reworded = StoredFact {
        text: "Josh has two cats".to_owned(),
        updated_at: at(9),
        ..first.clone()
    };
    let record = change(4, Some(&first.text), Some(&reworded.text));
    let put = FactsChange {
        revision,
        removed: Some(&first.text),
        put: Some(&reworded),
        record: &record,
    };
    assert!(store.change_facts(&anna, put).await.unwrap());
    let found = store.facts(&anna.user).await.unwrap();
    assert_eq!(
        found.facts,
        [second.clone(), reworded.clone(), third.clone()]
    );
    let record = change(5, Some(&long), None);
    let removed = FactsChange {
        revision: revision_of(store, &anna).await,
        removed: Some(&long),
        put: None,
        record: &record,
    };
    assert!(store.change_facts(&anna, removed).await.unwrap());
    let found = store.facts(&anna.user).await.unwrap();
    assert_eq!(found.facts, [reworded, third]);
    assert_eq!(found.withdrawn, [long.clone(), first.text.clone()]);
    assert_eq!(
        store.by_key(&anna, &key("k5")).await.unwrap(),
        Some(record.clone())
    );
    assert_eq!(store.newest(&anna, 9).await.unwrap().len(), 5);

    // A change that was undone has withdrawn no fact.
    let undone = MemoryChange {
        state: MemoryState::Undone,
        ..record
    };
    let back = FactsChange {
        revision: revision_of(store, &anna).await,
        removed: None,
        put: Some(&second),
        record: &undone,
    };
    assert!(store.change_facts(&anna, back).await.unwrap());
    let found = store.facts(&anna.user).await.unwrap();
    assert_eq!((found.facts.len(), found.withdrawn), (3, vec![first.text]));
}

/// A change that was planned over outdated facts is refused, and is not in the history.
pub async fn facts_are_changed_only_as_they_were_known(store: &(impl FactStore + MemoryLedger)) {
    let anna = scope("anna");
    let (one, other) = (stored("a", 1), stored("b", 2));
    let record = change(1, None, Some("a"));
    let put = FactsChange {
        revision: 0,
        removed: None,
        put: Some(&one),
        record: &record,
    };
    assert!(store.change_facts(&anna, put).await.unwrap());
    let revision = revision_of(store, &anna).await;
    for revision in [0, revision - 1, revision + 1] {
        let record = change(2, Some("a"), Some("b"));
        let put = FactsChange {
            revision,
            removed: Some("a"),
            put: Some(&other),
            record: &record,
        };
        assert!(!store.change_facts(&anna, put).await.unwrap());
    }
    // The fact to remove is not there, or the one to add is, whatever the revision says.
    for (removed, put) in [(Some("b"), None), (None, Some(&one))] {
        let record = change(2, removed, put.map(|fact| fact.text.as_str()));
        let unlike = FactsChange {
            revision,
            removed,
            put,
            record: &record,
        };
        assert!(!store.change_facts(&anna, unlike).await.unwrap());
    }
    assert_eq!(revision_of(store, &anna).await, revision);
    assert_eq!(store.facts(&anna.user).await.unwrap().facts, [one]);
    assert_eq!(store.newest(&anna, 9).await.unwrap().len(), 1);
}

/// Each change gives the facts another revision, and only what was written after one is read.
pub async fn facts_that_were_written_since_a_revision_are_read(store: &impl FactStore) {
    let anna = scope("anna");
    let since = async |revision| store.facts_since(&anna.user, revision).await.unwrap();
    assert_eq!(since(None).await, FactsUpdate::default());
    let [one, other, third] = [("a", 1), ("b", 2), ("c", 3)].map(|(text, at)| stored(text, at));
    let mut revisions = vec![0];
    let changes = [
        (None, Some(&one)),
        (None, Some(&other)),
        (Some("a"), Some(&third)),
        (Some("b"), None),
    ];
    for (number, (removed, put)) in (1..).zip(changes) {
        let record = change(number, removed, put.map(|fact| fact.text.as_str()));
        let revision = revisions.last().copied().unwrap();
        let planned = FactsChange {
            revision,
            removed,
            put,
            record: &record,
        };
        assert!(store.change_facts(&anna, planned).await.unwrap());
        let update = since(Some(revision)).await;
        let texts: Vec<&StoredFact> = update.facts.iter().map(|(_, fact)| fact).collect();
        assert_eq!(texts, Vec::from_iter(put));
        revisions.push(update.revision);
    }
    assert!(revisions.is_sorted_by(|one, other| one < other));
    // The fact that took the place of another has its number.
    let all = since(None).await;
    assert_eq!((all.count, all.facts.len()), (1, 1));
    let first = since(Some(revisions[1])).await;
    assert_eq!(first.facts, all.facts);
    assert_eq!(since(Some(all.revision)).await.facts, []);
    // Of another user nothing is read.
    let bert = store.facts_since(&user("bert"), None).await.unwrap();
    assert_eq!(bert, FactsUpdate::default());
}

/// Facts of one user are invisible to others.
pub async fn facts_belong_to_their_user(store: &impl FactStore) {
    for name in ["anna", "anna ", "ann"] {
        let fact = stored("the same words", 1);
        let record = change(1, None, Some(&fact.text));
        let put = FactsChange {
            revision: 0,
            removed: None,
            put: Some(&fact),
            record: &record,
        };
        assert!(
            store.change_facts(&scope(name), put).await.unwrap(),
            "{name}"
        );
    }
    let revision = revision_of(store, &scope("ann")).await;
    let record = change(2, Some("the same words"), None);
    let removed = FactsChange {
        revision,
        removed: Some("the same words"),
        put: None,
        record: &record,
    };
    assert!(store.change_facts(&scope("ann"), removed).await.unwrap());
    for (name, facts, withdrawn) in [
        ("anna", 1, 0),
        ("anna ", 1, 0),
        ("ann", 0, 1),
        ("bert", 0, 0),
    ] {
        let found = store.facts(&user(name)).await.unwrap();
        assert_eq!(
            (found.facts.len(), found.withdrawn.len()),
            (facts, withdrawn),
            "{name}"
        );
    }
}

/// Of several concurrent changes that were planned over the same facts, one succeeds.
pub async fn of_many_changes_of_facts_at_once_one_succeeds_at_a_time(store: &impl FactStore) {
    let anna = scope("anna");
    let change = async |number: u32| {
        let fact = stored(&format!("fact {number}"), i64::from(number));
        let record = change(number, None, Some(&fact.text));
        let put = FactsChange {
            revision: 0,
            removed: None,
            put: Some(&fact),
            record: &record,
        };
        store.change_facts(&anna, put).await.unwrap()
    };
    let (a, b, c, d) = tokio::join!(change(1), change(2), change(3), change(4));
    assert_eq!([a, b, c, d].into_iter().filter(|done| *done).count(), 1);
    assert_eq!(store.facts(&anna.user).await.unwrap().facts.len(), 1);
}
