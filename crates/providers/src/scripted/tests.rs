use adjutant_core::{Content, Delta, FinishReason, Message, Part, ToolCall, ToolResult};
use expect_test::{Expect, expect};
use futures::StreamExt;
use serde_json::json;

use super::*;

fn user(words: &str) -> Message {
    Message::user(words).unwrap()
}

fn said(words: &str) -> Message {
    Message::assistant(vec![Part::ours(Content::Text { text: words.into() })]).unwrap()
}

/// An assistant message with one call, and its result.
fn called(tool: &str, result: ToolResult) -> [Message; 2] {
    let call = ToolCall::from_object(0, None, tool.into(), serde_json::Map::new());
    let id = call.id.clone();
    let asked = Message::assistant(vec![Part::ours(Content::ToolCall(call))]).unwrap();
    [asked, Message::tool(id, tool, result).unwrap()]
}

fn asking(messages: impl IntoIterator<Item = Message>) -> GenerateRequest {
    GenerateRequest::new(messages.into_iter().collect())
}

/// The answer in one line.
fn line(answer: &Result<GenerateResponse, ModelError>) -> String {
    match answer {
        Err(error) => format!("{}: {error}", error.code()),
        Ok(response) => {
            let parts: Vec<String> = response
                .parts
                .iter()
                .map(|part| match &part.content {
                    Content::Text { text } => format!("{text:?}"),
                    Content::Thinking { text } => format!("thinking {text:?}"),
                    Content::ToolCall(call) => match &call.malformed {
                        None => format!("{}({})", call.name, json!(call.arguments)),
                        Some(malformed) => format!("{}(malformed: {})", call.name, malformed.text),
                    },
                    other => format!("{other:?}"),
                })
                .collect();
            format!("{:?}: {}", response.finish, parts.join(", "))
        }
    }
}

