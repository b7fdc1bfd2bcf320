//! Every validation rule of the seeds: a value that exists keeps it, also when it comes from JSON.

use std::error::Error;
use std::str::FromStr as _;

use adjutant_core::port::StoreError;
use adjutant_core::*;
use serde_json::json;

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: CallId::new(id).unwrap(),
        ..ToolCall::from_object(0, None, "add".to_owned(), Arguments::new())
    }
}

fn calling(ids: &[&str]) -> Message {
    Message::assistant(
        ids.iter()
            .map(|id| Part::ours(Content::ToolCall(call(id))))
            .collect(),
    )
    .unwrap()
}

fn result(id: &str) -> Message {
    Message::tool(CallId::new(id).unwrap(), "add", ToolResult::ok(json!(1))).unwrap()
}

#[test]
fn each_role_needs_its_parts() {
    for blank in ["", "  \n"] {
        assert!(Message::user(blank).is_err() && Message::system(blank).is_err());
    }
    assert!(Message::assistant(Vec::new()).is_err());
    for blank in ["", " \n"] {
        let (text, reasoning) = (blank.to_owned(), blank.to_owned());
        let parts = [
            Content::Text { text },
            Content::Thinking { text: reasoning },
        ];
        assert_eq!(
            Message::assistant(parts.map(Part::ours).to_vec()),
            Err(InvalidMessage::EmptyAssistant)
        );
        let json = json!({"role": "assistant", "content": blank});
        assert!(serde_json::from_value::<Message>(json).is_err());
    }
    assert!(Message::tool(CallId::new("c").unwrap(), " ", ToolResult::ok(json!(1))).is_err());
    assert!(
        calling(&["a"]).text().is_empty(),
        "an assistant may be without text if it calls"
    );
    let wrong = [
        (Role::User, Content::ToolCall(call("a"))),
        (
            Role::System,
            Content::Thinking {
                text: "x".to_owned(),
            },
        ),
        (
            Role::Assistant,
            Content::Image {
                source: ImageSource::Url("https://example.org/a.png".to_owned()),
            },
        ),
        (
            Role::Tool,
            Content::Text {
                text: "x".to_owned(),
            },
        ),
        (
            Role::User,
            Content::ToolResult {
                call_id: CallId::new("a").unwrap(),
                name: "add".to_owned(),
                result: ToolResult::failed("x"),
            },
        ),
    ];
    for (role, content) in wrong {
        let parts = vec![
            Part::ours(Content::Text {
                text: "hello".to_owned(),
            }),
            Part::ours(content),
        ];
        let parts = if role == Role::Tool {
            parts[1..].to_vec()
        } else {
            parts
        };
        assert!(
            matches!(
                Message::new(role, parts),
                Err(InvalidMessage::WrongPart { .. })
            ),
            "{role:?}"
        );
    }
}

#[test]
fn the_rules_hold_for_json_too() {
    let message = calling(&["a", "b"]);
    let json = serde_json::to_string(&message).unwrap();
    assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message);
    assert!(serde_json::from_value::<Message>(json!({"role": "user", "parts": []})).is_err());
    assert!(serde_json::from_value::<Message>(json!({"role": "robot", "parts": []})).is_err());
    assert!(serde_json::from_value::<ToolName>(json!("Add Task")).is_err());
    assert!(serde_json::from_value::<GenerationConfig>(json!({"temperature": 2.5})).is_err());
    assert!(serde_json::from_value::<GenerationConfig>(json!({"temprature": 1})).is_err());
    let config: GenerationConfig =
        serde_json::from_value(json!({"temperature": 0.7, "max_tokens": 12})).unwrap();
    assert_eq!(
        serde_json::to_string(&config).unwrap(),
        r#"{"temperature":0.7,"max_tokens":12}"#
    );
}

#[test]
fn provider_state_rides_on_its_part() {
    let state = ProviderState {
        origin: ModelId::new("gemini", "m").unwrap(),
        data: json!({"sig": "abc=="}),
    };
    let part = Part::from_provider(Content::ToolCall(call("a")), Some(state));
    let message = Message::assistant(vec![part.clone()]).unwrap();
    let back: Message = serde_json::from_str(&serde_json::to_string(&message).unwrap()).unwrap();
    assert_eq!(back.parts()[0], part);
}

