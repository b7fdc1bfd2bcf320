//! Dispatch: inputs are handed to other processes, and run here if no process takes them.

use adjutant_core::AgentName;
use std::sync::Mutex;
use std::time::Duration;

use adjutant_core::port::Journal as _;
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::{Dispatch, DispatchCall, DispatchError, RunContext, SendResult};
use adjutant_store::sqlite;
use jiff::Timestamp;
use tokio::sync::watch;

use super::*;
use crate::logged::Logged;

/// Somebody who is asked.
struct Other {
    agent: Agent,
    does: Mutex<Does>,
    asked: Mutex<Vec<String>>,
}

/// The behaviour of a dispatch under test.
#[derive(Clone, Copy)]
enum Does {
    Advance,
    AdvanceAndHang,
    Hang,
    Refuse,
    Hear(SendResult),
}

impl Dispatch for Other {
    fn call<'a>(&'a self, call: DispatchCall<'a>) -> BoxFuture<'a, Result<(), DispatchError>> {
        let DispatchCall { key, input, .. } = call;
        Box::pin(async move {
            self.asked.lock().unwrap().push(format!("call {input}"));
            let does = *self.does.lock().unwrap();
            match does {
                Does::Refuse | Does::Hear(_) => return Err(DispatchError("not now".to_owned())),
                Does::Advance => drop(self.agent.run_conversation(key).await.unwrap()),
                Does::AdvanceAndHang => {
                    self.agent.run_conversation(key).await.unwrap();
                    std::future::pending::<()>().await;
                }
                Does::Hang => std::future::pending().await,
            }
            Ok(())
        })
    }

    fn send<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<SendResult, DispatchError>> {
        Box::pin(async move {
            self.asked
                .lock()
                .unwrap()
                .push(format!("send {}", key.user));
            let does = *self.does.lock().unwrap();
            match does {
                Does::Hear(sent) => Ok(sent),
                _ => Err(DispatchError("not now".to_owned())),
            }
        })
    }
}

/// Two agents on one store, the first of which asks the second; their models, to see who worked.
fn pair(does: Does) -> (Agent, Arc<Other>, [ScriptedModel; 2], Arc<InMemory>) {
    let store = Arc::new(InMemory::new());
    let models = [(); 2].map(|()| ScriptedModel::new([text("hello").forever()]));
    let agent = |number: usize| {
        let agent =
            builder(models[number].clone()).journal(store.clone(), format!("worker {number}"));
        agent.build().unwrap()
    };
    let other = Arc::new(Other {
        agent: agent(1),
        does: Mutex::new(does),
        asked: Mutex::default(),
    });
    (agent(0).with_dispatch(other.clone()), other, models, store)
}

fn message(id: &str) -> (Option<InputId>, InputBody) {
    (Some(InputId::new(id).unwrap()), InputBody::message("hi"))
}

async fn answered_by(does: Does) -> [usize; 2] {
    let (agent, other, models, _) = pair(does);
    let (id, body) = message("i1");
    let response = agent
        .run_input(&mut RunContext::default(), id, body)
        .await
        .unwrap();
    assert_eq!(response.content, "hello");
    assert_eq!(*other.asked.lock().unwrap(), ["call i1"]);
    models.map(|model| model.calls_made())
}

#[tokio::test]
async fn the_process_that_takes_the_call_runs_the_turn() {
    assert_eq!(answered_by(Does::Advance).await, [0, 1]);
}

#[tokio::test]
async fn a_call_that_no_process_takes_runs_here() {
    assert_eq!(answered_by(Does::Refuse).await, [1, 0]);
}

#[tokio::test]
async fn a_call_that_hangs_keeps_no_answer_back() {
    assert_eq!(answered_by(Does::AdvanceAndHang).await, [0, 1]);
}

