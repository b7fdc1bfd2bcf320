use adjutant_core::port::MemoryLedger;
use adjutant_core::{
    CallId, FactLine, FilePatch, MemoryChange, MemoryEffect, MemoryScope, MemorySource,
    MemoryState, TurnId,
};
use serde_json::json;
use uuid::Uuid;

use super::fixture::{at, conversation, key, turn, user};

pub(crate) fn scope(name: &str, vault: &str) -> MemoryScope {
    MemoryScope {
        user: user(name),
        vault: vault.to_owned(),
    }
}

pub(crate) fn line(text: &str) -> FactLine {
    FactLine {
        text: text.to_owned(),
        line: format!("- [2025-12-10] {text}\r\n  below \0"),
        important: false,
        place: 3,
        created: Some(at(0)),
    }
}

/// A change of a fact, the `number`th of all.
pub(crate) fn fact(number: u32, before: Option<&str>, after: Option<&str>) -> MemoryChange {
    let turn: TurnId = turn(number);
    MemoryChange {
        id: Uuid::from_u128(u128::from(number)),
        at: at(number.into()),
        source: Some(MemorySource {
            conversation: conversation("anna", number).conversation,
            turn,
            call: CallId::new("call_1").unwrap(),
        }),
        key: Some(key(&format!("k{number}"))),
        effect: MemoryEffect::Fact {
            before: before.map(line),
            after: after.map(line),
        },
        state: MemoryState::Done,
        patch: Some(FilePatch {
            after: "ab".repeat(32),
            at: 7,
            removed: "\r\n\0é".to_owned(),
            inserted: 3,
        }),
    }
}

fn note(number: u32) -> MemoryChange {
    let effect = MemoryEffect::Note {
        path: "Tage/2025-12-10.md".to_owned(),
        inserted: "- 14:05 \u{0}\u{1f600} \"words\"\n".repeat(10_000),
        created: false,
        found_before: 2,
        answer: json!({ "file_path": "Tage/2025-12-10.md", "ratio": 0.1 }),
    };
    MemoryChange {
        effect,
        source: None,
        key: None,
        ..fact(number, None, None)
    }
}

/// Every change is read as it was written, newest first, up to the limit.
pub async fn changes_of_a_memory_come_back_as_they_were(store: &impl MemoryLedger) {
    // Longer than any database indexes, with characters that are hard to store.
    let long = format!("{} \u{0} é e\u{301} 漢字", "x".repeat(5000));
    let anna = scope("anna", &format!("/vaults/{}", "long ".repeat(800)));
    let changes = [
        fact(1, None, Some("Josh has a cat")),
        fact(2, Some("Josh has a cat"), Some(&long)),
        note(3),
        fact(4, Some(&long), None),
        MemoryChange {
            state: MemoryState::Begun,
            ..fact(5, None, Some(""))
        },
    ];
    assert_eq!(store.newest(&anna, 10).await.unwrap(), []);
    for change in &changes {
        store.put(&anna, change).await.unwrap();
    }
    let mut newest = store.newest(&anna, usize::MAX).await.unwrap();
    assert_eq!(store.newest(&anna, 2).await.unwrap(), newest[..2]);
    assert_eq!(store.newest(&anna, 0).await.unwrap(), []);
    newest.reverse();
    assert_eq!(newest, changes);
    assert_eq!(
        store.about(&anna, &long).await.unwrap(),
        [changes[1].clone(), changes[3].clone()]
    );
    assert_eq!(
        store.about(&anna, "Josh has a cat").await.unwrap(),
        changes[..2]
    );
    assert_eq!(store.about(&anna, "josh has a cat").await.unwrap(), []);
    assert_eq!(store.about(&anna, "").await.unwrap(), changes[4..]);
}

/// A change with the same id replaces the earlier one in its place, and is found by its new
/// content.
pub async fn a_change_of_a_memory_is_replaced_in_its_place(store: &impl MemoryLedger) {
    let anna = scope("anna", "/v");
    let first = MemoryChange {
        state: MemoryState::Begun,
        ..fact(1, None, Some("a"))
    };
    let second = fact(2, None, Some("b"));
    store.put(&anna, &first).await.unwrap();
    store.put(&anna, &second).await.unwrap();
    let replaced = MemoryChange {
        key: Some(key("other")),
        id: first.id,
        ..fact(9, Some("x"), Some("c"))
    };
    store.put(&anna, &replaced).await.unwrap();
    assert_eq!(
        store.newest(&anna, 10).await.unwrap(),
        [second, replaced.clone()]
    );
    assert_eq!(store.about(&anna, "a").await.unwrap(), []);
    assert_eq!(
        store.about(&anna, "x").await.unwrap(),
        std::slice::from_ref(&replaced)
    );
    assert_eq!(store.by_key(&anna, &key("k1")).await.unwrap(), None);
    assert_eq!(
        store.by_key(&anna, &key("other")).await.unwrap(),
        Some(replaced.clone())
    );
    // Of several under one key, the newest counts.
    let again = MemoryChange {
        key: Some(key("other")),
        ..fact(3, None, Some("d"))
    };
    store.put(&anna, &again).await.unwrap();
    assert_eq!(
        store.by_key(&anna, &key("other")).await.unwrap(),
        Some(again)
    );
}

/// Users and vaults are separate, even for the same id.
pub async fn memories_belong_to_their_user_and_vault(store: &impl MemoryLedger) {
    let scopes = [
        scope("anna", "/v"),
        scope("bert", "/v"),
        scope("anna", "/w"),
        scope("ann", "a/v"),
        scope("anna/", "v"),
    ];
    for (at, scope) in scopes.iter().enumerate() {
        let text = at.to_string();
        store.put(scope, &fact(1, None, Some(&text))).await.unwrap();
    }
    for (at, scope) in scopes.iter().enumerate() {
        let text = at.to_string();
        let mine = [fact(1, None, Some(&text))];
        assert_eq!(store.newest(scope, 10).await.unwrap(), mine);
        assert_eq!(
            store.by_key(scope, &key("k1")).await.unwrap().as_slice(),
            mine
        );
        assert_eq!(store.about(scope, &text).await.unwrap(), mine);
        assert_eq!(store.about(scope, &(at + 1).to_string()).await.unwrap(), []);
    }
}
