mod requests; // tests of encoding

use adjutant_core::{
    Content, Delta, FinishReason, GenerateResponse, ImageSource, LanguageModel, MaxTokens, Message,
    ModelId, Part, ProviderState, Role, Temperature, ToolCall, ToolDefinition, ToolResult, TopK,
    TopP,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use crate::chunked_streams::{check_damaged, decode_in_chunks};
use crate::decode::{SseDecoder, StreamDecoder};
use crate::http::Transport;
use requests::encoded;

const BOTH: &str = include_str!("fixtures/thinking_call_text.json");
const CODE: &str = include_str!("fixtures/code_execution.json");

fn vendor(model: &str) -> Arc<Vendor> {
    Arc::new(super::vendor(&PROVIDERS[0], model).unwrap())
}

fn decoder() -> Box<dyn StreamDecoder> {
    let answer = PartialAnswer::new(vendor(DEFAULT_MODEL), Vec::new());
    Box::new(SseDecoder::new(Box::new(answer)))
}

fn decoded(body: &str) -> Result<GenerateResponse, ModelError> {
    PartialAnswer::new(vendor(DEFAULT_MODEL), Vec::new()).whole(body)
}

/// The same content as events, streamed in pieces of `size` bytes.
fn streamed(events: &[&str], size: usize) -> (Vec<Delta>, Result<GenerateResponse, ModelError>) {
    let stream: String = events
        .iter()
        .map(|event| format!("data: {}\r\n\r\n", event.replace('\n', "")))
        .collect();
    streamed_bytes(stream.as_bytes(), size)
}

fn streamed_bytes(bytes: &[u8], size: usize) -> (Vec<Delta>, Result<GenerateResponse, ModelError>) {
    decode_in_chunks(decoder(), bytes, size)
}

/// Describes a decoded answer in one line; checks that streaming it gives the same.
fn check(body: &str, expected: Expect) {
    let whole = decoded(body);
    assert_eq!(whole, streamed(&[body], 7).1);
    expected.assert_eq(&line(&whole));
}

fn line(answer: &Result<GenerateResponse, ModelError>) -> String {
    match answer {
        Err(error) => format!("{}: {error}", error.code()),
        Ok(response) => format!("{:?}: {}", response.finish, json!(response.parts)),
    }
}

fn finished_with(reason: &str) -> String {
    json!({"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": reason, "finishMessage": "Why."}]}).to_string()
}

#[test]
fn everything_of_an_answer_is_kept() {
    check(
        BOTH,
        expect![[
            r#"ToolCalls: [{"type":"thinking","text":"The user wants the weather.","state":{"origin":{"provider":"gemini","name":"gemini-3.8-flash"},"data":{}}},{"type":"text","text":"Let me look."},{"type":"tool_call","id":"provisional_0","provider_id":"fc-1","name":"weather","arguments":{"city":"Oslo","days":2},"state":{"origin":{"provider":"gemini","name":"gemini-3.8-flash"},"data":{"thoughtSignature":"c2ln"}}},{"type":"tool_call","id":"provisional_1","name":"time","arguments":{},"state":{"origin":{"provider":"gemini","name":"gemini-3.8-flash"},"data":{}}}]"#
        ]],
    );
    let response = decoded(BOTH).unwrap();
    assert_eq!(response.model.name, "gemini-3.8-flash-001");
    let usage = response.usage;
    assert_eq!(
        (
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            usage.thinking_tokens
        ),
        (Some(20), Some(37), Some(16), Some(30))
    );
}

