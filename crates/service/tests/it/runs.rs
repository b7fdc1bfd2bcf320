//! `/v1/runs`: AG-UI over real sockets.

mod answers;
mod tools;

use std::net::SocketAddr;
use std::sync::Arc;

use adjutant_core::UserId;
use adjutant_store::sqlite::Store;
use adjutant_store::worker_id;
use adjutant_tools::{TaskFilter, TaskStore};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::harness::{Answer, Running};

const MILK: &str = r#"
{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"thinking": "Done, it seems.", "text": "Added it."}
{"calls": [{"name": "delete_task", "args": {"task_id": "milk"}}]}
{"text": "Gone."}
"#;

/// Events as they come over one connection.
pub(crate) struct Listening {
    lines: tokio::io::Lines<BufReader<TcpStream>>,
    pub(crate) status: u16,
    head: String,
}

/// One event, with its id.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) event: Value,
}

impl Listening {
    /// Asks as HTTP/1.0 does, so that the body comes as it is, up to the end of the connection.
    pub(crate) async fn start(
        address: SocketAddr,
        request: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Self {
        let mut text = format!(
            "{request} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection
            .write_all(format!("{text}\r\n{body}").as_bytes())
            .await
            .unwrap();
        let mut lines = BufReader::new(connection).lines();
        let mut head = String::new();
        while let Some(line) = lines
            .next_line()
            .await
            .unwrap()
            .filter(|line| !line.is_empty())
        {
            head += &format!("{}\n", line.to_lowercase());
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self {
            lines,
            status,
            head,
        }
    }

    pub(crate) async fn next(&mut self) -> Option<Frame> {
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
        let mut frames: Vec<Frame> = Vec::new();
        while frames
            .last()
            .is_none_or(|frame| frame.event["type"] != kind)
        {
            frames.push(self.next().await.unwrap());
        }
        frames
    }

    /// The rest, as it comes.
    pub(crate) async fn rest(mut self) -> String {
        let mut rest = String::new();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            rest += &line;
        }
        rest
    }

    pub(crate) async fn all(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

/// A client of one user.
pub(crate) struct Client<'a> {
    service: &'a Running,
    pub(crate) token: String,
}

impl<'a> Client<'a> {
    pub(crate) async fn new(service: &'a Running, user: &str) -> Self {
        Self {
            service,
            token: format!("Bearer {}", service.token(user).await),
        }
    }

    async fn post(&self, body: &Value) -> Listening {
        let headers = [
            ("Authorization", self.token.as_str()),
            ("Accept", "text/event-stream"),
            ("Content-Type", "application/json"),
        ];
        Listening::start(
            self.service.address,
            "POST /v1/runs",
            &headers,
            &body.to_string(),
        )
        .await
    }

    pub(crate) async fn run(&self, body: &Value) -> Vec<Frame> {
        let listening = self.post(body).await;
        assert_eq!(listening.status, 200, "{}", listening.head);
        listening.all().await
    }

    async fn listen(&self, path: &str, last: Option<&str>) -> Listening {
        let mut headers = vec![("Authorization", self.token.as_str())];
        headers.extend(last.map(|last| ("Last-Event-ID", last)));
        Listening::start(self.service.address, &format!("GET {path}"), &headers, "").await
    }

    async fn json(&self, method: &str, path: &str, body: &Value) -> Answer {
        let headers = [("Authorization", self.token.clone())];
        self.service
            .ask(method, path, &headers, &body.to_string())
            .await
    }

    /// Returns the number of a user's tasks.
    async fn tasks(&self, user: &str) -> usize {
        let user = UserId::new(user).unwrap();
        TaskStore::list(&*self.service.store, &user, TaskFilter::All)
            .await
            .unwrap()
            .len()
    }

    /// `POST /v1/runs` without events.
    async fn run_json(&self, body: &Value) -> Answer {
        self.json("POST", "/v1/runs", body).await
    }

    /// Adds a task and asks for its deletion: what waits then.
    async fn ask_to_delete(&self, thread: &str) -> Value {
        self.run(&say(thread, &format!("{thread}-add"), "add buy milk"))
            .await;
        let asked = self
            .run(&say(thread, &format!("{thread}-delete"), "delete it"))
            .await;
        interrupts(&asked).remove(0)
    }
}

pub(crate) fn say(thread: &str, run: &str, words: &str) -> Value {
    json!({
        "threadId": thread, "runId": run, "protocolVersion": "1.0", "state": {}, "tools": [], "context": [],
        "forwardedProps": {}, "messages": [{"id": format!("{run}-user"), "role": "user", "content": words}],
    })
}

pub(crate) fn resume(thread: &str, run: &str, answers: &[(&Value, Value)]) -> Value {
    let entries: Vec<Value> = answers
        .iter()
        .map(|(id, payload)| json!({"interruptId": id, "status": "resolved", "payload": payload}))
        .collect();
    json!({"threadId": thread, "runId": run, "messages": [], "resume": entries})
}

pub(crate) fn kinds(frames: &[Frame]) -> Vec<&str> {
    let mut kinds: Vec<&str> = frames
        .iter()
        .map(|frame| frame.event["type"].as_str().unwrap())
        .collect();
    // How a model cuts its words is its business.
    kinds.dedup();
    kinds
}

pub(crate) fn of_kind<'a>(frames: &'a [Frame], kind: &str) -> Vec<&'a Value> {
    frames
        .iter()
        .map(|frame| &frame.event)
        .filter(|event| event["type"] == kind)
        .collect()
}

fn text(frames: &[Frame]) -> String {
    of_kind(frames, "TEXT_MESSAGE_CONTENT")
        .iter()
        .map(|event| event["delta"].as_str().unwrap())
        .collect()
}

pub(crate) fn last(frames: &[Frame]) -> &Value {
    &frames.last().unwrap().event
}

pub(crate) fn interrupts(frames: &[Frame]) -> Vec<Value> {
    assert_eq!(
        last(frames)["outcome"]["type"],
        "interrupt",
        "{:#?}",
        last(frames)
    );
    last(frames)["outcome"]["interrupts"]
        .as_array()
        .unwrap()
        .clone()
}

pub(crate) fn decision(frames: &[Frame]) -> &Value {
    let custom = of_kind(frames, "CUSTOM");
    &custom
        .iter()
        .rev()
        .find(|event| event["name"] == "decision")
        .unwrap()["value"]
}

#[tokio::test]
async fn a_turn_is_streamed_as_events() {
    let service = Running::start(MILK).await;
    let anna = Client::new(&service, "anna").await;
    let listening = anna.post(&say("t", "r1", "add buy milk")).await;
    for header in [
        "content-type: text/event-stream",
        "cache-control: no-store",
        "x-accel-buffering: no",
    ] {
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
            "CUSTOM",
            "RUN_FINISHED",
        ],
        "{frames:#?}"
    );
    assert_eq!(text(&frames), "Added it.");
    let first = &frames[0].event;
    assert_eq!(
        (&first["threadId"], &first["runId"]),
        (&json!("t"), &json!("r1"))
    );
    assert_eq!(last(&frames)["outcome"], json!({"type": "success"}));
    let delta = &of_kind(&frames, "STATE_DELTA")[0]["delta"];
    assert_eq!(
        (&delta[0]["op"], &delta[0]["path"]),
        (&json!("add"), &json!("/tasks/0"))
    );
    assert_eq!(delta[0]["value"]["description"], "buy milk");
    let result = of_kind(&frames, "TOOL_CALL_RESULT")[0];
    assert!(
        result["content"]
            .as_str()
            .unwrap()
            .contains("\"success\":true"),
        "{result}"
    );
    assert_eq!(result["metadata"]["success"], true);
    assert_eq!(
        of_kind(&frames, "TOOL_CALL_START")[0]["toolCallName"],
        "add_task"
    );
    assert_eq!(decision(&frames)["outcome"], "SUCCESS:TASK_COMPLETED");
    let unique: std::collections::HashSet<&str> =
        frames.iter().map(|frame| frame.id.as_str()).collect();
    assert!(
        unique.len() == frames.len() && !unique.contains(""),
        "{frames:#?}"
    );
    service.stop().await;
}

