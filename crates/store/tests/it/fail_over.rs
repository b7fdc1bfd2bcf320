//! Fail-over of PostgreSQL to a standby: with all commits, and without the last ones.

use std::time::{Duration, Instant};

use adjutant_core::port::{Begin, Begun, Journal as _};
use adjutant_core::{AgentName, ConversationKey, Event, Input, InputBody, InputId, UserId};
use adjutant_store::postgres::Store;
use adjutant_store::{CommitRisk, Maintenance as _};

use crate::standby::{PATIENCE, Pair};

fn key(number: u32) -> ConversationKey {
    ConversationKey {
        agent: AgentName::adjutant(),
        user: UserId::local(),
        conversation: format!("00000000-0000-7000-8000-{number:012}")
            .parse()
            .unwrap(),
    }
}

/// Commits the first events of a conversation.
async fn commit(store: &Store, number: u32) {
    let turn = serde_json::json!({
        "event": "turn_started", "turn": format!("11111111-0000-7000-8000-{number:012}"), "input": "i1", "message": "hello",
        "message_chars": 5, "model": {"provider": "scripted", "name": "demo"}, "limits": {},
    });
    let turn: Event = serde_json::from_value(turn).unwrap();
    let begin = Begin {
        input: Some(&input()),
        turn: &[turn],
        first: None,
        worker: "worker".into(),
        lease: Duration::from_secs(60),
        known: None,
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    let begun = store.begin(&key(number), begin).await.unwrap();
    assert!(matches!(begun, Begun::Started(_)), "{begun:?}");
}

/// A primary with a standby is killed, and the standby takes its place at the same address. The
/// last commit reaches the standby only if `arrives`. Returns true if the store knows that it is
/// lost, and `None` without PostgreSQL on this machine.
async fn fail_over(arrives: bool) -> Option<bool> {
    let mut pair = Pair::start().await?;
    let store = Store::connect(&pair.url(), 4).await.unwrap();
    commit(&store, 1).await;
    let replication = store.replication().await.unwrap().unwrap();
    assert_eq!(replication.receivers, 1);
    // The servers of tests do not sync.
    assert_eq!(replication.risk(), Some(CommitRisk::NoSync));
    if !arrives {
        pair.cut_off().await;
    }
    commit(&store, 2).await;
    if arrives {
        pair.wait_until_caught_up().await;
    }
    assert_eq!(store.since_lost_commits(), None);
    pair.fail_over().await;
    // Calls on connections to the old server fail; then one finds the new server.
    let until = Instant::now() + PATIENCE;
    while store.submit(&key(3), &input()).await.is_err() {
        assert!(Instant::now() < until, "the store never came back");
    }
    Some(store.since_lost_commits().is_some())
}

fn input() -> Input {
    Input::new(
        InputId::new("i1").unwrap(),
        jiff::Timestamp::UNIX_EPOCH,
        InputBody::message("hello"),
    )
}

#[tokio::test]
async fn commits_that_a_fail_over_has_lost_are_noticed() {
    assert_ne!(fail_over(false).await, Some(false));
}

#[tokio::test]
async fn a_fail_over_with_all_commits_is_harmless() {
    assert_ne!(fail_over(true).await, Some(true));
}
