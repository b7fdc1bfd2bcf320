//! A call whose end nobody saw: the tool is asked, then the person, and nothing runs twice that
//! must not.

mod missing_tool;

use adjutant_core::AgentName;
use std::sync::Mutex as StdMutex;

use adjutant_core::port::{Journal as _, LogStore as _};
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::RunContext;
use adjutant_store::sqlite;
use jiff::{SignedDuration, Timestamp};

use super::*;

/// The behaviour of one call of a [`Post`].
#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    /// It works.
    Sends,
    /// It is begun and nobody sees the end: the connection is lost after sending.
    IsLost,
    /// The same, by taking too long.
    Hangs,
    /// The same, by breaking down.
    Panics,
    /// It says no.
    Fails,
}

/// A tool with an effect outside, and whoever counts it.
struct Post {
    definition: ToolDefinition,
    /// The behaviours of the next calls; if none is left, [`Then::Sends`].
    script: StdMutex<Vec<Then>>,
    probe: Probe,
    /// The key of every call that was begun.
    begun: StdMutex<Vec<String>>,
}

const ONCE: Annotations = Annotations {
    read_only: false,
    destructive: false,
    idempotent: false,
    keyed: false,
    parallel: false,
    closed_world: false,
};

impl Post {
    fn new(annotations: Annotations, script: &[Then], probe: Probe) -> Arc<Self> {
        let schema =
            json!({"type": "object", "properties": {"to": {"type": "string", "minLength": 1}}});
        let definition = ToolDefinition::new("send", "Sends a letter.", schema)
            .unwrap()
            .annotated(annotations);
        let script = StdMutex::new(script.iter().rev().copied().collect());
        Arc::new(Self {
            definition,
            script,
            probe,
            begun: StdMutex::default(),
        })
    }

    fn times(&self) -> usize {
        self.begun.lock().unwrap().len()
    }
}

impl Tool for Post {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        self.begun.lock().unwrap().push(context.key.to_string());
        let then = self.script.lock().unwrap().pop().unwrap_or(Then::Sends);
        Box::pin(async move {
            match then {
                Then::Sends => Ok(json!("sent")),
                Then::IsLost => Err(ToolError::Unknown {
                    message: "the connection was lost".to_owned(),
                }),
                Then::Hangs => std::future::pending().await,
                Then::Panics => break_down(),
                Then::Fails => Err(ToolError::failed("no stamps")),
            }
        })
    }

    fn prepare<'a>(
        &'a self,
        _: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        let preview = arguments
            .get("to")
            .and_then(Value::as_str)
            .map(|to| format!("Send a letter to {to}"));
        Box::pin(std::future::ready(Ok(Prepared::Ready {
            arguments,
            preview,
        })))
    }

    fn probe<'a>(&'a self, _: &'a ToolContext, _: &'a Arguments) -> BoxFuture<'a, Probe> {
        Box::pin(std::future::ready(self.probe.clone()))
    }
}

#[expect(clippy::panic, reason = "this is the bug of the tool")]
fn break_down() -> ! {
    panic!("a bug")
}

/// The same tool in several agents.
struct Shared(Arc<Post>);

impl Tool for Shared {
    fn definition(&self) -> &ToolDefinition {
        self.0.definition()
    }

    fn call<'a>(
        &'a self,
        c: &'a ToolContext,
        a: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        self.0.call(c, a)
    }

    fn prepare<'a>(
        &'a self,
        c: &'a ToolContext,
        a: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        self.0.prepare(c, a)
    }

    fn probe<'a>(&'a self, c: &'a ToolContext, a: &'a Arguments) -> BoxFuture<'a, Probe> {
        self.0.probe(c, a)
    }

    fn timeout(&self) -> Option<std::time::Duration> {
        Some(std::time::Duration::from_millis(20))
    }
}

fn to(name: &str) -> Value {
    json!({ "to": name })
}

/// One process with the tool: an agent of its own over the shared store. Its script goes on where
/// the conversation is.
fn process(
    store: &Arc<sqlite::Store>,
    post: &Arc<Post>,
    replies: Vec<Reply>,
) -> (Agent, ScriptedModel) {
    let model = ScriptedModel::new(replies);
    let agent = builder(model.clone())
        .tool(Shared(post.clone()))
        .report_failed_calls(true)
        .journal(store.clone(), adjutant_store::worker_id())
        .build()
        .unwrap();
    (agent, model)
}

async fn store() -> Arc<sqlite::Store> {
    Arc::new(sqlite::Store::in_memory().await.unwrap())
}

