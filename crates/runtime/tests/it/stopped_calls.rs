//! Stopping a turn whose call cannot be taken back: whoever stops it is answered at once, the call
//! goes on, and its end settles what became of it.

use adjutant_core::AgentName;
use adjutant_core::port::Journal as _;
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::RunContext;
use adjutant_store::sqlite::Store;
use futures::FutureExt as _;
use tokio::sync::{Semaphore, watch};

use super::*;

/// A tool that ends when the test lets it, whoever waits for it.
struct Slow {
    begun: watch::Sender<usize>,
    may_end: Arc<Semaphore>,
}

impl Slow {
    fn new() -> Self {
        Self {
            begun: watch::channel(0).0,
            may_end: Arc::new(Semaphore::new(0)),
        }
    }

    fn tool(&self, annotations: Annotations) -> Arc<dyn Tool> {
        let (begun, may_end) = (self.begun.clone(), Arc::clone(&self.may_end));
        let schema = json!({"type": "object"});
        let tool = FunctionTool::new("send", "Sends.", schema, move |_, _| {
            let (begun, may_end) = (begun.clone(), Arc::clone(&may_end));
            async move {
                begun.send_modify(|times| *times += 1);
                may_end.acquire().await.unwrap().forget();
                Ok(json!("sent"))
            }
        });
        Arc::new(tool.unwrap().annotated(annotations))
    }

    async fn has_begun(&self) {
        let mut begun = self.begun.subscribe();
        begun.wait_for(|times| *times == 1).await.unwrap();
    }

    fn times(&self) -> usize {
        *self.begun.borrow()
    }
}

async fn store() -> Arc<Store> {
    Arc::new(Store::in_memory().await.unwrap())
}

/// One of several processes over the store.
fn process(name: &str, store: &Arc<Store>, slow: &Slow, replies: Vec<Reply>) -> Agent {
    builder(ScriptedModel::new(replies))
        .tools([slow.tool(Annotations::default())])
        .journal(store.clone(), name)
        .build()
        .unwrap()
}

fn script() -> Vec<Reply> {
    vec![
        call("send", json!({})).and_call("send", json!({"x": 1})),
        text("Here again."),
    ]
}

async fn events(store: &Store, context: &RunContext) -> Vec<Event> {
    let loaded = store.load(&context.key(&AgentName::adjutant())).await;
    let events = loaded.unwrap().events.into_iter();
    events.map(|recorded| (*recorded.event).clone()).collect()
}

fn count(events: &[Event], kind: &str) -> usize {
    events.iter().filter(|event| event.kind() == kind).count()
}

#[tokio::test]
async fn a_stopped_turn_is_answered_while_its_call_goes_on_and_the_call_settles_it() {
    let (store, slow) = (store().await, Slow::new());
    let agent = process("one", &store, &slow, script());
    let context = RunContext::default();
    let stream = agent.stream(&context, "send it");
    slow.has_begun().await;
    context.cancelled.cancel();
    // The tool has not ended, and cannot before the test lets it.
    let (stopped, mut after) = stream.finish().await.unwrap();
    assert_eq!(
        (stopped.outcome, stopped.disposition),
        (OutcomeCategory::Cancelled, Disposition::Ran)
    );
    for words in [words::STOPPED, "still running", "send"] {
        assert!(stopped.content.contains(words), "{}", stopped.content);
    }
    assert!(stopped.decision.pending.is_empty(), "nobody is asked");
    let so_far = events(&store, &context).await;
    assert_eq!(
        (
            count(&so_far, "turn_stopped"),
            count(&so_far, "call_finished"),
            count(&so_far, "turn_finished")
        ),
        (1, 0, 0)
    );

    // The next message is accepted now, and runs once it is known what became of the call.
    after.cancelled = CancellationToken::new();
    let next = agent.stream(&after, "and now?");
    slow.may_end.add_permits(1);
    agent.calls_ended().await;
    let (answered, after) = next.finish().await.unwrap();
    assert_eq!(answered.content, "Here again.");
    let settled = events(&store, &context).await;
    assert_eq!(
        (
            count(&settled, "call_started"),
            count(&settled, "call_finished"),
            count(&settled, "call_in_doubt"),
            count(&settled, "turn_finished"),
            slow.times()
        ),
        (1, 1, 0, 2, 1)
    );
    let ended = settled.iter().find_map(|event| match event {
        Event::TurnFinished { end, .. } => Some(end),
        _ => None,
    });
    assert_eq!(ended.unwrap().outcome, OutcomeCategory::Cancelled);
    check_pairing(&after.history).unwrap();
    let results: Vec<_> = after
        .history
        .iter()
        .filter_map(Message::tool_result)
        .collect();
    assert_eq!(results[0].2.data.as_deref(), Some(&json!("sent")));
    assert!(!results[1].2.success, "the second call never began");
}

