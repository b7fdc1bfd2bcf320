//! OpenAI's Responses: recordings and faults.

use adjutant_core::FinishReason;
use serde_json::{Value, json};

use crate::cassette::{Framing, test_name};
use crate::faults::{self, Faults, Mode, ask, check};
use crate::recordings::{self, Recordings};
use crate::server::Answer;

pub(crate) const RECORDED: Recordings = Recordings {
    folder: "openai_responses",
    provider: "openai",
    model: "gpt-5.6",
    schemas: &["openai_responses"],
    finish: |expected| match (expected.finish.as_deref()?, expected.tool_calls.is_empty()) {
        // The second word is that of a server a recording was edited to come from.
        ("completed" | "complete", true) => Some(FinishReason::Stop),
        ("completed" | "complete", false) => Some(FinishReason::ToolCalls),
        // The only reason in other projects' recordings; ours name the other one.
        ("content_filter", _) => Some(FinishReason::ContentFilter),
        ("incomplete", _) => Some(FinishReason::MaxTokens),
        _ => None,
    },
    failure: |exchange| match exchange.status {
        // The vendor's 400 for a model that is not there.
        400 if String::from_utf8_lossy(&exchange.body).contains("model_not_found") => "not_found",
        _ => recordings::by_status(exchange),
    },
    state_recorded: |events| {
        let last = events.last().unwrap();
        let output = last.get("response").unwrap_or(last)["output"]
            .as_array()
            .unwrap();
        let goes_back = |item: &&Value| match item["type"].as_str().unwrap() {
            // ReceivedRequest for without its encrypted content, which an adapter of this vendor always asks
            // for.
            "reasoning" => item["encrypted_content"].is_string(),
            // A call of a tool on the other side, whose answer is not in the recording.
            "apply_patch_call" => false,
            _ => true,
        };
        let items: Vec<&Value> = output.iter().filter(goes_back).collect();
        let thoughts = |items: &[&Value]| {
            items
                .iter()
                .filter(|item| item["type"] == "reasoning")
                .count()
        };
        let all = thoughts(&items) == thoughts(&output.iter().collect::<Vec<_>>());
        items.iter().flat_map(|item| identity(item, all)).collect()
    },
    state_sent: |request| {
        let input = request["input"].as_array().unwrap();
        let ours = |item: &&Value| item["role"] == "user" || item["type"] == "function_call_output";
        input
            .iter()
            .filter(|item| !ours(item))
            .flat_map(|item| identity(item, true))
            .collect()
    },
    results_sent: |request| {
        let input = request["input"].as_array().unwrap();
        let ids = |kinds: &[&str]| {
            let mut ids: Vec<&str> = input
                .iter()
                .filter(|item| kinds.contains(&item["type"].as_str().unwrap()))
                .map(|item| item["call_id"].as_str().unwrap())
                .collect();
            ids.sort_unstable();
            ids
        };
        let results = ids(&["function_call_output", "custom_tool_call_output"]);
        assert_eq!(
            ids(&["function_call", "custom_tool_call"]),
            results,
            "each call has its one result"
        );
        results.len()
    },
    differences: &[],
};

/// Returns the fields that identify an item, in order: type, ids, encrypted content, and phase. Text
/// and calls have no id if the reasoning before them was not sent back.
fn identity(item: &Value, all: bool) -> Vec<String> {
    let loose = !all && ["message", "function_call"].contains(&item["type"].as_str().unwrap());
    [
        "type",
        "id",
        "call_id",
        "encrypted_content",
        "phase",
        "status",
    ]
    .iter()
    .filter(|field| !(loose && **field == "id"))
    .map(|field| item[field].as_str().unwrap_or_default().to_owned())
    .filter(|value| !value.is_empty())
    .collect()
}

