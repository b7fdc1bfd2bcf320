//! Responses in pieces.

use super::*;

/// The events of a stream, each of which has its type as its name and the next number.
fn events(answer: &Answer) -> Vec<Value> {
    assert!(
        answer.head.contains("content-type: text/event-stream"),
        "{answer:?}"
    );
    let mut events: Vec<Value> = Vec::new();
    let mut name = None;
    for line in answer.text.lines() {
        if let Some(line) = line.strip_prefix("event: ") {
            name = Some(line);
        } else if let Some(line) = line.strip_prefix("data: ") {
            let event: Value = serde_json::from_str(line).unwrap();
            assert_eq!(
                (event["type"].as_str(), event["sequence_number"].as_u64()),
                (name.take(), Some(events.len() as u64))
            );
            events.push(event);
        }
    }
    events
}

/// The items, put together from the pieces as the official clients do it. Fails where they would.
fn put_together(events: &[Value]) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut done = 0;
    for event in events {
        let kind = event["type"].as_str().unwrap();
        if kind.starts_with("response.output_item") || event.get("item_id").is_some() {
            let at = usize::try_from(event["output_index"].as_u64().unwrap()).unwrap();
            match kind {
                "response.output_item.added" => {
                    assert_eq!(
                        (at, done),
                        (items.len(), items.len()),
                        "one behind the other"
                    );
                    items.push(event["item"].clone());
                    continue;
                }
                "response.output_item.done" => {
                    assert_eq!(items[at]["id"], event["item"]["id"]);
                    items[at] = event["item"].clone();
                    done += 1;
                    continue;
                }
                _ => assert_eq!(items[at]["id"], event["item_id"], "{event}"),
            }
            let item = &mut items[at];
            let grow = |text: &mut Value| {
                *text = json!(format!(
                    "{}{}",
                    text.as_str().unwrap(),
                    event["delta"].as_str().unwrap()
                ));
            };
            match kind {
                "response.content_part.added" => item["content"] = json!([event["part"]]),
                "response.reasoning_summary_part.added" => item["summary"] = json!([event["part"]]),
                "response.output_text.delta" => grow(&mut item["content"][0]["text"]),
                "response.reasoning_summary_text.delta" => grow(&mut item["summary"][0]["text"]),
                "response.function_call_arguments.delta" => grow(&mut item["arguments"]),
                "response.output_text.done" => {
                    assert_eq!(item["content"][0]["text"], event["text"])
                }
                "response.reasoning_summary_text.done" => {
                    assert_eq!(item["summary"][0]["text"], event["text"])
                }
                "response.function_call_arguments.done" => {
                    assert_eq!(item["arguments"], event["arguments"])
                }
                "response.content_part.done" => assert_eq!(item["content"][0], event["part"]),
                "response.reasoning_summary_part.done" => {
                    assert_eq!(item["summary"][0], event["part"])
                }
                other => panic!("{other}"),
            }
        }
    }
    assert_eq!(done, items.len());
    items
}

fn streamed(body: Value) -> Value {
    with(body, "stream", json!(true))
}

#[tokio::test]
async fn a_stream_and_a_complete_response_have_the_same_content() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let script = r#"
{"thinking": "Let me see.", "text": "I will add it.", "calls": [{"name": "add_task", "args": {"description": "buy milk"}}]}
{"text": "And now the weather.", "calls": [{"name": "getWeather", "args": {"city": "Oslo"}}, {"name": "getWeather", "args": {"city": "Rome"}}], "usage": {"input": 5, "output": 2}}
"#;
    let body = with(input("add buy milk"), "tools", weather());
    let replica = world.replica(script).await;
    let whole = replica.respond(&token, &body).await;
    replica.stop().await;
    let replica = world.replica(script).await;
    let answer = replica.respond(&token, &streamed(body)).await;
    let events = events(&answer);
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds[..2], ["response.created", "response.in_progress"]);
    assert_eq!(events[0]["response"]["status"], "in_progress");
    assert_eq!(events[0]["response"]["output"], json!([]));
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["response"]["status"]),
        (&json!("response.completed"), &json!("completed"))
    );
    assert_eq!(last["response"]["id"], events[0]["response"]["id"]);
    assert_eq!(last["response"]["output"], json!(put_together(&events)));
    let shape = |items: &Value| -> Vec<String> {
        items
            .as_array()
            .unwrap()
            .iter()
            .map(|item| format!("{} {} {}", item["type"], item["name"], item["content"]))
            .collect()
    };
    assert_eq!(
        shape(&last["response"]["output"]),
        shape(&whole.json()["output"]),
        "{}",
        answer.text
    );
    assert_eq!(shape(&whole.json()["output"]).len(), 6, "{whole:?}");
    assert_eq!(
        last["response"]["usage"]["total_tokens"],
        whole.json()["usage"]["total_tokens"]
    );
    replica.stop().await;
}

#[tokio::test]
async fn a_turn_that_fails_has_its_status_and_later_ends_the_stream_with_an_error() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let replica = world
        .replica(r#"{"fault": "rate_limit", "retry_after_s": 7, "repeat": true}"#)
        .await;
    for body in [input("hi"), streamed(input("hi"))] {
        let answer = replica.respond(&token, &body).await;
        check_error(&answer, 429, "rate_limit_error", "rate_limit", None);
        assert!(answer.head.contains("retry-after: 7"), "{}", answer.head);
    }
    replica.stop().await;
    let replica = world
        .replica(r#"{"text": "This is half", "fault": "truncated", "repeat": true}"#)
        .await;
    let answer = replica.respond(&token, &streamed(input("hi"))).await;
    let events = events(&answer);
    let [.., error, failed] = events.as_slice() else {
        panic!("{answer:?}")
    };
    assert_eq!(
        (&error["type"], &error["code"], &error["error"]["code"]),
        (&json!("error"), &json!("truncated"), &json!("truncated"))
    );
    assert_eq!(
        (&failed["type"], &failed["response"]["status"]),
        (&json!("response.failed"), &json!("failed"))
    );
    assert_eq!(failed["response"]["error"]["code"], "server_error");
    assert_eq!(failed["response"]["output"], json!(put_together(&events)));
    assert_eq!(
        failed["response"]["output"][0]["content"][0]["text"],
        "This is half"
    );
    // It is known as what it is.
    let path = format!("{RESPONSES}/{}", failed["response"]["id"].as_str().unwrap());
    let read = replica.call("GET", &path, &token, &Value::Null).await;
    assert_eq!(
        (read.status, &read.json()["status"]),
        (200, &json!("failed")),
        "{read:?}"
    );
    replica.stop().await;
}
