//! Stopping a turn from elsewhere, at every place it can be.

use adjutant_core::AgentName;
use adjutant_core::port::Journal as _;
use adjutant_providers::scripted::{Fault, call, fault, text};
use adjutant_runtime::RunContext;
use adjutant_store::sqlite;
use tokio::sync::watch;

use super::*;

async fn store() -> Arc<sqlite::Store> {
    Arc::new(sqlite::Store::in_memory().await.unwrap())
}

/// One of several processes over the store.
fn process(
    name: &str,
    store: &Arc<sqlite::Store>,
    tools: Vec<Arc<dyn Tool>>,
    replies: Vec<Reply>,
) -> Agent {
    builder(ScriptedModel::new(replies))
        .tools(tools)
        .journal(store.clone(), name)
        .build()
        .unwrap()
}

/// A tool that says when it was begun, and ends when it is told that nobody waits any more.
pub(crate) fn slow(begun: &watch::Sender<usize>) -> Arc<dyn Tool> {
    let begun = begun.clone();
    let tool = FunctionTool::new(
        "send",
        "Sends.",
        json!({"type": "object"}),
        move |context, _| {
            let begun = begun.clone();
            async move {
                begun.send_modify(|times| *times += 1);
                context.cancelled.cancelled().await;
                Ok(json!("sent"))
            }
        },
    );
    Arc::new(tool.unwrap())
}

#[tokio::test]
async fn a_silent_model_is_stopped_by_another_process() {
    let store = store().await;
    let context = RunContext::default();
    let runs = process(
        "one",
        &store,
        Vec::new(),
        vec![fault(Fault::Stall), text("Here again.")],
    );
    let mut stream = runs.stream(&context, "hello");
    stream.next().await;
    stream.next().await;
    let mut elsewhere = context.clone();
    let stops = process("two", &store, Vec::new(), Vec::new());
    let stopped = stops.cancel(&mut elsewhere).await.unwrap();
    assert_eq!(stopped.outcome, OutcomeCategory::Cancelled);
    let (response, _) = stream.finish().await.unwrap();
    assert_eq!(
        (response.turn, response.outcome),
        (stopped.turn, OutcomeCategory::Cancelled)
    );
    assert!(
        store
            .unsettled(&AgentName::adjutant(), None)
            .await
            .unwrap()
            .is_empty(),
        "the cancellation was taken"
    );
}

#[tokio::test]
async fn a_running_once_call_is_awaited_and_what_comes_behind_it_never_begins() {
    let store = store().await;
    let (begun, mut has_begun) = watch::channel(0);
    let script = vec![
        call("send", json!({})).and_call("send", json!({"x": 1})),
        text("never said"),
    ];
    let runs = process("one", &store, vec![slow(&begun)], script);
    let context = RunContext::default();
    let stream = runs.stream(&context, "send it");
    has_begun.wait_for(|times| *times == 1).await.unwrap();
    let mut elsewhere = context.clone();
    let stops = process("two", &store, Vec::new(), Vec::new());
    let stopped = stops.cancel(&mut elsewhere).await.unwrap();
    let (response, _) = stream.finish().await.unwrap();
    assert_eq!(response.outcome, OutcomeCategory::Cancelled);
    assert_eq!((response.tools_used.len(), *begun.borrow()), (1, 1));
    assert_eq!(response.tools_used[0].outcome(), Ok(&json!("sent")));
    assert!(
        response.content.contains("Send: this was carried out."),
        "what was done is said: {}",
        response.content
    );
    assert_eq!(
        (stopped.turn, stopped.content),
        (response.turn, response.content)
    );
}

