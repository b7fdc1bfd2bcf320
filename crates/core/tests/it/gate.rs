//! The gate and the registry: order of checks, words for the model, nothing executed.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use adjutant_core::*;
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

/// A tool that must never run here.
struct Remove(ToolDefinition);

impl Tool for Remove {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a ToolContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        panic!("the gate executes nothing")
    }

    fn prepare<'a>(
        &'a self,
        _: &'a ToolContext,
        mut arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        let prepared = match arguments.get("what").and_then(Value::as_str) {
            Some("it") => Prepared::Ask {
                question: "Which one?".to_owned(),
            },
            _ => {
                arguments.insert("what".to_owned(), json!("7"));
                Prepared::Ready {
                    arguments,
                    preview: Some("Remove “Milk”".to_owned()),
                }
            }
        };
        Box::pin(std::future::ready(Ok(prepared)))
    }
}

fn remove(destructive: bool) -> Remove {
    let schema = json!({
        "type": "object",
        "properties": {
            "what": {"type": "string"},
            "tag": {"type": "string", "minLength": 1},
            "of": {"type": "string", "enum": ["list", "note"]},
            "from": {"type": "array", "items": {"type": "string"}}
        },
        "required": ["what"],
        "additionalProperties": false
    });
    let definition = ToolDefinition::new("remove", "Removes.", schema).unwrap();
    Remove(definition.annotated(Annotations {
        destructive,
        ..Annotations::default()
    }))
}

fn gate(destructive: bool, policy: Policy) -> Gate {
    let mut registry = ToolRegistry::new();
    registry.register(Arc::new(remove(destructive))).unwrap();
    Gate { registry, policy }
}

/// Nothing here ever waits, so one poll is enough.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

pub(crate) fn check(
    gate: &Gate,
    name: &str,
    arguments: &str,
    denied: &[(String, Arguments)],
) -> GateVerdict {
    checked(gate, name, arguments, denied).verdict
}

pub(crate) fn checked(
    gate: &Gate,
    name: &str,
    arguments: &str,
    denied: &[(String, Arguments)],
) -> CheckedCall {
    let turn = TurnId(Uuid::from_u128(1));
    let call = ToolCall {
        id: CallId::new("call_1").unwrap(),
        ..ToolCall::from_json_text(0, None, name.to_owned(), arguments)
    };
    let context = ToolContext {
        agent: AgentName::adjutant(),
        user: UserId::local(),
        conversation: ConversationId(Uuid::nil()),
        turn,
        call: call.id.clone(),
        message: "".into(),
        from_others: false,
        key: IdempotencyKey::new("k").unwrap(),
        cancelled: CancellationToken::new(),
        trace: None,
        progress: ProgressListener::default(),
    };
    let circumstances = GateCheck {
        now: Timestamp::UNIX_EPOCH,
        confirmation_expiry: std::time::Duration::from_secs(60),
        denied,
        interrupted: &[],
        allowed_tools: None,
        provenance: None,
        client: &ClientTools::default(),
        choice: &ToolChoice::Auto,
    };
    now(gate.check(&context, &call, &circumstances))
}

