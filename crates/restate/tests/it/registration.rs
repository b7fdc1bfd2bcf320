//! Registration: the worker that Restate calls when there are several, at once or one after the
//! other.

use std::net::SocketAddr;
use std::time::Duration;

use adjutant_core::CancellationToken;
use adjutant_providers::scripted::ScriptedModel;
use adjutant_restate::{Worker, WorkerError, WorkerEvent};
use adjutant_runtime::Agent;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::bench::Bench;
use crate::restate::{Restate, free_port};

/// Between two looks at what happens by itself.
const LOOK: Duration = Duration::from_millis(20);
/// Time after which an expected event is considered missing.
const NEVER: Duration = Duration::from_secs(300);

/// Whom Restate knows: the addresses, and which revision of the object is the latest, where.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Known {
    pub(crate) addresses: Vec<String>,
    pub(crate) latest: String,
    revision: u64,
}

impl Restate {
    pub(crate) fn known(&self) -> Option<Known> {
        let (status, service) = self.ask("GET /services/Conversation", "");
        if status != 200 {
            return None;
        }
        let service: Value = serde_json::from_str(&service).unwrap();
        let deployments: Value = serde_json::from_str(&self.ask("GET /deployments", "").1).unwrap();
        let deployments = deployments["deployments"].as_array().unwrap();
        let address = |deployment: &Value| deployment["uri"].as_str().unwrap().to_owned();
        let latest = deployments
            .iter()
            .find(|deployment| deployment["id"] == service["deployment_id"])?;
        let mut addresses: Vec<String> = deployments.iter().map(address).collect();
        addresses.sort();
        Some(Known {
            addresses,
            latest: address(latest),
            revision: service["revision"].as_u64().unwrap(),
        })
    }

    /// Waits until it knows that.
    pub(crate) async fn until(&self, is_so: impl Fn(&Known) -> bool) -> Known {
        let looking = async {
            loop {
                if let Some(known) = self.known().filter(|known| is_so(known)) {
                    return known;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(NEVER, looking)
            .await
            .unwrap_or_else(|_| panic!("it knows {:?}", self.known()))
    }
}

/// A worker in this process.
pub(crate) struct Here {
    pub(crate) url: String,
    pub(crate) stop: CancellationToken,
    /// Everything but that Restate does not know it yet.
    pub(crate) said: mpsc::UnboundedReceiver<WorkerError>,
    pub(crate) running: JoinHandle<()>,
}

impl Here {
    pub(crate) async fn start(address: &str) -> Self {
        Self::with(
            Worker::bind(address.parse().unwrap()).await.unwrap(),
            agent_without_journal(),
        )
    }

    pub(crate) fn with(worker: Worker, agent: Agent) -> Self {
        let url = worker.url().to_owned();
        let (stop, (tell, said)) = (CancellationToken::new(), mpsc::unbounded_channel());
        let running = worker.run(agent, stop.clone(), move |event| {
            // A Restate that is not ready for a moment is not what is tested here.
            if let WorkerEvent::Failed(error) = event
                && !matches!(error, WorkerError::NotRegistered(_))
            {
                tell.send(error.clone()).unwrap();
            }
        });
        Self {
            url,
            stop,
            said,
            running: tokio::spawn(running),
        }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.running.await.unwrap();
    }
}

pub(crate) fn agent_without_journal() -> Agent {
    let line = json!({"match": "hello", "text": "Hi."}).to_string();
    let model = ScriptedModel::from_jsonl(&line).unwrap();
    Agent::builder("worker")
        .model(model)
        .instruction("Work.")
        .build()
        .unwrap()
}

/// Stands before the admin port; what is asked there.
pub(crate) struct Asked {
    place: SocketAddr,
    asked: mpsc::UnboundedReceiver<Vec<u8>>,
    so_far: String,
}

impl Asked {
    async fn before(admin: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap();
        let (tell, asked) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (mut from, mut back) = stream.into_split();
                let (mut answers, mut to) = TcpStream::connect(&admin).await.unwrap().into_split();
                tokio::spawn(async move { tokio::io::copy(&mut answers, &mut back).await });
                let tell = tell.clone();
                tokio::spawn(async move {
                    let mut piece = vec![0; 4096];
                    while let Ok(length @ 1..) = from.read(&mut piece).await {
                        to.write_all(&piece[..length]).await.unwrap();
                        // Nobody may be listening any more.
                        let _ = tell.send(piece[..length].to_vec());
                    }
                });
            }
        });
        Self {
            place,
            asked,
            so_far: String::new(),
        }
    }

    /// Stands before the admin port in an address, which leads here then.
    pub(crate) async fn at(address: &str) -> (Self, String) {
        let (ingress, rest) = address.split_once("admin=").unwrap();
        let (admin, rest) = rest.split_once('&').unwrap();
        let asked = Self::before(admin.to_owned()).await;
        let address = format!("{ingress}admin={}&{rest}", asked.place);
        (asked, address)
    }

