//! The stored format of events: version 1 must stay readable.

use std::collections::BTreeSet;

use adjutant_core::port::{Branching, ConversationStore as _, Deleted, Journal as _, StoreError};
use adjutant_core::{
    AgentName, ConversationKey, Event, Input, InputBody, InputId, Recorded, UserId,
};
use adjutant_store::sqlite::Store;
use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, SqliteConnection};
use tempfile::TempDir;

use crate::place;

/// Made by us: every kind of event, and of everything in them, as version 1 stores it.
const EVENTS_V1: &str = include_str!("../../fixtures/events-v1.jsonl");

const KINDS_V1: [&str; 15] = [
    "history_set",
    "turn_started",
    "model_replied",
    "call_checked",
    "call_started",
    "call_finished",
    "call_in_doubt",
    "doubt_resolved",
    "turn_parked",
    "call_answered",
    "answer_refused",
    "answer_unclear",
    "input_ignored",
    "session_ended",
    "turn_finished",
];

fn key() -> ConversationKey {
    let conversation = "00000000-0000-7000-8000-000000000001".parse().unwrap();
    ConversationKey {
        agent: AgentName::adjutant(),
        user: UserId::local(),
        conversation,
    }
}

/// A store with one conversation, and a second connection to manipulate it.
async fn tampered() -> (TempDir, Store, SqliteConnection) {
    let (folder, path) = place();
    let store = Store::open(&path).await.unwrap();
    let body = InputBody::message("hello");
    let input = Input::new(
        InputId::new("i1").unwrap(),
        jiff::Timestamp::UNIX_EPOCH,
        body,
    );
    store.submit(&key(), &input).await.unwrap();
    let hand = SqliteConnectOptions::new()
        .filename(&path)
        .connect()
        .await
        .unwrap();
    (folder, store, hand)
}

async fn insert(hand: &mut SqliteConnection, seq: i64, v: i64, kind: &str, body: &str) {
    sqlx::query("INSERT INTO adjutant_event (conversation, seq, v, kind, body, at) VALUES (1, ?, ?, ?, ?, '2026-01-01T00:00:00Z')")
        .bind(seq)
        .bind(v)
        .bind(kind)
        .bind(body)
        .execute(hand)
        .await
        .unwrap();
}

#[tokio::test]
async fn events_of_version_1_are_read_and_nothing_of_them_is_lost() {
    let (_folder, store, mut hand) = tampered().await;
    let lines: Vec<Value> = EVENTS_V1
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (seq, line) in (1..).zip(&lines) {
        let kind = line["event"]["event"].as_str().unwrap();
        insert(
            &mut hand,
            seq,
            line["v"].as_i64().unwrap(),
            kind,
            &line["event"].to_string(),
        )
        .await;
    }
    let loaded = store.load(&key()).await.unwrap().events;
    assert_eq!(loaded.len(), lines.len());
    for (recorded, line) in loaded.iter().zip(&lines) {
        let written = serde_json::to_value(&*recorded.event).unwrap();
        check_kept(&line["event"], &written, recorded.event.kind());
    }
    let kinds: BTreeSet<_> = loaded
        .iter()
        .map(|recorded| recorded.event.kind())
        .collect();
    assert_eq!(kinds, BTreeSet::from(KINDS_V1));
}

/// A later version may write more, never less and nothing else.
fn check_kept(stored: &Value, written: &Value, place: &str) {
    match (stored, written) {
        (Value::Object(stored), Value::Object(written)) => {
            for (name, value) in stored {
                let place = format!("{place}.{name}");
                check_kept(
                    value,
                    written
                        .get(name)
                        .unwrap_or_else(|| panic!("{place} is lost")),
                    &place,
                );
            }
        }
        (Value::Array(stored), Value::Array(written)) => {
            assert_eq!(stored.len(), written.len(), "{place}");
            for (at, (stored, written)) in stored.iter().zip(written).enumerate() {
                check_kept(stored, written, &format!("{place}[{at}]"));
            }
        }
        (stored, written) => assert_eq!(stored, written, "{place}"),
    }
}