#[test]
fn counts_have_one_meaning() {
    let counted = |usage: Value| {
        let body = json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": "x"}]}}], "usageMetadata": usage});
        let GenerateResponse {
            usage, counters, ..
        } = decoded(&body.to_string()).unwrap();
        let ours = [
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            usage.thinking_tokens,
        ];
        (ours, [counters.input, counters.output])
    };
    let found = json!({"promptTokenCount": 25, "candidatesTokenCount": 33, "thoughtsTokenCount": 38, "toolUsePromptTokenCount": 82, "totalTokenCount": 178});
    assert_eq!(
        counted(found),
        ([Some(107), Some(71), None, Some(38)], [Some(25), Some(33)])
    );
    let thought_only =
        json!({"promptTokenCount": 5, "thoughtsTokenCount": 4, "candidatesTokenCount": null});
    assert_eq!(
        counted(thought_only),
        ([Some(5), Some(4), None, Some(4)], [Some(5), None])
    );
    assert_eq!(
        counted(json!({"totalTokenCount": 7})),
        ([None; 4], [None; 2])
    );
    assert_eq!(counted(json!(null)), ([None; 4], [None; 2]));
    let huge = json!({"promptTokenCount": u64::MAX, "toolUsePromptTokenCount": 1});
    assert_eq!(counted(huge).0[0], Some(u64::MAX));
}

#[test]
fn counted_tokens_of_an_empty_answer_are_an_error() {
    let counted = |usage: Value| {
        let body = json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage});
        line(&decoded(&body.to_string()))
    };
    assert_eq!(
        counted(json!({"candidatesTokenCount": 33, "thoughtsTokenCount": 38})),
        "truncated: the answer of gemini ended early: 71 output tokens were counted, and there is no content"
    );
    assert_eq!(counted(json!({"thoughtsTokenCount": 38})), "Stop: []");
}

#[test]
fn every_kind_of_part_goes_back_as_it_came() {
    let parts = json!([
        {"text": "Hm.", "thought": true},
        {"text": "", "thought": true, "thoughtSignature": "YQ=="},
        {"toolCall": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x"]}}, "thoughtSignature": "Yg=="},
        {"toolResponse": {"id": "s1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"found": []}}},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "Yw=="},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://a.example/v"}, "videoMetadata": {"fps": 1}},
        {"executableCode": {"language": "PYTHON", "code": "1"}, "thought": true},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"functionResponse": {"name": "by itself", "response": {}}},
        {"audioTranscription": {"text": "said"}},
        {"toBeInvented": [1, {"a": null}]},
        {"text": "So", "thoughtSignature": "ZA==", "partMetadata": {"a": 1}},
        {"functionCall": {"id": "c1", "name": "look", "args": {"b": 1, "a": [1.5]}}, "thoughtSignature": "ZQ=="},
    ]);
    let body =
        json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}).to_string();
    let answer = decoded(&body).unwrap();
    assert_eq!(
        (answer.text().as_str(), answer.finish),
        ("So", FinishReason::ToolCalls)
    );
    let history = vec![
        Message::user("?").unwrap(),
        Message::assistant(answer.parts).unwrap(),
    ];
    let sent = encoded(&GenerateRequest::new(history), DEFAULT_MODEL).0;
    let parts = parts.as_array().unwrap();
    for (sent, came) in sent["contents"][1]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .zip(parts)
    {
        assert_eq!(sent, came);
    }
    assert_eq!(
        sent["contents"][1]["parts"].as_array().unwrap().len(),
        parts.len()
    );
}