fn letter() -> Vec<Reply> {
    vec![call("send", to("Anna")), text("That is that.")]
}

/// Says it to the agent, in the conversation as the journal has it.
async fn say(agent: &Agent, key: &ConversationKey, words: &str) -> AgentResponse {
    let mut context = agent.context(key).await.unwrap();
    agent.run_in(&mut context, words).await.unwrap()
}

async fn kinds(store: &sqlite::Store, key: &ConversationKey) -> Vec<&'static str> {
    store
        .load(key)
        .await
        .unwrap()
        .events
        .iter()
        .map(|recorded| recorded.event.kind())
        .collect()
}

/// A tool that hangs or panics becomes an error result for the model, and the process lives. A call
/// that may have happened is not made again.
#[tokio::test]
async fn a_tool_that_breaks_off_is_an_error_that_says_so_and_is_not_called_so_again() {
    for (then, words) in [
        (Then::Hangs, "tool_timeout"),
        (Then::Panics, "bug in the tool"),
    ] {
        let (store, post) = (store().await, Post::new(ONCE, &[then], Probe::Unknown));
        let replies = vec![
            call("send", to("Anna")),
            call("send", to("Anna")),
            text("It may have been sent."),
        ];
        let (agent, model) = process(&store, &post, replies);
        let response = agent.run("write to Anna").await.unwrap();
        assert_eq!(
            (response.outcome, post.times()),
            (OutcomeCategory::ToolFailure, 1),
            "{then:?}"
        );
        let told = |at: usize| {
            model.requests()[at]
                .messages
                .last()
                .unwrap()
                .tool_result()
                .unwrap()
                .2
                .to_text()
        };
        assert!(
            told(1).contains(words) && told(1).contains("may or may not"),
            "{}",
            told(1)
        );
        assert!(told(2).contains("may have been carried out"), "{}", told(2));
        // A tool that knows is believed.
        let post = Post::new(ONCE, &[then], Probe::Done(json!("sent")));
        let (agent, _) = process(&store, &post, letter());
        let response = agent.run("write to Anna").await.unwrap();
        assert_eq!(
            (response.outcome, post.times()),
            (OutcomeCategory::TaskCompleted, 1),
            "{then:?}"
        );
    }
}

#[tokio::test]
async fn a_call_that_may_have_taken_effect_is_resolved_by_the_person() {
    for then in [Then::IsLost] {
        for (answer, outcome, times, told) in [
            (
                "It was done.",
                OutcomeCategory::TaskCompleted,
                1,
                json!({"status": "done"}),
            ),
            (
                "not done, try again",
                OutcomeCategory::TaskCompleted,
                2,
                json!("sent"),
            ),
            (
                "leave it",
                OutcomeCategory::InDoubt,
                1,
                json!({"status": "unknown"}),
            ),
        ] {
            let (store, post) = (store().await, Post::new(ONCE, &[then], Probe::Unknown));
            let (agent, _) = process(&store, &post, letter());
            let mut context = RunContext::default();
            let asked = agent.run_in(&mut context, "write to Anna").await.unwrap();
            assert_eq!(asked.outcome, OutcomeCategory::InDoubt, "{then:?}");
            assert_eq!(asked.decision.kind, DecisionKind::RequestConfirmation);
            let shown = &asked.decision.pending[0];
            assert!(
                shown.doubt.is_some() && shown.preview == "Send a letter to Anna",
                "{shown:?}"
            );
            for words in [
                "Send a letter to Anna: I was interrupted",
                "may or may not",
                "try again",
            ] {
                assert!(
                    asked.content.contains(words),
                    "{words:?} is not in {}",
                    asked.content
                );
            }
            assert!(
                store
                    .unsettled(&AgentName::adjutant(), None)
                    .await
                    .unwrap()
                    .is_empty(),
                "it waits, and holds nobody"
            );

            // A yes is no answer to that, nor is anything else but the three; nothing runs, no
            // model reads it.
            let (other, model) = process(&store, &post, letter());
            for unclear in ["yes", "no", "do it", "was it done?", "hm"] {
                let again = say(&other, &context.key(&AgentName::adjutant()), unclear).await;
                assert_eq!(again.decision.pending, asked.decision.pending, "{unclear}");
            }
            assert_eq!((post.times(), model.calls_made()), (1, 0));

            let done = say(&other, &context.key(&AgentName::adjutant()), answer).await;
            assert_eq!(
                (done.outcome, done.turn),
                (outcome, asked.turn),
                "{then:?} {answer}"
            );
            assert!(done.content.contains("That is that."), "{}", done.content);
            assert_eq!(post.times(), times, "{then:?} {answer}");
            let result = model.requests()[0]
                .messages
                .last()
                .unwrap()
                .tool_result()
                .unwrap()
                .2
                .clone();
            let data = result.data.unwrap();
            let matches = if told.is_string() {
                *data == told
            } else {
                data["status"] == told["status"]
            };
            assert!(matches, "{data}");
            let log = store
                .tool_invocations(&UserId::local(), done.turn)
                .await
                .unwrap();
            assert_eq!(log.len(), 1, "each call has one row");
            let keys = post.begun.lock().unwrap().clone();
            assert!(
                keys.iter().all(|key| *key == keys[0]),
                "tried again with the same key: {keys:?}"
            );
        }
    }
}

