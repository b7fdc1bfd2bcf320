//! Load test of the service: its start-up time, the duration of a typical request, its throughput and
//! its memory. Starts the released binary, and sends requests over HTTP as many clients would.
//!
//! ```console
//! $ cargo build --release -p adjutant-cli
//! $ cargo run --release -p adjutant-service --example load -- target/release/adjutant [--database URL]
//! ```
#![expect(clippy::print_stdout, reason = "a program for a terminal")]

use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Duration of each level of load.
const FOR: Duration = Duration::from_secs(15);
/// Levels of load, as numbers of concurrent conversations.
const AT_ONCE: [usize; 3] = [1, 64, 512];
/// Number of measurements of single operations.
const TIMES: usize = 5;
/// The model of the load answers after 200 ms, that of a typical request after a second.
const SCRIPT: &str = r#"
{"match": "hello", "text": "Hello.", "delay_ms": 200, "usage": {"input": 100, "output": 10}}
{"match": "typical", "calls": [{"name": "add_task", "args": {"description": "buy milk"}}], "delay_ms": 1000}
{"match": "success", "text": "Added: buy milk.", "delay_ms": 1000}
"#;

#[tokio::main]
async fn main() -> Result<()> {
    // The client wants to know what it would encrypt with, though all is plain here. An error means
    // that it does already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: load ADJUTANT [--database URL]";
    let adjutant = PathBuf::from(arguments.next().ok_or(usage)?);
    let database = match (arguments.next().as_deref(), arguments.next()) {
        (None, None) => None,
        (Some("--database"), Some(url)) => Some(url),
        _ => return Err(usage.into()),
    };
    let home = tempfile::tempdir()?;
    std::fs::write(home.path().join("script.jsonl"), SCRIPT)?;

    let mut ready = Vec::new();
    for _ in 0..TIMES {
        ready.push(
            Serving::start(&adjutant, home.path(), database.as_deref())
                .await?
                .ready,
        );
    }
    println!(
        "ready to answer: {} ms (median of {TIMES})",
        median(ready).as_millis()
    );

    let serving = Serving::start(&adjutant, home.path(), database.as_deref()).await?;
    println!(
        "memory before the first request: {:.1} MiB",
        serving.memory("VmRSS")?
    );
    let mut typical = Vec::new();
    for _ in 0..TIMES {
        let begun = Instant::now();
        serving.say(None, "a typical request").await?;
        typical.push(begun.elapsed());
    }
    println!(
        "two calls of a model that takes 1 s, one tool: {:.2} s (median of {TIMES})",
        median(typical).as_secs_f64()
    );
    drop(serving);

    println!("a model that takes 200 ms, {} s each:", FOR.as_secs());
    println!("conversations   requests/s   median ms   99 % ms   memory at most MiB");
    for conversations in AT_ONCE {
        // A service of its own, so that the memory is of this load.
        let serving = Serving::start(&adjutant, home.path(), database.as_deref()).await?;
        let until = Instant::now() + FOR;
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..conversations {
            clients.spawn(talk(serving.client(), until));
        }
        let mut times = Vec::new();
        while let Some(client) = clients.join_next().await {
            times.extend(client??);
        }
        times.sort();
        println!(
            "{conversations:13}   {:10.1}   {:9}   {:7}   {:18.1}",
            times.len() as f64 / FOR.as_secs_f64(),
            part(&times, 0.5).as_millis(),
            part(&times, 0.99).as_millis(),
            serving.memory("VmHWM")?
        );
    }
    Ok(())
}

/// One conversation: the next message when the last one is answered. How long each took.
async fn talk(client: Client, until: Instant) -> Result<Vec<Duration>> {
    let thread = uuid::Uuid::now_v7().to_string();
    let mut times = Vec::new();
    while Instant::now() < until {
        let begun = Instant::now();
        client.say(Some(&thread), "hello").await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    part(&times, 0.5)
}

/// So much of the sorted times is not longer.
fn part(times: &[Duration], share: f64) -> Duration {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length"
    )]
    let at = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
    times.get(at).copied().unwrap_or_default()
}

#[derive(Clone)]
struct Client {
    http: reqwest::Client,
    url: String,
    token: String,
}

impl Client {
    async fn say(&self, thread: Option<&str>, message: &str) -> Result<Value> {
        let body = json!({ "message": message, "thread_id": thread });
        let request = self
            .http
            .post(format!("{}/v1/chat", self.url))
            .bearer_auth(&self.token)
            .json(&body);
        let answer = request.send().await?;
        let status = answer.status();
        let answer: Value = answer.json().await?;
        if status.is_success() {
            Ok(answer)
        } else {
            Err(format!("{status}: {answer}").into())
        }
    }
}

/// A running service. Ends when it is dropped.
struct Serving {
    process: Child,
    client: Client,
    ready: Duration,
}

impl Serving {
    async fn start(adjutant: &Path, home: &Path, database: Option<&str>) -> Result<Self> {
        let begun = Instant::now();
        let mut command = Command::new(adjutant);
        command.args([
            "serve",
            "--json",
            "--bind",
            "127.0.0.1:0",
            "-m",
            "scripted:script.jsonl",
        ]);
        if let Some(url) = database {
            command.args(["--database", url]);
        }
        // One user stands for all here, and what is measured is the machine's bound, not theirs.
        command
            .current_dir(home)
            .env_clear()
            .env("HOME", home)
            .env("ADJUTANT_SERVE_REQUESTS_PER_MINUTE", "1000000")
            .env("ADJUTANT_SERVE_TURNS_AT_ONCE", "10000");
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = process.stdout.take().ok_or("it says nothing")?;
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        let announced: Value = serde_json::from_str(&line)?;
        let text = |key: &str| {
            announced[key]
                .as_str()
                .map(str::to_owned)
                .ok_or(format!("no {key}"))
        };
        // Plain HTTP on this machine: no proxy of the environment has a part in it.
        let http = reqwest::Client::builder().no_proxy().build()?;
        let client = Client {
            http,
            url: text("url")?,
            token: text("token")?,
        };
        client
            .http
            .get(format!("{}/readyz", client.url))
            .send()
            .await?
            .error_for_status()?;
        Ok(Self {
            process,
            client,
            ready: begun.elapsed(),
        })
    }

    fn client(&self) -> Client {
        self.client.clone()
    }

    async fn say(&self, thread: Option<&str>, message: &str) -> Result<Value> {
        self.client.say(thread, message).await
    }

    /// In MiB, as Linux has it.
    fn memory(&self, name: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib: f64 = line
            .and_then(|line| line.trim().strip_suffix(" kB"))
            .ok_or("no figure")?
            .trim()
            .parse()?;
        Ok(kib / 1024.0)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