    /// Waits until this was asked so many times.
    pub(crate) async fn until(&mut self, what: &str, times: usize) {
        while self.so_far.matches(what).count() < times {
            let asked = tokio::time::timeout(NEVER, self.asked.recv()).await;
            self.so_far += std::str::from_utf8(&asked.expect("it is not asked").unwrap()).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_starts_again_changes_nothing() {
    let restate = Restate::start();
    let address = restate.address(free_port());
    let worker = Here::start(&address).await;
    let first = restate.until(|_| true).await;
    assert_eq!((&first.latest, first.addresses.len()), (&worker.url, 1));
    worker.stop().await;

    let (mut asked, address) = Asked::at(&address).await;
    let _again = Here::start(&address).await;
    // The second look comes after all that followed from the first.
    asked.until("GET /services/Conversation ", 2).await;
    assert!(
        !asked.so_far.contains("POST") && !asked.so_far.contains("DELETE"),
        "{}",
        asked.so_far
    );
    assert_eq!(restate.known().unwrap(), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_registered_as_something_else_is_registered_anew() {
    let restate = Restate::start();
    let address = restate.address(free_port());
    let worker = Here::start(&address).await;
    restate.until(|known| known.revision == 1).await;
    // As an older version of it, or somebody by hand, would have.
    let by_hand = json!({ "uri": worker.url, "force": true }).to_string();
    assert_eq!(restate.ask("POST /deployments", &by_hand).0, 200);
    worker.stop().await;
    let worker = Here::start(&address).await;
    let known = restate.until(|known| known.revision == 3).await;
    assert_eq!((&known.latest, known.addresses.len()), (&worker.url, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_frozen_is_replaced() {
    let bench = Bench::new(Duration::from_secs(3600)).await;
    let frozen = bench.start(None);
    frozen.freeze();
    let second = Here::start(&bench.restate.address(free_port())).await;
    bench
        .restate
        .until(|known| known.latest == second.url)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_a_worker_that_is_gone_goes() {
    let restate = Restate::start();
    let first = Here::start(&restate.address(free_port())).await;
    restate.until(|known| known.latest == first.url).await;
    first.stop().await;
    let second = Here::start(&restate.address(free_port())).await;
    restate
        .until(|known| known.addresses == [second.url.clone()] && known.latest == second.url)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_worker_by_two_names_is_one_worker() {
    let restate = Restate::start();
    let port = free_port();
    let first = Here::start(&restate.address(port)).await;
    restate.until(|known| known.latest == first.url).await;
    first.stop().await;
    let url = format!("http://localhost:{port}/");
    let mut second = Here::start(&format!("{}&advertise={url}", restate.address(port))).await;
    restate
        .until(|known| known.addresses == [url.clone()] && known.latest == url)
        .await;
    assert!(second.said.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_worker_says_that_it_gets_no_work_until_the_first_is_gone() {
    let restate = Restate::start();
    let mut first = Here::start(&restate.address(free_port())).await;
    let known = restate.until(|known| known.latest == first.url).await;
    let mut second = Here::start(&restate.address(free_port())).await;
    let said = second.said.recv().await.unwrap();
    let expected = WorkerError::Elsewhere {
        called: first.url.clone(),
        here: second.url.clone(),
    };
    assert_eq!(said, expected);
    assert!(said.to_string().contains("advertise="), "{said}");
    assert_eq!(restate.known().unwrap(), known);

    assert!(first.said.try_recv().is_err());
    first.stop().await;
    restate
        .until(|known| known.addresses == [second.url.clone()] && known.latest == second.url)
        .await;
    // Said once.
    assert!(second.said.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_reports_when_it_is_registered_at_last() {
    let port = free_port();
    let mut restate = Restate::start();
    let address = restate.address(port);
    restate.crash();
    let worker = Worker::bind(address.parse().unwrap()).await.unwrap();
    let (here, dispatch) = (worker.url().to_owned(), worker.dispatch());
    let (tell, mut said) = mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let running = worker.run(agent_without_journal(), stop.clone(), move |event| {
        tell.send(event.clone()).unwrap();
    });
    let running = tokio::spawn(running);
    let first = said.recv().await.unwrap();
    assert!(
        matches!(first, WorkerEvent::Failed(WorkerError::NotRegistered(_))),
        "{first}"
    );
    assert_eq!(dispatch.is_registered(), Some(false));
    restate.run();
    // In between it may be said what else was wrong while Restate started.
    while let WorkerEvent::Failed(error) = said.recv().await.unwrap() {
        assert!(matches!(error, WorkerError::NotRegistered(_)), "{error}");
    }
    assert_eq!(dispatch.is_registered(), Some(true));
    assert_eq!(restate.known().unwrap().latest, here);
    stop.cancel();
    running.await.unwrap();
    // Nobody looks there.
    let alone = "restate://127.0.0.1:1?admin=none&listen=127.0.0.1:0"
        .parse()
        .unwrap();
    assert_eq!(
        Worker::bind(alone)
            .await
            .unwrap()
            .dispatch()
            .is_registered(),
        None
    );
}
