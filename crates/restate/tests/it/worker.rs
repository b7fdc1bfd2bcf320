//! The process under test: this program again, told to work.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{CancellationToken, TurnLimits};
use adjutant_durability::{EFFECTS, Remote, Style, tool_name};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_restate::Worker as Called;
use adjutant_runtime::Agent;
use adjutant_service::{Auth, Service, ServiceConfig};
use adjutant_store::postgres::Store;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::oneshot;

/// Tells a process that it is the worker, and what to be.
const SETUP: &str = "ADJUTANT_RESTATE_TEST_WORKER";
/// The test that such a process runs.
const TEST: &str = "service::a_turn_is_answered_without_restate_too";

/// The setup of a worker process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// As the holder of claims: started again under the same name, it has them at once.
    pub(crate) name: String,
    pub(crate) database: String,
    pub(crate) restate: String,
    pub(crate) world: SocketAddr,
    /// The address of the HTTP service. `None`: only Restate reaches the worker.
    pub(crate) service: Option<SocketAddr>,
    pub(crate) confirmation_expiry: Duration,
    /// Milliseconds for which its claims hold without a sign of life; `None`: as usual.
    pub(crate) lease_ms: Option<u32>,
}

/// A running worker.
pub(crate) struct Worker {
    process: Child,
    /// Fires when it is gone.
    pub(crate) gone: oneshot::Receiver<()>,
}

impl Worker {
    /// Starts one, to be killed at this boundary, and waits until it listens.
    pub(crate) fn start(setup: &Setup, kill_at: Option<u32>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", TEST, "--nocapture"]);
        command.env(SETUP, serde_json::to_string(setup).unwrap());
        if let Some(lease) = setup.lease_ms {
            command.env("ADJUTANT_LEASE_MS", lease.to_string());
        }
        if let Some(boundary) = kill_at {
            command.env("ADJUTANT_KILL_AT", boundary.to_string());
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let ready = lines.by_ref().any(|line| line.ends_with("at work"));
        let (going, gone) = oneshot::channel();
        let mut worker = Self {
            process: child,
            gone,
        };
        assert!(ready, "the worker ended: {}", worker.last_words());
        std::thread::spawn(move || {
            lines.for_each(drop);
            // Nobody may be waiting for it.
            let _ = going.send(());
        });
        worker
    }

    /// SIGSTOP: its connections stay, and nothing answers.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    /// SIGCONT: it goes on where it stood still.
    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .args([signal, &self.process.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Returns the standard error of a worker that has exited.
    pub(crate) fn last_words(&mut self) -> String {
        let mut words = String::new();
        self.process
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut words)
            .unwrap();
        words
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }
}

/// If this process was started as a worker, it is one until it is killed.
#[expect(
    clippy::disallowed_methods,
    reason = "how a test tells itself that it is the worker"
)]
pub(crate) async fn work_if_told() {
    let Some(setup) = std::env::var_os(SETUP) else {
        return;
    };
    let setup: Setup = serde_json::from_str(setup.to_str().unwrap()).unwrap();
    let agent = agent(&setup).await;
    let called = Called::bind(setup.restate.parse().unwrap()).await.unwrap();
    let dispatched = agent.with_dispatch(called.dispatch());
    let stop = CancellationToken::new();
    let working = tokio::spawn(called.run(agent, stop.clone(), |event| eprintln!("{event}")));
    if let Some(bind) = setup.service {
        let service = Service::bind(dispatched, ServiceConfig::new(bind, Auth::None))
            .await
            .unwrap();
        tokio::spawn(service.run(stop));
    }
    println!("\nat work");
    working.await.unwrap();
    unreachable!("nobody stops it");
}

/// An agent on the database: what it is told names a scene and an effect.
pub(crate) async fn agent(setup: &Setup) -> Agent {
    let store = Arc::new(Store::connect(&setup.database, 4).await.unwrap());
    let limits = TurnLimits {
        confirmation_expiry: setup.confirmation_expiry,
        ..TurnLimits::default()
    };
    let mut builder = Agent::builder("worker")
        .model(ScriptedModel::from_jsonl(&script()).unwrap())
        .instruction("Work.")
        .limits(limits)
        .journal(store, &setup.name);
    for effect in EFFECTS {
        for style in [Style::Beside, Style::Careful] {
            builder = builder.tool(Remote::new(effect, style, setup.world).unwrap());
        }
    }
    builder.build().unwrap()
}

/// `two EFFECT` works twice at once, `careful EFFECT` once if it may, anything else is a plain
/// answer.
fn script() -> String {
    let mut lines = vec![
        json!({"match": "success", "text": "Worked."}),
        json!({"match": "hello", "text": "Hi."}),
    ];
    for effect in EFFECTS {
        let call = |style, n| json!({"name": tool_name(effect, style), "args": {"n": n}});
        lines.push(json!({"match": format!("two {effect:?}"), "calls": [call(Style::Beside, 1), call(Style::Beside, 2)]}));
        lines.push(
            json!({"match": format!("careful {effect:?}"), "calls": [call(Style::Careful, 1)]}),
        );
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}