#[test]
fn nulls_and_what_is_around_an_answer_do_not_matter() {
    check(
        r#"{"candidates": [{"index": 1, "content": {"parts": [{"text": "another"}]}, "finishReason": "STOP"},
            {"index": null, "finishMessage": null, "safetyRatings": null, "citationMetadata": {"citations": []},
             "groundingMetadata": {"webSearchQueries": ["q"]}, "urlContextMetadata": {}, "avgLogprobs": -0.1, "tokenCount": 3,
             "content": {"role": null, "parts": [
                {"text": "a", "thought": null, "thoughtSignature": null, "functionCall": null, "inlineData": null},
                {"functionCall": {"id": null, "name": "look", "args": null, "partialArgs": null, "willContinue": null}},
                {"functionCall": {"name": null, "id": ""}}, {}]},
             "finishReason": "STOP"}],
            "promptFeedback": {"blockReason": null, "safetyRatings": []}, "usageMetadata": null, "error": null, "modelVersion": null}"#,
        expect![[
            r#"ToolCalls: [{"type":"text","text":"a"},{"type":"tool_call","id":"provisional_0","name":"look","arguments":{},"state":{"origin":{"provider":"gemini","name":"gemini-3.8-flash"},"data":{}}},{"type":"tool_call","id":"provisional_1","name":"","arguments":{},"state":{"origin":{"provider":"gemini","name":"gemini-3.8-flash"},"data":{}}}]"#
        ]],
    );
    check(
        r#"{"candidates": null, "promptFeedback": null}"#,
        expect!["invalid_response: gemini sent a response we cannot read: no candidates"],
    );
    check(
        r#"{"candidates": [{"content": null, "finishReason": "STOP"}]}"#,
        expect!["Stop: []"],
    );
    let unsaid = r#"{"promptFeedback": {"blockReason": "BLOCK_REASON_UNSPECIFIED"}, "candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "FINISH_REASON_UNSPECIFIED"}]}"#;
    let done = r#"{"candidates": [{"finishReason": "STOP"}, {"finishReason": ""}]}"#;
    expect![[r#"Stop: [{"type":"text","text":"a"}]"#]]
        .assert_eq(&line(&streamed(&[unsaid, done], 9).1));
    let cut = "truncated: the answer of gemini ended early: it ended without a finishReason";
    assert_eq!(line(&streamed(&[unsaid], 7).1), cut);
}

/// Events that hold one function call each, and a last one.
fn calls_streamed(
    calls: &[&str],
    finish: &str,
) -> (Vec<Delta>, Result<GenerateResponse, ModelError>) {
    let call = |call: &&str| {
        format!(r#"{{"candidates": [{{"content": {{"parts": [{{"functionCall": {call}}}]}}}}]}}"#)
    };
    let mut events: Vec<String> = calls.iter().map(call).collect();
    events.push(format!(
        r#"{{"candidates": [{{"finishReason": "{finish}"}}]}}"#
    ));
    streamed(&events.iter().map(String::as_str).collect::<Vec<_>>(), 11)
}

#[test]
fn arguments_may_come_value_by_value() {
    let (deltas, end) = calls_streamed(
        &[
            r#"{"name": "weather", "willContinue": true}"#,
            r#"{"partialArgs": [{"jsonPath": "$.city", "stringValue": "Os", "willContinue": true}], "willContinue": true}"#,
            r#"{"partialArgs": [{"jsonPath": "$.city", "stringValue": "lo"}, {"jsonPath": "$.days[0]", "numberValue": 2}], "willContinue": true}"#,
            r#"{"partialArgs": [{"jsonPath": "$.exact", "boolValue": true}]}"#,
            "{}",
            r#"{"name": "time", "args": {}}"#,
            r#"{"name": "again", "id": "x", "partialArgs": [{"jsonPath": "$.a", "stringValue": "1"}], "willContinue": true}"#,
            r#"{"name": "again", "id": "x", "partialArgs": [{"jsonPath": "$.b", "stringValue": "2"}]}"#,
        ],
        "STOP",
    );
    let calls: Vec<String> = end
        .unwrap()
        .tool_calls()
        .map(|call| format!("{} {}", call.name, json!(call.arguments)))
        .collect();
    assert_eq!(
        calls,
        [
            r#"weather {"city":"Oslo","days":[2],"exact":true}"#,
            "time {}",
            r#"again {"a":"1","b":"2"}"#
        ]
    );
    let said = |index: usize| {
        let pieces = deltas.iter().filter_map(|delta| match delta {
            Delta::ToolCall {
                index: at,
                arguments,
                ..
            } if *at == index => Some(arguments.as_str()),
            _ => None,
        });
        pieces.collect::<String>()
    };
    assert_eq!(
        [said(0), said(1)],
        [r#"{"city":"Oslo","days":[2],"exact":true}"#, "{}"]
    );
}

#[test]
fn a_call_whose_arguments_stop_coming_is_never_run() {
    let begun = [
        r#"{"name": "weather", "willContinue": true}"#,
        r#"{"partialArgs": [{"jsonPath": "$.city", "stringValue": "Os", "willContinue": true}], "willContinue": true}"#,
    ];
    expect!["truncated: the answer of gemini ended early: it ended inside a call"]
        .assert_eq(&line(&calls_streamed(&begun, "STOP").1));
    let cut_off = calls_streamed(&begun, "MAX_TOKENS").1.unwrap();
    let call = cut_off.tool_calls().next().unwrap();
    assert_eq!(
        (cut_off.finish, call.malformed.is_some()),
        (FinishReason::MaxTokens, true)
    );
    expect!["truncated: the answer of gemini ended early: a call began inside another"].assert_eq(
        &line(&calls_streamed(&[begun[0], r#"{"name": "time", "args": {}}"#], "STOP").1),
    );
    let nowhere =
        r#"{"name": "weather", "partialArgs": [{"jsonPath": "$.a[7]", "numberValue": 1}]}"#;
    expect![[
        r#"invalid_response: gemini sent a response we cannot read: the argument at "$.a[7]" has no place"#
    ]]
    .assert_eq(&line(&calls_streamed(&[nowhere], "STOP").1));
}

#[test]
fn what_the_vendor_ran_itself_is_kept_unread() {
    check(
        CODE,
        expect![[
            r#"Stop: [{"type":"opaque","kind":"executableCode","state":{"origin":{"provider":"gemini","name":"gemini-3.8-flash"},"data":{"executableCode":{"language":"PYTHON","code":"print(6*7)"},"thoughtSignature":"YQ=="}}},{"type":"opaque","kind":"codeExecutionResult","state":{"origin":{"provider":"gemini","name":"gemini-3.8-flash"},"data":{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"42\n"}}}},{"type":"text","text":"It is 42."},{"type":"text","text":"","state":{"origin":{"provider":"gemini","name":"gemini-3.8-flash"},"data":{"thoughtSignature":"Yg=="}}}]"#
        ]],
    );
}

#[test]
fn an_answer_goes_back_to_its_model_as_it_came() {
    for body in [BOTH, CODE] {
        let answer: Value = serde_json::from_str(body).unwrap();
        let mut messages = vec![Message::user("?").unwrap()];
        messages.push(Message::assistant(decoded(body).unwrap().parts).unwrap());
        let sent = encoded(&GenerateRequest::new(messages), DEFAULT_MODEL);
        let mut expected = answer["candidates"][0]["content"]["parts"].clone();
        // The vendor leaves out empty arguments; we do not.
        if body == BOTH {
            expected[3]["functionCall"]["args"] = json!({});
        }
        assert_eq!(sent.0["contents"][1]["parts"], expected);
    }
}

#[test]
fn reasons_to_stop() {
    for (reason, finish) in [
        ("STOP", FinishReason::Stop),
        ("MAX_TOKENS", FinishReason::MaxTokens),
        ("SAFETY", FinishReason::ContentFilter),
        ("RECITATION", FinishReason::ContentFilter),
        ("BLOCKLIST", FinishReason::ContentFilter),
        ("PROHIBITED_CONTENT", FinishReason::ContentFilter),
        ("SPII", FinishReason::ContentFilter),
        ("LANGUAGE", FinishReason::ContentFilter),
        ("MODEL_ARMOR", FinishReason::ContentFilter),
        ("IMAGE_SAFETY", FinishReason::ContentFilter),
        ("IMAGE_PROHIBITED_CONTENT", FinishReason::ContentFilter),
        ("IMAGE_RECITATION", FinishReason::ContentFilter),
        ("ESCALATION", FinishReason::ContentFilter),
        ("PUP_LIMITED_DISABLED", FinishReason::ContentFilter),
        ("CONTINUATION", FinishReason::MaxTokens),
        ("TOO_MANY_TOOL_CALLS", FinishReason::Stop),
        ("NO_IMAGE", FinishReason::Stop),
        ("IMAGE_OTHER", FinishReason::Stop),
        ("MALFORMED_FUNCTION_CALL", FinishReason::MalformedCall),
        ("UNEXPECTED_TOOL_CALL", FinishReason::MalformedCall),
    ] {
        assert_eq!(
            decoded(&finished_with(reason)).unwrap().finish,
            finish,
            "{reason}"
        );
    }
    for reason in ["OTHER", "MALFORMED_RESPONSE"] {
        let error = decoded(&finished_with(reason)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("gemini answered with a failure: finishReason {reason} Why.")
        );
        assert!(error.is_transient());
    }
    // What was said stays said, whatever the reason is yet to mean; without words, or with a call,
    // it is no answer.
    let invented = decoded(&finished_with("TO_BE_INVENTED")).unwrap();
    assert_eq!(
        (invented.text().as_str(), invented.finish),
        ("x", FinishReason::Stop)
    );
    assert_eq!(
        invented.losses,
        ["the vendor stopped (TO_BE_INVENTED Why.): the answer may not be whole"]
    );
    let call = r#"{"candidates": [{"content": {"parts": [{"text": "x"}, {"functionCall": {"name": "t"}}]}, "finishReason": "TO_BE_INVENTED"}]}"#;
    assert_eq!(decoded(call).unwrap_err().code(), "invalid_response");
    check(
        r#"{"candidates": [{"finishReason": "TO_BE_INVENTED"}]}"#,
        expect![
            "invalid_response: gemini sent a response we cannot read: finishReason TO_BE_INVENTED, which is no end of an answer we know"
        ],
    );
    check(
        &finished_with("MISSING_THOUGHT_SIGNATURE"),
        expect![
            "bad_request: gemini rejected the request: the transcript lacks a thought signature: Why."
        ],
    );
}

#[test]
fn what_is_no_answer_is_an_error() {
    check(
        "{}",
        expect!["invalid_response: gemini sent a response we cannot read: no candidates"],
    );
    check(
        r#"{"candidates": []}"#,
        expect!["invalid_response: gemini sent a response we cannot read: no candidates"],
    );
    check(
        r#"{"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "Rude."}}"#,
        expect!["refused: gemini refused to answer: the prompt was blocked: SAFETY: Rude."],
    );
    let unfinished = r#"{"candidates": [{"content": {"parts": [{"text": "Hal"}]}}]}"#;
    // One JSON value has its end; a list of pieces may lack the last.
    assert_eq!(decoded(unfinished).unwrap().text(), "Hal");
    let cut = "truncated: the answer of gemini ended early: it ended without a finishReason";
    assert_eq!(line(&decoded(&format!("[{unfinished}]"))), cut);
    assert_eq!(line(&streamed(&[unfinished], 7).1), cut);
    check(
        r#"{"candidates": [{"content": {"parts": [{"text": "Hm", "thought": true}]}}]}"#,
        expect!["truncated: the answer of gemini ended early: it ended without a finishReason"],
    );
    check(
        r#"{"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}}"#,
        expect!["server: gemini answered with a failure: 503 UNAVAILABLE: Overloaded."],
    );
    check(
        r#"{"candidates": [{"content": {"par"#,
        expect![
            "truncated: the answer of gemini ended early: its JSON is cut off: EOF while parsing a string at line 1 column 33"
        ],
    );
    check(
        "<html>",
        expect![
            "invalid_response: gemini sent a response we cannot read: expected value at line 1 column 1"
        ],
    );
}

#[test]
fn an_empty_answer_is_an_empty_answer() {
    check(
        r#"{"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}"#,
        expect!["Stop: []"],
    );
    check(
        r#"{"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}"#,
        expect![[
            r#"MalformedCall: [{"type":"refusal","text":"{\"candidates\": [{\"finishReason\": \"MALFORMED_FUNCTION_CALL\"}]}","state":{"origin":{"provider":"gemini","name":"gemini-3.8-flash"},"data":{"explanation":true}}}]"#
        ]],
    );
    check(
        r#"{"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed function call: print(add_task("}]}"#,
        expect![[
            r#"MalformedCall: [{"type":"refusal","text":"Malformed function call: print(add_task(","state":{"origin":{"provider":"gemini","name":"gemini-3.8-flash"},"data":{"explanation":true}}}]"#
        ]],
    );
}

#[test]
fn arguments_that_are_no_object_are_never_run() {
    let with = |args: Value| {
        let body = json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "t", "args": args}}]}, "finishReason": "STOP"}]});
        let response = decoded(&body.to_string()).unwrap();
        let call = response.tool_calls().next().unwrap().clone();
        call.malformed.map_or_else(
            || json!(call.arguments).to_string(),
            |malformed| malformed.reason,
        )
    };
    assert_eq!(with(json!(null)), "{}");
    assert_eq!(with(json!("{\"a\": 1}")), "{\"a\":1}");
    expect!["EOF while parsing a string at line 1 column 13"]
        .assert_eq(&with(json!("{\"city\": \"Par")));
    expect!["expected a JSON object, got [1]"].assert_eq(&with(json!([1])));
}