#[tokio::test]
async fn a_run_goes_on_without_its_client_and_can_be_replayed() {
    let script = r#"{"text": "one two three four five six seven eight", "delay_ms": 50}"#;
    let service = Running::start(script).await;
    let anna = Client::new(&service, "anna").await;
    let mut leaving = anna.post(&say("t", "r1", "count")).await;
    let first = leaving.next().await.unwrap();
    assert_eq!(first.event["type"], "RUN_STARTED");
    drop(leaving);
    let all = anna.listen("/v1/runs/r1/events", None).await.all().await;
    assert_eq!(
        (&all[0], text(&all).as_str()),
        (&first, "one two three four five six seven eight")
    );
    assert_eq!(last(&all)["outcome"]["type"], "success");
    // By the decision's id, from the middle.
    let path = format!(
        "/v1/runs/{}/events",
        decision(&all)["decision_id"].as_str().unwrap()
    );
    let rest = anna.listen(&path, Some(&all[4].id)).await.all().await;
    assert_eq!(rest, all[5..]);
    // A place in something else is none.
    assert_eq!(anna.listen(&path, Some("nothing-4")).await.all().await, all);
    assert_eq!(
        anna.listen(&path, Some(&all.last().unwrap().id))
            .await
            .status,
        204
    );
    assert_eq!(anna.listen("/v1/runs/r2/events", None).await.status, 404);
    service.stop().await;
}