#[tokio::test]
async fn what_cannot_be_understood_is_named_and_left_as_it_is() {
    let ignored = r#"{"event":"input_ignored","input":"i0","reason":"none"}"#;
    let cases = [
        (
            2,
            "input_ignored",
            ignored,
            "format version 2, this program reads 1",
        ),
        (
            1,
            "mind_changed",
            r#"{"event":"mind_changed"}"#,
            "mind_changed",
        ),
        (
            1,
            "input_ignored",
            r#"{"event":"input_ignored"}"#,
            "missing field",
        ),
        (1, "input_ignored", r#"{"event":"#, "EOF"),
        (
            1,
            "turn_started",
            ignored,
            "its body says it is input_ignored",
        ),
    ];
    for (v, kind, body, words) in cases {
        let (_folder, store, mut hand) = tampered().await;
        insert(&mut hand, 1, 1, "input_ignored", ignored).await;
        insert(&mut hand, 2, v, kind, body).await;
        let error = store.load(&key()).await.unwrap_err();
        let StoreError::Unreadable { message, .. } = &error else {
            panic!("{error:?}")
        };
        let place = format!("event 2 ({kind}) of conversation {}", key().conversation);
        for word in [
            words,
            &place,
            "left as it is",
            store.path().unwrap().to_str().unwrap(),
        ] {
            assert!(message.contains(word), "{word:?} is not in {message:?}");
        }
        let kept: (i64, String, String) =
            sqlx::query_as("SELECT v, kind, body FROM adjutant_event WHERE seq = 2")
                .fetch_one(&mut hand)
                .await
                .unwrap();
        assert_eq!(kept, (v, kind.to_owned(), body.to_owned()));
    }
}

#[tokio::test]
async fn an_input_that_cannot_be_understood_is_named() {
    for change in [
        "UPDATE adjutant_inbox SET v = 7",
        "UPDATE adjutant_inbox SET body = '{\"kind\":\"song\"}'",
    ] {
        let (_folder, store, mut hand) = tampered().await;
        sqlx::query(change).execute(&mut hand).await.unwrap();
        let error = store.load(&key()).await.unwrap_err();
        assert!(matches!(error, StoreError::Unreadable { .. }), "{error:?}");
        assert!(
            error
                .to_string()
                .contains(&format!("input i1 of conversation {}", key().conversation)),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_long_value_is_kept_once_and_goes_with_its_conversation() {
    let (_folder, store, mut hand) = tampered().await;
    let ignored = |chars: usize| Event::InputIgnored {
        input: InputId::new("i0").unwrap(),
        reason: "x".repeat(chars),
    };
    let events = [
        ignored(1000),
        ignored(300_000),
        ignored(300_000),
        ignored(400_000),
    ];
    store
        .append(
            &key(),
            &Recorded::sequence(1, jiff::Timestamp::UNIX_EPOCH, &events),
        )
        .await
        .unwrap();
    let kept: Vec<i64> = sqlx::query_scalar("SELECT length(body) FROM adjutant_event ORDER BY seq")
        .fetch_all(&mut hand)
        .await
        .unwrap();
    assert!(
        kept[0] > 1000 && kept[1..].iter().all(|length| *length < 200),
        "{kept:?}"
    );
    let values = "SELECT length(body) FROM adjutant_blob ORDER BY 1";
    let lengths: Vec<i64> = sqlx::query_scalar(values)
        .fetch_all(&mut hand)
        .await
        .unwrap();
    assert_eq!(lengths, [300_002, 400_002]);

    let other = ConversationKey {
        agent: AgentName::adjutant(),
        user: UserId::new("bert").unwrap(),
        ..key()
    };
    let input = Input::new(
        InputId::new("i1").unwrap(),
        jiff::Timestamp::UNIX_EPOCH,
        InputBody::message("hello"),
    );
    store.submit(&other, &input).await.unwrap();
    store
        .append(
            &other,
            &Recorded::sequence(1, jiff::Timestamp::UNIX_EPOCH, &events),
        )
        .await
        .unwrap();
    let lengths: Vec<i64> = sqlx::query_scalar(values)
        .fetch_all(&mut hand)
        .await
        .unwrap();
    assert_eq!(
        lengths.len(),
        4,
        "nothing of one user's is shared with another's"
    );
    assert_eq!(store.delete(&other).await.unwrap(), Deleted::Yes);
    let lengths: Vec<i64> = sqlx::query_scalar(values)
        .fetch_all(&mut hand)
        .await
        .unwrap();
    assert_eq!(lengths.len(), 2);

    sqlx::query("DELETE FROM adjutant_blob")
        .execute(&mut hand)
        .await
        .unwrap();
    let error = store.load(&key()).await.unwrap_err();
    let says = |part: &str| matches!(&error, StoreError::Unreadable { message, .. } if message.contains(part));
    assert!(says("event 2") && says("missing"), "{error:?}");
}

#[tokio::test]
async fn a_branch_keeps_the_long_values_of_its_own_events_and_no_others() {
    let (_folder, store, mut hand) = tampered().await;
    let at = jiff::Timestamp::UNIX_EPOCH;
    let ignored = |letter: &str, chars: usize| {
        let reason = letter.repeat(chars);
        Recorded::sequence(
            1,
            at,
            &[Event::InputIgnored {
                input: InputId::new("i0").unwrap(),
                reason,
            }],
        )
        .remove(0)
    };
    let [shared, left, own] = [ignored("a", 2000), ignored("b", 3000), ignored("c", 4000)];
    store
        .append(&key(), &[shared.clone(), Recorded { seq: 2, ..left }])
        .await
        .unwrap();
    let id = "00000000-0000-7000-8000-000000000002".parse().unwrap();
    let branch = ConversationKey {
        conversation: id,
        ..key()
    };
    store
        .branch(Branching {
            from: &key(),
            seq: 1,
            id,
            at,
        })
        .await
        .unwrap();
    let own = Recorded { seq: 2, ..own };
    store
        .append(&branch, std::slice::from_ref(&own))
        .await
        .unwrap();
    assert_eq!(store.delete(&key()).await.unwrap(), Deleted::Yes);

    assert_eq!(store.load(&branch).await.unwrap().events, [shared, own]);
    let lengths: Vec<i64> = sqlx::query_scalar("SELECT length(body) FROM adjutant_blob ORDER BY 1")
        .fetch_all(&mut hand)
        .await
        .unwrap();
    assert_eq!(lengths, [2002, 4002], "what was deleted is gone");
}

/// Long bodies as earlier versions stored them.
#[tokio::test]
async fn a_body_that_is_kept_apart_as_a_whole_is_read() {
    let (_folder, store, mut hand) = tampered().await;
    insert(&mut hand, 1, 1, "input_ignored", "").await;
    sqlx::query("UPDATE adjutant_event SET blob = 'its hash'")
        .execute(&mut hand)
        .await
        .unwrap();
    sqlx::query("UPDATE adjutant_conversation SET next_seq = 2")
        .execute(&mut hand)
        .await
        .unwrap();
    sqlx::query("INSERT INTO adjutant_blob VALUES (1, 'its hash', '{\"event\":\"input_ignored\",\"input\":\"i0\",\"reason\":\"x\"}')")
        .execute(&mut hand)
        .await
        .unwrap();
    let events = store.load(&key()).await.unwrap().events;
    assert!(matches!(&*events[0].event, Event::InputIgnored { reason, .. } if reason == "x"));
}

#[tokio::test]
async fn what_is_said_where_nothing_can_be_read_waits_for_a_version_that_can() {
    let (_folder, store, mut hand) = tampered().await;
    insert(
        &mut hand,
        1,
        2,
        "mind_changed",
        r#"{"event":"mind_changed"}"#,
    )
    .await;
    let input = Input::new(
        InputId::new("i2").unwrap(),
        jiff::Timestamp::UNIX_EPOCH,
        InputBody::message("are you there?"),
    );
    store.submit(&key(), &input).await.unwrap();
    assert!(matches!(
        store.load(&key()).await,
        Err(StoreError::Unreadable { .. })
    ));
    let waiting: i64 =
        sqlx::query_scalar("SELECT count(*) FROM adjutant_inbox WHERE taken_seq IS NULL")
            .fetch_one(&mut hand)
            .await
            .unwrap();
    assert_eq!(waiting, 2);
    assert_eq!(
        store.unsettled(&AgentName::adjutant(), None).await.unwrap(),
        [key()]
    );
}
