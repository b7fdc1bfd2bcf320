//! Leases: one worker at a time has a conversation, and its lease is released however its call
//! ends.

use adjutant_core::AgentName;
use std::time::Duration;

use adjutant_core::port::{Claim, Journal as _};
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::RunContext;
use tokio::sync::Notify;

use super::*;

/// A tool that says when it was begun, and then waits for ever.
fn endless(begun: &Arc<Notify>) -> FunctionTool {
    let begun = begun.clone();
    let tool = FunctionTool::new(
        "wait",
        "WaitOptions.",
        json!({"type": "object"}),
        move |_, _| {
            let begun = begun.clone();
            async move {
                begun.notify_one();
                std::future::pending().await
            }
        },
    );
    tool.unwrap().with_timeout(Duration::from_secs(3_600))
}

fn waiting(store: &Arc<InMemory>, begun: &Arc<Notify>) -> Agent {
    builder(ScriptedModel::new([
        call("wait", json!({})),
        text("Never said."),
    ]))
    .tools([Arc::new(endless(begun)) as Arc<dyn Tool>])
    .journal(store.clone(), "one")
    .build()
    .unwrap()
}

#[tokio::test]
async fn a_call_that_is_dropped_gives_the_conversation_back() {
    let (store, begun) = (Arc::new(InMemory::default()), Arc::new(Notify::new()));
    let agent = waiting(&store, &begun);
    let context = RunContext::default();
    let key = context.key(&AgentName::adjutant());
    let input = Input::new(
        InputId::new("i").unwrap(),
        agent.now(),
        InputBody::message("wait"),
    );
    store.submit(&key, &input).await.unwrap();
    tokio::select! {
        _ = agent.run_conversation(&key) => panic!("the tool never ends"),
        () = begun.notified() => {}
    }
    is_given_back(&store, &key).await;
}

#[tokio::test]
async fn a_task_that_is_aborted_gives_the_conversation_back() {
    let (store, begun) = (Arc::new(InMemory::default()), Arc::new(Notify::new()));
    let agent = waiting(&store, &begun);
    let context = RunContext::default();
    let key = context.key(&AgentName::adjutant());
    let input = Input::new(
        InputId::new("i").unwrap(),
        agent.now(),
        InputBody::message("wait"),
    );
    store.submit(&key, &input).await.unwrap();
    let task = tokio::spawn({
        let key = key.clone();
        async move { agent.run_conversation(&key).await }
    });
    begun.notified().await;
    assert_eq!(
        store
            .claim(&key, "two", Duration::from_secs(15))
            .await
            .unwrap(),
        Claim::Refused
    );
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    is_given_back(&store, &key).await;
}

/// Another worker can have it, and it was not taken for one that was lost.
async fn is_given_back(store: &InMemory, key: &ConversationKey) {
    let lease = Duration::from_secs(15);
    let mut claim = Claim::Refused;
    // It is given back by a task of its own, which runs when this one lets it.
    for _ in 0..100 {
        claim = store.claim(key, "two", lease).await.unwrap();
        if claim.is_held() {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(claim, Claim::Granted);
}