fn refusal(verdict: GateVerdict) -> (Refusal, String) {
    match verdict {
        GateVerdict::Refuse { refusal, message } => (refusal, message),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn unknown_tools_are_told_with_the_nearest_name() {
    let (why, words) = refusal(check(&gate(true, Policy::default()), "remov_", "{}", &[]));
    assert_eq!(why, Refusal::UnknownTool);
    assert!(words.contains("did you mean \"remove\""), "{words}");
    assert_eq!(
        nearest("delet_task", ["add_task", "delete_task"].into_iter()),
        Some("delete_task")
    );
    assert_eq!(
        nearest("teleport", ["add_task", "list_tasks"].into_iter()),
        None
    );
}

#[test]
fn an_unknown_tool_is_answered_with_the_five_nearest_of_many() {
    let mut registry = ToolRegistry::new();
    let names = ["task", "note", "day", "fact", "file", "event", "link"];
    for name in names {
        for verb in ["add", "list", "delete"] {
            let tool = format!("{verb}_{name}");
            let definition = ToolDefinition::new(&tool, "x", json!({"type": "object"})).unwrap();
            registry.register(Arc::new(Remove(definition))).unwrap();
        }
    }
    let policy = Policy::default();
    let (why, words) = refusal(check(&Gate { registry, policy }, "Add_Taks", "{}", &[]));
    assert_eq!(why, Refusal::UnknownTool);
    assert!(
        words.contains("did you mean \"add_task\"? Tools: add_task, "),
        "{words}"
    );
    assert_eq!(words.matches('_').count(), 2 + 5, "{words}");
    assert!(words.ends_with("(the nearest of 21)"), "{words}");
}

#[test]
fn arguments_must_fit_before_anything_else_looks_at_them() {
    let gate = gate(true, Policy::default().rule("*", None, Permission::Deny));
    for (arguments, place) in [
        ("{}", "\"what\" is a required property"),
        (r#"{"what": true}"#, "/what"),
        (r#"{"what": "a", "user_id": "eve"}"#, "user_id"),
        (r#"{"what": "a"#, "EOF"),
        ("[1]", "expected a JSON object"),
    ] {
        let (why, words) = refusal(check(&gate, "remove", arguments, &[]));
        assert_eq!(why, Refusal::InvalidArguments, "{arguments}");
        assert!(words.contains(place), "{arguments}: {words}");
    }
}

#[test]
fn an_optional_text_that_is_empty_is_not_there() {
    let gate = gate(false, Policy::default());
    let arguments = r#"{"what": "milk", "tag": "", "of": " ", "from": [""]}"#;
    let GateVerdict::Run { arguments } = check(&gate, "remove", arguments, &[]) else {
        panic!()
    };
    assert_eq!(Value::Object(arguments), json!({"what": "7", "from": [""]}));
    let GateVerdict::Run { arguments } = check(&gate, "remove", r#"{"what": ""}"#, &[]) else {
        panic!()
    };
    assert_eq!(
        Value::Object(arguments),
        json!({"what": "7"}),
        "what is required stays as it is"
    );
}

#[test]
fn a_destructive_call_waits_with_resolved_arguments_and_a_digest() {
    let GateVerdict::Confirm { pending } = check(
        &gate(true, Policy::default()),
        "remove",
        r#"{"what":"milk"}"#,
        &[],
    ) else {
        panic!()
    };
    assert_eq!(pending.preview, "Remove “Milk”");
    assert_eq!(pending.arguments["what"], "7");
    assert_eq!(pending.expires_at.as_second(), 60);
    let expected = digest(
        TurnId(Uuid::from_u128(1)),
        &pending.call_id,
        "remove",
        &pending.arguments,
        &pending.preview,
    );
    assert_eq!(pending.digest, expected);
}

#[test]
fn unclear_references_become_a_question() {
    let verdict = check(
        &gate(true, Policy::default()),
        "remove",
        r#"{"what":"it"}"#,
        &[],
    );
    assert_eq!(
        verdict,
        GateVerdict::Ask {
            question: "Which one?".to_owned()
        }
    );
}

#[test]
fn the_last_rule_of_the_policy_wins() {
    let runs =
        |policy: Policy| match check(&gate(true, policy), "remove", r#"{"what":"milk"}"#, &[]) {
            GateVerdict::Run { .. } => "run",
            GateVerdict::Confirm { .. } => "confirm",
            GateVerdict::Refuse {
                refusal: Refusal::Forbidden,
                ..
            } => "forbidden",
            other => panic!("{other:?}"),
        };
    assert_eq!(runs(Policy::default()), "confirm");
    assert_eq!(
        runs(Policy::default().rule("remove", None, Permission::Allow)),
        "run"
    );
    assert_eq!(
        runs(
            Policy::default()
                .rule("remove", None, Permission::Allow)
                .rule("*", None, Permission::Deny)
        ),
        "forbidden"
    );
    let eve = UserId::new("eve").unwrap();
    assert_eq!(
        runs(Policy::default().rule("remove", Some(eve), Permission::Deny)),
        "confirm"
    );
    let harmless = check(
        &gate(false, Policy::default()),
        "remove",
        r#"{"what":"milk"}"#,
        &[],
    );
    assert!(matches!(harmless, GateVerdict::Run { .. }));
}

#[test]
fn a_denied_call_is_not_asked_again() {
    let denied = [(
        "remove".to_owned(),
        json!({"what": "7"}).as_object().cloned().unwrap(),
    )];
    let (why, _) = refusal(check(
        &gate(true, Policy::default()),
        "remove",
        r#"{"what":"milk"}"#,
        &denied,
    ));
    assert_eq!(why, Refusal::DeniedBefore);
}

#[test]
fn a_registry_takes_each_name_once_and_only_usable_schemas() {
    let mut registry = ToolRegistry::new();
    registry.register(Arc::new(remove(true))).unwrap();
    let twice = registry.register(Arc::new(remove(false))).unwrap_err();
    assert_eq!(
        twice,
        InvalidTool::Duplicate {
            name: "remove".to_owned()
        }
    );
    let mut with = |name: &str, schema: Value| {
        registry
            .register(Arc::new(Remove(
                ToolDefinition::new(name, "x", schema).unwrap(),
            )))
            .unwrap_err()
    };
    assert!(matches!(
        with("ask_user", json!({"type": "object"})),
        InvalidTool::Reserved { .. }
    ));
    assert!(matches!(
        with("a", json!({"type": "string"})),
        InvalidTool::Schema { .. }
    ));
    assert!(matches!(
        with("a", json!({"type": "object", "required": 3})),
        InvalidTool::Schema { .. }
    ));
    let remote = with(
        "a",
        json!({"type": "object", "$ref": "https://example.org/schema.json"}),
    );
    assert!(remote.to_string().contains("not fetched"), "{remote}");
    assert_eq!(
        registry
            .names()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["remove"]
    );
    assert_eq!(registry.descriptions(), "- `remove`: Removes.\n");
    assert_eq!(registry.definitions(Some(&["other"])).len(), 0);
}
