//! Who accepts an input asks somebody else to see to it, and does it where nobody does.

use adjutant_core::AgentName;
use std::sync::Mutex;
use std::time::Duration;

use adjutant_core::port::Journal as _;
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::{Dispatch, NotDispatched, RunContext, Sent};
use jiff::Timestamp;

use super::*;

/// Somebody who is asked.
struct Other {
    agent: Agent,
    does: Does,
    asked: Mutex<Vec<String>>,
}

/// What they do.
#[derive(Clone, Copy)]
enum Does {
    Advance,
    AdvanceAndHang,
    Refuse,
    Hear(Sent),
}

impl Dispatch for Other {
    fn call<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a InputId,
    ) -> BoxFuture<'a, Result<(), NotDispatched>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(format!("call {input}"));
            match self.does {
                Does::Refuse | Does::Hear(_) => return Err(NotDispatched("not now".to_owned())),
                Does::Advance => drop(self.agent.advance(key).await.unwrap()),
                Does::AdvanceAndHang => {
                    self.agent.advance(key).await.unwrap();
                    std::future::pending::<()>().await;
                }
            }
            Ok(())
        })
    }

    fn send<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Sent, NotDispatched>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(format!("send {}", key.user));
            match self.does {
                Does::Hear(sent) => Ok(sent),
                _ => Err(NotDispatched("not now".to_owned())),
            }
        })
    }
}

/// Two agents on one store, the first of which asks the second; their models, to see who worked.
fn pair(does: Does) -> (Agent, Arc<Other>, [ScriptedModel; 2], Arc<InMemory>) {
    let store = Arc::new(InMemory::new());
    let models = [(); 2].map(|()| ScriptedModel::new([text("hello")]));
    let agent = |number: usize| {
        let agent = builder(models[number].clone()).journal(store.clone(), format!("worker {number}"));
        agent.build().unwrap()
    };
    let other = Arc::new(Other { agent: agent(1), does, asked: Mutex::default() });
    (agent(0).dispatched_by(other.clone()), other, models, store)
}

fn message(id: &str) -> (Option<InputId>, InputBody) {
    (Some(InputId::new(id).unwrap()), InputBody::message("hi"))
}

async fn answered_by(does: Does) -> [usize; 2] {
    let (agent, other, models, _) = pair(does);
    let (id, body) = message("i1");
    let response = agent.run_input(&mut RunContext::default(), id, body).await.unwrap();
    assert_eq!(response.content, "hello");
    assert_eq!(*other.asked.lock().unwrap(), ["call i1"]);
    models.map(|model| model.calls_made())
}

#[tokio::test]
async fn whoever_takes_the_call_does_the_work() {
    assert_eq!(answered_by(Does::Advance).await, [0, 1]);
}

#[tokio::test]
async fn where_nobody_takes_it_the_work_is_done_here() {
    assert_eq!(answered_by(Does::Refuse).await, [1, 0]);
}

#[tokio::test]
async fn a_call_that_hangs_keeps_no_answer_back() {
    assert_eq!(answered_by(Does::AdvanceAndHang).await, [0, 1]);
}

#[tokio::test]
async fn what_is_left_is_asked_for_and_done_here_only_if_nothing_came_of_asking() {
    for (does, here) in [(Does::Hear(Sent::Now), 0), (Does::Hear(Sent::Before), 1), (Does::Refuse, 1)] {
        let (agent, other, models, store) = pair(does);
        let (id, body) = message("i1");
        let input = Input::new(id.unwrap(), Timestamp::UNIX_EPOCH, body);
        store.submit(&RunContext::default().key(&AgentName::adjutant()), &input).await.unwrap();
        assert_eq!(agent.resume(None).await.unwrap().len(), here);
        assert_eq!(*other.asked.lock().unwrap(), ["send local"]);
        assert_eq!(models.map(|model| model.calls_made()), [here, 0]);
    }
}

#[tokio::test]
async fn who_goes_on_says_when_to_come_back() {
    let store = Arc::new(InMemory::new());
    let count = Arc::new(AtomicUsize::new(0));
    let careful = Annotations { destructive: true, ..Annotations::default() };
    let limits = TurnLimits { confirmation_expiry: Duration::from_secs(3600), ..TurnLimits::default() };
    let agent = builder(ScriptedModel::new([call("drop", json!({}))]))
        .tool(counting("drop", careful, &count))
        .limits(limits)
        .journal(store, "test")
        .build()
        .unwrap();
    let mut context = RunContext::default();
    assert_eq!(agent.advance(&context.key(&AgentName::adjutant())).await.unwrap(), None);
    agent.run_in(&mut context, "drop it").await.unwrap();
    let left = agent.advance(&context.key(&AgentName::adjutant())).await.unwrap().unwrap();
    assert!(left > Duration::from_secs(3500) && left <= Duration::from_secs(3600), "{left:?}");
    assert_eq!(count.load(Ordering::SeqCst), 0);
}