/// A process whose server with the tool does not run.
fn without_tool(store: &Arc<sqlite::Store>, replies: Vec<Reply>) -> (Agent, ScriptedModel) {
    let model = ScriptedModel::new(replies);
    let agent = builder(model.clone())
        .report_failed_calls(true)
        .journal(store.clone(), adjutant_store::worker_id())
        .build()
        .unwrap();
    (agent, model)
}

#[tokio::test]
async fn a_probe_saves_the_person_the_question() {
    let probed = Probe::Done(json!("it had arrived"));
    for (probe, times, data) in [(probed, 1, "it had arrived"), (Probe::NotDone, 2, "sent")] {
        let (store, post) = (store().await, Post::new(ONCE, &[Then::IsLost], probe));
        let (agent, _) = process(&store, &post, letter());
        let done = agent.run("write to Anna").await.unwrap();
        assert_eq!(
            (done.outcome, post.times()),
            (OutcomeCategory::TaskCompleted, times)
        );
        assert_eq!(done.tools_used[0].outcome(), Ok(&json!(data)));
    }
    // Not done, again and again: then it failed, which is known.
    let lost = [Then::IsLost; 4];
    let (store, post) = (store().await, Post::new(ONCE, &lost, Probe::NotDone));
    let (agent, _) = process(&store, &post, letter());
    let failed = agent.run("write to Anna").await.unwrap();
    assert_eq!(
        (failed.outcome, post.times()),
        (OutcomeCategory::ToolFailure, 2)
    );
}

#[tokio::test]
async fn a_keyed_call_is_repeated_with_its_key_before_anybody_is_asked() {
    let keyed = Annotations {
        keyed: true,
        ..ONCE
    };
    let (store, post) = (
        store().await,
        Post::new(keyed, &[Then::IsLost], Probe::Unknown),
    );
    let (agent, _) = process(&store, &post, letter());
    assert_eq!(
        agent.run("write").await.unwrap().outcome,
        OutcomeCategory::TaskCompleted
    );
    let keys = post.begun.lock().unwrap().clone();
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");

    let post = Post::new(keyed, &[Then::IsLost; 2], Probe::Unknown);
    let (agent, _) = process(&store, &post, letter());
    assert_eq!(
        agent.run("write").await.unwrap().outcome,
        OutcomeCategory::InDoubt
    );
    assert_eq!(post.times(), 2);
}

#[tokio::test]
async fn a_failure_that_is_known_is_no_doubt_and_reading_never_is() {
    let (store, post) = (
        store().await,
        Post::new(ONCE, &[Then::Fails], Probe::Unknown),
    );
    let (agent, _) = process(&store, &post, letter());
    assert_eq!(
        agent.run("write").await.unwrap().outcome,
        OutcomeCategory::ToolFailure
    );
    let reading = Annotations {
        read_only: true,
        ..ONCE
    };
    let post = Post::new(reading, &[Then::Hangs], Probe::Unknown);
    let (agent, _) = process(&store, &post, letter());
    assert_eq!(
        agent.run("read").await.unwrap().outcome,
        OutcomeCategory::ToolFailure
    );
}