#[tokio::test]
async fn a_user_cannot_see_or_cancel_the_run_of_another() {
    let script = r#"{"fault": "stall", "text": "I think"}"#;
    let service = Running::start(script).await;
    let (anna, bert) = (
        Client::new(&service, "anna").await,
        Client::new(&service, "bert").await,
    );
    let mut running = anna.post(&say("t", "r1", "think")).await;
    running.until("TEXT_MESSAGE_CONTENT").await;
    for path in ["/v1/runs/r1/events", "/v1/runs/r1/events?thread_id=t"] {
        assert_eq!(bert.listen(path, None).await.status, 404, "{path}");
    }
    for path in ["/v1/runs/r1/cancel", "/v1/runs/r1/cancel?thread_id=t"] {
        assert_eq!(
            bert.json("POST", path, &json!({})).await.status,
            404,
            "{path}"
        );
    }
    let stopped = anna.json("POST", "/v1/runs/r1/cancel", &json!({})).await;
    assert_eq!(
        (stopped.status, &stopped.body["status"]),
        (202, &json!("stopping"))
    );
    let rest = running.all().await;
    assert_eq!(
        last(&rest)["outcome"],
        json!({"type": "cancelled"}),
        "{rest:#?}"
    );
    let turn = decision(&rest)["decision_id"].as_str().unwrap();
    for path in [
        format!("/v1/runs/{turn}/events"),
        format!("/v1/runs/{turn}/cancel"),
    ] {
        let method = if path.ends_with("cancel") {
            "POST"
        } else {
            "GET"
        };
        assert_eq!(
            bert.json(method, &path, &json!({})).await.status,
            404,
            "{path}"
        );
    }
    let again = anna
        .json("POST", &format!("/v1/runs/{turn}/cancel"), &json!({}))
        .await;
    assert_eq!(
        (again.status, &again.body["status"]),
        (202, &json!("ended"))
    );
    service.stop().await;
}