/// A turn that died at every place, with a cancellation in its inbox: what had begun has an end
/// that is told, what had not begun never begins.
#[tokio::test]
async fn a_cancellation_at_every_place_a_turn_can_die_at() {
    let once = Annotations::default();
    let keyed = Annotations {
        keyed: true,
        ..once
    };
    let confirmed = Annotations {
        destructive: true,
        ..once
    };
    for annotations in [once, keyed, confirmed] {
        let script = || {
            vec![
                call("count", json!({})).and_call("count", json!({"x": 1})),
                text("Counted."),
            ]
        };
        // A whole turn, to have its events.
        let golden = store().await;
        let count = Arc::new(AtomicUsize::new(0));
        let tool = || vec![Arc::new(counting("count", annotations, &count)) as Arc<dyn Tool>];
        let agent = process("one", &golden, tool(), script());
        let mut context = RunContext::default();
        agent.run_in(&mut context, "go").await.unwrap();
        if annotations.destructive {
            agent.run_in(&mut context, "yes").await.unwrap();
        }
        let key = context.key(&AgentName::adjutant());
        let events: Vec<Event> = golden
            .load(&key)
            .await
            .unwrap()
            .events
            .into_iter()
            .map(|recorded| (*recorded.event).clone())
            .collect();
        let ended = events
            .iter()
            .filter(|event| event.kind() == "turn_finished")
            .count();
        assert_eq!(ended, 1);

        for died_after in 1..events.len() {
            let happened = &events[..died_after];
            // A verdict and the intent that follows from it are one append.
            if events
                .get(died_after)
                .is_some_and(|next| next.kind() == "call_started")
                && matches!(happened[died_after - 1], Event::CallChecked { .. })
            {
                continue;
            }
            let store = store().await;
            let inputs: Vec<_> = events.iter().filter_map(Event::takes_input).collect();
            let at = jiff::Timestamp::UNIX_EPOCH;
            for (number, id) in inputs.iter().enumerate() {
                // The yes is there only if it was taken: the cancellation came before a later one.
                if happened.iter().any(|event| event.takes_input() == Some(id)) {
                    let body = InputBody::message(if number == 0 { "go" } else { "yes" });
                    store
                        .submit(&key, &Input::new((*id).clone(), at, body))
                        .await
                        .unwrap();
                }
            }
            store
                .append(&key, &Recorded::sequence(1, at, happened))
                .await
                .unwrap();
            count.store(0, Ordering::SeqCst);
            let next = process("two", &store, tool(), script());
            let mut context = next.context(&key).await.unwrap();
            let stopped = next.cancel(&mut context).await.unwrap();

            let place = format!(
                "{annotations:?}, after {died_after} {}",
                happened[died_after - 1].kind()
            );
            assert_eq!(stopped.outcome, OutcomeCategory::Cancelled, "{place}");
            assert!(
                store
                    .unsettled(&AgentName::adjutant(), None)
                    .await
                    .unwrap()
                    .is_empty(),
                "{place}"
            );
            check_pairing(&context.history).unwrap();
            let after = store.load(&key).await.unwrap().events;
            let of = |kind: &str| {
                after
                    .iter()
                    .filter(|recorded| recorded.event.kind() == kind)
                    .count()
            };
            let before = |kind: &str| happened.iter().filter(|event| event.kind() == kind).count();
            assert_eq!(of("turn_finished"), 1, "{place}");
            // Every call that was begun has an end, known or in doubt; none was begun because of
            // the cancellation.
            assert_eq!(
                of("call_finished") + of("call_in_doubt"),
                before("call_started"),
                "{place}"
            );
            let open = before("call_started") - before("call_finished");
            let again = if annotations.keyed { open } else { 0 };
            assert_eq!(count.load(Ordering::SeqCst), again, "{place}");
            let doubts = stopped.content.matches("may or may not").count();
            assert_eq!(
                doubts,
                if annotations.keyed { 0 } else { open },
                "{place}: {}",
                stopped.content
            );
            assert_eq!(stopped.tools_used.len(), before("call_started"), "{place}");
        }
    }
}

/// The process that runs a turn goes on with the messages behind it, whoever sent them.
#[tokio::test]
async fn who_stops_their_own_turn_does_not_stop_the_one_behind_it() {
    let store = store().await;
    let (begun, mut has_begun) = watch::channel(0);
    let runs = process(
        "one",
        &store,
        vec![slow(&begun)],
        vec![call("send", json!({})), text("Second.")],
    );
    let first = RunContext::default();
    let stream = runs.stream(&first, "send it");
    has_begun.wait_for(|times| *times == 1).await.unwrap();
    // It waits behind the first before that is stopped.
    let key = runs.key(&first);
    let second = Input::new(
        InputId::new("second").unwrap(),
        runs.now(),
        InputBody::message("and then?"),
    );
    store.submit(&key, &second).await.unwrap();
    first.cancelled.cancel();
    let (stopped, _) = stream.finish().await.unwrap();
    assert_eq!(stopped.outcome, OutcomeCategory::Cancelled);
    let mut other = RunContext {
        cancelled: CancellationToken::new(),
        ..first
    };
    let answered = runs
        .run_input(&mut other, Some(second.id.clone()), second.body)
        .await
        .unwrap();
    assert_eq!(
        (answered.outcome, answered.content.as_str()),
        (OutcomeCategory::ResponseGiven, "Second.")
    );
}
