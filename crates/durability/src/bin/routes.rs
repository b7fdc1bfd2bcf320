//! Fills a database with one user's data, and sends requests to the service over it, so that
//! `cargo xtask test all` can count the instructions of each route.
//!
//! `routes fill FOLDER FACTS OTHERS`: creates the database with so many facts, and so many
//! conversations, tasks and turns of one conversation.
//! `routes ask FOLDER REQUEST...`: sends each request, as `METHOD PATH BODY`, twice. Valgrind, started
//! with `--instr-atstart=no`, counts only the second, and writes a file for each. In a request
//! `{thread}` is the conversation with many turns, and `{number}` is the number of the attempt.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use adjutant_core::{CancellationToken, ConversationId, UserId};
use adjutant_memory::{Cause, DatabaseMemory, Memories};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::{Agent, RunContext};
use adjutant_service::{Auth, Service, ServiceConfig};
use adjutant_store::sqlite::Store;
use adjutant_tools::{TaskChange, TaskDescription, TaskStore as _, task_tools};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::Connection;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage: routes fill FOLDER FACTS OTHERS | routes ask FOLDER REQUEST...";
const FACTS_MAX: usize = 5_000;
/// The conversation with many turns.
const THREAD: &str = "00000000-0000-7000-8000-000000000001";

/// Copies the first fact, with other words in each copy.
const COPY_FACT: &str = "INSERT INTO adjutant_fact (user_id, text_hash, text, important, created_at, updated_at) \
     SELECT user_id, ?1, ?2, important, created_at, updated_at FROM adjutant_fact WHERE key = 1";

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match arguments[..] {
        ["fill", folder, facts, others] => {
            let (facts, others) = (facts.parse()?, others.parse()?);
            runtime.block_on(fill(&database(folder), facts, others))
        }
        ["ask", folder, ref requests @ ..] => runtime.block_on(ask(&database(folder), requests)),
        _ => Err(USAGE.into()),
    }
}

fn database(folder: &str) -> PathBuf {
    Path::new(folder).join("routes.db")
}

fn memory(store: &Arc<Store>) -> DatabaseMemory {
    // The same time in every run.
    let now = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
    let clock = Arc::new(move || now.clone());
    DatabaseMemory::new(store.clone(), store.clone(), FACTS_MAX, clock)
}

fn agent(store: &Arc<Store>) -> Result<Agent, Failure> {
    let model = ScriptedModel::from_jsonl(r#"{"text": "It is forty-two.", "repeat": true}"#)?;
    let agent = Agent::builder("adjutant")
        .model(model)
        .instruction("Be brief.")
        .tools(task_tools(store.clone()))
        .journal(store.clone(), "routes");
    Ok(agent.build()?)
}

async fn fill(database: &Path, facts: usize, others: usize) -> Result<(), Failure> {
    let store = Arc::new(Store::open(database).await?);
    let (agent, user) = (agent(&store)?, UserId::local());
    let long: ConversationId = THREAD.parse()?;
    for number in 0..others {
        let description = format!("water plant number {number}");
        let description = TaskDescription::new(&description)?;
        store
            .apply(
                &user,
                &TaskChange::Add {
                    description,
                    from_others: false,
                },
                None,
            )
            .await?;
        let message = format!("What is the answer to question number {number}?");
        agent.run(message.as_str()).await?;
        let mut context = RunContext {
            conversation: long,
            ..RunContext::default()
        };
        agent.run_in(&mut context, message.as_str()).await?;
    }
    let remembered = memory(&store).for_user(&user).facts();
    remembered
        .add(
            "The first fact is about red bicycles",
            false,
            &Cause::person(),
        )
        .await?;
    store.close().await;
    // A fact at a time would take minutes.
    let mut connection = Connection::open(database)?;
    let changes = connection.transaction()?;
    for number in 1..facts {
        let words: Vec<String> = (0..100)
            .map(|word| format!("word{}", (number * 7 + word) % 500))
            .collect();
        let text = format!("note number {number} about {}", words.join(" "));
        changes.execute(COPY_FACT, [number.to_string(), text])?;
    }
    Ok(changes.commit()?)
}

async fn ask(database: &Path, requests: &[&str]) -> Result<(), Failure> {
    let store = Arc::new(Store::open(database).await?);
    let config = ServiceConfig::new("127.0.0.1:0".parse()?, Auth::None);
    let service = Service::bind(agent(&store)?, config)
        .await?
        .with_tasks(store.clone())
        .with_conversation_search(store.clone())
        .with_memories(Memories::default().with_others(memory(&store)));
    let (address, stop) = (service.address(), CancellationToken::new());
    let running = tokio::spawn(service.run(stop.clone()));
    for request in requests {
        let attempt = |number: &str| {
            let request = request
                .replace("{thread}", THREAD)
                .replace("{number}", number);
            send(address, request)
        };
        // Work that is done once in a process, such as reading lists of words, is not counted.
        attempt("1").await?;
        control(&["-i", "on"])?;
        attempt("2").await?;
        control(&["-i", "off"])?;
        control(&["--dump"])?;
    }
    stop.cancel();
    running.await??;
    store.close().await;
    Ok(())
}

/// Sends a request, written as `METHOD PATH BODY`, and fails unless it succeeds.
async fn send(address: SocketAddr, request: String) -> Result<(), Failure> {
    let mut words = request.splitn(3, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (method, path, body) = (word(), word(), word());
    let mut connection = TcpStream::connect(address).await?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(head.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    if answer.starts_with("HTTP/1.1 2") {
        return Ok(());
    }
    Err(format!("{request}\n{answer}").into())
}

/// Tells valgrind to switch its counting, or to write what it has counted.
fn control(arguments: &[&str]) -> Result<(), Failure> {
    let mut control = Command::new("callgrind_control");
    let told = control
        .args(arguments)
        .arg(std::process::id().to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    told.success()
        .then_some(())
        .ok_or_else(|| "callgrind_control failed".into())
}
