//! A client that follows a conversation is sent what each run adds, and has all of it. What a run
//! costs does not grow with the conversation, or with what was completed.

use adjutant_core::UserId;
use adjutant_tools::{TaskChange, TaskDescription, TaskId, TaskStore as _};
use serde_json::{Value, json};

use crate::counting::Counted;
use crate::growth::{counting, talk};
use crate::harness::Running;
use crate::resources::ask;
use crate::runs::{Client, Frame, interrupts, kinds, last, of_kind, resume, say};

/// An AG-UI client: its messages and state, changed by events as the protocol demands.
#[derive(Default)]
pub(crate) struct Follower {
    pub(crate) messages: Vec<Value>,
    state: Value,
    runs: usize,
}

impl Follower {
    pub(crate) async fn say(&mut self, client: &Client<'_>, words: &str) -> Vec<Frame> {
        self.runs += 1;
        let mut body = say("t", &format!("r{}", self.runs), words);
        self.messages.push(body["messages"][0].clone());
        (body["messages"], body["state"]) = (json!(self.messages), self.state.clone());
        self.run(client, &body).await
    }

    pub(crate) async fn answer(
        &mut self,
        client: &Client<'_>,
        interrupt: &Value,
        payload: Value,
    ) -> Vec<Frame> {
        self.runs += 1;
        let mut body = resume(
            "t",
            &format!("r{}", self.runs),
            &[(&interrupt["id"], payload)],
        );
        (body["messages"], body["state"]) = (json!(self.messages), self.state.clone());
        self.run(client, &body).await
    }

    async fn run(&mut self, client: &Client<'_>, body: &Value) -> Vec<Frame> {
        let frames = client.run(body).await;
        frames.iter().for_each(|frame| self.apply(&frame.event));
        frames
    }

    fn apply(&mut self, event: &Value) {
        let named = |id: &Value| json!({"id": id, "role": "assistant"});
        match event["type"].as_str().unwrap() {
            "TEXT_MESSAGE_START" => drop(self.message(&event["messageId"], named)),
            "TEXT_MESSAGE_CONTENT" => {
                let message = self.message(&event["messageId"], named);
                let text = message["content"].as_str().unwrap_or_default().to_owned();
                message["content"] = json!(text + event["delta"].as_str().unwrap());
            }
            "TOOL_CALL_START" => {
                let message = self.message(&event["parentMessageId"], named);
                if message["toolCalls"].is_null() {
                    message["toolCalls"] = json!([]);
                }
                let function = json!({"name": event["toolCallName"], "arguments": ""});
                let call =
                    json!({"id": event["toolCallId"], "type": "function", "function": function});
                message["toolCalls"].as_array_mut().unwrap().push(call);
            }
            "TOOL_CALL_ARGS" => {
                let calls = self
                    .messages
                    .iter_mut()
                    .filter_map(|message| message.get_mut("toolCalls")?.as_array_mut());
                let call = calls
                    .flatten()
                    .find(|call| call["id"] == event["toolCallId"])
                    .unwrap();
                call["function"]["arguments"] = event["delta"].clone();
            }
            "TOOL_CALL_RESULT" => self.messages.push(json!({
                "id": event["messageId"], "role": "tool", "content": event["content"],
                "toolCallId": event["toolCallId"],
            })),
            "STATE_SNAPSHOT" => self.state = event["snapshot"].clone(),
            "STATE_DELTA" => {
                for operation in event["delta"].as_array().unwrap() {
                    let place = operation["path"]
                        .as_str()
                        .unwrap()
                        .strip_prefix("/tasks/")
                        .unwrap();
                    let (at, tasks) = (
                        place.parse().unwrap(),
                        self.state["tasks"].as_array_mut().unwrap(),
                    );
                    match operation["op"].as_str().unwrap() {
                        "add" => tasks.insert(at, operation["value"].clone()),
                        "replace" => tasks[at] = operation["value"].clone(),
                        _ => drop(tasks.remove(at)),
                    }
                }
            }
            _ => {}
        }
    }

    fn message(&mut self, id: &Value, new: impl FnOnce(&Value) -> Value) -> &mut Value {
        let at = self
            .messages
            .iter()
            .position(|message| message["id"] == *id);
        let at = at.unwrap_or_else(|| {
            self.messages.push(new(id));
            self.messages.len() - 1
        });
        &mut self.messages[at]
    }

