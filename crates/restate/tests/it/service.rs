//! The whole service with Restate behind it, and either or both of them gone.

use std::time::Duration;

use adjutant_core::{ConversationId, InputId, UserId, conversation};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::bench::{Bench, http};
use crate::invariants;
use crate::restate::free_port;
use crate::worker::{Worker, work_if_told};

const HOUR: Duration = Duration::from_secs(3600);

/// A bench whose workers also serve; where.
async fn bench() -> (Bench, String) {
    let mut bench = Bench::new(HOUR).await;
    let address = format!("127.0.0.1:{}", free_port());
    bench.setup.service = Some(address.parse().unwrap());
    (bench, address)
}

async fn chat(address: &str, key: &str, body: Value) -> (u16, Value) {
    let headers = format!("Content-Type: application/json\r\nIdempotency-Key: {key}\r\n");
    http(address, "POST /v1/chat", &headers, &body.to_string()).await
}

impl Bench {
    /// SIGKILL for Restate and the service, and both started again.
    fn kill_both(&mut self, worker: Worker) -> Worker {
        self.restate.crash();
        drop(worker);
        self.restate.run();
        self.start(None)
    }

    async fn check(&self, conversation: ConversationId, inputs: &[&str], kills: usize) {
        let inputs: Vec<InputId> = inputs.iter().map(|id| InputId::new(*id).unwrap()).collect();
        let loaded = self.load(conversation, &UserId::local()).await;
        invariants::check(
            &loaded,
            &inputs,
            &self.world.seen(conversation),
            kills,
            "the service",
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_answered_without_restate_too() {
    work_if_told().await;
    let (mut bench, address) = bench().await;
    let _worker = bench.start(None);
    let conversation = ConversationId(Uuid::now_v7());
    let thread = conversation.to_string();
    bench.restate.crash();
    let (status, body) = chat(
        &address,
        "a",
        json!({"message": "two Once", "thread_id": thread}),
    )
    .await;
    assert_eq!(
        (status, &body["content"]),
        (200, &json!("Worked.")),
        "{body}"
    );
    bench.restate.run();
    let (status, body) = chat(
        &address,
        "b",
        json!({"message": "hello", "thread_id": thread}),
    )
    .await;
    assert_eq!((status, &body["content"]), (200, &json!("Hi.")), "{body}");
    bench.check(conversation, &["a", "b"], 0).await;
    assert_eq!(bench.world.seen(conversation).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_counts_after_both_were_killed() {
    let (mut bench, address) = bench().await;
    let worker = bench.start(None);
    let conversation = ConversationId(Uuid::now_v7());
    let thread = conversation.to_string();
    let (status, body) = chat(
        &address,
        "ask",
        json!({"message": "careful Once", "thread_id": thread}),
    )
    .await;
    assert_eq!(
        (status, &body["outcome"]),
        (200, &json!("PENDING:CONFIRMATION")),
        "{body}"
    );
    assert!(bench.world.seen(conversation).is_empty());
    // It was Restate that had it gone on, and no call of it waits for a person.
    bench.restate.wait_for_ends(1);

    let _worker = bench.kill_both(worker);
    let yes = json!({"thread_id": thread, "resume": [{"interrupt_id": body["pending"][0]["interrupt_id"], "approved": true}]});
    let (status, body) = chat(&address, "yes", yes.clone()).await;
    assert_eq!(
        (status, &body["content"]),
        (200, &json!("Worked.")),
        "{body}"
    );
    bench.restate.wait_for_ends(2);
    // Said again, it is the same yes.
    let (status, body) = chat(&address, "yes", yes).await;
    assert_eq!(
        (status, &body["content"]),
        (200, &json!("Worked.")),
        "{body}"
    );
    bench.check(conversation, &["ask", "yes"], 1).await;
    assert_eq!(bench.world.seen(conversation).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_in_the_middle_of_its_calls_goes_on_after_both_were_killed() {
    let (mut bench, address) = bench().await;
    let worker = bench.start(None);
    let conversation = ConversationId(Uuid::now_v7());
    let request = json!({"message": "two Keyed", "thread_id": conversation.to_string()});
    bench.world.hold();
    let asked = {
        let (address, request) = (address.clone(), request.clone());
        tokio::spawn(async move { chat(&address, "once", request).await })
    };
    bench.world.arrivals.acquire_many(2).await.unwrap().forget();
    let _worker = bench.kill_both(worker);
    assert_eq!(asked.await.unwrap().0, 0, "whoever asked was cut off");
    bench.world.release();

    // Nobody asks again: it is gone on with all the same.
    let finished = bench
        .until(conversation, &UserId::local(), |loaded| {
            loaded.inbox.is_empty() && conversation::open_turn(&loaded.events).is_none()
        })
        .await;
    let (status, body) = chat(&address, "once", request).await;
    assert_eq!(
        (status, &body["content"]),
        (200, &json!("Worked.")),
        "{body}"
    );
    assert_eq!(bench.load(conversation, &UserId::local()).await, finished);
    bench.check(conversation, &["once"], 1).await;
}