#[tokio::test]
async fn recovery_requests_a_run_and_runs_here_only_if_that_led_to_nothing() {
    for (does, here) in [
        (Does::Hear(SendResult::Accepted), 0),
        (Does::Hear(SendResult::Duplicate), 1),
        (Does::Refuse, 1),
    ] {
        let (agent, other, models, store) = pair(does);
        let (id, body) = message("i1");
        let input = Input::new(id.unwrap(), Timestamp::UNIX_EPOCH, body);
        store
            .submit(&RunContext::default().key(&AgentName::adjutant()), &input)
            .await
            .unwrap();
        assert_eq!(agent.recover(None).await.unwrap().len(), here);
        assert_eq!(*other.asked.lock().unwrap(), ["send local"]);
        assert_eq!(models.map(|model| model.calls_made()), [here, 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_go_on_is_asked_for_ever_more_rarely() {
    let (agent, other, _, store) = pair(Does::Hear(SendResult::Accepted));
    let (id, body) = message("i1");
    let input = Input::new(id.unwrap(), Timestamp::UNIX_EPOCH, body);
    let key = RunContext::default().key(&AgentName::adjutant());
    store.submit(&key, &input).await.unwrap();
    // A look every five seconds, for an hour.
    for _ in 0..720 {
        agent.recover(None).await.unwrap();
        tokio::time::advance(Duration::from_secs(5)).await;
    }
    let asked = other.asked.lock().unwrap().drain(..).count();
    assert!((8..=16).contains(&asked), "{asked}");
    // What went on in between is asked for at once.
    other.agent.run_conversation(&key).await.unwrap();
    agent.recover(None).await.unwrap();
    let input = Input {
        id: InputId::new("i2").unwrap(),
        ..input
    };
    store.submit(&key, &input).await.unwrap();
    agent.recover(None).await.unwrap();
    assert_eq!(other.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn who_goes_on_says_when_to_come_back() {
    let store = Arc::new(InMemory::new());
    let count = Arc::new(AtomicUsize::new(0));
    let careful = Annotations {
        destructive: true,
        ..Annotations::default()
    };
    let limits = TurnLimits {
        confirmation_expiry: Duration::from_secs(3600),
        ..TurnLimits::default()
    };
    let agent = builder(ScriptedModel::new([call("drop", json!({}))]))
        .tool(counting("drop", careful, &count))
        .limits(limits)
        .journal(store, "test")
        .build()
        .unwrap();
    let mut context = RunContext::default();
    assert_eq!(
        agent
            .run_conversation(&context.key(&AgentName::adjutant()))
            .await
            .unwrap(),
        None
    );
    agent.run_in(&mut context, "drop it").await.unwrap();
    let left = agent
        .run_conversation(&context.key(&AgentName::adjutant()))
        .await
        .unwrap()
        .unwrap();
    assert!(
        left > Duration::from_secs(3500) && left <= Duration::from_secs(3600),
        "{left:?}"
    );
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_no_worker_starts_runs_here_after_a_second() {
    let asked = tokio::time::Instant::now();
    assert_eq!(answered_by(Does::Hang).await, [1, 0]);
    assert_eq!(asked.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dispatch_that_starts_nothing_is_suspended_and_tried_again() {
    let (agent, other, _, _) = pair(Does::Hang);
    let logged = Logged::begin(tracing::Level::INFO);
    let answers = async |seconds: &[u64]| {
        for seconds in seconds {
            let asked = tokio::time::Instant::now();
            assert_eq!(agent.run("hi").await.unwrap().content, "hello");
            assert_eq!(asked.elapsed().as_secs(), *seconds);
        }
        other.asked.lock().unwrap().drain(..).count()
    };
    assert_eq!(answers(&[1, 1, 1]).await, 3);
    assert!(agent.dispatch_figures().unwrap().suspended);
    assert_eq!(answers(&[0, 0, 0]).await, 0);
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(answers(&[1, 0]).await, 1);
    *other.does.lock().unwrap() = Does::Advance;
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(answers(&[0, 0]).await, 2);
    let figures = agent.dispatch_figures().unwrap();
    assert_eq!(
        (figures.suspended, figures.taken, figures.refused),
        (false, 2, 0)
    );
    assert_eq!((figures.late, figures.skipped), (4, 4));
    let told = logged.lines();
    assert_eq!(told.len(), 2, "{told:?}");
    let why = "nobody had begun with a turn after a second";
    assert!(
        told[0].starts_with("WARN ") && told[0].contains(why),
        "{told:?}"
    );
    assert!(
        told[1].starts_with("INFO ") && told[1].contains("again"),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_turn_that_another_process_runs_is_stopped_there() {
    let store = Arc::new(sqlite::Store::in_memory().await.unwrap());
    let (begun, mut has_begun) = watch::channel(0);
    let models =
        [vec![], vec![call("send", json!({})), text("never said")]].map(ScriptedModel::new);
    let agent = |at: usize, name| {
        let slow = cancel::slow(&begun);
        builder(models[at].clone())
            .tools([slow])
            .journal(store.clone(), name)
            .build()
            .unwrap()
    };
    let does = Mutex::new(Does::AdvanceAndHang);
    let other = Arc::new(Other {
        agent: agent(1, "two"),
        does,
        asked: Mutex::default(),
    });
    let context = RunContext::default();
    let stream = agent(0, "one")
        .with_dispatch(other)
        .stream(&context, "hello");
    has_begun.wait_for(|times| *times == 1).await.unwrap();
    context.cancelled.cancel();
    let (response, _) = stream.finish().await.unwrap();
    assert_eq!(response.outcome, OutcomeCategory::Cancelled);
    assert_eq!(models.each_ref().map(ScriptedModel::calls_made), [0, 1]);
    assert!(
        store
            .unsettled(&AgentName::adjutant(), None)
            .await
            .unwrap()
            .is_empty()
    );
}

/// Has the same agent do the work, in another task.
struct Itself(std::sync::OnceLock<Agent>);

impl Dispatch for Itself {
    fn call<'a>(&'a self, call: DispatchCall<'a>) -> BoxFuture<'a, Result<(), DispatchError>> {
        let (agent, key) = (self.0.get().unwrap().clone(), call.key.clone());
        Box::pin(async move {
            tokio::spawn(async move { agent.run_conversation(&key).await.map(drop) })
                .await
                .unwrap()
                .unwrap();
            Ok(())
        })
    }

    fn send<'a>(
        &'a self,
        _key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<SendResult, DispatchError>> {
        Box::pin(async { Ok(SendResult::Accepted) })
    }
}

#[tokio::test]
async fn a_dispatched_turn_streams_the_same_events_as_a_local_one() {
    let count = Arc::new(AtomicUsize::new(0));
    let agent = || {
        let script = [
            call("count", json!({})),
            text("It was counted once more.").in_pieces(3),
        ];
        let counts = counting("count", Annotations::default(), &count);
        let store = Arc::new(InMemory::new());
        builder(ScriptedModel::new(script))
            .tool(counts)
            .journal(store, "test")
            .build()
            .unwrap()
    };
    let told = async |agent: &Agent| {
        let mut stream = agent.stream(&RunContext::default(), "count");
        let mut told = Vec::new();
        while let Some(event) = stream.next().await {
            let json = serde_json::to_value(&event).unwrap();
            let kind = json.as_object().map_or(json.to_string(), |event| {
                event.keys().next().unwrap().clone()
            });
            let words = json.get("Text").and_then(Value::as_str).unwrap_or_default();
            told.push(format!("{kind} {words}"));
        }
        (told, stream.finish().await.unwrap().0.content)
    };
    let without = told(&agent()).await;
    let itself = Arc::new(Itself(std::sync::OnceLock::new()));
    let (works, accepts) = {
        let agent = agent();
        (agent.clone(), agent.with_dispatch(itself.clone()))
    };
    itself.0.set(works).unwrap();
    assert_eq!(told(&accepts).await, without);
    assert_eq!(accepts.dispatch_figures().unwrap().start_delays.len(), 1);
    assert!(
        accepts.dispatch_figures().unwrap().start_delays.is_empty(),
        "each time is told once"
    );
    assert_eq!(count.load(Ordering::SeqCst), 2);
    assert!(without.0.len() > 10, "{without:?}");
}