#[tokio::test]
async fn cancelling_a_waiting_run_executes_nothing() {
    let service = Running::start(MILK).await;
    let anna = Client::new(&service, "anna").await;
    anna.ask_to_delete("t").await;
    let asked = anna
        .listen("/v1/runs/t-delete/events", None)
        .await
        .all()
        .await;
    let turn = decision(&asked)["decision_id"].as_str().unwrap();
    let stopped = anna
        .json("POST", "/v1/runs/t-delete/cancel", &json!({}))
        .await;
    assert_eq!(
        (stopped.status, &stopped.body["status"]),
        (202, &json!("stopping")),
        "{stopped:?}"
    );
    // Nothing waits any more, and nothing was done: it is told as it is now, by either name.
    for name in [turn, "t-delete"] {
        let told = anna
            .listen(&format!("/v1/runs/{name}/events"), None)
            .await
            .all()
            .await;
        assert_eq!(
            last(&told)["outcome"],
            json!({"type": "cancelled"}),
            "{told:#?}"
        );
    }
    let next = anna.run(&say("t", "next", "hello")).await;
    assert_eq!(
        (
            last(&next)["outcome"]["type"].as_str(),
            anna.tasks("anna").await
        ),
        (Some("success"), 1)
    );
    service.stop().await;
}

#[tokio::test]
async fn a_model_that_fails_halfway_is_an_error_with_our_code() {
    for (fault, code) in [
        ("truncated", "truncated"),
        ("quota", "quota"),
        ("rate_limit", "rate_limit"),
    ] {
        let script =
            format!("{{\"text\": \"Half of\", \"fault\": \"{fault}\"}}\n{{\"text\": \"Whole.\"}}");
        let service = Running::start(&script).await;
        let anna = Client::new(&service, "anna").await;
        let broken = anna.run(&say("t", "r1", "hi")).await;
        assert_eq!(
            (&last(&broken)["type"], &last(&broken)["code"]),
            (&json!("RUN_ERROR"), &json!(code)),
            "{fault}"
        );
        // What was begun is closed, and what a person reads names no internals.
        let order = kinds(&broken);
        let count = |kind: &str| order.iter().filter(|known| **known == kind).count();
        assert_eq!(
            count("TEXT_MESSAGE_START"),
            count("TEXT_MESSAGE_END"),
            "{fault}"
        );
        assert_eq!(count("STEP_STARTED"), count("STEP_FINISHED"), "{fault}");
        assert!(
            !last(&broken)["message"]
                .as_str()
                .unwrap()
                .contains("script"),
            "{:#?}",
            last(&broken)
        );
        assert_eq!(text(&anna.run(&say("t", "r2", "again")).await), "Whole.");
        service.stop().await;
    }
}

#[tokio::test]
async fn without_events_it_is_the_answer_of_chat() {
    let service = Running::start(MILK).await;
    let anna = Client::new(&service, "anna").await;
    let added = anna.run_json(&say("t", "r1", "add buy milk")).await;
    assert_eq!(
        (added.status, &added.body["content"]),
        (200, &json!("Added it.")),
        "{added:?}"
    );
    assert_eq!(
        (&added.body["thread_id"], &added.body["decision"]),
        (&json!("t"), &json!("INVOKE_TOOL"))
    );
    // The same run again is the same run, as events too.
    let again = anna.run_json(&say("t", "r1", "add buy milk")).await;
    assert_eq!(again.body["run_id"], added.body["run_id"]);
    assert_eq!(
        text(&anna.run(&say("t", "r1", "add buy milk")).await),
        "Added it."
    );
    let asked = anna.run_json(&say("t", "r2", "delete it")).await;
    assert_eq!(asked.body["decision"], "REQUEST_CONFIRMATION");
    let id = &asked.body["pending"][0]["interrupt_id"];
    let payload = json!({"approved": true, "editedArgs": {"task_id": "9"}});
    assert_eq!(
        anna.run_json(&resume("t", "r3", &[(id, payload)]))
            .await
            .status,
        422
    );
    let gone = anna
        .run_json(&resume("t", "r4", &[(id, json!({"approved": true}))]))
        .await;
    assert_eq!(gone.body["content"], "Gone.", "{gone:?}");
    service.stop().await;
}

