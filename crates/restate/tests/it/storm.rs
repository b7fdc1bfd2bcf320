//! Two services under load; either of them, Restate, or all of them together killed again and
//! again.

use std::time::Duration;

use adjutant_core::{ConversationId, Event, InputId, UserId};
use serde_json::{Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use crate::bench::{Bench, http};
use crate::invariants;
use crate::restate::free_port;
use crate::worker::{Setup, Worker};

const CONVERSATIONS: usize = 6;
/// The messages of each conversation, in turn.
const WORDS: [&str; 4] = ["two Keyed", "careful Once", "two None", "hello"];
const ROUNDS: usize = 3;
const KILLS: usize = 8;
/// Pause before a client repeats a request.
const PAUSE: Duration = Duration::from_millis(50);

/// Says it, here or there, until there is an answer.
async fn say(
    addresses: &[String; 2],
    conversation: ConversationId,
    id: &str,
    words: &str,
) -> Value {
    let headers = format!("Content-Type: application/json\r\nIdempotency-Key: {id}\r\n");
    let body = json!({"message": words, "thread_id": conversation.to_string()}).to_string();
    for attempt in 0.. {
        match http(&addresses[attempt % 2], "POST /v1/chat", &headers, &body).await {
            (200, answer) => return answer,
            // Gone, or it says itself that it may be tried again.
            (0 | 429 | 503, _) => tokio::time::sleep(PAUSE).await,
            (status, answer) => panic!("{id}: {status} {answer}"),
        }
    }
    unreachable!("there are always more attempts")
}

/// One conversation: everything asked is allowed, what is in doubt is left. The inputs, and those
/// that started a turn.
async fn talk(
    addresses: [String; 2],
    conversation: ConversationId,
    answered: watch::Sender<usize>,
) -> (Vec<InputId>, Vec<InputId>) {
    let (mut inputs, mut starts) = (Vec::new(), Vec::new());
    for (round, words) in (0..ROUNDS).flat_map(|round| WORDS.map(|words| (round, words))) {
        let mut said = words;
        loop {
            let id = InputId::new(format!("{round} {words}: {said}")).unwrap();
            let answer = say(&addresses, conversation, id.as_str(), said).await;
            if said == words {
                starts.push(id.clone());
            }
            inputs.push(id);
            answered.send_modify(|answered| *answered += 1);
            said = match answer["outcome"].as_str().unwrap() {
                "PENDING:CONFIRMATION" => "yes",
                _ if answer["pending"] != json!([]) => "leave it",
                _ => break,
            };
        }
    }
    (inputs, starts)
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_killed_under_load_every_turn_ends_once_and_in_order() {
    let mut bench = Bench::new(Duration::from_secs(3600)).await;
    let setups: [Setup; 2] = [0, 1].map(|number| Setup {
        name: format!("replica-{number}"),
        restate: bench.restate.address(free_port()),
        service: Some(format!("127.0.0.1:{}", free_port()).parse().unwrap()),
        ..bench.setup.clone()
    });
    let addresses = [0, 1].map(|number: usize| setups[number].service.unwrap().to_string());
    let mut workers: [Option<Worker>; 2] =
        [0, 1].map(|number: usize| Some(Worker::start(&setups[number], None)));

    let (answered, mut progress) = watch::channel(0);
    let mut talks = Vec::new();
    for _ in 0..CONVERSATIONS {
        let conversation = ConversationId(Uuid::now_v7());
        let talk = talk(addresses.clone(), conversation, answered.clone());
        talks.push((conversation, tokio::spawn(talk)));
    }
    let all = CONVERSATIONS * ROUNDS * WORDS.len();
    for kill in 1..=KILLS {
        progress
            .wait_for(|answered| *answered >= all * kill / (KILLS + 2))
            .await
            .unwrap();
        let (restate, first, second) = match kill % 4 {
            0 => (true, true, true),
            1 => (false, true, false),
            2 => (true, false, false),
            _ => (true, false, true),
        };
        if restate {
            bench.restate.crash();
        }
        for (worker, killed) in workers.iter_mut().zip([first, second]) {
            if killed {
                *worker = None;
            }
        }
        if restate {
            bench.restate.run();
        }
        for (worker, setup) in workers.iter_mut().zip(&setups) {
            worker.get_or_insert_with(|| Worker::start(setup, None));
        }
    }
    for (conversation, talk) in talks {
        let (inputs, starts) = talk.await.unwrap();
        let loaded = bench.load(conversation, &UserId::local()).await;
        invariants::check(
            &loaded,
            &inputs,
            &bench.world.seen(conversation),
            KILLS,
            "the storm",
        );
        let turns = loaded
            .events
            .iter()
            .filter_map(|recorded| match &*recorded.event {
                Event::TurnStarted { input, .. } => Some(input.clone()),
                _ => None,
            });
        assert_eq!(turns.collect::<Vec<_>>(), starts, "out of order");
    }
}