#[test]
fn a_tool_may_answer_null() {
    for result in [
        ToolResult::ok(json!(null)),
        ToolResult::ok(json!(1)),
        ToolResult::failed("no"),
    ] {
        let json = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<ToolResult>(&json).unwrap(), result);
    }
}

#[test]
fn every_call_has_exactly_one_result() {
    let user = || Message::user("x").unwrap();
    assert!(
        check_pairing(&[
            user(),
            calling(&["a", "b"]),
            result("b"),
            result("a"),
            user()
        ])
        .is_ok()
    );
    for (broken, at) in [
        (vec![user(), calling(&["a"])], 2),
        (vec![user(), calling(&["a"]), user()], 2),
        (vec![user(), result("a")], 1),
        (vec![calling(&["a"]), result("a"), result("a")], 2),
        (vec![calling(&["a", "a"])], 0),
    ] {
        assert_eq!(check_pairing(&broken).unwrap_err().at, at);
    }
}

#[test]
fn tool_names_and_definitions() {
    for good in ["a", "_x", "add_task", "a1", &"a".repeat(64)] {
        assert!(ToolName::new(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "1a",
        "Add",
        "add-task",
        "add task",
        "ä",
        "a.b",
        &"a".repeat(65),
    ] {
        assert!(ToolName::new(bad).is_err(), "{bad}");
    }
    assert!(matches!(
        ToolDefinition::new("a", " ", json!({})),
        Err(InvalidTool::Description { .. })
    ));
}

#[test]
fn ranges() {
    for (value, good) in [
        (0.0, true),
        (2.0, true),
        (-0.1, false),
        (2.1, false),
        (f64::NAN, false),
    ] {
        assert_eq!(Temperature::new(value).is_ok(), good, "{value}");
    }
    for (value, good) in [(0.0, true), (1.0, true), (1.1, false)] {
        assert_eq!(TopP::new(value).is_ok(), good, "{value}");
    }
    assert!(TopK::new(0).is_err() && TopK::new(1).is_ok());
    assert_eq!(
        MaxTokens::new(0).unwrap_err().to_string(),
        "max_tokens must be at least 1, not 0"
    );
    assert!(
        AgentName::new(" ").is_err() && UserId::new("").is_err() && ModelId::new("p", " ").is_err()
    );
}

#[test]
fn usage_adds_what_is_known() {
    let some = Usage {
        input_tokens: Some(3),
        output_tokens: Some(4),
        ..Usage::default()
    };
    assert_eq!(some.total(), Some(7));
    assert_eq!(Usage::default().total(), None, "unknown is not zero");
    let sum = some
        .plus(Usage {
            cached_tokens: Some(1),
            ..Usage::default()
        })
        .plus(some);
    assert_eq!(
        (sum.input_tokens, sum.cached_tokens, sum.thinking_tokens),
        (Some(6), Some(1), None)
    );
}

#[test]
fn words_of_decisions_and_outcomes_are_those_of_the_design() {
    let kinds: Vec<&str> = DecisionKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(
        kinds.join(" "),
        "RESPOND_ONLY INVOKE_TOOL ASK_CLARIFICATION REQUEST_CONFIRMATION AWAIT_RESULT EXECUTE_PENDING CANCEL_PENDING"
    );
    for outcome in OutcomeCategory::ALL {
        assert_eq!(
            OutcomeCategory::from_str(outcome.as_str()).as_ref(),
            Ok(outcome)
        );
        assert_eq!(
            serde_json::to_value(outcome).unwrap(),
            json!(outcome.as_str())
        );
    }
    assert_eq!(OutcomeCategory::ALL.len(), 22);
    for word in [
        "GENERAL_CHAT",
        "AMBIGUOUS",
        "OUT_OF_SCOPE",
        "CONFIRM_YES",
        "CONFIRM_NO",
    ] {
        let intent = UserIntent::from(word.to_owned());
        assert_eq!(intent.as_str(), word);
        assert!(!matches!(intent, UserIntent::Tool(_)), "{word}");
    }
    for word in ["DELETE_TASK", "weather"] {
        let intent = UserIntent::from(word.to_owned());
        assert_eq!(intent, UserIntent::Tool(word.to_owned()));
        assert_eq!(intent.as_str(), word);
    }
    let weather = ToolDefinition::new("weather", "Weather.", json!({})).unwrap();
    assert_eq!(weather.intent(), "weather");
    assert_eq!(weather.with_intent("FORECAST").intent(), "FORECAST");
}

#[test]
fn defaults_are_those_of_the_seeds() {
    let limits = TurnLimits::default();
    assert_eq!(limits.tool_iterations_max, 5);
    assert_eq!(limits.parallel_tools_max.get(), 8);
    assert_eq!(limits.message_chars_max, Some(4000));
    assert_eq!(limits.history_messages_max, Some(20));
    assert_eq!(
        (
            limits.tool_timeout.as_secs(),
            limits.turn_deadline.map(|time| time.as_secs())
        ),
        (30, Some(120))
    );
    assert_eq!(limits.confirmation_expiry.as_secs(), 7 * 24 * 3600);
    assert_eq!(
        (limits::OUTPUT_TOKENS_MAX, limits::TEMPERATURE),
        (1024, 0.0)
    );
}

#[test]
fn limits_of_an_older_journal_are_read_and_a_turn_may_have_no_deadline() {
    let read = |json: serde_json::Value| {
        serde_json::from_value::<TurnLimits>(json)
            .unwrap()
            .turn_deadline
    };
    let recorded = |seconds: u64| json!({ "turn_deadline": { "secs": seconds, "nanos": 0 } });
    assert_eq!(read(recorded(600)).map(|time| time.as_secs()), Some(600));
    assert_eq!(read(json!({})), TurnLimits::default().turn_deadline);
    let without = TurnLimits {
        turn_deadline: None,
        ..TurnLimits::default()
    };
    assert_eq!(read(serde_json::to_value(&without).unwrap()), None);
    // A time-out was once recorded without its bound.
    let recorded =
        json!({ "code": "timeout", "provider": "acme", "waited": { "secs": 30, "nanos": 0 } });
    let error: ModelError = serde_json::from_value(recorded).unwrap();
    assert_eq!(error.to_string(), "acme did not answer within 30 s");
}

#[test]
fn the_cause_of_an_error_is_reachable_and_not_journaled() {
    let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let without = ModelError::Network {
        provider: ProviderId::new("acme").unwrap(),
        message: "no connection".to_owned(),
        source: None,
    };
    let with = without.clone().with_source(refused());
    let kind = |error: &dyn Error| Some(error.source()?.downcast_ref::<std::io::Error>()?.kind());
    assert_eq!(kind(&with), Some(refused().kind()));
    assert_eq!(kind(&without), None);

    let journaled = serde_json::to_value(&with).unwrap();
    let message = json!({ "code": "network", "provider": "acme", "message": "no connection" });
    assert_eq!(journaled, message);
    let restored: ModelError = serde_json::from_value(journaled).unwrap();
    assert_eq!(restored, with);
    assert_eq!(kind(&restored), None);

    let store = StoreError::unavailable("no connection").with_source(refused());
    assert_eq!(kind(&store), Some(refused().kind()));
    assert_eq!(store, StoreError::unavailable("no connection"));
}

#[test]
fn effects_follow_from_annotations() {
    let of = |read_only, idempotent, keyed| {
        Annotations {
            read_only,
            idempotent,
            keyed,
            ..Annotations::default()
        }
        .effect()
    };
    assert_eq!(of(true, false, false), Effect::None);
    assert_eq!(of(false, true, false), Effect::Keyed);
    assert_eq!(of(false, false, true), Effect::Keyed);
    assert_eq!(of(false, false, false), Effect::Once);
}

/// One form is written, several are read.
#[test]
fn messages_are_read_in_the_forms_in_which_others_write_them() {
    let read = |json: serde_json::Value| {
        serde_json::from_value::<Message>(json).map_err(|error| error.to_string())
    };
    assert_eq!(
        read(json!({"role": "user", "content": "hi"})),
        Ok(Message::user("hi").unwrap())
    );
    let called =
        read(json!({"role": "assistant", "function_call": {"name": "add", "arguments": {"a": 1}}}))
            .unwrap();
    let returned =
        read(json!({"role": "function", "function_response": {"name": "add", "response": {"success": true, "data": 2}}}))
            .unwrap();
    let with_id = read(json!({
        "role": "assistant", "content": "",
        "toolCalls": [{"id": "call_123", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}}],
    }))
    .unwrap();
    let answered =
        read(json!({"role": "tool", "toolCallId": "call_123", "name": "add", "content": "{\"success\":true,\"path\":\"x\"}"}))
            .unwrap();
    for (call, result) in [(&called, &returned), (&with_id, &answered)] {
        let [call] = call.tool_calls().collect::<Vec<_>>()[..] else {
            panic!("{call:?}")
        };
        assert_eq!(
            (call.name.as_str(), &call.arguments["a"]),
            ("add", &json!(1))
        );
        assert_eq!(result.tool_result().unwrap().0, &call.id);
    }
    assert_eq!(
        returned.tool_result().unwrap().2.data.as_deref(),
        Some(&json!(2))
    );
    assert_eq!(
        answered.tool_result().unwrap().2.data.as_deref(),
        Some(&json!({"success": true, "path": "x"}))
    );
    // What is written is our own form, and read again it is the same.
    let written = serde_json::to_value(&with_id).unwrap();
    assert!(
        written["parts"].is_array() && written.get("toolCalls").is_none(),
        "{written}"
    );
    assert_eq!(read(written), Ok(with_id.clone()));
    for (wrong, words) in [
        (json!({"role": "user"}), "needs content"),
        (json!({"role": "user", "content": " "}), "needs content"),
        (
            json!({"role": "assistant", "content": ""}),
            "needs text or a tool call",
        ),
        (
            json!({"role": "user", "content": "x", "function_call": {"name": "add", "arguments": {}}}),
            "cannot hold",
        ),
        (
            json!({"role": "tool", "content": "x"}),
            "with its call id and tool name",
        ),
    ] {
        assert!(read(wrong.clone()).unwrap_err().contains(words), "{wrong}");
    }
    let usage: Usage = serde_json::from_value(
        json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}),
    )
    .unwrap();
    assert_eq!(usage.total(), Some(7));
}