    /// Its messages without what only one of both sides has: the ids of what the person said, the
    /// mark of an error, and the order of the calls of one answer, which end when they end.
    pub(crate) fn known(messages: &[Value]) -> Vec<Value> {
        let by_id = |message: &Value| message["id"].to_string();
        let mut known = messages.to_vec();
        for message in &mut known {
            message.as_object_mut().unwrap().remove("error");
            if message["role"] == "user" {
                message["id"] = Value::Null;
            }
            if let Some(Value::Array(calls)) = message.get_mut("toolCalls") {
                calls.sort_by_key(by_id);
            }
        }
        known
            .chunk_by_mut(|one, next| one["role"] == "tool" && next["role"] == "tool")
            .for_each(|together| together.sort_by_key(by_id));
        known
    }
}

pub(crate) fn snapshots(frames: &[Frame]) -> usize {
    of_kind(frames, "MESSAGES_SNAPSHOT").len()
}

#[tokio::test]
async fn a_client_that_follows_has_everything_and_is_sent_nothing_twice() {
    let script = r#"
{"calls": [{"name": "add_task", "args": {"description": "milk"}}, {"name": "add_task", "args": {"description": "tea"}}]}
{"text": "Added both."}
{"calls": [{"name": "add_task", "args": {"words": "salt"}}, {"name": "add_task", "args": {"description": "salt"}}]}
{"text": "Added the salt."}
{"calls": [{"name": "delete_task", "args": {"task_id": "milk"}}, {"name": "add_task", "args": {"words": "rice"}}]}
{"text": "It stays."}
{"calls": [{"name": "delete_task", "args": {"task_id": "tea"}}]}
{"text": "The tea is gone."}
{"calls": [{"name": "complete_task", "args": {"task_id": "salt"}}]}
{"text": "Salt is done."}
{"calls": [{"name": "send_letter", "args": {"to": "bert"}}]}
{"text": "As you say."}
{"calls": [{"name": "delete_task", "args": {"task_id": "the yoga"}}]}
{"text": "Which one?"}
{"text": "I see."}
{"text": "Hello."}
"#;
    let service = Running::start(script).await;
    let anna = Client::new(&service, "anna").await;
    let mut follower = Follower::default();
    let mut all = Vec::new();
    let added = follower.say(&anna, "add milk and tea").await;
    assert_eq!(of_kind(&added, "STATE_SNAPSHOT").len(), 1, "it had none");
    all.extend(added);
    let no_state = all.len();
    all.extend(follower.say(&anna, "add salt").await);
    let asked = follower.say(&anna, "drop the milk").await;
    let milk = interrupts(&asked).remove(0);
    all.extend(asked);
    let denied = follower
        .answer(&anna, &milk, json!({"approved": false}))
        .await;
    let order = kinds(&denied);
    let at = |kind| order.iter().position(|known| *known == kind).unwrap();
    assert!(
        at("TOOL_CALL_RESULT") < at("TEXT_MESSAGE_START"),
        "the no comes before what is said to it: {order:?}"
    );
    all.extend(denied);
    let asked = follower.say(&anna, "drop the tea").await;
    let tea = interrupts(&asked).remove(0);
    all.extend(asked);
    all.extend(
        follower
            .answer(&anna, &tea, json!({"approved": true}))
            .await,
    );
    all.extend(follower.say(&anna, "the salt is done").await);
    let asked = follower.say(&anna, "write to bert").await;
    let letter = interrupts(&asked).remove(0);
    all.extend(asked);
    all.extend(
        follower
            .answer(&anna, &letter, json!({"verdict": "done"}))
            .await,
    );
    all.extend(follower.say(&anna, "drop the yoga").await);
    all.extend(follower.say(&anna, "never mind").await);
    assert_eq!(
        snapshots(&all),
        0,
        "{:#?}",
        of_kind(&all, "MESSAGES_SNAPSHOT")
    );
    assert_eq!(
        of_kind(&all[no_state..], "STATE_SNAPSHOT"),
        Vec::<&Value>::new()
    );
    let tasks = follower.state["tasks"].as_array().unwrap();
    assert_eq!(
        tasks
            .iter()
            .map(|task| &task["description"])
            .collect::<Vec<_>>(),
        ["milk"],
        "what is open"
    );

    // Another client has nothing, and is told all of it.
    let told = anna.run(&say("t", "other", "hello")).await;
    let messages = of_kind(&told, "MESSAGES_SNAPSHOT")[0]["messages"]
        .as_array()
        .unwrap();
    let before = messages.len() - 2;
    let (ours, theirs) = (
        Follower::known(&messages[..before]),
        Follower::known(&follower.messages),
    );
    for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "{at}");
    }
    assert_eq!(ours.len(), theirs.len());
    service.stop().await;
}

