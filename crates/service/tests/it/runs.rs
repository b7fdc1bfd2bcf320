//! `/v1/runs`: AG-UI over real sockets.

use std::time::Duration;

use adjutant_core::UserId;
use adjutant_core::port::{ConversationFilter, ConversationStore as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::harness::{Answer, Running};

const MILK: &str = r#"
{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"thinking": "Done, it seems.", "text": "Added it."}
{"calls": [{"name": "delete_task", "args": {"task_id": "milk"}}]}
{"text": "Gone."}
"#;

/// Events as they come over one connection.
struct Listening {
    lines: tokio::io::Lines<BufReader<TcpStream>>,
    status: u16,
    head: String,
}

/// One event, with its id.
#[derive(Debug, Clone, PartialEq)]
struct Frame {
    id: String,
    event: Value,
}

impl Listening {
    /// Asks as HTTP/1.0 does, so that the body comes as it is, up to the end of the connection.
    async fn start(service: &Running, request: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let mut text =
            format!("{request} HTTP/1.0\r\nHost: {}\r\nContent-Length: {}\r\n", service.address, body.len());
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        let mut connection = TcpStream::connect(service.address).await.unwrap();
        connection.write_all(format!("{text}\r\n{body}").as_bytes()).await.unwrap();
        let mut lines = BufReader::new(connection).lines();
        let mut head = String::new();
        while let Some(line) = lines.next_line().await.unwrap().filter(|line| !line.is_empty()) {
            head += &format!("{}\n", line.to_lowercase());
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { lines, status, head }
    }

    async fn next(&mut self) -> Option<Frame> {
        let (mut id, mut event) = (String::new(), None);
        loop {
            let line = self.lines.next_line().await.unwrap()?;
            if let Some(value) = line.strip_prefix("id: ") {
                id = value.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                event = Some(serde_json::from_str(data).unwrap());
            } else if line.is_empty()
                && let Some(event) = event.take()
            {
                return Some(Frame { id, event });
            }
        }
    }

    async fn until(&mut self, kind: &str) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            let found = frame.event["type"] == kind;
            frames.push(frame);
            if found {
                return frames;
            }
        }
        panic!("no {kind} in {frames:#?}")
    }

    async fn all(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

/// A client of one user.
struct Client<'a> {
    service: &'a Running,
    token: String,
}

impl<'a> Client<'a> {
    async fn new(service: &'a Running, user: &str) -> Self {
        Self { service, token: format!("Bearer {}", service.token(user).await) }
    }

    async fn post(&self, body: &Value) -> Listening {
        let headers = [
            ("Authorization", self.token.as_str()),
            ("Accept", "text/event-stream"),
            ("Content-Type", "application/json"),
        ];
        Listening::start(self.service, "POST /v1/runs", &headers, &body.to_string()).await
    }

    async fn run(&self, body: &Value) -> Vec<Frame> {
        let listening = self.post(body).await;
        assert_eq!(listening.status, 200, "{}", listening.head);
        listening.all().await
    }

    async fn listen(&self, path: &str, last: Option<&str>) -> Listening {
        let mut headers = vec![("Authorization", self.token.as_str())];
        headers.extend(last.map(|last| ("Last-Event-ID", last)));
        Listening::start(self.service, &format!("GET {path}"), &headers, "").await
    }

    async fn json(&self, method: &str, path: &str, body: &Value) -> Answer {
        let headers = [("Authorization", self.token.clone())];
        self.service.ask(method, path, &headers, &body.to_string()).await
    }

    async fn tasks(&self, user: &str) -> usize {
        use adjutant_core::port::TaskStore as _;
        let user = UserId::new(user).unwrap();
        self.service.store.clone().list_tasks(&user).await
    }
}

/// Both stores have a `list`.
trait ListTasks {
    async fn list_tasks(&self, user: &UserId) -> usize;
}

impl ListTasks for std::sync::Arc<adjutant_store::sqlite::Store> {
    async fn list_tasks(&self, user: &UserId) -> usize {
        let tasks = adjutant_core::port::TaskStore::list(&**self, user, adjutant_core::TaskFilter::All);
        tasks.await.unwrap().len()
    }
}

fn say(thread: &str, run: &str, words: &str) -> Value {
    json!({
        "threadId": thread, "runId": run, "protocolVersion": "1.0", "state": {}, "tools": [], "context": [],
        "forwardedProps": {}, "messages": [{"id": format!("{run}-user"), "role": "user", "content": words}],
    })
}

fn resume(thread: &str, run: &str, answers: &[(&Value, Value)]) -> Value {
    let entries: Vec<Value> = answers
        .iter()
        .map(|(id, payload)| json!({"interruptId": id, "status": "resolved", "payload": payload}))
        .collect();
    json!({"threadId": thread, "runId": run, "messages": [], "resume": entries})
}

fn kinds(frames: &[Frame]) -> Vec<&str> {
    let mut kinds: Vec<&str> = frames.iter().map(|frame| frame.event["type"].as_str().unwrap()).collect();
    // How a model cuts its words is its business.
    kinds.dedup();
    kinds
}

fn of_kind<'a>(frames: &'a [Frame], kind: &str) -> Vec<&'a Value> {
    frames.iter().map(|frame| &frame.event).filter(|event| event["type"] == kind).collect()
}

fn text(frames: &[Frame]) -> String {
    of_kind(frames, "TEXT_MESSAGE_CONTENT").iter().map(|event| event["delta"].as_str().unwrap()).collect()
}