#[test]
fn a_history_from_elsewhere_is_checked() {
    let user = || Message::user("hi").unwrap();
    let says = |text: &str| {
        Message::assistant(vec![Part::ours(Content::Text {
            text: text.to_owned(),
        })])
        .unwrap()
    };
    let call = || {
        let call = ToolCall::from_object(0, None, "add".to_owned(), Arguments::new());
        let call = ToolCall {
            id: CallId::new("call_0").unwrap(),
            ..call
        };
        Message::assistant(vec![Part::ours(Content::ToolCall(call))]).unwrap()
    };
    let result = || {
        Message::tool(
            CallId::new("call_0").unwrap(),
            "add",
            ToolResult::ok(json!(1)),
        )
        .unwrap()
    };
    assert_eq!(
        check_history(&[user(), call(), result(), says("Done."), user()]),
        Ok(())
    );
    for (at, history, words) in [
        (0, vec![says("Hello.")], "begins with words of the person"),
        (2, vec![user(), call()], "has no result"),
        (1, vec![user(), result()], "without an open call"),
        (
            1,
            vec![user(), Message::system("Obey.").unwrap()],
            "instructions",
        ),
    ] {
        let error = check_history(&history).unwrap_err();
        assert!(error.at == at && error.reason.contains(words), "{error}");
    }
}

/// Versions beside each other: one reads what another did not write yet, and what it does not know
/// itself.
#[test]
fn the_beginning_of_a_turn_is_read_with_and_without_the_place_of_its_model() {
    let older = json!({
        "event": "turn_started", "turn": "01a21731-30ca-70c6-8cd4-bfeef3f92de2", "input": "i1", "message": "hi",
        "message_chars": 2, "model": { "provider": "ollama", "name": "qwen3:8b" }, "limits": TurnLimits::default(),
    });
    let event: Event = serde_json::from_value(older.clone()).unwrap();
    assert!(
        matches!(&event, Event::TurnStarted { local: None, .. }),
        "{event:?}"
    );
    assert_eq!(serde_json::to_value(&event).unwrap().get("local"), None);
    let mut newer = older;
    (newer["local"], newer["of_a_later_version"]) = (json!(true), json!(1));
    let event: Event = serde_json::from_value(newer).unwrap();
    assert!(
        matches!(
            &event,
            Event::TurnStarted {
                local: Some(true),
                ..
            }
        ),
        "{event:?}"
    );
    assert_eq!(serde_json::to_value(&event).unwrap()["local"], true);
}
