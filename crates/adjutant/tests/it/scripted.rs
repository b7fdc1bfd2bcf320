//! Outcomes of the faults that a script can ask for: `docs/scripted.md`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adjutant::scripted::ScriptedModel;
use adjutant::{Agent, FunctionTool, OutcomeCategory, TurnLimits};
use serde_json::json;

/// Plays a fault and then fine answers; gives the outcome, the code of its cause, how often the
/// model was asked and how often the tool did something.
async fn play(fault: &str) -> (OutcomeCategory, Option<&'static str>, usize, usize) {
    let fine = "{\"text\": \"Fine.\", \"repeat\": true}";
    let model = ScriptedModel::from_jsonl(&format!("{fault}\n{fine}")).unwrap();
    let effects = Arc::new(AtomicUsize::new(0));
    let counted = effects.clone();
    let parameters = json!({
        "type": "object",
        "properties": { "text": { "type": "string" } },
        "required": ["text"],
        "additionalProperties": false
    });
    let tool = FunctionTool::new("add_note", "Adds a note.", parameters, move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok(json!("added")) }
    });
    let agent = Agent::builder("notes")
        .instruction("Keep notes.")
        .model(model.clone())
        .tool(tool.unwrap())
        .report_failed_calls(true)
        .limits(TurnLimits {
            turn_deadline: Some(Duration::from_secs(60)),
            ..TurnLimits::default()
        })
        .build()
        .unwrap();
    let response = agent.run("Note milk.").await.unwrap();
    assert!(!response.content.is_empty());
    let code = response.error.as_ref().map(adjutant::TurnError::code);
    (
        response.outcome,
        code,
        model.attempts_made(),
        effects.load(Ordering::Relaxed),
    )
}

async fn check(
    fault: &str,
    outcome: OutcomeCategory,
    code: impl Into<Option<&'static str>>,
    asked: usize,
) {
    assert_eq!(
        play(fault).await,
        (outcome, code.into(), asked, 0),
        "{fault}"
    );
}

#[tokio::test]
async fn spoilt_answers_are_asked_for_again_and_nothing_is_executed() {
    let call = r#""calls": [{"name": "add_note", "args": {"text": "milk"}}]"#;
    for spoilt in ["truncated_json", "unknown_tool", "wrong_type"] {
        let line = format!("{{\"fault\": \"{spoilt}\", {call}}}");
        check(&line, OutcomeCategory::ToolFailure, "tool_failure", 2).await;
    }
    for spoilt in ["empty", "thinking_only"] {
        let line = format!("{{\"fault\": \"{spoilt}\", \"text\": \"Hm.\"}}");
        check(&line, OutcomeCategory::ResponseGiven, None, 2).await;
        let again = format!("{{\"fault\": \"{spoilt}\", \"text\": \"Hm.\", \"repeat\": true}}");
        check(&again, OutcomeCategory::LlmFailure, "invalid_response", 2).await;
    }
    let line = "{\"fault\": \"split_utf8\", \"text\": \"Schöne Füße.\"}";
    check(line, OutcomeCategory::ResponseGiven, None, 1).await;
    let line = format!("{{{call}}}");
    assert_eq!(
        play(&line).await,
        (OutcomeCategory::TaskCompleted, None, 2, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn failures_are_got_over_or_named() {
    for fault in [
        "server",
        "timeout",
        "network",
        "reset",
        "truncated",
        "rate_limit",
    ] {
        check(
            &format!("{{\"fault\": \"{fault}\"}}"),
            OutcomeCategory::ResponseGiven,
            None,
            2,
        )
        .await;
    }
    for (fault, outcome, code) in [
        ("quota", OutcomeCategory::RateLimited, "quota"),
        ("auth", OutcomeCategory::LlmFailure, "auth"),
        ("not_found", OutcomeCategory::LlmFailure, "not_found"),
        ("bad_request", OutcomeCategory::LlmFailure, "bad_request"),
        (
            "context_too_long",
            OutcomeCategory::ContextLimit,
            "context_too_long",
        ),
        ("refused", OutcomeCategory::ContentFilter, "refused"),
        (
            "invalid_response",
            OutcomeCategory::LlmFailure,
            "invalid_response",
        ),
        ("stall", OutcomeCategory::DeadlineLimit, "limit_reached"),
    ] {
        check(&format!("{{\"fault\": \"{fault}\"}}"), outcome, code, 1).await;
    }
    let waits =
        |seconds: u32| format!("{{\"fault\": \"rate_limit\", \"retry_after_s\": {seconds}}}");
    check(&waits(59), OutcomeCategory::ResponseGiven, None, 2).await;
    check(&waits(61), OutcomeCategory::RateLimited, "rate_limit", 1).await;
    let cut = "{\"fault\": \"truncated\", \"text\": \"Half of it\"}";
    check(cut, OutcomeCategory::LlmFailure, "truncated", 1).await;
}