#[tokio::test]
async fn what_was_tried_again_may_come_into_doubt_again_and_old_answers_are_none() {
    let (store, post) = (
        store().await,
        Post::new(ONCE, &[Then::IsLost; 2], Probe::Unknown),
    );
    let (agent, _) = process(&store, &post, letter());
    let mut context = RunContext::default();
    let first = agent.run_in(&mut context, "write").await.unwrap();
    let retry = first.decision.pending[0].answer(Verdict::Retry);
    let second = agent
        .answer(&mut context, vec![retry.clone()])
        .await
        .unwrap();
    assert_eq!(
        (second.outcome, post.times()),
        (OutcomeCategory::InDoubt, 2)
    );
    let attempts =
        |response: &AgentResponse| response.decision.pending[0].doubt.as_ref().unwrap().attempt;
    assert_eq!((attempts(&first), attempts(&second)), (1, 2));

    // The first question was answered; the same answer again does not answer the second.
    let stale = agent.answer(&mut context, vec![retry]).await.unwrap();
    assert_eq!(
        (stale.notices[0].code.as_str(), post.times()),
        ("answered_before", 2)
    );
    let done = agent
        .answer(
            &mut context,
            vec![second.decision.pending[0].answer(Verdict::Retry)],
        )
        .await
        .unwrap();
    assert_eq!(
        (done.outcome, post.times()),
        (OutcomeCategory::TaskCompleted, 3)
    );
}

#[tokio::test]
async fn the_model_cannot_make_the_call_again_and_its_neighbours_keep_their_results() {
    let parallel = Annotations {
        parallel: true,
        ..ONCE
    };
    let (store, post) = (
        store().await,
        Post::new(parallel, &[Then::IsLost], Probe::Unknown),
    );
    let script = || {
        vec![
            call("send", to("Anna")).and_call("send", to("Bert")),
            call("send", to("Anna")).and_call("send", to("Carl")),
            text("Well."),
        ]
    };
    let (agent, _) = process(&store, &post, script());
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "write").await.unwrap();
    assert_eq!((post.times(), asked.decision.pending.len()), (2, 1));
    assert_eq!(
        asked.tools_used[0].arguments,
        to("Bert").as_object().cloned().unwrap()
    );
    let (other, model) = process(&store, &post, script());
    let done = say(&other, &context.key(&AgentName::adjutant()), "leave it").await;
    assert_eq!(done.outcome, OutcomeCategory::InDoubt);
    assert_eq!(
        post.times(),
        3,
        "Anna and Bert once, then Carl; not Anna again"
    );
    let last = &model.requests()[1].messages;
    let refused = last[last.len() - 2]
        .tool_result()
        .unwrap()
        .2
        .error
        .clone()
        .unwrap();
    assert!(refused.contains("may have been carried out"), "{refused}");
    check_pairing(last).unwrap();

    // Nor within the same answer, behind the call that is in doubt, or that broke off.
    for then in [Then::IsLost, Then::Hangs, Then::Panics] {
        let post = Post::new(ONCE, &[then], Probe::Unknown);
        let (agent, _) = process(
            &store,
            &post,
            vec![call("send", to("A")).and_call("send", to("A")), text("x")],
        );
        agent.run("write").await.unwrap();
        assert_eq!(post.times(), 1, "{then:?}");
    }
}

