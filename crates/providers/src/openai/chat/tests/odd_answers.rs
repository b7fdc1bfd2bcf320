//! Answers of servers that differ from the vendor's documents, and answers that lost their content.

use super::*;

/// Decodes one chunk per list of choices.
fn chunks(row: &str, chunks: &[Value]) -> Outcome {
    let events: Vec<String> = chunks
        .iter()
        .map(|choices| json!({ "choices": choices }).to_string())
        .collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    streamed(row, &events)
}

#[test]
fn blank_pieces_of_arguments_are_kept() {
    let pieces = [
        "{", "\"text\"", ":", " ", "\"", "Buy", " ", "2", " eggs", " at", " ", "5", "\\n", "\t",
        "pm", "\"", "}", "\n",
    ];
    // A tab has to be escaped in JSON.
    let pieces = pieces.map(|piece| piece.replace('\t', "\\t"));
    let mut deltas = vec![
        json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "add", "arguments": ""}}]}),
    ];
    deltas.extend(
        pieces.map(|piece| json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})),
    );
    check_chunks(
        &deltas,
        json!("tool_calls"),
        expect![[r#"ToolCalls: c=add({"text":"Buy 2 eggs at 5\n\tpm"})"#]],
    );
}

#[test]
fn a_body_has_a_message_and_a_chunk_has_whichever_holds_something() {
    let whole = |message: Value, delta: Value| {
        let body = json!({ "choices": [{ "index": 0, "finish_reason": "stop", "message": message, "delta": delta }] });
        line(&decoded("openai-compatible", &body.to_string()))
    };
    let said = json!({"role": "assistant", "content": "Paris."});
    let empty = json!({"role": "assistant", "content": ""});
    assert_eq!(whole(said.clone(), empty.clone()), r#"Stop: "Paris.""#);
    assert_eq!(
        whole(said.clone(), json!({"content": "P"})),
        r#"Stop: "Paris.""#
    );
    assert_eq!(whole(empty.clone(), said.clone()), r#"Stop: "Paris.""#);
    let chunk = |message: &Value, delta: &Value| json!([{ "message": message, "delta": delta }]);
    let end = json!([{ "delta": empty, "message": said, "finish_reason": "stop" }]);
    for events in [
        vec![end.clone()],
        // The whole text so far, beside each piece.
        vec![
            chunk(&json!({"content": "Par"}), &json!({"content": "Par"})),
            chunk(&json!({"content": "Paris."}), &json!({"content": "is."})),
            end,
        ],
    ] {
        assert_eq!(
            line(&chunks("openai-compatible", &events)),
            r#"Stop: "Paris.""#,
            "{events:?}"
        );
    }
}

#[test]
fn calls_of_a_second_choice_are_read_if_the_first_has_none() {
    let call = |id: &str| json!([{"id": id, "type": "function", "function": {"name": "add", "arguments": "{\"n\": 1}"}}]);
    let text = json!({"role": "assistant", "content": "I add it."});
    let calls = json!({"role": "assistant", "tool_calls": call("t")});
    let expected = r#"ToolCalls: "I add it." t=add({"n":1})"#;
    for field in ["message", "delta"] {
        for (first, second) in [
            (json!(null), json!(null)),
            (json!(0), json!(1)),
            (json!(0), json!(0)),
        ] {
            let choices = json!([
                {"index": first, field: text, "finish_reason": "tool_calls"},
                {"index": second, field: calls, "finish_reason": "tool_calls"},
            ]);
            let outcome = match field {
                "message" => decoded(
                    "openai-compatible",
                    &json!({ "choices": choices }).to_string(),
                ),
                _ => chunks("openai-compatible", &[choices]),
            };
            assert_eq!(line(&outcome), expected, "{field} {first} {second}");
        }
    }
    // Each choice in chunks of its own; how the one with the call ends is how the answer ends.
    let begun = json!({"index": 0, "id": "t", "function": {"name": "add", "arguments": "{\"n\""}});
    let more = json!({"index": 0, "function": {"arguments": ": 1}"}});
    let events = [
        json!([{"index": 0, "delta": {"content": "I add it."}}]),
        json!([{"index": 1, "delta": {"tool_calls": [begun]}}]),
        json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]),
        json!([{"index": 1, "delta": {"tool_calls": [more]}}]),
        json!([{"index": 1, "delta": {}, "finish_reason": "length"}]),
    ];
    assert_eq!(line(&chunks("openai-compatible", &events[..4])), expected);
    assert_eq!(
        line(&chunks("openai-compatible", &events)),
        r#"MaxTokens: "I add it." t=add({"n":1})"#
    );
    // Two answers, of which the first is whole.
    let both = json!([
        {"index": 0, "message": {"tool_calls": call("a")}, "finish_reason": "tool_calls"},
        {"index": 1, "message": {"tool_calls": call("b")}, "finish_reason": "tool_calls"},
    ]);
    let body = json!({ "choices": both }).to_string();
    assert_eq!(
        line(&decoded("openai-compatible", &body)),
        r#"ToolCalls: a=add({"n":1})"#
    );
}

#[test]
fn a_call_that_the_last_chunk_repeats_is_one_call() {
    let call = |id: Value, name: Value, arguments: &str| json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}]});
    let whole = "{\"a\": {}, \"b\": \" \"}";
    for id in [json!(null), json!("x")] {
        let mut deltas = vec![call(json!("x"), json!("add"), "")];
        deltas.extend(
            ["{\"a\": ", "{}", ", \"b\": \"", " ", "\"}"]
                .map(|piece| call(id.clone(), json!(null), piece)),
        );
        deltas.push(call(json!("x"), json!("add"), whole));
        check_chunks(
            &deltas,
            json!("tool_calls"),
            expect![[r#"ToolCalls: x=add({"a":{},"b":" "})"#]],
        );
        // As a message behind its chunks.
        let mut events: Vec<Value> = deltas[..6]
            .iter()
            .map(|delta| json!([{ "delta": delta }]))
            .collect();
        events.push(json!([{ "message": deltas[6], "delta": {}, "finish_reason": "tool_calls" }]));
        assert_eq!(
            line(&chunks("openai-compatible", &events)),
            r#"ToolCalls: x=add({"a":{},"b":" "})"#
        );
    }
    // Calls that only the message behind the chunks has are calls.
    let events = [
        json!([{ "delta": { "content": "I add it." } }]),
        json!([{ "message": { "content": "I add it.", "tool_calls": [{"id": "x", "function": {"name": "add", "arguments": "{}"}}] }, "finish_reason": "tool_calls" }]),
    ];
    assert_eq!(
        line(&chunks("openai-compatible", &events)),
        r#"ToolCalls: "I add it." x=add({})"#
    );
}

#[test]
fn an_answer_that_lost_its_content_is_an_error() {
    let body = |message: Value, finish: &str, usage: Value| {
        let body =
            json!({ "choices": [{ "message": message, "finish_reason": finish }], "usage": usage });
        line(&decoded("openai-compatible", &body.to_string()))
    };
    let counted = |count: u64, thinking: u64| json!({"prompt_tokens": 8, "completion_tokens": count, "completion_tokens_details": {"reasoning_tokens": thinking}});
    for finish in ["tool_calls", "function_call", "tool_use"] {
        let promised = body(json!({"content": "I add it."}), finish, json!(null));
        assert_eq!(
            promised,
            "truncated: the answer of openai-compatible ended early: it ended in order to call tools, and has no call"
        );
    }
    assert_eq!(
        body(json!({"content": ""}), "stop", counted(8, 0)),
        "truncated: the answer of openai-compatible ended early: 8 output tokens were counted, and there is no content"
    );
    // The end of a turn is counted too, and so is thinking that is not shown.
    assert_eq!(body(json!({"content": ""}), "stop", counted(3, 0)), "Stop:");
    assert_eq!(
        body(json!({"content": null}), "stop", counted(80, 80)),
        "Stop:"
    );
    assert_eq!(
        body(json!({"reasoning_content": "Hm."}), "stop", counted(8, 0)),
        r#"Stop: thinks "Hm.""#
    );
    assert_eq!(
        body(json!({"refusal": "No."}), "stop", counted(8, 0)),
        r#"Stop: refuses "No.""#
    );
    assert_eq!(
        body(json!({"content": ""}), "length", counted(80, 0)),
        "MaxTokens:"
    );
    assert_eq!(
        body(json!({"content": ""}), "content_filter", counted(8, 0)),
        "ContentFilter:"
    );
}

#[test]
fn thinking_in_tags_is_thinking_on_every_row_but_openais() {
    let said = "<think>\nHm. `a < b`\n</think>\n\nSay `<think>x</think>`.";
    let expected = r#"Stop: thinks "Hm. `a < b`\n" "Say `<think>x</think>`.""#;
    for row in ROWS {
        let name = row.provider.name;
        let expected = match name {
            "openai-chat" | "azure" => format!("Stop: {said:?}"),
            _ => expected.to_owned(),
        };
        let whole = decoded(name, &message(json!({ "content": said }), json!("stop")));
        assert_eq!(line(&whole), expected, "{name}");
        let mut events: Vec<Value> = said
            .chars()
            .map(|c| json!([{ "delta": { "content": c.to_string() } }]))
            .collect();
        events.push(json!([{ "delta": {}, "finish_reason": "stop" }]));
        assert_eq!(line(&chunks(name, &events)), expected, "{name}");
    }
    // With tools, without them, and for another program.
    for (tools, verbatim) in [(vec![], false), (vec![tool()], false), (vec![tool()], true)] {
        let mut request = GenerateRequest::new(conversation());
        request.tools = tools.into();
        request.config.verbatim = verbatim;
        for name in ["openai-compatible", "vllm"] {
            let chat = chat(name, "m");
            let outcome = chat
                .answer(&chat.request_context(&request), Vec::new())
                .whole(&message(json!({ "content": said }), json!("stop")));
            assert_eq!(line(&outcome), expected, "{name}");
        }
    }
}
