//! Data in, data out: what arrives on the left of a line, what the machine wants next on the right.

mod claims;
mod context;
mod failures;
mod history;
mod output;
mod waiting;
mod window;

use expect_test::{Expect, expect};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::confirmation::{Doubt, PendingCall};
use crate::decision::{DecisionKind, OutcomeCategory, TurnError, UserIntent};
use crate::error::TimeBound;
use crate::event::{Refusal, TurnEnd};
use crate::id::{ModelId, ProviderId, TurnId};
use crate::limits::TurnLimits;
use crate::model::{FinishReason, GenerateRequest, GenerationConfig, MaxTokens, SchemaSupport};
use crate::tool::{Annotations, MalformedArguments, ToolDefinition, ToolResult};

/// An arrival of the turn.
#[derive(Clone)]
enum In {
    /// The model says this.
    Says(&'static str),
    /// The model calls tools.
    Calls(Vec<(&'static str, Value)>),
    /// The model's reply ends for another reason.
    Reply(FinishReason, Vec<Content>),
    /// The model call fails.
    Fails(ModelError),
    /// The calls end like this, one for each.
    Ends(Vec<CallEnd>),
    /// The person stops it.
    Stop(StopReason),
}

fn provider() -> ProviderId {
    ProviderId::new("test").unwrap()
}

fn setup() -> TurnSetup {
    TurnSetup {
        turn: TurnId(uuid::Uuid::from_u128(7)),
        model: ModelId::new("test", "model").unwrap(),
        instruction: "Be brief.".to_owned(),
        recalled: TurnHistory::default(),
        call: None,
        message: "hello".to_owned(),
        message_chars: 5,
        sent_at: None,
        recalled_texts: Vec::new(),
        control_functions: true,
        reports_failed_calls: true,
        claims_change: None,
        tools: vec![
            ToolDefinition::new("add", "Adds.", json!({"type": "object"})).unwrap(),
            ToolDefinition::new("add_task", "Adds.", json!({"type": "object"}))
                .unwrap()
                .with_intent("CREATE_TASK"),
        ]
        .into(),
        choice: ToolChoice::Auto,
        context: String::new(),
        config: GenerationConfig::default(),
        limits: TurnLimits::default(),
        style: ToolStyle::Native,
        output: None,
        schema_support: SchemaSupport::Native,
    }
}

fn reply(finish: FinishReason, contents: Vec<Content>) -> GenerateResponse {
    GenerateResponse {
        parts: contents.into_iter().map(Part::ours).collect(),
        finish,
        usage: Usage {
            input_tokens: Some(10),
            output_tokens: Some(2),
            ..Usage::default()
        },
        model: ModelId::new("test", "model").unwrap(),
        counters: crate::Counters::default(),
        cost: None,
        losses: Vec::new(),
        certainty: None,
    }
}

fn calls(calls: &[(&str, Value)]) -> Vec<Content> {
    calls
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| {
            let arguments = arguments.as_object().cloned().unwrap_or_default();
            Content::ToolCall(ToolCall::from_object(
                index,
                None,
                (*name).to_owned(),
                arguments,
            ))
        })
        .collect()
}

fn text(text: &str) -> Content {
    Content::Text {
        text: text.to_owned(),
    }
}

fn ran(data: Value, summary: &str) -> CallEnd {
    CallEnd::Executed {
        arguments: Arguments::new(),
        result: ToolResult::ok(data),
        summary: Some(summary.to_owned()),
    }
}

fn broke(error: &str) -> CallEnd {
    CallEnd::Executed {
        arguments: Arguments::new(),
        result: ToolResult::failed(error),
        summary: None,
    }
}

fn waits(preview: &str) -> CallEnd {
    CallEnd::Waiting(PendingCall {
        call_id: CallId::provisional(0),
        tool: "delete".to_owned(),
        arguments: Arguments::new(),
        preview: preview.to_owned(),
        digest: "d".to_owned(),
        definition: None,
        intent: None,
        requested_at: Timestamp::UNIX_EPOCH,
        expires_at: Timestamp::MAX,
        doubt: None,
        awaits: None,
        for_conversation: false,
        always: false,
    })
}

fn show(action: &Action) -> String {
    match action {
        Action::CallModel(request) => {
            let last = request.messages.last().map(|message| {
                let result = message
                    .tool_result()
                    .map(|(_, name, result)| format!("{name} {}", result.to_json()));
                result.unwrap_or_else(|| message.text())
            });
            format!(
                "call model ({} messages, last: {})",
                request.messages.len(),
                last.unwrap_or_default()
            )
        }
        Action::CallTools(calls) => {
            let calls: Vec<String> = calls
                .iter()
                .map(|call| format!("{}{}", call.name, Value::Object(call.arguments.clone())))
                .collect();
            format!("call tools: {}", calls.join(", "))
        }
        Action::AskUser { content, .. } => format!("ask user: {content}"),
        Action::Finish(end) => {
            let error = end
                .error
                .as_ref()
                .map(|error| format!(" [{}]", error.code()))
                .unwrap_or_default();
            format!(
                "finish {} {} {}{error}: {}",
                end.decision.kind,
                end.decision.intent.as_str(),
                end.outcome,
                end.decision.text
            )
        }
    }
}

fn run(mut turn: Turn, inputs: &[In]) -> (Vec<String>, Option<TurnEnd>) {
    let mut action = turn.start().unwrap();
    let mut trace = vec![show(&action)];
    let mut open: Vec<CallId> = Vec::new();
    for input in inputs {
        if let Action::CallTools(calls) = &action {
            open = calls.iter().map(|call| call.id.clone()).collect();
        }
        action = match input.clone() {
            In::Says(words) => {
                turn.on_model_result(Ok(reply(FinishReason::Stop, vec![text(words)])))
            }
            In::Calls(wanted) => {
                turn.on_model_result(Ok(reply(FinishReason::ToolCalls, calls(&wanted))))
            }
            In::Reply(finish, contents) => turn.on_model_result(Ok(reply(finish, contents))),
            In::Fails(error) => turn.on_model_result(Err(error)),
            In::Ends(ends) => turn.on_call_ends(open.iter().cloned().zip(ends).collect()),
            In::Stop(reason) => Ok(turn.stop(reason, Vec::new())),
        }
        .unwrap();
        trace.push(show(&action));
    }
    let end = if let Action::Finish(end) = action {
        Some(*end)
    } else {
        None
    };
    if let Some(end) = &end {
        crate::message::check_pairing(&end.messages).unwrap();
        assert!(
            !end.decision.text.trim().is_empty(),
            "a turn never ends without words"
        );
    }
    (trace, end)
}

fn check(inputs: &[In], expected: Expect) {
    check_with(setup(), inputs, expected);
}

fn check_with(setup: TurnSetup, inputs: &[In], expected: Expect) {
    let (trace, _) = run(Turn::new(setup).unwrap(), inputs);
    expected.assert_eq(&(trace.join("\n") + "\n"));
}

#[test]
fn words_are_the_answer() {
    check(
        &[In::Says("Hi.")],
        expect![[r#"
        call model (2 messages, last: hello)
        finish RESPOND_ONLY GENERAL_CHAT SUCCESS:RESPONSE_GIVEN: Hi.
    "#]],
    );
}

#[test]
fn a_reply_that_is_one_question_is_a_clarification() {
    check(
        &[In::Says("Which task do you mean?")],
        expect![[r#"
        call model (2 messages, last: hello)
        finish ASK_CLARIFICATION AMBIGUOUS AMBIGUITY:UNCLEAR_INTENT: Which task do you mean?
    "#]],
    );
}

#[test]
fn a_tool_runs_and_the_model_sees_its_result() {
    check(
        &[
            In::Calls(vec![("add_task", json!({"d": 1}))]),
            In::Ends(vec![ran(json!(5), "Added.")]),
            In::Says("Done!"),
        ],
        expect![[r#"
            call model (2 messages, last: hello)
            call tools: add_task{"d":1}
            call model (4 messages, last: add_task {"success":true,"data":5})
            finish INVOKE_TOOL CREATE_TASK SUCCESS:TASK_COMPLETED: Done!
        "#]],
    );
}

#[test]
fn the_fifth_round_is_executed_and_the_sixth_call_never_made() {
    let mut inputs = Vec::new();
    for round in 0..5 {
        inputs.push(In::Calls(vec![("add", json!({ "round": round }))]));
        inputs.push(In::Ends(vec![ran(json!(round), "Added one.")]));
    }
    let (trace, end) = run(Turn::new(setup()).unwrap(), &inputs);
    assert_eq!(
        trace
            .iter()
            .filter(|line| line.starts_with("call model"))
            .count(),
        5
    );
    let end = end.unwrap();
    assert_eq!(
        (end.iterations, end.outcome),
        (5, OutcomeCategory::IterationsLimit)
    );
    assert!(end.decision.text.contains("too complex") && end.decision.text.contains("Added one."));
    assert_eq!(end.tools_used.len(), 5);
    assert_eq!(end.error.unwrap().to_string(), "tool iterations reached: 5");
}

#[test]
fn the_same_call_a_fourth_time_ends_the_turn() {
    let round = [
        In::Calls(vec![("add", json!({"b": 1, "a": 2}))]),
        In::Ends(vec![ran(json!(1), "One.")]),
    ];
    let mut inputs: Vec<In> = round.iter().cycle().take(6).cloned().collect();
    // Other order of keys, same call.
    inputs.push(In::Calls(vec![("add", json!({"a": 2, "b": 1}))]));
    let (_, end) = run(Turn::new(setup()).unwrap(), &inputs);
    let end = end.unwrap();
    assert_eq!(end.outcome, OutcomeCategory::IdenticalCallsLimit);
    assert_eq!(end.tools_used.len(), 3, "the fourth was not run");
}

#[test]
fn refusals_of_the_gate_go_back_to_the_model() {
    let refused = CallEnd::Refused {
        refusal: Refusal::UnknownTool,
        message: "no such tool".to_owned(),
    };
    check(
        &[
            In::Calls(vec![("ad", json!({}))]),
            In::Ends(vec![refused]),
            In::Says("Sorry."),
        ],
        expect![[r#"
        call model (2 messages, last: hello)
        call tools: ad{}
        call model (4 messages, last: ad {"success":false,"error":"no such tool"})
        finish RESPOND_ONLY GENERAL_CHAT ERROR:TOOL_FAILURE [tool_failure]: Ad: this is nothing that I can do here, so it was not carried out.
    "#]],
    );
}

#[test]
fn a_failed_tool_is_said_even_if_the_model_calls_it_a_success() {
    check(
        &[
            In::Calls(vec![("add", json!({}))]),
            In::Ends(vec![broke("the disk is full")]),
            In::Says("All done!"),
        ],
        expect![[r#"
            call model (2 messages, last: hello)
            call tools: add{}
            call model (4 messages, last: add {"success":false,"error":"the disk is full"})
            finish INVOKE_TOOL add ERROR:TOOL_FAILURE [tool_failure]: the disk is full
        "#]],
    );
}

/// A tool that only reads.
fn look() -> ToolDefinition {
    let read_only = Annotations {
        read_only: true,
        ..Annotations::default()
    };
    ToolDefinition::new("look", "Looks.", json!({"type": "object"}))
        .unwrap()
        .annotated(read_only)
}

#[test]
fn what_was_done_weighs_more_than_a_question_behind_it() {
    let mut setup = setup();
    setup.tools = setup.tools.with([look()]);
    let unknown = || CallEnd::Refused {
        refusal: Refusal::UnknownTool,
        message: "no such tool".to_owned(),
    };
    let (which, offer) = (
        "You have two. Which one do you mean?",
        "You have one. Shall I remove it?",
    );
    let decline = "I'm sorry, I can't send e-mails.";
    for (tool, end, words, outcome) in [
        (
            "add",
            ran(json!(1), "Added."),
            which,
            OutcomeCategory::TaskCompleted,
        ),
        (
            "add",
            broke("the disk is full"),
            which,
            OutcomeCategory::ToolFailure,
        ),
        (
            "add",
            ran(json!(1), "Added."),
            decline,
            OutcomeCategory::TaskCompleted,
        ),
        (
            "look",
            ran(json!(1), "Two."),
            which,
            OutcomeCategory::UnclearIntent,
        ),
        (
            "look",
            ran(json!(1), "One."),
            offer,
            OutcomeCategory::TaskCompleted,
        ),
        (
            "look",
            ran(json!(1), "None."),
            decline,
            OutcomeCategory::OutOfScope,
        ),
        ("send", unknown(), decline, OutcomeCategory::OutOfScope),
        ("send", unknown(), which, OutcomeCategory::UnclearIntent),
    ] {
        let arrivals = [
            In::Calls(vec![(tool, json!({}))]),
            In::Ends(vec![end]),
            In::Says(words),
        ];
        let (_, end) = run(Turn::new(setup.clone()).unwrap(), &arrivals);
        let end = end.unwrap();
        assert_eq!(end.outcome, outcome, "{tool}: {words}");
        assert!(
            end.decision.text.starts_with(words),
            "{tool}: {}",
            end.decision.text
        );
    }
}

#[test]
fn control_functions_can_be_left_out() {
    let offered = |control_functions| {
        let turn = Turn::new(TurnSetup {
            control_functions,
            ..setup()
        })
        .unwrap();
        turn.request()
            .tools
            .iter()
            .map(|tool| tool.name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(offered(true), ["add", "add_task", ASK_USER, DECLINE]);
    assert_eq!(offered(false), ["add", "add_task"]);
}

#[test]
fn a_refused_call_is_no_success_whatever_the_model_says() {
    for (refusal, message, shown) in [
        (
            Refusal::InvalidArguments,
            "/description: is blank",
            "Add: this was not carried out, because the details for it were missing or wrong.",
        ),
        (
            Refusal::UnknownTool,
            "no such tool",
            "Add: this is nothing that I can do here, so it was not carried out.",
        ),
        (
            Refusal::Failed,
            "The task list did not answer.",
            "The task list did not answer.",
        ),
        (Refusal::Forbidden, "not allowed", words::NOT_ALLOWED),
    ] {
        let refused = CallEnd::Refused {
            refusal,
            message: message.to_owned(),
        };
        let lie = "I added “buy milk” to your list!";
        let arrivals = [
            In::Calls(vec![("add", json!({}))]),
            In::Ends(vec![refused]),
            In::Says(lie),
        ];
        let (_, end) = run(Turn::new(setup()).unwrap(), &arrivals);
        let end = end.unwrap();
        assert_eq!(end.outcome, OutcomeCategory::ToolFailure, "{refusal:?}");
        assert_eq!(end.decision.text, shown, "{refusal:?}");
        let error = Some(TurnError::Tool {
            tool: "add".to_owned(),
            message: message.to_owned(),
        });
        assert_eq!(end.error, error, "{refusal:?}");
    }
}

/// A change that failed is made good by the same tool only, and not in the same round; reading
/// makes nothing good.
#[test]
fn another_call_does_not_stand_in_for_a_change_that_failed() {
    let failed_calls = |arrivals: &[In]| {
        let tool =
            |name: &str| ToolDefinition::new(name, "Works.", json!({"type": "object"})).unwrap();
        let read_only = crate::tool::Annotations {
            read_only: true,
            ..Default::default()
        };
        let tools = vec![tool("add"), tool("drop"), tool("list").annotated(read_only)];
        run(
            Turn::new(TurnSetup {
                tools: tools.into(),
                ..setup()
            })
            .unwrap(),
            arrivals,
        )
        .1
        .unwrap()
        .failed_calls
        .len()
    };
    let call = |name: &'static str| In::Calls(vec![(name, json!({}))]);
    let (failed, worked) = (
        || In::Ends(vec![broke("busy")]),
        || In::Ends(vec![ran(json!(1), "Did it.")]),
    );
    let ends = [
        (["add", "add"], 0),
        (["add", "list"], 1),
        (["add", "drop"], 1),
        (["list", "add"], 0),
    ];
    for ([fails, works], expected) in ends {
        let got = failed_calls(&[
            call(fails),
            failed(),
            call(works),
            worked(),
            In::Says("Done."),
        ]);
        assert_eq!(got, expected, "{fails}, then {works}");
    }
    let both = In::Calls(vec![("add", json!({"n": 1})), ("add", json!({"n": 2}))]);
    let got = failed_calls(&[
        both,
        In::Ends(vec![broke("busy"), ran(json!(2), "Did it.")]),
        In::Says("Done."),
    ]);
    assert_eq!(got, 1, "the other one of the same round");
}

#[test]
fn a_success_after_a_failure_is_a_success() {
    let (_, end) = run(
        Turn::new(setup()).unwrap(),
        &[
            In::Calls(vec![("add", json!({}))]),
            In::Ends(vec![broke("busy")]),
            In::Calls(vec![("add", json!({}))]),
            In::Ends(vec![ran(json!(1), "Added.")]),
            In::Says("Done."),
        ],
    );
    let end = end.unwrap();
    assert_eq!(
        (end.outcome, end.error),
        (OutcomeCategory::TaskCompleted, None)
    );
}

#[test]
fn a_question_of_the_gate_ends_the_turn() {
    let asked = CallEnd::Asked {
        question: "Which one?".to_owned(),
    };
    check(
        &[
            In::Calls(vec![("delete", json!({}))]),
            In::Ends(vec![asked]),
        ],
        expect![[r#"
        call model (2 messages, last: hello)
        call tools: delete{}
        finish ASK_CLARIFICATION AMBIGUOUS AMBIGUITY:UNCLEAR_INTENT: Which one?
    "#]],
    );
}

#[test]
fn control_functions_end_the_turn_after_the_calls_beside_them() {
    check(
        &[In::Calls(vec![(
            ASK_USER,
            json!({"question": "Which list?"}),
        )])],
        expect![[r#"
        call model (2 messages, last: hello)
        finish ASK_CLARIFICATION AMBIGUOUS AMBIGUITY:UNCLEAR_INTENT: Which list?
    "#]],
    );
    check(
        &[In::Calls(vec![(
            DECLINE,
            json!({"message": "I only keep tasks."}),
        )])],
        expect![[r#"
        call model (2 messages, last: hello)
        finish RESPOND_ONLY OUT_OF_SCOPE REFUSAL:OUT_OF_SCOPE: I only keep tasks.
    "#]],
    );
    check(
        &[
            In::Calls(vec![
                ("add", json!({})),
                (ASK_USER, json!({"question": "And when?"})),
            ]),
            In::Ends(vec![ran(json!(1), "Added.")]),
        ],
        expect![[r#"
            call model (2 messages, last: hello)
            call tools: add{}
            finish ASK_CLARIFICATION AMBIGUOUS AMBIGUITY:UNCLEAR_INTENT: Added.
            And when?
        "#]],
    );
}

#[test]
fn a_weak_model_gets_one_round_and_the_tools_speak() {
    let weak = TurnSetup {
        style: ToolStyle::OneRound,
        ..setup()
    };
    check_with(
        weak,
        &[
            In::Calls(vec![("add_task", json!({})), ("list_tasks", json!({}))]),
            In::Ends(vec![
                ran(json!(1), "Added “Milk”."),
                ran(json!([]), "Your tasks:\n  1. Milk"),
            ]),
        ],
        expect![[r#"
            call model (2 messages, last: hello)
            call tools: add_task{}, list_tasks{}
            finish INVOKE_TOOL CREATE_TASK SUCCESS:TASK_COMPLETED: Added “Milk”.
            Your tasks:
              1. Milk
        "#]],
    );
}

#[test]
fn a_cut_message_is_announced_to_both() {
    let cut = TurnSetup {
        message: "abc".to_owned(),
        message_chars: 9,
        ..setup()
    };
    let (trace, end) = run(Turn::new(cut).unwrap(), &[In::Says("Hi.")]);
    assert!(trace[0].contains("3 of 9 characters"), "{}", trace[0]);
    assert_eq!(end.unwrap().notices[0].code, "message_cut");
}

#[test]
fn requests_of_one_turn_share_their_prefix_and_call_ids_are_ours() {
    let mut turn = Turn::new(setup()).unwrap();
    let Action::CallModel(first) = turn.start().unwrap() else {
        panic!()
    };
    let mut parts = calls(&[("add", json!({})), ("add", json!({"x": 1}))]);
    if let Content::ToolCall(call) = &mut parts[0] {
        call.provider_id = Some("theirs".to_owned());
    }
    let Action::CallTools(called) = turn
        .on_model_result(Ok(reply(FinishReason::ToolCalls, parts)))
        .unwrap()
    else {
        panic!()
    };
    assert_ne!(called[0].id, called[1].id);
    assert_eq!(called[0].provider_id.as_deref(), Some("theirs"));
    assert!(called.iter().all(|call| call.id.as_str().len() <= 40));
    let ends = called
        .iter()
        .map(|call| (call.id.clone(), ran(json!(1), "")))
        .collect();
    let Action::CallModel(second) = turn.on_call_ends(ends).unwrap() else {
        panic!()
    };
    assert_eq!(second.messages[..first.messages.len()], first.messages[..]);
    assert_eq!(second.tools, first.tools);
}

/// A question, a call for it and its result of so many characters.
fn reading(n: u32, chars: usize) -> Vec<Message> {
    let id = CallId::new(format!("call_{n}")).unwrap();
    let call = ToolCall {
        id: id.clone(),
        ..ToolCall::from_object(0, None, "read".to_owned(), Arguments::new())
    };
    vec![
        Message::user(format!("read {n}")).unwrap(),
        Message::assistant(vec![Part::ours(Content::ToolCall(call))]).unwrap(),
        Message::tool(id, "read", ToolResult::ok(json!("x".repeat(chars)))).unwrap(),
    ]
}

fn capacity(window: u32, reserve: u32, own: usize) -> WindowCapacity {
    WindowCapacity::new(window, reserve, Calibration::default()).for_turn(None, own)
}

fn parted(fitted: Fitted) -> (GenerateRequest, Vec<Notice>) {
    (fitted.request, fitted.notices)
}

fn codes(notices: &[Notice]) -> Vec<&str> {
    notices.iter().map(|notice| notice.code.as_str()).collect()
}
