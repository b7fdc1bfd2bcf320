//! Restate's own handles on a call: cancelled and killed, and the one timer of a conversation that
//! waits.

use std::time::Duration;

use adjutant_core::{ConversationId, OutcomeCategory};
use adjutant_runtime::{RunContext, RunEvent};
use uuid::Uuid;

use crate::bench::Bench;
use crate::restate::Restate;

const HOUR: Duration = Duration::from_secs(3600);

/// Between two looks at what happens by itself.
const LOOK: Duration = Duration::from_millis(10);

fn context() -> RunContext {
    RunContext {
        conversation: ConversationId(Uuid::now_v7()),
        ..RunContext::default()
    }
}

impl Restate {
    /// The ids of its calls of which this is so.
    pub(crate) fn ids(&self, condition: &str) -> Vec<String> {
        self.rows(
            "id",
            &format!("select id from sys_invocation where {condition}"),
        )
    }
}

/// Ends a call in the middle of its tools by one of Restate's handles; the turn has to end with it.
async fn ended_by(handle: &str) {
    let bench = Bench::new(HOUR).await;
    let _worker = bench.start(None);
    bench.world.hold();
    let context = context();
    let stream = bench.front.stream(&context, "two None");
    bench.world.arrivals.acquire_many(2).await.unwrap().forget();
    let running = bench.restate.ids("status = 'running'");
    assert_eq!(running.len(), 1, "{running:?}");
    let (status, answer) = bench
        .restate
        .ask(&format!("PATCH /invocations/{}/{handle}", running[0]), "");
    assert!((200..300).contains(&status), "{status} {answer}");
    let (response, _) = stream.finish().await.unwrap();
    assert_eq!(response.outcome, OutcomeCategory::Cancelled, "{response:?}");
    assert!(
        bench.elsewhere.seen(context.conversation).is_empty(),
        "it was the worker's"
    );
    assert!(
        bench
            .load(context.conversation, &context.user)
            .await
            .inbox
            .is_empty()
    );
    // The conversation goes on.
    bench.world.release();
    let mut context = context;
    assert_eq!(
        bench
            .front
            .run_in(&mut context, "hello")
            .await
            .unwrap()
            .content,
        "Hi."
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_the_call_in_restate_stops_the_turn() {
    ended_by("cancel").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_call_in_restate_stops_the_turn() {
    ended_by("kill").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_waits_has_one_timer_until_it_is_answered() {
    let bench = Bench::new(HOUR).await;
    let _worker = bench.start(None);
    let mut context = context();
    let timers = async |wanted: usize| {
        // Restate knows of a call at once, and of its end a moment later.
        while bench.restate.ids("status = 'scheduled'").len() != wanted {
            tokio::time::sleep(LOOK).await;
        }
    };
    for words in ["careful Once", "perhaps", "who knows"] {
        let asked = bench.front.run_in(&mut context, words).await.unwrap();
        assert_eq!(
            asked.outcome,
            OutcomeCategory::PendingConfirmation,
            "{asked:?}"
        );
        timers(1).await;
    }
    assert_eq!(
        bench
            .front
            .run_in(&mut context, "yes")
            .await
            .unwrap()
            .content,
        "Worked."
    );
    timers(0).await;
    assert_eq!(bench.world.seen(context.conversation).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn words_go_on_when_the_worker_is_killed_while_it_is_heard() {
    let bench = Bench::new(HOUR).await;
    let worker = bench.start(None);
    bench.front.start_relay();
    while bench.front.journal().relay().name().is_none() {
        tokio::time::sleep(LOOK).await;
    }
    // From its first turn on the worker says what happens.
    bench.front.run("hello").await.unwrap();
    bench.world.hold();
    let context = context();
    let mut stream = bench.front.stream(&context, "two None");
    bench.world.arrivals.acquire_many(2).await.unwrap().forget();
    drop(worker);
    bench.world.release();
    let _worker = bench.start(None);
    let mut told = Vec::new();
    while let Some(event) = stream.next().await {
        told.push(event);
    }
    let (response, _) = stream.finish().await.unwrap();
    assert_eq!(response.content, "Worked.");
    let text = |event: &RunEvent| matches!(event, RunEvent::Text(words) if words == "Worked.");
    assert!(told.iter().any(text), "{told:?}");
}
