use std::collections::VecDeque;

use adjutant_core::{
    Content, Delta, FinishReason, ImageSource, MaxTokens, Message, Part, ProviderState, Role, Temperature,
    ToolCall, ToolDefinition, ToolResult, TopK, TopP,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use crate::decode::StreamDecoder;

const BOTH: &str = include_str!("fixtures/thinking_call_text.json");
const CODE: &str = include_str!("fixtures/code_execution.json");

fn vendor(model: &str) -> Arc<Vendor> {
    let model = model_id(model).unwrap();
    Arc::new(Vendor { model, key_advice: KEY_ADVICE, complaint: error::complaint })
}

fn decoded(body: &str) -> Result<GenerateResponse, ModelError> {
    response::decode(body, vendor(Gemini::DEFAULT_MODEL), Vec::new())
}

/// The same content as events, streamed in pieces of `size` bytes.
fn streamed(events: &[&str], size: usize) -> (Vec<Delta>, Result<GenerateResponse, ModelError>) {
    let stream: String =
        events.iter().map(|event| format!("data: {}\r\n\r\n", event.replace('\n', ""))).collect();
    streamed_bytes(stream.as_bytes(), size)
}

fn streamed_bytes(bytes: &[u8], size: usize) -> (Vec<Delta>, Result<GenerateResponse, ModelError>) {
    let mut decoder = GeminiStream::new(vendor(Gemini::DEFAULT_MODEL), Vec::new());
    let mut deltas = VecDeque::new();
    for bytes in bytes.chunks(size) {
        if let Err(error) = decoder.push(bytes, &mut deltas) {
            return (deltas.into(), Err(error));
        }
    }
    let end = decoder.finish(&mut deltas);
    (deltas.into(), end)
}

/// What came of an answer in one line, and that streaming it gives the same.
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
        (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.thinking_tokens),
        (Some(20), Some(37), Some(16), Some(30))
    );
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
        let sent = encoded(&GenerateRequest::new(messages), Gemini::DEFAULT_MODEL);
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
        ("MALFORMED_FUNCTION_CALL", FinishReason::MalformedCall),
        ("UNEXPECTED_TOOL_CALL", FinishReason::MalformedCall),
    ] {
        assert_eq!(decoded(&finished_with(reason)).unwrap().finish, finish, "{reason}");
    }
    check(
        &finished_with("OTHER"),
        expect![
            "invalid_response: gemini sent a response we cannot read: finishReason OTHER, which is no end of an answer we know Why."
        ],
    );
    check(
        &finished_with("TO_BE_INVENTED"),
        expect![
            "invalid_response: gemini sent a response we cannot read: finishReason TO_BE_INVENTED, which is no end of an answer we know Why."
        ],
    );
    check(
        &finished_with("MISSING_THOUGHT_SIGNATURE"),
        expect!["bad_request: gemini rejected the request: the transcript lacks a thought signature: Why."],
    );
}

#[test]
fn what_is_no_answer_is_an_error() {
    check("{}", expect!["invalid_response: gemini sent a response we cannot read: no candidates"]);
    check(
        r#"{"candidates": []}"#,
        expect!["invalid_response: gemini sent a response we cannot read: no candidates"],
    );
    check(
        r#"{"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "Rude."}}"#,
        expect!["refused: gemini refused to answer: the prompt was blocked: SAFETY: Rude."],
    );
    check(
        r#"{"candidates": [{"content": {"parts": [{"text": "Hal"}]}}]}"#,
        expect!["truncated: the answer of gemini ended early: it ended without a finishReason"],
    );
    check(
        r#"{"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}}"#,
        expect!["server: gemini failed (HTTP 200): 503 UNAVAILABLE: Overloaded."],
    );
    check(
        r#"{"candidates": [{"content": {"par"#,
        expect![
            "truncated: the answer of gemini ended early: its JSON is cut off: EOF while parsing a string at line 1 column 33"
        ],
    );
    check(
        "<html>",
        expect!["invalid_response: gemini sent a response we cannot read: expected value at line 1 column 1"],
    );
}

