//! The process that accepts inputs lives; the worker that Restate calls is killed, or nobody comes
//! back.

use std::time::Duration;

use adjutant_core::port::Loaded;
use adjutant_core::{
    AgentResponse, ConversationId, Effect, Event, Input, InputBody, InputId, OutcomeCategory,
    Recorded, UserId, Verdict, conversation,
};
use adjutant_runtime::RunContext;
use jiff::Timestamp;
use uuid::Uuid;

use crate::bench::{Bench, http};
use crate::invariants;
use crate::journal;

const HOUR: Duration = Duration::from_secs(3600);

/// The result of a scene.
struct Played {
    kills: usize,
    outcome: OutcomeCategory,
    content: String,
    doubts: usize,
}

impl Bench {
    /// Accepts an input and tells Restate. Who accepts one for somebody who waits would do the work
    /// if Restate took a second for it.
    async fn answered(
        &self,
        conversation: ConversationId,
        user: &UserId,
        input: Input,
    ) -> AgentResponse {
        let key = self.front.key_for(user.clone(), conversation);
        self.front.journal().submit(&key, &input).await.unwrap();
        let user_name = user.as_str().replace('/', "%2F").replace(' ', "%20");
        let call = format!("POST /Conversation/2:{conversation}:worker:{user_name}/advance/send");
        let (status, answer) = http(
            &format!("127.0.0.1:{}", self.restate.ingress),
            &call,
            "",
            "",
        )
        .await;
        assert!((200..300).contains(&status), "{status} {answer}");
        let response = |events: &[Recorded]| {
            let turn = events.last()?.event.turn()?;
            conversation::response(conversation, events, turn)
        };
        let is_so = |loaded: &Loaded| loaded.inbox.is_empty() && response(&loaded.events).is_some();
        let loaded = self.until(conversation, user, is_so).await;
        response(&loaded.events).unwrap()
    }

    /// Plays a scene with workers that are killed at these boundaries, one after the other; the
    /// last one lives. Restate alone knows that there is something to go on with. Everything asked
    /// is allowed, what is in doubt is left.
    async fn play(&self, scene: &str, effect: Effect, kill_at: &[u32]) -> Played {
        let user = UserId::new("ann/of the team").unwrap();
        let conversation = ConversationId(Uuid::now_v7());
        let mut kill_at = kill_at.iter().copied();
        let mut worker = self.start(kill_at.next());
        let mut kills = Vec::new();
        let mut inputs = Vec::new();
        let mut body = InputBody::message(format!("{scene} {effect:?}"));
        let response = loop {
            let id = InputId::new(Uuid::now_v7().to_string()).unwrap();
            inputs.push(id.clone());
            let asked = self.answered(
                conversation,
                &user,
                Input::new(id, Timestamp::UNIX_EPOCH, body),
            );
            tokio::pin!(asked);
            let response = loop {
                tokio::select! {
                    response = &mut asked => break response,
                    _ = &mut worker.gone => {
                        let words = worker.last_words();
                        assert!(words.contains("killed at boundary"), "after {kills:?}: {words}");
                        kills.push(words);
                        worker = self.start(kill_at.next());
                    }
                }
            };
            if response.decision.pending.is_empty() {
                break response;
            }
            let answers = response
                .decision
                .pending
                .iter()
                .map(|call| match call.doubt {
                    Some(_) => call.answer(Verdict::Leave),
                    None => call.answer(Verdict::Approved),
                });
            body = InputBody::Answers {
                answers: answers.collect(),
            };
        };
        let loaded = self.load(conversation, &user).await;
        let about = format!("{scene} {effect:?} {kills:?}");
        invariants::check(
            &loaded,
            &inputs,
            &self.world.seen(conversation),
            kills.len(),
            &about,
        );
        Played {
            kills: kills.len(),
            outcome: response.outcome,
            content: response.content,
            doubts: journal::in_doubt(&loaded).len(),
        }
    }
}

async fn at_every_boundary(effect: Effect) {
    let bench = Bench::new(HOUR).await;
    for scene in ["two", "careful"] {
        let golden = bench.play(scene, effect, &[]).await;
        assert_eq!((golden.content.as_str(), golden.doubts), ("Worked.", 0));
        let mut doubts = 0;
        for boundary in 1.. {
            let played = bench.play(scene, effect, &[boundary]).await;
            if played.kills == 0 {
                assert!(
                    boundary > 8,
                    "{scene}: only {} places to die at",
                    boundary - 1
                );
                break;
            }
            doubts += played.doubts;
            if played.doubts == 0 {
                assert_eq!(
                    (played.outcome, &played.content),
                    (golden.outcome, &golden.content)
                );
            }
        }
        // Between the start of a call and its end there are places to die at, and only there is
        // anything in doubt.
        assert_eq!(
            doubts > 0,
            effect == Effect::Once,
            "{scene}: {doubts} in doubt"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_reads_survives_a_kill_at_every_boundary() {
    at_every_boundary(Effect::None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_a_key_survives_a_kill_at_every_boundary() {
    at_every_boundary(Effect::Keyed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_must_not_be_repeated_is_not_whenever_the_worker_is_killed() {
    at_every_boundary(Effect::Once).await;
}

/// The worker that goes on is killed as well, at each of its first boundaries: it has passed the
/// place where the first one died by then. All pairs are played without Restate; a turn knows
/// nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_goes_on_may_be_killed_too() {
    const SECOND: std::ops::RangeInclusive<u32> = 1..=3;
    let bench = Bench::new(HOUR).await;
    let mut twice = 0;
    for first in 1.. {
        let mut killed = 0;
        for second in SECOND {
            let played = bench.play("two", Effect::Once, &[first, second]).await;
            twice += usize::from(played.kills == 2);
            killed += played.kills;
        }
        if killed == 0 {
            break;
        }
    }
    assert!(twice > 15, "only {twice} pairs of places to die at");
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_calls_expire_without_any_further_request() {
    let bench = Bench::new(Duration::from_millis(300)).await;
    let _worker = bench.start(None);
    let user = UserId::local();
    let mut context = RunContext::new(user.clone());
    let asked = bench
        .front
        .run_in(&mut context, "careful Once")
        .await
        .unwrap();
    assert_eq!(asked.outcome, OutcomeCategory::PendingConfirmation);
    let loaded = bench
        .until(context.conversation, &user, |loaded| {
            conversation::open_turn(&loaded.events).is_none()
        })
        .await;
    let answered = loaded
        .events
        .iter()
        .any(|recorded| matches!(&*recorded.event, Event::CallAnswered { .. }));
    assert!(
        answered && bench.world.seen(context.conversation).is_empty(),
        "{loaded:?}"
    );
}