fn last(frames: &[Frame]) -> &Value {
    &frames.last().unwrap().event
}

fn interrupts(frames: &[Frame]) -> Vec<Value> {
    assert_eq!(last(frames)["outcome"]["type"], "interrupt", "{:#?}", last(frames));
    last(frames)["outcome"]["interrupts"].as_array().unwrap().clone()
}

fn decision(frames: &[Frame]) -> &Value {
    let custom = of_kind(frames, "CUSTOM");
    &custom.iter().rev().find(|event| event["name"] == "decision").unwrap()["value"]
}

#[tokio::test]
async fn a_turn_is_told_as_it_goes_on() {
    let service = Running::start(MILK).await;
    let anna = Client::new(&service, "anna").await;
    let listening = anna.post(&say("t", "r1", "add buy milk")).await;
    for header in ["content-type: text/event-stream", "cache-control: no-store", "x-accel-buffering: no"] {
        assert!(listening.head.contains(header), "{}", listening.head);
    }
    let frames = listening.all().await;
    assert_eq!(
        kinds(&frames),
        [
            "RUN_STARTED",
            "STATE_SNAPSHOT",
            "STEP_STARTED",
            "STEP_FINISHED",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
            "STATE_DELTA",
            "STEP_STARTED",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "STEP_FINISHED",
            "MESSAGES_SNAPSHOT",
            "STATE_SNAPSHOT",
            "CUSTOM",
            "RUN_FINISHED",
        ],
        "{frames:#?}"
    );
    assert_eq!(text(&frames), "Added it.");
    let first = &frames[0].event;
    assert_eq!((&first["threadId"], &first["runId"]), (&json!("t"), &json!("r1")));
    assert_eq!(last(&frames)["outcome"], json!({"type": "success"}));
    let delta = &of_kind(&frames, "STATE_DELTA")[0]["delta"];
    assert_eq!((&delta[0]["op"], &delta[0]["path"]), (&json!("add"), &json!("/tasks/0")));
    assert_eq!(delta[0]["value"]["description"], "buy milk");
    let result = of_kind(&frames, "TOOL_CALL_RESULT")[0];
    assert!(result["content"].as_str().unwrap().contains("\"success\":true"), "{result}");
    assert_eq!(result["metadata"]["success"], true);
    // What the client has keeps its names.
    let messages = of_kind(&frames, "MESSAGES_SNAPSHOT")[0]["messages"].as_array().unwrap();
    let ids: Vec<&Value> = messages.iter().map(|message| &message["id"]).collect();
    let start = of_kind(&frames, "TOOL_CALL_START")[0];
    let said = of_kind(&frames, "TEXT_MESSAGE_START")[0];
    assert_eq!(ids, [&json!("r1-user"), &start["parentMessageId"], &result["messageId"], &said["messageId"]]);
    assert_eq!(messages[1]["toolCalls"][0]["function"]["name"], "add_task");
    assert_eq!(decision(&frames)["outcome"], "SUCCESS:TASK_COMPLETED");
    let unique: std::collections::HashSet<&str> = frames.iter().map(|frame| frame.id.as_str()).collect();
    assert!(unique.len() == frames.len() && !unique.contains(""), "{frames:#?}");
    service.stop().await;
}

#[tokio::test]
async fn a_deletion_interrupts_and_goes_on_with_its_yes() {
    let service = Running::start(MILK).await;
    let anna = Client::new(&service, "anna").await;
    anna.run(&say("t", "r1", "add buy milk")).await;
    let asked = anna.run(&say("t", "r2", "delete it")).await;
    let waits = interrupts(&asked);
    assert_eq!(waits.len(), 1);
    let interrupt = &waits[0];
    assert_eq!(interrupt["reason"], "confirmation");
    assert!(interrupt["message"].as_str().unwrap().contains("buy milk"), "{interrupt}");
    assert_eq!(interrupt["metadata"]["tool"], "delete_task");
    assert_eq!(interrupt["metadata"]["args"], json!({"task_id": "1"}));
    assert_eq!(interrupt["toolCallId"], of_kind(&asked, "TOOL_CALL_START")[0]["toolCallId"]);
    assert!(interrupt["expiresAt"].is_string() && interrupt["responseSchema"].is_object());
    // The snapshots come before it.
    let order = kinds(&asked);
    let at = |kind| order.iter().rposition(|known| *known == kind).unwrap();
    assert!(at("MESSAGES_SNAPSHOT") < at("RUN_FINISHED") && at("STATE_SNAPSHOT") < at("RUN_FINISHED"));
    let messages = of_kind(&asked, "MESSAGES_SNAPSHOT")[0]["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap()["toolCalls"][0]["id"], interrupt["toolCallId"]);

    let gone = anna.run(&resume("t", "r3", &[(&interrupt["id"], json!({"approved": true}))])).await;
    assert_eq!(last(&gone)["outcome"]["type"], "success", "{gone:#?}");
    assert_eq!(text(&gone), "Gone.");
    assert!(of_kind(&gone, "TOOL_CALL_START").is_empty(), "the client has the call: {gone:#?}");
    assert_eq!(of_kind(&gone, "TOOL_CALL_RESULT")[0]["toolCallId"], interrupt["toolCallId"]);
    assert_eq!(of_kind(&gone, "STATE_DELTA")[0]["delta"], json!([{"op": "remove", "path": "/tasks/0"}]));
    assert_eq!(decision(&gone)["decision_id"], decision(&asked)["decision_id"], "one turn");
    assert_eq!(anna.tasks("anna").await, 0);
    service.stop().await;
}