#[test]
fn an_empty_answer_is_an_empty_answer() {
    check(r#"{"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}"#, expect!["Stop: []"]);
    check(r#"{"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}"#, expect!["MalformedCall: []"]);
}

#[test]
fn arguments_that_are_no_object_are_never_run() {
    let with = |args: Value| {
        let body = json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "t", "args": args}}]}, "finishReason": "STOP"}]});
        let response = decoded(&body.to_string()).unwrap();
        let call = response.tool_calls().next().unwrap().clone();
        call.malformed.map_or_else(|| json!(call.arguments).to_string(), |malformed| malformed.reason)
    };
    assert_eq!(with(json!(null)), "{}");
    assert_eq!(with(json!("{\"a\": 1}")), "{\"a\":1}");
    expect!["EOF while parsing a string at line 1 column 13"].assert_eq(&with(json!("{\"city\": \"Par")));
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
        [Delta::Thinking("Hm".into()), Delta::Text("Grü".into()), Delta::Text("ße 秋".into())]
    );
    let response = end.unwrap();
    assert_eq!((response.text().as_str(), response.usage.output_tokens), ("Grüße 秋", Some(6)));
    for size in [2, 3, 1000] {
        assert_eq!(streamed(&events, size), (deltas.clone(), Ok(response.clone())));
    }
}