const FAULTS: Faults = Faults {
    provider: "openai",
    model: "gpt-5.6",
    framing: Framing::Events,
    whole: r#"{"object": "response", "status": "completed", "output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Fine.", "annotations": []}]}]}"#,
    events: &[
        r#"{"type": "response.created", "response": {"object": "response", "status": "in_progress", "output": []}}"#,
        r#"{"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}}"#,
        r#"{"type": "response.output_text.delta", "output_index": 0, "item_id": "msg_1", "content_index": 0, "delta": "Fine."}"#,
        r#"{"type": "response.completed", "response": {"object": "response", "status": "completed", "output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Fine.", "annotations": []}]}]}}"#,
    ],
    begun: 3,
    end: "",
    key_header: "authorization: Bearer ",
    paths: ["/v1/responses", "/v1/responses"],
    body: |_, words| {
        json!({"error": {"message": words, "type": "invalid_request_error", "param": null, "code": null}})
            .to_string()
    },
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_answers_are_understood_as_the_vendor_does() {
    recordings::decode_all(&test_name!(), &[&RECORDED]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_back_fits_the_published_schema() {
    recordings::follow_up_all(&test_name!(), &[&RECORDED]).await;
}

#[tokio::test]
async fn what_any_vendor_may_do() {
    faults::all(&FAULTS).await;
}

/// Whatever the status, one answer with these items.
async fn check_answer(response: Value, expected: &str) {
    let events = |response: &Value| {
        let kind = format!("response.{}", response["status"].as_str().unwrap());
        json!({"type": kind, "response": response}).to_string()
    };
    check(
        &FAULTS,
        |mode| {
            let answer = match mode {
                Mode::Blocking => Answer::new(200, response.to_string()),
                Mode::Drained | Mode::Streaming => {
                    Answer::events(Framing::Events, &[&events(&response)])
                }
            };
            vec![answer, FAULTS.fine(mode)]
        },
        expected,
    )
    .await;
}

#[tokio::test]
async fn broken_calls_are_told() {
    let call = |arguments: &str| json!([{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": arguments}]);
    check_answer(
        json!({"status": "completed", "output": call("{\"city\": \"Os")}),
        r#"asked 1: ToolCalls "" weather(malformed: EOF while parsing a string at line 1 column 12)"#,
    )
    .await;
    let cut = json!({"reason": "max_output_tokens"});
    check_answer(
        json!({"status": "incomplete", "incomplete_details": cut, "output": call("{\"city\":\"Os\"}")}),
        r#"asked 1: MaxTokens "" weather({"city":"Os"})"#,
    )
    .await;
}

#[tokio::test]
async fn refusals_and_empty_answers_are_named() {
    let refusal = json!([{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}]);
    let thinking =
        json!([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}]);
    let filtered = json!({"reason": "content_filter"});
    for (response, expected) in [
        (
            json!({"status": "completed", "output": []}),
            r#"asked 1: Stop """#,
        ),
        (
            json!({"status": "completed", "output": refusal}),
            r#"asked 1: Stop """#,
        ),
        (
            json!({"status": "completed", "output": thinking}),
            r#"asked 1: Stop """#,
        ),
        (
            json!({"status": "incomplete", "incomplete_details": filtered, "output": []}),
            r#"asked 1: ContentFilter """#,
        ),
        (
            json!({"status": "failed", "error": {"code": "invalid_prompt", "message": "Against the policy."}}),
            "asked 1: refused: openai refused to answer: Against the policy.",
        ),
    ] {
        check_answer(response, expected).await;
    }
}

#[tokio::test]
async fn an_error_inside_a_200_is_an_error() {
    for (code, expected) in [
        // What may pass is asked again.
        ("server_error", r#"asked 2: Stop "Fine.""#),
        (
            "insufficient_quota",
            "asked 1: quota: openai: quota exhausted: Sorry.",
        ),
        (
            "context_length_exceeded",
            "asked 1: context_too_long: too long for openai: Sorry.",
        ),
    ] {
        check_answer(
            json!({"status": "failed", "error": {"code": code, "message": "Sorry."}}),
            expected,
        )
        .await;
    }
    for error in [
        r#"{"type": "error", "code": "server_error", "message": "Sorry."}"#,
        r#"{"type": "error", "error": {"type": "server_error", "code": null, "message": "Sorry."}}"#,
    ] {
        let answers = vec![
            Answer::events(Framing::Events, &[FAULTS.events[2], error]),
            FAULTS.fine(Mode::Streaming),
        ];
        let seen = ask(&FAULTS, Mode::Streaming, answers, None, |_| {}).await;
        assert_eq!(
            seen.line(),
            "asked 1: server: openai answered with a failure: Sorry."
        );
    }
}