#[tokio::test]
async fn a_client_whose_history_differs_gets_one_snapshot() {
    let service = Running::start(r#"{"text": "Hello.", "repeat": true}"#).await;
    let anna = Client::new(&service, "anna").await;
    let mut follower = Follower::default();
    follower.say(&anna, "one").await;
    // Something is said elsewhere.
    anna.run(&say("t", "elsewhere", "two")).await;
    let told = follower.say(&anna, "three").await;
    let messages = of_kind(&told, "MESSAGES_SNAPSHOT")[0]["messages"]
        .as_array()
        .unwrap();
    assert_eq!(messages.len(), 6, "{messages:#?}");
    follower.messages = messages.clone();
    assert_eq!(snapshots(&follower.say(&anna, "four").await), 0);
    // It has what is not ours.
    follower
        .messages
        .push(json!({"id": "x", "role": "assistant", "content": "It was I who said this."}));
    assert_eq!(snapshots(&follower.say(&anna, "five").await), 1);
    service.stop().await;
}

#[tokio::test]
async fn a_client_that_has_a_run_is_not_sent_it_twice() {
    let service = Running::start(r#"{"text": "Hello.", "repeat": true}"#).await;
    let anna = Client::new(&service, "anna").await;
    let mut follower = Follower {
        state: json!({}),
        ..Follower::default()
    };
    let first = follower.say(&anna, "one").await;
    let same = anna.run(&say("t", "r1", "one")).await;
    assert_eq!(
        same.len(),
        first.len(),
        "who has what the first one had is told the same"
    );
    let mut body = say("t", "r1", "one");
    (body["messages"], body["state"]) = (json!(follower.messages), follower.state.clone());
    let again = anna.run(&body).await;
    assert_eq!(
        kinds(&again),
        ["RUN_STARTED", "MESSAGES_SNAPSHOT", "CUSTOM", "RUN_FINISHED"],
        "{again:#?}"
    );
    assert_eq!(
        of_kind(&again, "MESSAGES_SNAPSHOT")[0]["messages"],
        json!(follower.messages)
    );
    service.stop().await;
}

/// A text whose times have no fractions of a second: zeros at their end are not written.
fn without_fractions(text: &str) -> String {
    let parts = text.split('.').map(|part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.starts_with('Z') { rest } else { part }
    });
    parts.collect::<Vec<_>>().join(".")
}

/// The events as they are sent, without what differs by the time that something took.
fn sent(frames: &[Frame]) -> usize {
    let size = |frame: &Frame| {
        let mut event = frame.event.clone();
        if let Some(value) = event["value"].as_object_mut() {
            value.remove("timing_ms");
        }
        if let Some(metadata) = event["metadata"].as_object_mut() {
            metadata.remove("ms");
        }
        without_fractions(&event.to_string()).len()
    };
    assert_eq!(last(frames)["outcome"]["type"], "success", "{frames:#?}");
    frames.iter().map(size).sum()
}

fn since(counted: &Counted) -> Vec<(&'static str, usize)> {
    std::mem::take(&mut *counted.lock().unwrap())
}

#[tokio::test]
async fn a_run_costs_the_same_in_a_short_conversation_and_in_a_long_one() {
    let (service, counted) = counting(r#"{"text": "Hello.", "repeat": true}"#).await;
    let anna = Client::new(&service, "anna").await;
    let mut costs = Vec::new();
    // Both say how many messages the model was not sent, in three digits.
    for (thread, turns) in [("brief", 60), ("large", 500)] {
        talk(
            &service,
            anna.token.trim_start_matches("Bearer "),
            thread,
            turns,
        )
        .await;
        let run = async |number: usize| {
            let path = format!("/v1/threads/{thread}/messages?limit=1");
            let page = ask(
                &service,
                anna.token.trim_start_matches("Bearer "),
                "GET",
                &path,
                &Value::Null,
            )
            .await;
            let mut body = say(thread, &format!("run-{thread}-{number}"), "and now?");
            let ours = json!({"id": page.body["last_message_id"], "role": "assistant", "content": "Hello."});
            body["messages"].as_array_mut().unwrap().insert(0, ours);
            body["state"] = json!({"tasks": []});
            since(&counted);
            let frames = anna.run(&body).await;
            assert_eq!(
                (snapshots(&frames), of_kind(&frames, "STATE_SNAPSHOT").len()),
                (0, 0),
                "{thread}"
            );
            (sent(&frames), since(&counted))
        };
        // The first one reads what was said before this process knew it.
        run(1).await;
        costs.push(run(2).await);
    }
    assert_eq!(costs[0], costs[1]);
    let read: usize = costs[1].1.iter().map(|(_, events)| events).sum();
    assert_eq!(
        read, 7,
        "the last turn, the beginning of this one, and this one: {:?}",
        costs[1].1
    );
    service.stop().await;
}

#[tokio::test]
async fn a_run_costs_the_same_beside_few_completed_tasks_and_many() {
    let script = r#"
{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"text": "Added."}
{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"text": "Added."}
"#;
    let service = Running::start(script).await;
    let mut costs = Vec::new();
    for name in ["anna", "bert"] {
        let user = UserId::new(name).unwrap();
        for number in 1..=2000 {
            let description = TaskDescription::new("old").unwrap();
            service
                .store
                .apply(
                    &user,
                    &TaskChange::Add {
                        description,
                        from_others: false,
                    },
                    None,
                )
                .await
                .unwrap();
            let id = TaskId::new(number).unwrap();
            let over = if name == "anna" {
                TaskChange::Delete { id }
            } else {
                TaskChange::Complete { id }
            };
            service.store.apply(&user, &over, None).await.unwrap();
        }
        let client = Client::new(&service, name).await;
        let frames = client.run(&say(name, "run-1", "add buy milk")).await;
        assert_eq!(
            of_kind(&frames, "STATE_SNAPSHOT")[0]["snapshot"],
            json!({"tasks": []})
        );
        costs.push((sent(&frames), kinds(&frames).join(" ")));
    }
    assert_eq!(costs[0], costs[1]);
    service.stop().await;
}

#[tokio::test]
async fn tasks_are_listed_in_pages() {
    let service = Running::start(r#"{"text": "Hello."}"#).await;
    let anna = service.token("anna").await;
    let user = UserId::new("anna").unwrap();
    for number in 1..=5 {
        let description = TaskDescription::new(&format!("task {number}")).unwrap();
        service
            .store
            .apply(
                &user,
                &TaskChange::Add {
                    description,
                    from_others: false,
                },
                None,
            )
            .await
            .unwrap();
        if number % 2 == 0 {
            let id = TaskId::new(number).unwrap();
            service
                .store
                .apply(&user, &TaskChange::Complete { id }, None)
                .await
                .unwrap();
        }
    }
    for (query, ids, next) in [
        ("", json!(["1", "2", "3", "4", "5"]), Value::Null),
        ("?limit=2", json!(["4", "5"]), json!("4")),
        ("?limit=2&cursor=4", json!(["2", "3"]), json!("2")),
        ("?limit=2&cursor=2", json!(["1"]), Value::Null),
        ("?status=completed&limit=1", json!(["4"]), json!("4")),
        (
            "?status=pending&limit=3",
            json!(["1", "3", "5"]),
            Value::Null,
        ),
        ("?status=pending&cursor=3", json!(["1"]), Value::Null),
    ] {
        let answer = ask(
            &service,
            &anna,
            "GET",
            &format!("/v1/tasks{query}"),
            &Value::Null,
        )
        .await;
        let listed: Vec<&Value> = answer.body["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| &task["id"])
            .collect();
        assert_eq!(
            (json!(listed), &answer.body["next_cursor"]),
            (ids, &next),
            "{query}"
        );
    }
    for query in ["limit=0", "limit=201", "cursor=0", "cursor=x", "page=1"] {
        let refused = ask(
            &service,
            &anna,
            "GET",
            &format!("/v1/tasks?{query}"),
            &Value::Null,
        )
        .await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (422, &json!("invalid_request")),
            "{query}"
        );
    }
    service.stop().await;
}