#[test]
fn streams_add_up_and_are_read_to_the_end() {
    let events = [
        r#"{"candidates": [{"content": {"parts": [{"text": "Hm", "thought": true}]}}], "usageMetadata": {"promptTokenCount": 5}}"#,
        r#"{"candidates": [{"content": {"parts": [{"text": "Grü"}]}}], "usageMetadata": {"promptTokenCount": 5, "thoughtsTokenCount": 4}}"#,
        r#"{"candidates": [{"content": {"parts": [{"text": "ße 秋"}]}, "finishReason": "STOP"}]}"#,
        r#"{"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2}}"#,
    ];
    let (deltas, end) = streamed(&events, 1);
    assert_eq!(
        deltas,
        [
            Delta::Thinking("Hm".into()),
            Delta::Text("Grü".into()),
            Delta::Text("ße 秋".into())
        ]
    );
    let response = end.unwrap();
    assert_eq!(
        (response.text().as_str(), response.usage.output_tokens),
        ("Grüße 秋", Some(6))
    );
    for size in [2, 3, 1000] {
        assert_eq!(
            streamed(&events, size),
            (deltas.clone(), Ok(response.clone()))
        );
    }
}

#[test]
fn rounds_of_the_vendors_own_tools_are_not_mixed() {
    let rounds = [
        r#"{"candidates": [{"content": {"parts": [{"text": "a"}]}}], "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 30, "thoughtsTokenCount": 21, "totalTokenCount": 61}}"#,
        r#"{"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 40, "candidatesTokenCount": 78, "totalTokenCount": 118}}"#,
    ];
    let response = decoded(&format!("[{}]", rounds.join(","))).unwrap();
    assert_eq!(
        (response.usage.input_tokens, response.usage.output_tokens),
        (Some(40), Some(78))
    );
    assert_eq!(response.usage.thinking_tokens, None);
}

