//! Turns in a worker, told where they were asked for, and stopped from there.

use std::time::Duration;

use adjutant_core::{ConversationId, OutcomeCategory};
use adjutant_runtime::{Agent, RunContext, RunEvent};
use uuid::Uuid;

use crate::bench::Bench;
use crate::worker::agent;

const HOUR: Duration = Duration::from_secs(3600);

/// Between two looks at what happens by itself.
const LOOK: Duration = Duration::from_millis(10);

/// A worker, and a front that hears it.
async fn bench() -> (Bench, crate::worker::Worker) {
    let bench = Bench::new(HOUR).await;
    let worker = bench.start(None);
    bench.front.hear_others();
    let relay = bench.front.journal().relay();
    while relay.name().is_none() {
        tokio::time::sleep(LOOK).await;
    }
    // From its first turn on the worker says what happens, wherever it is.
    while events(&bench.front, "hello").await.0.len() < 4 {}
    (bench, worker)
}

fn context() -> RunContext {
    RunContext { conversation: ConversationId(Uuid::now_v7()), ..RunContext::default() }
}

/// Returns the events of a turn, without what differs between two of them, and the answer.
async fn events(agent: &Agent, words: &str) -> (Vec<String>, String) {
    let mut stream = agent.stream(&context(), words);
    let mut told = Vec::new();
    while let Some(event) = stream.next().await {
        told.push(match event {
            RunEvent::Text(words) => words,
            RunEvent::ToolStarted { call } => format!("{} {:?}", call.name, call.arguments),
            RunEvent::ToolFinished { tool, result, .. } => format!("{tool} {:?}", result.success),
            other => format!("{other:?}").chars().take_while(char::is_ascii_alphanumeric).collect(),
        });
    }
    (told, stream.finish().await.unwrap().0.content)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_in_a_worker_is_told_where_it_was_asked() {
    let (bench, _worker) = bench().await;
    let alone = agent(&crate::worker::Setup { name: "alone".to_owned(), ..bench.setup.clone() }).await;
    for words in ["hello", "two Keyed"] {
        let without = events(&alone, words).await;
        assert_eq!(events(&bench.front, words).await, without);
        assert!(without.0.len() >= 4, "{without:?}");
    }
    assert_eq!(
        bench.restate.calls().iter().filter(|call| **call == "completed").count(),
        bench.restate.calls().len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_in_a_worker_is_stopped_from_where_it_was_asked() {
    let (bench, _worker) = bench().await;
    bench.world.hold();
    let context = context();
    let stream = bench.front.stream(&context, "two None");
    bench.world.arrivals.acquire_many(2).await.unwrap().forget();
    context.cancelled.cancel();
    let (response, _) = stream.finish().await.unwrap();
    assert_eq!(response.outcome, OutcomeCategory::Cancelled);
    assert!(bench.elsewhere.seen(context.conversation).is_empty(), "it was the worker's");
    let loaded = bench.load(context.conversation, &context.user).await;
    assert!(loaded.inbox.is_empty(), "the cancellation was taken");
}
