//! Turns in a worker, told where they were asked for, and stopped from there.

use std::time::Duration;

use adjutant_core::{ConversationId, OutcomeCategory};
use adjutant_runtime::{Agent, RunContext, RunEvent};
use uuid::Uuid;

use crate::bench::{Bench, NEVER};
use crate::worker::agent;

const HOUR: Duration = Duration::from_secs(3600);

/// Between two looks at what happens by itself.
const LOOK: Duration = Duration::from_millis(10);

/// A worker whose claims hold for so long without a sign of life, and a front that hears it.
async fn bench_with(lease: Option<Duration>) -> (Bench, crate::worker::Worker) {
    let mut bench = Bench::new(HOUR).await;
    bench.setup.lease_ms = lease.map(|lease| lease.as_millis().try_into().unwrap());
    let worker = bench.start(None);
    bench.front.start_relay();
    let relay = bench.front.journal().relay();
    while relay.name().is_none() {
        tokio::time::sleep(LOOK).await;
    }
    // From its first turn on the worker says what happens, wherever it is.
    while events(&bench.front, "hello").await.0.len() < 4 {}
    (bench, worker)
}

async fn bench() -> (Bench, crate::worker::Worker) {
    bench_with(None).await
}

fn context() -> RunContext {
    RunContext {
        conversation: ConversationId(Uuid::now_v7()),
        ..RunContext::default()
    }
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
            other => format!("{other:?}")
                .chars()
                .take_while(char::is_ascii_alphanumeric)
                .collect(),
        });
    }
    (told, stream.finish().await.unwrap().0.content)
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_worker_reach_the_process_that_was_asked() {
    let (bench, _worker) = bench().await;
    let alone = agent(&crate::worker::Setup {
        name: "alone".to_owned(),
        ..bench.setup.clone()
    })
    .await;
    for words in ["hello", "two Keyed"] {
        let without = events(&alone, words).await;
        assert_eq!(events(&bench.front, words).await, without);
        assert!(without.0.len() >= 4, "{without:?}");
    }
    // The answer is here before Restate knows that the call has ended.
    while bench
        .restate
        .calls()
        .iter()
        .any(|call| *call != "completed")
    {
        tokio::time::sleep(LOOK).await;
    }
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
    assert!(
        bench.elsewhere.seen(context.conversation).is_empty(),
        "it was the worker's"
    );
    let loaded = bench.load(context.conversation, &context.user).await;
    assert!(loaded.inbox.is_empty(), "the cancellation was taken");
}

/// Whoever waits takes a turn over from a worker that stands still, though its lease has not run
/// out.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_on_elsewhere_when_its_worker_stands_still() {
    let (bench, worker) = bench_with(Some(HOUR)).await;
    bench.world.hold();
    let context = context();
    let stream = bench.front.stream(&context, "two Keyed");
    bench.world.arrivals.acquire_many(2).await.unwrap().forget();
    worker.freeze();
    let (response, _) = tokio::time::timeout(NEVER, stream.finish())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(response.content, "Worked.");
    assert_eq!(
        bench.elsewhere.seen(context.conversation).len(),
        2,
        "they are called again, under the same keys"
    );
    // What it still writes is refused.
    let before = bench.load(context.conversation, &context.user).await.events;
    worker.thaw();
    bench.world.release();
    let mut after = context.clone();
    assert_eq!(
        bench
            .front
            .run_in(&mut after, "hello")
            .await
            .unwrap()
            .content,
        "Hi."
    );
    let events = bench.load(context.conversation, &context.user).await.events;
    assert_eq!(events[..before.len()], before);
}

/// A worker that is silent because its model or its tools take their time keeps what it has.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_asked_and_answers_keeps_what_it_has() {
    let (bench, _worker) = bench_with(Some(HOUR)).await;
    bench.world.hold();
    let context = context();
    let mut stream = bench.front.stream(&context, "two None");
    bench.world.arrivals.acquire_many(2).await.unwrap().forget();
    while !matches!(stream.next().await.unwrap(), RunEvent::ToolStarted { .. }) {}
    // Long enough to be asked more than once, and to be given up if it did not answer.
    tokio::time::sleep(Duration::from_secs(4)).await;
    bench.world.release();
    let (response, _) = stream.finish().await.unwrap();
    assert_eq!(response.content, "Worked.");
    assert!(
        bench.elsewhere.seen(context.conversation).is_empty(),
        "it was the worker's"
    );
}