async fn drained(
    model: &ScriptedModel,
    request: &GenerateRequest,
) -> (Vec<Delta>, Result<GenerateResponse, ModelError>) {
    let mut deltas = match model.stream(request).await {
        Ok(deltas) => deltas,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let mut seen = Vec::new();
    while let Some(item) = deltas.next().await {
        match item {
            Ok(Delta::Finished(response)) => return (seen, Ok(response)),
            Ok(delta) => seen.push(delta),
            Err(error) => return (seen, Err(error)),
        }
    }
    panic!("a stream ends with Finished or an error");
}

/// Plays a script against the same question, `times` times; blocking and streaming must agree.
async fn check(script: &str, times: usize, expected: Expect) {
    let (blocking, streaming) = (
        ScriptedModel::from_jsonl(script).unwrap(),
        ScriptedModel::from_jsonl(script).unwrap(),
    );
    let request = asking([user("What now?")]);
    let mut lines = Vec::new();
    for _ in 0..times {
        let whole = blocking.generate(&request).await;
        assert_eq!(whole, drained(&streaming, &request).await.1);
        lines.push(line(&whole));
    }
    expected.assert_eq(&lines.join("\n"));
}

fn check_error(script: &str, expected: Expect) {
    expected.assert_eq(&ScriptedModel::from_jsonl(script).unwrap_err().to_string());
}

#[tokio::test]
async fn lines_are_used_in_order_and_then_it_is_over() {
    check(
        r#"
        # A comment.
        {"text": "One."}

        {"thinking": "Hm.", "text": "Two.", "usage": {"input": 3, "output": 2}}
        "#,
        3,
        expect![[r#"
            Stop: "One."
            Stop: thinking "Hm.", "Two."
            bad_request: scripted rejected the request: the script is over: it had 2 replies"#]],
    )
    .await;
}

#[tokio::test]
async fn the_last_requests_are_kept_and_all_are_counted() {
    let script = r#"{"text": "Yes.", "repeat": true}"#;
    let model = ScriptedModel::from_jsonl(script).unwrap();
    for number in 0..REQUESTS_KEPT + 3 {
        model
            .generate(&asking([user(&number.to_string())]))
            .await
            .unwrap();
    }
    assert_eq!(
        (model.calls_made(), model.requests().len()),
        (REQUESTS_KEPT + 3, REQUESTS_KEPT)
    );
    assert_eq!(model.requests()[0].messages, [user("3")]);
    let model = ScriptedModel::from_jsonl(script)
        .unwrap()
        .with_requests_kept(2);
    for words in ["a", "b", "c"] {
        let _ = drained(&model, &asking([user(words)])).await;
    }
    let kept: Vec<String> = model
        .requests()
        .iter()
        .map(|request| request.messages[0].text())
        .collect();
    assert_eq!(
        (kept, model.calls_made()),
        (vec!["b".to_owned(), "c".to_owned()], 3)
    );
}

#[tokio::test]
async fn calls_can_be_several_and_broken() {
    check(
        r#"{"calls": [{"name": "a", "args": {"x": 1}}, {"name": "b"}]}
           {"calls": [{"name": "a", "args_text": "{\"x\": "}], "finish": "max_tokens"}
           {"finish": "malformed_call"}"#,
        3,
        expect![[r#"
            ToolCalls: a({"x":1}), b({})
            MaxTokens: a(malformed: {"x":)
            MalformedCall: "#]],
    )
    .await;
}

#[tokio::test]
async fn repeated_lines_are_used_as_often_as_they_say() {
    check(
        r#"{"text": "twice", "repeat": 2}
           {"text": "forever", "repeat": true}"#,
        4,
        expect![[r#"
            Stop: "twice"
            Stop: "twice"
            Stop: "forever"
            Stop: "forever""#]],
    )
    .await;
}

#[tokio::test]
async fn every_fault_is_its_error() {
    let script: String = [
        r#"{"config": {"retries": 0}}"#,
        r#"{"fault": "rate_limit", "retry_after_s": 1.5}"#,
        r#"{"fault": "quota"}"#,
        r#"{"fault": "server", "status": 503}"#,
        r#"{"fault": "timeout"}"#,
        r#"{"fault": "network"}"#,
        r#"{"fault": "reset"}"#,
        r#"{"fault": "auth"}"#,
        r#"{"fault": "not_found"}"#,
        r#"{"fault": "bad_request"}"#,
        r#"{"fault": "context_too_long"}"#,
        r#"{"fault": "refused"}"#,
        r#"{"fault": "invalid_response", "raw": "<html>"}"#,
        r#"{"fault": "truncated"}"#,
        r#"{"fault": "empty"}"#,
    ]
    .join("\n");
    check(
        &script,
        14,
        expect![[r#"
            rate_limit: rate limited by scripted; asks to wait 1.5 s
            quota: scripted: quota exhausted: out of credit (scripted)
            server: scripted failed (HTTP 503): internal error (scripted)
            timeout: scripted said nothing for 30 s
            network: cannot reach scripted: connection refused (scripted)
            network: cannot reach scripted: connection reset (scripted)
            auth: scripted refused the credentials: the key is not valid (scripted)
            not_found: scripted has no model "script": no such model (scripted)
            bad_request: scripted rejected the request: invalid request (scripted)
            context_too_long: too long for scripted: too many tokens (scripted)
            refused: scripted refused to answer: blocked (scripted)
            invalid_response: scripted sent a response we cannot read: not JSON (scripted)
            truncated: the answer of scripted ended early: the stream broke off (scripted)
            Stop: "#]],
    )
    .await;
}

#[tokio::test]
async fn answers_are_spoilt_as_a_model_would() {
    check(
        r#"{"fault": "thinking_only", "thinking": "Hm.", "text": "Should I say so?"}
           {"fault": "split_utf8", "text": "Füße"}
           {"fault": "truncated_json", "calls": [{"name": "a", "args": {"x": "y"}}, {"name": "b", "args_text": "{}"}]}
           {"fault": "unknown_tool", "calls": [{"name": "add_task", "args": {"x": 1}}]}
           {"fault": "wrong_type", "calls": [{"name": "a", "args": {"x": 1, "y": {"z": "s"}}}]}
           {"fault": "empty", "text": "never said", "calls": [{"name": "a"}]}"#,
        6,
        expect![[r#"
            Stop: thinking "Hm. Should I say so?"
            Stop: "Füße"
            ToolCalls: a(malformed: {"x"), b(malformed: {)
            ToolCalls: add_taskk({"x":1})
            ToolCalls: a({"x":{},"y":[]})
            Stop: "#]],
    )
    .await;
    let model = ScriptedModel::new([text("äü").failing(Fault::SplitUtf8)]);
    let (deltas, _) = drained(&model, &asking([user("?")])).await;
    assert_eq!(deltas, [Delta::Text("ä".into()), Delta::Text("ü".into())]);
}

#[tokio::test]
async fn transient_faults_are_retried_like_a_vendors() {
    let model = ScriptedModel::new([fault(Fault::Server { status: 500 }), text("Back.")]);
    let request = asking([user("Hello?")]);
    assert_eq!(line(&model.generate(&request).await), r#"Stop: "Back.""#);
    assert_eq!((model.calls_made(), model.attempts_made()), (1, 2));

    let model = ScriptedModel::new([fault(Fault::Reset), text("Back.")]);
    let (deltas, _) = drained(&model, &request).await;
    assert!(
        matches!(&deltas[..], [Delta::Retrying { attempt: 1, .. }, Delta::Text(words)] if words == "Back.")
    );
}

#[tokio::test]
async fn a_fault_after_words_is_final_on_a_stream() {
    let model = ScriptedModel::new([fault(Fault::Truncated).saying("Half an"), text("never")]);
    let (deltas, end) = drained(&model, &asking([user("Hello?")])).await;
    assert_eq!(
        deltas,
        [Delta::Text("Half ".into()), Delta::Text("an".into())]
    );
    assert_eq!(end.unwrap_err().code(), "truncated");
}

#[tokio::test(start_paused = true)]
async fn a_stall_ends_with_the_callers_time() {
    let model = ScriptedModel::new([fault(Fault::Stall)]).with_retries(0);
    let mut request = asking([user("Hello?")]);
    request.time_left = Some(Duration::from_secs(5));
    assert_eq!(
        model.generate(&request).await.unwrap_err().code(),
        "timeout"
    );
    let model = ScriptedModel::new([fault(Fault::Stall).saying("Wait")]).with_retries(0);
    let (deltas, end) = drained(&model, &request).await;
    assert_eq!((deltas.len(), end.unwrap_err().code()), (1, "timeout"));
}

#[tokio::test]
async fn matching_lines_answer_what_they_match_and_nothing_else() {
    let script = r#"{"text": "in sequence"}
        {"match": "HELLO", "text": "Hello yourself.", "once": true}
        {"match": "\"success\":false", "text": "It said: {{result}}"}
        {"match": "add ", "calls": [{"name": "add_task", "args": {"description": "{{rest}}"}}]}"#;
    let model = ScriptedModel::from_jsonl(script).unwrap();
    let ask = async |messages: Vec<Message>| line(&model.generate(&asking(messages)).await);
    assert_eq!(
        ask(vec![user("well, hello")]).await,
        r#"Stop: "Hello yourself.""#
    );
    assert_eq!(
        ask(vec![user("Please ADD  Füße waschen ")]).await,
        r#"ToolCalls: add_task({"description":"Füße waschen"})"#
    );
    let [asked, failed] = called("add_task", ToolResult::failed("the list is full"));
    assert_eq!(
        ask(vec![user("add x"), asked, failed]).await,
        r#"Stop: "It said: the list is full""#
    );
    assert_eq!(
        ask(vec![user("hello again")]).await,
        r#"Stop: "in sequence""#
    );
}

#[tokio::test]
async fn a_fresh_script_goes_on_where_the_turn_was() {
    let replies = || {
        [
            call("a", json!({})),
            text("second").matching("zebra"),
            call("b", json!({})),
            text("third"),
        ]
    };
    let [first, first_result] = called("a", ToolResult::ok(json!(1)));
    let [second, second_result] = called("b", ToolResult::ok(json!(2)));
    let resumed = asking([
        user("before"),
        said("long ago"),
        user("now"),
        first,
        first_result,
        second,
        second_result,
    ]);
    let model = ScriptedModel::new(replies());
    assert_eq!(line(&model.generate(&resumed).await), r#"Stop: "third""#);

    // An answer that a matching line gave does not use up the sequence.
    let [zebra, result] = called("a", ToolResult::ok(json!(1)));
    let model = ScriptedModel::new(replies());
    assert_eq!(
        line(
            &model
                .generate(&asking([user("a zebra"), zebra, result]))
                .await
        ),
        "ToolCalls: a({})"
    );
}

#[tokio::test]
async fn the_agents_requests_can_be_looked_at() {
    let model = ScriptedModel::new([text("One.")]).then(text("Two."));
    let kept = model.clone();
    for words in ["first", "second"] {
        model.generate(&asking([user(words)])).await.unwrap();
    }
    let heard: Vec<String> = kept
        .requests()
        .iter()
        .map(|request| request.messages[0].text())
        .collect();
    assert_eq!(heard, ["first", "second"]);
}

#[tokio::test]
async fn streams_come_in_pieces_that_add_up() {
    let model = ScriptedModel::new([text("äöü")
        .in_pieces(2)
        .and_call("t", json!({"a": 1}))
        .finish(FinishReason::Stop)]);
    let (deltas, _) = drained(&model, &asking([user("?")])).await;
    let piece = |arguments: &str| Delta::ToolCall {
        index: 0,
        name: "t".into(),
        arguments: arguments.into(),
    };
    assert_eq!(
        deltas,
        [
            Delta::Text("äö".into()),
            Delta::Text("ü".into()),
            piece("{\""),
            piece("a\""),
            piece(":1"),
            piece("}"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn pieces_keep_their_distance() {
    let line = r#"{"text": "one two three", "pause_ms": 40}"#;
    let model = ScriptedModel::from_jsonl(line).unwrap();
    let began = tokio::time::Instant::now();
    let (deltas, _) = drained(&model, &asking([user("?")])).await;
    assert_eq!(
        (deltas.len(), began.elapsed()),
        (3, Duration::from_millis(120))
    );
}

#[tokio::test]
async fn the_demo_says_what_it_is_and_does_what_it_can() {
    let demo = ScriptedModel::demo().unwrap();
    assert_eq!(demo.id().to_string(), "scripted/demo");
    let ask = async |messages: Vec<Message>| line(&demo.generate(&asking(messages)).await);
    assert_eq!(
        ask(vec![user("Add buy milk")]).await,
        r#"ToolCalls: add_task({"description":"buy milk"})"#
    );
    assert_eq!(
        ask(vec![user("add a shopping list")]).await,
        r#"ToolCalls: add_task({"description":"a shopping list"})"#
    );
    assert_eq!(
        ask(vec![user("Add task to buy groceries")]).await,
        r#"ToolCalls: add_task({"description":"buy groceries"})"#
    );
    assert_eq!(
        ask(vec![user("list my tasks")]).await,
        "ToolCalls: list_tasks({})"
    );
    assert_eq!(
        ask(vec![user("delete buy milk")]).await,
        r#"ToolCalls: delete_task({"task_id":"buy milk"})"#
    );
    let answers = [
        (
            json!({"id": "1"}),
            r#"[demo] Done. The tool returned: {\"id\":\"1\"}"#,
        ),
        (
            json!({"description": "buy milk", "completed": false}),
            "[demo] Added “buy milk”.",
        ),
        (
            json!({"description": "buy milk", "completed": true}),
            "[demo] Completed “buy milk”.",
        ),
        (
            json!({"description": "x", "completed": false, "deleted": true}),
            "[demo] Deleted “x”.",
        ),
        (
            json!({"tasks": [], "count": 0}),
            "[demo] You have no tasks.",
        ),
        (
            json!({"tasks": [{"description": "a", "completed": true}, {"description": "b"}]}),
            "[demo] Your tasks: a, b.",
        ),
    ];
    for (data, words) in answers {
        let [asked, done] = called("add_task", ToolResult::ok(data));
        let answer = ask(vec![user("add buy milk"), asked, done]).await;
        assert!(answer.contains(words), "{answer}");
    }
    assert!(
        ask(vec![user("What is love?")])
            .await
            .contains("not a language model")
    );
}

#[test]
fn a_first_line_configures() {
    let model = ScriptedModel::from_jsonl(
        r#"{"config": {"retries": 0, "weak_tools": true, "context_window": 32768, "model": "tiny"}}
           {"text": "x"}"#,
    )
    .unwrap();
    assert_eq!(
        (model.id().name.as_str(), model.capabilities().weak_tools),
        ("tiny", true)
    );
    assert_eq!(
        (model.capabilities().context_window, model.retries),
        (32768, 0)
    );
}

#[test]
fn a_line_that_cannot_be_used_is_named() {
    check_error(
        "{\"text\": \"x\"}\n{\"txt\": \"y\"}",
        expect![[r#"script line 2: unknown key "txt"; did you mean "text"?"#]],
    );
    check_error(
        r#"{"calls": [{"nam": "x"}]}"#,
        expect![[r#"script line 1: unknown key "nam"; did you mean "name"?"#]],
    );
    check_error(
        r#"{"fault": "sever"}"#,
        expect![[r#"script line 1: unknown fault "sever"; did you mean "server"?"#]],
    );
    check_error(
        r#"{"text": "x", "finish": "stopp"}"#,
        expect![[r#"script line 1: unknown finish "stopp"; did you mean "stop"?"#]],
    );
    check_error(
        r#"{"text": 1}"#,
        expect!["script line 1: the line: invalid type: integer `1`, expected a string"],
    );
    check_error(
        r#"{"match": "x"}"#,
        expect![
            "script line 1: nothing to answer with: give text, calls, thinking, finish or fault"
        ],
    );
    check_error(
        "{\"text\": \"x\"}\n{\"config\": {}}",
        expect!["script line 2: config must be the first line, once"],
    );
    check_error(
        "[1]",
        expect![
            "script line 1: not a JSON object: invalid type: sequence, expected a map at line 1 column 0"
        ],
    );
    check_error(
        r#"{"text": "x", "fault": "wrong_type"}"#,
        expect!["script line 1: the fault wrong_type spoils calls: give calls"],
    );
    check_error(
        "# nothing\n",
        expect!["script line 1: the script has no replies"],
    );
    check_error(
        r#"{"text": "x", "status": 500}"#,
        expect!["script line 1: retry_after_s, status and raw belong to a fault"],
    );
}