#[tokio::test]
async fn an_approved_call_whose_process_dies_is_asked_about_by_the_next() {
    let destructive = Annotations {
        destructive: true,
        ..ONCE
    };
    let (store, post) = (store().await, Post::new(destructive, &[], Probe::Unknown));
    let (agent, _) = process(&store, &post, letter());
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "write").await.unwrap();
    // The yes was recorded, the call begun, the process killed.
    let shown = &asked.decision.pending[0];
    let loaded = store
        .load(&context.key(&AgentName::adjutant()))
        .await
        .unwrap();
    let (turn, id) = (asked.turn, shown.call_id.clone());
    let events = [
        Event::CallAnswered {
            turn,
            call: id.clone(),
            input: None,
            verdict: Some(Verdict::Approved),
            edited: None,
            choice: ToolChoice::Auto,
            for_conversation: false,
        },
        Event::CallStarted {
            turn,
            call: id,
            tool: "send".to_owned(),
            arguments: shown.arguments.clone(),
            key: IdempotencyKey::new("k").unwrap(),
            effect: Effect::Once,
        },
    ];
    let began: Timestamp = "2026-11-22T14:02:00Z".parse().unwrap();
    store
        .append(
            &context.key(&AgentName::adjutant()),
            &Recorded::sequence(loaded.next_seq(), began, &events),
        )
        .await
        .unwrap();

    let (next, _) = process(&store, &post, letter());
    let resumed = next.recover(None).await.unwrap();
    assert_eq!(
        (resumed.len(), resumed[0].outcome, post.times()),
        (1, OutcomeCategory::InDoubt, 0)
    );
    assert!(
        resumed[0].content.contains("2026-11-22 14:02 UTC"),
        "{}",
        resumed[0].content
    );
    let waiting = &resumed[0].decision.pending[0];
    assert_ne!(
        waiting.digest, shown.digest,
        "the yes of before is no answer"
    );
    let mut context = next
        .context(&context.key(&AgentName::adjutant()))
        .await
        .unwrap();
    let stale = next
        .answer(&mut context, vec![shown.answer(Verdict::Approved)])
        .await
        .unwrap();
    assert_eq!((stale.outcome, post.times()), (OutcomeCategory::InDoubt, 0));
    // A verdict that does not fit the question is refused, and it keeps waiting.
    let wrong = next
        .answer(&mut context, vec![waiting.answer(Verdict::Approved)])
        .await
        .unwrap();
    assert_eq!(
        (wrong.notices[0].code.as_str(), post.times()),
        ("answer_refused", 0)
    );
    let done = next
        .answer(&mut context, vec![waiting.answer(Verdict::Retry)])
        .await
        .unwrap();
    assert_eq!(
        (done.outcome, done.decision.kind),
        (OutcomeCategory::TaskCompleted, DecisionKind::ExecutePending)
    );
    assert_eq!(post.times(), 1);
    assert!(next.recover(None).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_unanswered_doubt_is_left_open_and_a_late_answer_gets_a_notice() {
    let (store, post) = (
        store().await,
        Post::new(ONCE, &[Then::IsLost], Probe::Unknown),
    );
    let clock = Arc::new(StdMutex::new(Timestamp::UNIX_EPOCH));
    let time = Arc::clone(&clock);
    let agent = builder(ScriptedModel::new(letter()))
        .tool(Shared(post.clone()))
        .journal(store.clone(), adjutant_store::worker_id())
        .clock(move || *time.lock().unwrap())
        .build()
        .unwrap();
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "write").await.unwrap();
    assert!(
        agent.recover(None).await.unwrap().is_empty(),
        "it has time left"
    );
    *clock.lock().unwrap() += SignedDuration::from_hours(7 * 24);
    let swept = agent.recover(None).await.unwrap();
    assert_eq!(
        (swept.len(), swept[0].outcome, post.times()),
        (1, OutcomeCategory::InDoubt, 1)
    );
    assert!(
        swept[0].decision.pending.is_empty() && swept[0].notices[0].text.contains("may or may not")
    );
    let late = agent
        .answer(
            &mut context,
            vec![asked.decision.pending[0].answer(Verdict::Retry)],
        )
        .await
        .unwrap();
    assert_eq!((late.turn, post.times()), (asked.turn, 1));
    assert!(
        late.notices
            .iter()
            .any(|notice| notice.code == "answered_late"),
        "{:?}",
        late.notices
    );
    assert!(late.content.contains("too late"), "{}", late.content);
    assert!(agent.recover(None).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_cancelled_doubt_is_not_forgotten() {
    let (store, post) = (
        store().await,
        Post::new(ONCE, &[Then::IsLost], Probe::Unknown),
    );
    let (agent, _) = process(&store, &post, letter());
    let mut context = RunContext::default();
    agent.run_in(&mut context, "write").await.unwrap();
    let stopped = agent.cancel(&mut context).await.unwrap();
    assert_eq!(
        (stopped.outcome, post.times()),
        (OutcomeCategory::Cancelled, 1)
    );
    assert!(
        stopped.content.contains("may or may not"),
        "{}",
        stopped.content
    );
    let result = stopped.tools_used[0].result.clone();
    assert_eq!(result.data.unwrap()["status"], "unknown");
    check_pairing(&context.history).unwrap();
    assert!(
        kinds(&store, &context.key(&AgentName::adjutant()))
            .await
            .contains(&"call_in_doubt")
    );
}

#[tokio::test]
async fn of_two_answers_by_two_processes_at_once_one_counts() {
    let (store, post) = (
        store().await,
        Post::new(ONCE, &[Then::IsLost], Probe::Unknown),
    );
    let (agent, _) = process(&store, &post, letter());
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "write").await.unwrap();
    let retry = || vec![asked.decision.pending[0].answer(Verdict::Retry)];
    let (one, _) = process(&store, &post, letter());
    let (two, _) = process(&store, &post, letter());
    let (mut here, mut there) = (context.clone(), context.clone());
    let (a, b) = tokio::join!(
        one.answer(&mut here, retry()),
        two.answer(&mut there, retry())
    );
    let outcomes: Vec<_> = [a, b]
        .into_iter()
        .flatten()
        .map(|response| response.outcome)
        .collect();
    assert!(
        !outcomes.is_empty()
            && outcomes
                .iter()
                .all(|outcome| *outcome == OutcomeCategory::TaskCompleted)
    );
    assert_eq!(post.times(), 2, "once before, once again");
}