#[test]
fn a_stream_that_breaks_is_never_a_success() {
    let first = r#"{"candidates": [{"content": {"parts": [{"text": "Hal"}]}, "finishReason": "STOP"}]}"#;
    let failed = |bytes: String| line(&streamed_bytes(bytes.as_bytes(), 5).1);
    expect!["truncated: the answer of gemini ended early: it ended before its first event"]
        .assert_eq(&failed(String::new()));
    expect!["server: gemini failed (HTTP 200): 499 CANCELLED: Stopped."].assert_eq(&failed(format!(
        "data: {first}\n\n{{\n\"error\": {{\n\"code\": 499,\n\"message\": \"Stopped.\",\n\"status\": \"CANCELLED\"\n}}\n}}\n"
    )));
    expect!["rate_limit: rate limited by gemini; asks to wait 2 s"].assert_eq(&failed(format!(
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
        let error = vendor.refused(status, None, (vendor.complaint)(status, body));
        expected.assert_eq(&format!("{}: {error}", error.code()));
    };
    check(
        429,
        include_str!("fixtures/429_minute.json"),
        expect!["rate_limit: rate limited by gemini; asks to wait 34.5 s"],
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
    check(500, "upstream gone", expect!["server: gemini failed (HTTP 500): upstream gone"]);
}

fn encoded(request: &GenerateRequest, model: &str) -> (Value, Vec<String>) {
    let model = model_id(model).unwrap();
    let encoded = request::encode(request, &model, &Family::of(&model.name)).unwrap();
    assert_eq!(encoded.body, request::encode(request, &model, &Family::of(&model.name)).unwrap().body);
    (serde_json::from_slice(&encoded.body).unwrap(), encoded.losses)
}

fn check_request(request: &GenerateRequest, model: &str, expected: Expect) {
    let (body, losses) = encoded(request, model);
    expected.assert_eq(&format!("{}\n{}", serde_json::to_string_pretty(&body).unwrap(), losses.join("\n")));
}

/// A call of a model, signed, and its result.
fn exchange(index: usize, model: &str, id: &str) -> (Part, Message) {
    let call = ToolCall::from_object(
        index,
        Some(id.into()),
        "look".into(),
        json!({"at": index}).as_object().unwrap().clone(),
    );
    let result = Message::tool(call.id.clone(), "look", ToolResult::ok(json!(["seen"]))).unwrap();
    let state = ProviderState {
        origin: model_id(model).unwrap(),
        data: json!({"thoughtSignature": format!("sig-{id}")}),
    };
    (Part::from_provider(Content::ToolCall(call), Some(state)), result)
}

fn conversation(model: &str) -> GenerateRequest {
    let (first, first_result) = exchange(0, model, "a");
    let (second, second_result) = exchange(1, model, "b");
    let look = ToolDefinition::new(
        "look",
        "Looks.",
        json!({"type": "object", "properties": {"at": {"type": "integer"}}, "additionalProperties": false}),
    );
    let nothing =
        ToolDefinition::new("nothing", "Does nothing.", json!({"type": "object", "properties": {}}));
    let mut request = GenerateRequest::new(vec![
        Message::system("Be brief.").unwrap(),
        Message::user("Look twice.").unwrap(),
        Message::assistant(vec![first, second]).unwrap(),
        first_result,
        second_result,
        Message::user("And?").unwrap(),
    ]);
    request.tools = vec![look.unwrap(), nothing.unwrap()];
    request
}

#[test]
fn a_whole_conversation() {
    check_request(
        &conversation("gemini-2.5-flash"),
        "gemini-2.5-flash",
        expect![[r#"
        {
          "systemInstruction": {
            "parts": [
              {
                "text": "Be brief."
              }
            ]
          },
          "tools": [
            {
              "functionDeclarations": [
                {
                  "name": "look",
                  "description": "Looks.",
                  "parametersJsonSchema": {
                    "type": "object",
                    "properties": {
                      "at": {
                        "type": "integer"
                      }
                    },
                    "additionalProperties": false
                  }
                },
                {
                  "name": "nothing",
                  "description": "Does nothing."
                }
              ]
            }
          ],
          "toolConfig": {
            "functionCallingConfig": {
              "mode": "AUTO"
            }
          },
          "generationConfig": {
            "temperature": 0.0,
            "maxOutputTokens": 9216
          },
          "contents": [
            {
              "role": "user",
              "parts": [
                {
                  "text": "Look twice."
                }
              ]
            },
            {
              "role": "model",
              "parts": [
                {
                  "functionCall": {
                    "id": "a",
                    "name": "look",
                    "args": {
                      "at": 0
                    }
                  },
                  "thoughtSignature": "sig-a"
                },
                {
                  "functionCall": {
                    "id": "b",
                    "name": "look",
                    "args": {
                      "at": 1
                    }
                  },
                  "thoughtSignature": "sig-b"
                }
              ]
            },
            {
              "role": "user",
              "parts": [
                {
                  "functionResponse": {
                    "name": "look",
                    "response": {
                      "success": true,
                      "data": [
                        "seen"
                      ]
                    },
                    "id": "a"
                  }
                },
                {
                  "functionResponse": {
                    "name": "look",
                    "response": {
                      "success": true,
                      "data": [
                        "seen"
                      ]
                    },
                    "id": "b"
                  }
                }
              ]
            },
            {
              "role": "user",
              "parts": [
                {
                  "text": "And?"
                }
              ]
            }
          ]
        }
        max_tokens 1024 was sent as 9216: the vendor counts thinking inside it"#]],
    );
}

#[test]
fn another_models_state_is_left_out_and_reported() {
    let (body, losses) = encoded(&conversation("gemini-2.5-flash"), "gemini-3.8-flash");
    expect![[r#"
        {"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":0}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"look","args":{"at":1}}}]}
        {"role":"user","parts":[{"functionResponse":{"name":"look","response":{"success":true,"data":["seen"]}}},{"functionResponse":{"name":"look","response":{"success":true,"data":["seen"]}}}]}
        state of gemini/gemini-2.5-flash on a tool call was left out
        temperature 0 was left out: the vendor advises against setting it for this model
        max_tokens 1024 was sent as 17408: the vendor counts thinking inside it"#]].assert_eq(&format!(
        "{}\n{}\n{}",
        body["contents"][1],
        body["contents"][2],
        losses.join("\n")
    ));
    // Families that check no signatures get none made up.
    let (body, _) = encoded(&conversation("gemini-3.8-flash"), "gemini-2.0-flash");
    assert!(!body.to_string().contains("thoughtSignature"));
}

#[test]
fn settings() {
    let mut request = GenerateRequest::new(vec![Message::user("?").unwrap()]);
    let settings = |request: &GenerateRequest, model: &str| {
        let (body, losses) = encoded(request, model);
        format!("{} {losses:?}", body["generationConfig"])
    };
    expect![[r#"{"temperature":0.0,"maxOutputTokens":1024} []"#]]
        .assert_eq(&settings(&request, "gemini-2.0-flash"));
    expect![[r#"{"maxOutputTokens":17408} ["temperature 0 was left out: the vendor advises against setting it for this model", "max_tokens 1024 was sent as 17408: the vendor counts thinking inside it"]"#]].assert_eq(&settings(&request, "gemini-3.8-flash"));
    request.config.temperature = Some(Temperature::new(0.5).unwrap());
    request.config.top_p = Some(TopP::new(0.9).unwrap());
    request.config.top_k = Some(TopK::new(40).unwrap());
    request.config.max_tokens = Some(MaxTokens::new(60_000).unwrap());
    request.response_schema =
        Some(json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}));
    expect![[r#"{"temperature":0.5,"topP":0.9,"topK":40,"maxOutputTokens":65536,"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"a":{"type":"string"}}}} ["max_tokens 60000 was sent as 65536: the vendor counts thinking inside it", "the response schema was sent without pattern"]"#]].assert_eq(&settings(&request, "gemini-3.8-flash"));
}

#[test]
fn images() {
    let image = |source| Part::ours(Content::Image { source });
    let parts = vec![
        image(ImageSource::Base64 { media_type: "image/png".into(), data: "AAAA".into() }),
        image(ImageSource::Url("https://example.com/a.JPG?x=1".into())),
        image(ImageSource::Url("data:image/gif;base64,BBBB".into())),
        image(ImageSource::Url("https://example.com/picture".into())),
    ];
    let (body, _) =
        encoded(&GenerateRequest::new(vec![Message::new(Role::User, parts).unwrap()]), "gemini-2.0-flash");
    expect![[r#"[{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"fileData":{"mimeType":"image/jpeg","fileUri":"https://example.com/a.JPG?x=1"}},{"inlineData":{"mimeType":"image/gif","data":"BBBB"}},{"fileData":{"fileUri":"https://example.com/picture"}}]"#]].assert_eq(&body["contents"][0]["parts"].to_string());
}

#[test]
fn what_cannot_work_is_not_sent() {
    let refused = |request: &GenerateRequest, model: &str| {
        let model = model_id(model).unwrap();
        request::encode(request, &model, &Family::of(&model.name)).unwrap_err().to_string()
    };
    let mut request = conversation("gemini-2.5-flash");
    request.response_schema = Some(json!({"type": "object"}));
    expect![
        "gemini rejected the request: this model takes a response schema or tools, not both in one request"
    ]
    .assert_eq(&refused(&request, "gemini-2.5-flash"));
    let only_system = GenerateRequest::new(vec![Message::system("x").unwrap()]);
    expect!["gemini rejected the request: there is nothing to answer: the transcript has no message besides the instruction"].assert_eq(&refused(&only_system, "gemini-2.5-flash"));
}

#[test]
fn addresses() {
    let of = |base: &str, model: &str| {
        endpoint(&Url::parse(base).unwrap(), model, "generateContent").map(String::from)
    };
    for (base, model, expected) in [
        (
            HOST,
            "gemini-x",
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-x:generateContent",
        ),
        ("http://localhost:1/", "gemini-x", "http://localhost:1/v1beta/models/gemini-x:generateContent"),
        (
            "http://localhost:1/a/v1beta",
            "gemini-x",
            "http://localhost:1/a/v1beta/models/gemini-x:generateContent",
        ),
        (
            "http://localhost:1/v1beta/",
            "tunedModels/mine",
            "http://localhost:1/v1beta/tunedModels/mine:generateContent",
        ),
    ] {
        assert_eq!(of(base, model).as_deref(), Some(expected));
    }
    assert_eq!(of("ftp://localhost", "gemini-x"), None);
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let transport = Transport::new().unwrap();
    let config = || GeminiConfig::new("k".to_owned().into(), transport.clone());
    assert_eq!(
        Gemini::new(GeminiConfig { api_key: " \n".to_owned().into(), ..config() }).unwrap_err().code(),
        "auth"
    );
    assert_eq!(
        Gemini::new(GeminiConfig { model: " ".into(), ..config() }).unwrap_err().code(),
        "bad_request"
    );
    assert_eq!(
        Gemini::new(GeminiConfig { base_url: Some(Url::parse("file:///x").unwrap()), ..config() })
            .unwrap_err()
            .code(),
        "bad_request"
    );
    let model = Gemini::new(GeminiConfig { model: "models/gemini-2.5-pro".into(), ..config() }).unwrap();
    assert_eq!(model.id().to_string(), "gemini/gemini-2.5-pro");
    assert!(!format!("{model:?}").contains("\"k\""));
}