#[tokio::test]
async fn a_stop_from_another_handle_is_answered_too() {
    for other_process in [false, true] {
        let (store, slow) = (store().await, Slow::new());
        let runs = process("one", &store, &slow, script());
        let stops = match other_process {
            true => process("two", &store, &slow, script()),
            false => runs.clone(),
        };
        let context = RunContext::default();
        let stream = runs.stream(&context, "send it");
        slow.has_begun().await;
        let stopped = stops.cancel(&mut context.clone()).await.unwrap();
        let (response, _) = stream.finish().await.unwrap();
        assert_eq!(
            (stopped.turn, stopped.outcome, stopped.content),
            (
                response.turn,
                OutcomeCategory::Cancelled,
                response.content.clone()
            )
        );
        assert_eq!(stopped.disposition, Disposition::Answered);
        assert!(
            response.content.contains("still running"),
            "{}",
            response.content
        );
        slow.may_end.add_permits(1);
        runs.calls_ended().await;
        let settled = events(&store, &context).await;
        let taken = settled.iter().filter_map(Event::takes_input).count();
        assert_eq!(
            (taken, count(&settled, "call_finished"), slow.times()),
            (2, 1, 1),
            "the message and the cancellation are taken once"
        );
    }
}

/// Only the process that began the call can learn its end. If it is lost, a person knows.
#[tokio::test]
async fn a_lost_process_leaves_a_question_about_the_call_and_begins_nothing_else() {
    for (answer, times) in [("it was done", 0), ("leave it", 0), ("try again", 1)] {
        let (before, slow) = (store().await, Slow::new());
        let context = RunContext::default();
        let first = process("one", &before, &slow, script());
        let stream = first.stream(&context, "send it");
        slow.has_begun().await;
        first.cancel(&mut context.clone()).await.unwrap();
        drop(stream);

        // What the next process finds.
        let (found, key) = (store().await, context.key(&AgentName::adjutant()));
        let left = before.load(&key).await.unwrap().events;
        let message = Input::new(
            left[0].event.takes_input().unwrap().clone(),
            jiff::Timestamp::UNIX_EPOCH,
            InputBody::message("send it"),
        );
        found.submit(&key, &message).await.unwrap();
        assert_eq!(left.last().unwrap().event.kind(), "turn_stopped");
        found.append(&key, &left).await.unwrap();
        let again = Slow::new();
        again.may_end.add_permits(1);
        let second = process("two", &found, &again, script());
        let mut resumed = RunContext {
            conversation: context.conversation,
            ..RunContext::default()
        };
        let (asked, _) = second.stream_recovery(&resumed).finish().await.unwrap();
        assert_eq!(asked.decision.pending.len(), 1, "{}", asked.content);
        assert!(asked.decision.pending[0].doubt.is_some());
        assert_eq!(again.times(), 0);

        let settled = second.run_in(&mut resumed, answer).await.unwrap();
        assert_eq!(
            (settled.turn, settled.outcome, again.times()),
            (asked.turn, OutcomeCategory::Cancelled, times),
            "{answer}: {}",
            settled.content
        );
        let events = events(&found, &context).await;
        assert_eq!(count(&events, "call_started"), 1 + times, "{answer}");
        check_pairing(&resumed.history).unwrap();
    }
}

#[tokio::test]
async fn calls_that_wait_for_their_turn_do_not_begin_after_the_stop() {
    let slow = Slow::new();
    let parallel = Annotations {
        parallel: true,
        ..Annotations::default()
    };
    let limits = TurnLimits {
        parallel_tools_max: 1.try_into().unwrap(),
        ..TurnLimits::default()
    };
    let agent = builder(ScriptedModel::new(script()))
        .tools([slow.tool(parallel)])
        .limits(limits)
        .build()
        .unwrap();
    let context = RunContext::default();
    let stream = agent.stream(&context, "send both");
    slow.has_begun().await;
    context.cancelled.cancel();
    stream.finish().await.unwrap();
    slow.may_end.add_permits(2);
    agent.calls_ended().await;
    assert_eq!(slow.times(), 1);
}

#[tokio::test]
async fn without_calls_one_poll_says_that_they_ended() {
    let agent = builder(ScriptedModel::new([])).build().unwrap();
    let has_budget = |_| tokio::task::consume_budget().now_or_never().is_some();
    assert!(
        !(0..1000).all(has_budget),
        "the task has used up its budget of polls"
    );
    assert!(agent.calls_ended().now_or_never().is_some());
}
