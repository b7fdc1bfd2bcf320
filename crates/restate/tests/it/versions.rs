//! Two versions at once, one in the place of the other, and back again.

use std::time::Duration;

use adjutant_core::{ConversationId, ConversationKey, Effect};
use adjutant_restate::{Worker, WorkerError};
use adjutant_runtime::{Agent, RunContext};
use restate_sdk::endpoint::Endpoint;
use restate_sdk::http_server::HttpServer;
use restate_sdk::prelude::{ContextSideEffects as _, HandlerError, ObjectContext};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::bench::Bench;
use crate::registration::{Asked, Here, agent_without_journal};
use crate::restate::{Restate, free_port};
use crate::worker::{Setup, agent};

const HOUR: Duration = Duration::from_secs(3600);

fn context() -> RunContext {
    RunContext {
        conversation: ConversationId(Uuid::now_v7()),
        ..RunContext::default()
    }
}

impl Restate {
    /// The rows of a query, each as its value of `name`.
    pub(crate) fn rows(&self, name: &str, query: &str) -> Vec<String> {
        let (status, answer) = self.ask("POST /query", &json!({ "query": query }).to_string());
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row[name].as_str().unwrap().to_owned())
            .collect()
    }

    /// The addresses of the workers that are at a call.
    fn at_work(&self) -> Vec<String> {
        self.rows(
            "endpoint",
            "select d.endpoint from sys_invocation i join sys_deployment d on d.id = i.last_attempt_deployment_id \
             where i.status = 'running' order by i.created_at",
        )
    }
}

/// A worker of a version on the database of a bench, or without any.
async fn version(version: &str, restate: &Restate, bench: Option<&Bench>) -> Here {
    version_at(version, &restate.address(free_port()), bench).await
}

async fn version_at(version: &str, address: &str, bench: Option<&Bench>) -> Here {
    let worker = Worker::bind(address.parse().unwrap()).await.unwrap();
    let agent = match bench {
        Some(bench) => {
            agent(&Setup {
                name: version.to_owned(),
                ..bench.setup.clone()
            })
            .await
        }
        None => agent_without_journal(),
    };
    Here::with(worker.with_version(version), agent)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_began_at_a_version_ends_there_and_what_comes_goes_to_the_next() {
    let bench = Bench::new(HOUR).await;
    let mut old = version("old", &bench.restate, Some(&bench)).await;
    bench.restate.until(|known| known.latest == old.url).await;
    bench.world.hold();
    let words = format!("two {:?}", Effect::Keyed);
    let (front, said, mut here) = (bench.front.clone(), words.clone(), context());
    let first = tokio::spawn(async move { front.run_in(&mut here, said).await });
    bench.world.arrivals.acquire_many(2).await.unwrap().forget();

    let (mut asked, address) = Asked::at(&bench.restate.address(free_port())).await;
    let new = version_at("new", &address, Some(&bench)).await;
    let known = bench.restate.until(|known| known.latest == new.url).await;
    assert!(known.addresses.contains(&old.url), "{known:?}");
    let WorkerError::Replaced {
        called,
        version,
        here,
    } = old.said.recv().await.unwrap()
    else {
        panic!()
    };
    assert_eq!((&called, &here), (&new.url, &old.url));
    assert!(version.starts_with("new-"), "{version}");
    let (front, mut here) = (bench.front.clone(), context());
    let second = tokio::spawn(async move { front.run_in(&mut here, words).await });
    bench.world.arrivals.acquire_many(2).await.unwrap().forget();
    assert_eq!(bench.restate.at_work(), [old.url.clone(), new.url.clone()]);

    // As on SIGTERM: it takes nothing new, and what runs ends. Its address stays that long.
    old.stop.cancel();
    asked.until("POST /query", 2).await;
    assert!(bench.restate.known().unwrap().addresses.contains(&old.url));
    bench.world.release();
    for answer in [first, second] {
        assert_eq!(answer.await.unwrap().unwrap().content, "Worked.");
    }
    old.running.await.unwrap();
    bench
        .restate
        .until(|known| known.addresses == [new.url.clone()])
        .await;
    bench.restate.wait_for_ends(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_that_starts_last_is_called_and_the_other_one_when_that_is_gone() {
    let restate = Restate::start();
    let mut newer = version("2", &restate, None).await;
    restate.until(|known| known.latest == newer.url).await;
    // Back to the one before.
    let older = version("1", &restate, None).await;
    restate.until(|known| known.latest == older.url).await;
    let said = newer.said.recv().await.unwrap();
    assert!(matches!(said, WorkerError::Replaced { .. }), "{said}");
    older.stop().await;
    restate
        .until(|known| known.latest == newer.url && known.addresses == [newer.url.clone()])
        .await;
    assert!(newer.said.try_recv().is_err());
}

/// The object as another version might have it: other steps, at another time.
struct Other {
    agent: Agent,
    key: ConversationKey,
}

#[restate_sdk::object(name = "Conversation", client_visibility = "pub(crate)")]
impl Other {
    #[handler]
    async fn advance(&self, ctx: ObjectContext<'_>) -> Result<(), HandlerError> {
        ctx.run(|| std::future::ready(Ok(()))).await?;
        self.agent.run_conversation(&self.key).await?;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_turn_runs_can_go_on_in_a_version_with_other_steps() {
    let bench = Bench::new(HOUR).await;
    let worker = bench.start(None);
    bench.world.hold();
    let mut context = context();
    let key = bench
        .front
        .key_for(context.user.clone(), context.conversation);
    let (front, words) = (bench.front.clone(), format!("two {:?}", Effect::Keyed));
    let answer = tokio::spawn(async move { front.run_in(&mut context, words).await });
    bench.world.arrivals.acquire_many(2).await.unwrap().forget();
    let kinds = "select j.entry_type as kind from sys_journal j join sys_invocation i on i.id = j.id \
                 where i.status = 'running'";
    assert_eq!(bench.restate.rows("kind", kinds), ["Command: Input"]);
    let place = bench.setup.restate.split_once("listen=").unwrap().1;
    drop(worker);
    let agent = agent(&Setup {
        name: "other".to_owned(),
        ..bench.setup.clone()
    })
    .await;
    let other = Endpoint::builder().bind(Other { agent, key }).build();
    tokio::spawn(HttpServer::new(other).serve(TcpListener::bind(place).await.unwrap()));
    bench.world.release();
    assert_eq!(answer.await.unwrap().unwrap().content, "Worked.");
    bench.restate.wait_for_ends(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_began_at_a_worker_that_is_gone_goes_on_at_the_one_that_takes_over() {
    let bench = Bench::new(HOUR).await;
    let worker = bench.start(None);
    bench.world.hold();
    let (front, words) = (bench.front.clone(), format!("two {:?}", Effect::Keyed));
    let answer = tokio::spawn(async move { front.run_in(&mut context(), words).await });
    bench.world.arrivals.acquire_many(2).await.unwrap().forget();
    drop(worker);
    let second = version("second", &bench.restate, Some(&bench)).await;
    bench
        .restate
        .until(|known| known.addresses == [second.url.clone()])
        .await;
    bench.world.release();
    assert_eq!(answer.await.unwrap().unwrap().content, "Worked.");
    bench.restate.wait_for_ends(1);
}