#[test]
fn damage_is_survived() {
    let one = |body: &str| format!("data: {}\r\n\r\n", body.replace('\n', ""));
    let open_call = json!({"candidates": [{"content": {"parts": [
        {"functionCall": {"name": "t", "willContinue": true}},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.a[0].b", "stringValue": "ä", "willContinue": true}], "willContinue": true}},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.a[0].b", "stringValue": "b"}]}},
    ]}}]});
    let stream =
        one(&open_call.to_string()) + &one(CODE) + &one(BOTH) + "{\"error\": {\"code\": 499}}";
    check_damaged(stream.as_bytes(), decoder);
}

#[test]
fn a_stream_that_breaks_is_never_a_success() {
    let first =
        r#"{"candidates": [{"content": {"parts": [{"text": "Hal"}]}, "finishReason": "STOP"}]}"#;
    let failed = |bytes: String| line(&streamed_bytes(bytes.as_bytes(), 5).1);
    expect!["truncated: the answer of gemini ended early: it ended before its first event"]
        .assert_eq(&failed(String::new()));
    expect!["server: gemini answered with a failure: 499 CANCELLED: Stopped."].assert_eq(&failed(format!(
        "data: {first}\n\n{{\n\"error\": {{\n\"code\": 499,\n\"message\": \"Stopped.\",\n\"status\": \"CANCELLED\"\n}}\n}}\n"
    )));
    expect!["rate_limit: rate limited by gemini; asks to wait 2 s: Slow down."].assert_eq(&failed(format!(
        "data: {first}\n\ndata: {}\n\n",
        r#"{"error": {"code": 429, "message": "Slow down.", "details": [{"retryDelay": "2s"}]}}"#
    )));
    expect!["truncated: the answer of gemini ended early: its JSON is cut off: EOF while parsing a string at line 1 column 21"]
        .assert_eq(&failed(format!("data: {first}\n\n{}", r#"data: {"candidates": [{"con"#)));
}

#[test]
fn errors_say_what_to_do() {
    let check = |status: u16, body: &str, expected: Expect| {
        let vendor = vendor("gemini-x");
        let error = vendor.error(status, None, None, (vendor.parse_error)(status, body));
        expected.assert_eq(&format!("{}: {error}", error.code()));
    };
    check(
        429,
        include_str!("fixtures/429_minute.json"),
        expect![
            "rate_limit: rate limited by gemini; asks to wait 34.5 s: You exceeded your current quota, please check your plan and billing details. Please retry in 34.07s."
        ],
    );
    check(
        429,
        include_str!("fixtures/429_day.json"),
        expect![
            "quota: gemini: quota exhausted: You exceeded your current quota, please check your plan and billing details."
        ],
    );
    check(
        400,
        include_str!("fixtures/400_key.json"),
        expect![
            "auth: gemini refused the credentials: API key not valid. Please pass a valid API key. Set GEMINI_API_KEY to a key from https://aistudio.google.com/apikey."
        ],
    );
    check(
        400,
        r#"{"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}"#,
        expect![
            "context_too_long: too long for gemini: The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
        ],
    );
    check(
        404,
        r#"{"error": {"code": 404, "message": "models/gemini-x is not found for API version v1beta."}}"#,
        expect![[
            r#"not_found: gemini has no model "gemini-x": models/gemini-x is not found for API version v1beta."#
        ]],
    );
    check(
        502,
        "<html>Bad gateway</html>",
        expect!["server: gemini failed (HTTP 502): HTTP 502 without an explanation"],
    );
    check(
        500,
        "upstream gone",
        expect!["server: gemini failed (HTTP 500): upstream gone"],
    );
    check(
        429,
        r#"[{"error": {"code": "429", "message": "Busy.", "status": null, "details": [{"retryDelay": "3s"}, null]}}]"#,
        expect!["rate_limit: rate limited by gemini; asks to wait 3 s: Busy."],
    );
    check(
        503,
        r#"{"error": {"code": null, "message": "Busy.", "details": null}}"#,
        expect!["server: gemini failed (HTTP 503): Busy."],
    );
    check(
        400,
        r#"{"error": "no such field"}"#,
        expect![[r#"bad_request: gemini rejected the request: {"error": "no such field"}"#]],
    );
}