#[tokio::test]
async fn invalid_requests_start_no_run() {
    let service = Running::start(r#"{"text": "Hello."}"#).await;
    let anna = Client::new(&service, "anna").await;
    let hello = json!([{"id": "1", "role": "user", "content": "hi"}]);
    let image = json!([{"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}}]);
    for (body, words) in [
        (json!({}), "threadId"),
        (json!({"threadId": "t", "messages": hello}), "runId"),
        (json!({"threadId": "t", "runId": "r"}), "messages"),
        (
            json!({"threadId": "t", "runId": " ", "messages": hello}),
            "runId",
        ),
        (
            json!({"threadId": "t", "runId": "r".repeat(201), "messages": hello}),
            "runId",
        ),
        (
            json!({"threadId": "t", "runId": format!("{} ", "r".repeat(200)), "messages": hello}),
            "runId",
        ),
        (
            json!({"threadId": format!("{} ", "t".repeat(200)), "runId": "r", "messages": hello}),
            "thread",
        ),
        (
            json!({"threadId": "", "runId": "r", "messages": hello}),
            "thread",
        ),
        (
            json!({"threadId": "t", "runId": "r", "messages": []}),
            "message of the user",
        ),
        (
            json!({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": " "}]}),
            "no text",
        ),
        (
            json!({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": image}]}),
            "no text",
        ),
        (
            json!({"threadId": "t", "runId": "r", "messages": [], "resume": [{"interruptId": "i"}]}),
            "status",
        ),
    ] {
        let refused = anna.run_json(&body).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (422, &json!("invalid_request")),
            "{body}: {refused:?}"
        );
        assert!(
            refused.body["detail"].as_str().unwrap().contains(words),
            "{body}: {refused:?}"
        );
        assert_eq!(anna.post(&body).await.status, 422, "{body}");
    }
    let nobody = Listening::start(
        service.address,
        "POST /v1/runs",
        &[("Content-Type", "application/json")],
        "{}",
    )
    .await;
    assert_eq!(nobody.status, 401);
    let said = anna.run(&json!({"threadId": "t", "runId": "r", "messages": hello, "tools": [{"name": "x", "description": "y"}]})).await;
    assert_eq!(
        (text(&said).as_str(), &decision(&said)["notices"]),
        ("Hello.", &json!([]))
    );
    service.stop().await;
}

#[tokio::test]
async fn a_slow_reader_blocks_no_other_and_misses_nothing() {
    let words = "word ".repeat(20_000);
    let script = json!({ "text": words }).to_string();
    let service = Running::start(&script).await;
    let anna = Client::new(&service, "anna").await;
    // Nothing of it is read while the run goes on.
    let slow = anna.post(&say("t", "r1", "talk")).await;
    let quick = anna.listen("/v1/runs/r1/events", None).await.all().await;
    assert_eq!(last(&quick)["type"], "RUN_FINISHED");
    // More than is kept of one run: what was left out of the pieces is in the messages.
    let messages = of_kind(&quick, "MESSAGES_SNAPSHOT")[0]["messages"]
        .as_array()
        .unwrap();
    assert_eq!(
        messages.last().unwrap()["content"].as_str().unwrap().trim(),
        words.trim()
    );
    assert_eq!(slow.all().await, quick);
    service.stop().await;
}

#[tokio::test]
async fn another_process_replays_a_run_from_the_journal_and_cancels_it() {
    let script = r#"
{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"text": "Added it."}
{"fault": "stall", "text": "I think"}
"#;
    let store = Arc::new(Store::in_memory().await.unwrap());
    let one = Running::start_on(store.clone(), script, |builder| builder).await;
    let worker = format!("{}-two", worker_id());
    let two = Running::start_on(store.clone(), r#"{"text": "Two."}"#, |builder| {
        builder.journal(store, worker)
    })
    .await;
    let here = Client::new(&one, "anna").await;
    let there = Client {
        service: &two,
        token: here.token.clone(),
    };
    let told = here.run(&say("t", "r1", "add buy milk")).await;
    let turn = decision(&told)["decision_id"].as_str().unwrap();
    for path in [
        format!("/v1/runs/{turn}/events"),
        "/v1/runs/r1/events?thread_id=t".to_owned(),
    ] {
        let read = there.listen(&path, None).await.all().await;
        assert_eq!(
            kinds(&read),
            [
                "RUN_STARTED",
                "TOOL_CALL_START",
                "TOOL_CALL_ARGS",
                "TOOL_CALL_END",
                "TOOL_CALL_RESULT",
                "TEXT_MESSAGE_START",
                "TEXT_MESSAGE_CONTENT",
                "TEXT_MESSAGE_END",
                "STATE_SNAPSHOT",
                "CUSTOM",
                "RUN_FINISHED"
            ],
            "{path}: {read:#?}"
        );
        assert_eq!(text(&read), "Added it.");
        assert_eq!(decision(&read)["content"], "Added it.");
        assert_eq!(
            of_kind(&read, "STATE_SNAPSHOT")[0]["snapshot"]["tasks"][0]["description"],
            "buy milk"
        );
    }
    assert_eq!(there.listen("/v1/runs/r1/events", None).await.status, 404);
    // The same run again, asked of the other process, is not done again.
    let again = there.run(&say("t", "r1", "add buy milk")).await;
    assert_eq!(
        (
            decision(&again)["decision_id"].as_str(),
            there.tasks("anna").await
        ),
        (Some(turn), 1)
    );
    let again = there.run_json(&say("t", "r1", "add buy milk")).await;
    assert_eq!(
        (&again.body["content"], &again.body["run_id"]),
        (&json!("Added it."), &json!(turn))
    );
    // Another request of that name is refused by both.
    for client in [&here, &there] {
        let other = say("t", "r1", "add buy bread");
        let refused = client.run_json(&other).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (422, &json!("idempotency_key_reused")),
            "{refused:?}"
        );
        assert_eq!(client.post(&other).await.status, 422);
    }
    assert_eq!(there.tasks("anna").await, 1);

    let mut running = here.post(&say("t", "r2", "think")).await;
    running.until("TEXT_MESSAGE_CONTENT").await;
    let mut following = there.listen("/v1/runs/r2/events?thread_id=t", None).await;
    assert_eq!(following.next().await.unwrap().event["type"], "RUN_STARTED");
    let stopped = there
        .json("POST", "/v1/runs/r2/cancel?thread_id=t", &json!({}))
        .await;
    assert_eq!(
        (stopped.status, &stopped.body["status"]),
        (202, &json!("stopping")),
        "{stopped:?}"
    );
    for frames in [running.all().await, following.all().await] {
        assert_eq!(
            last(&frames)["outcome"],
            json!({"type": "cancelled"}),
            "{frames:#?}"
        );
    }
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn runs_of_one_conversation_are_distinguished() {
    let script = r#"{"text": "One.", "delay_ms": 30}
{"text": "Two.", "delay_ms": 30}
{"text": "Three."}"#;
    let service = Running::start(script).await;
    let anna = Client::new(&service, "anna").await;
    let bodies: Vec<Value> = (1..=3)
        .map(|at| say("t", &format!("r{at}"), "hi"))
        .collect();
    let [a, b, c] = [&bodies[0], &bodies[1], &bodies[2]].map(|body| anna.run(body));
    let (a, b, c) = tokio::join!(a, b, c);
    let mut said = [text(&a), text(&b), text(&c)];
    said.sort();
    assert_eq!(said, ["One.", "Three.", "Two."]);
    for frames in [a, b, c] {
        assert_eq!(of_kind(&frames, "RUN_STARTED").len(), 1);
        assert_eq!(last(&frames)["outcome"]["type"], "success");
        assert_eq!(decision(&frames)["content"], json!(text(&frames)));
    }
    service.stop().await;
}
