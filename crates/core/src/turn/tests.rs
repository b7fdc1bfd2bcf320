//! Data in, data out: what arrives on the left of a line, what the machine wants next on the right.

mod context;
mod output;

use expect_test::{Expect, expect};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::confirmation::Doubt;
use crate::error::TimeBound;
use crate::id::{ModelId, ProviderId, TurnId};
use crate::limits::TurnLimits;
use crate::model::{FinishReason, GenerationConfig, MaxTokens, SchemaSupport};
use crate::tool::{Annotations, MalformedArguments, ToolDefinition};

/// What arrives.
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
        recalled: Recalled::default(),
        call: None,
        message: "hello".to_owned(),
        message_chars: 5,
        told: Vec::new(),
        control_functions: true,
        tools: vec![ToolDefinition::new("add", "Adds.", json!({"type": "object"})).unwrap()].into(),
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
        requested_at: Timestamp::UNIX_EPOCH,
        expires_at: Timestamp::MAX,
        doubt: None,
        awaits: None,
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
    assert_eq!(
        end.error.unwrap().to_string(),
        "tool iterations reached: 5 (set agent.max_tool_iterations, or MAX_TOOL_ITERATIONS)"
    );
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
        finish RESPOND_ONLY GENERAL_CHAT ERROR:TOOL_FAILURE [tool_failure]: Sorry.
        (One step did not work and was not carried out.)
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
            finish INVOKE_TOOL add ERROR:TOOL_FAILURE [tool_failure]: All done!
            the disk is full
        "#]],
    );
}

#[test]
fn what_was_done_weighs_more_than_a_question_behind_it() {
    let read_only = Annotations {
        read_only: true,
        ..Annotations::default()
    };
    let look = ToolDefinition::new("look", "Looks.", json!({"type": "object"}))
        .unwrap()
        .annotated(read_only);
    let mut setup = setup();
    setup.tools = setup.tools.with([look]);
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
fn a_call_in_the_text_that_nobody_could_read_is_asked_for_again() {
    check(
        &[
            In::Says("<tool_call>\n{\"name\": \"add\", \"arguments\": {"),
            In::Says("add(1)"),
        ],
        expect![[r#"
            call model (2 messages, last: hello)
            call model (3 messages, last: [Your last call could not be read. Make it again.])
            finish RESPOND_ONLY GENERAL_CHAT ERROR:LLM_FAILURE [invalid_response]: I had trouble processing that. Please try again, perhaps in other words.
        "#]],
    );
    // Talked about, in a fence, or of no tool there is: an answer.
    for words in [
        "Write `add(1)` for that.",
        "Like this:\n```\n<tool_call>\n```\nThat is all.",
        "sub(1)",
        "{\"name\": \"Ada\"}",
    ] {
        let (_, end) = run(Turn::new(setup()).unwrap(), &[In::Says(words)]);
        assert_eq!(
            end.unwrap().outcome,
            OutcomeCategory::ResponseGiven,
            "{words}"
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
    assert_eq!(offered(true), ["add", ASK_USER, DECLINE]);
    assert_eq!(offered(false), ["add"]);
}

/// A call that cannot be read is no limit of the person's: it is an answer that cannot be read.
#[test]
fn the_same_unreadable_call_again_and_again_is_an_unreadable_answer() {
    let unreadable = || {
        let call = ToolCall {
            malformed: Some(MalformedArguments {
                text: r#"{"half": "#.to_owned(),
                reason: "line 1".to_owned(),
            }),
            ..ToolCall::from_object(0, None, "add".to_owned(), Arguments::new())
        };
        In::Reply(FinishReason::ToolCalls, vec![Content::ToolCall(call)])
    };
    let refused = || {
        In::Ends(vec![CallEnd::Refused {
            refusal: Refusal::InvalidArguments,
            message: "not JSON".to_owned(),
        }])
    };
    let arrivals = [
        unreadable(),
        refused(),
        unreadable(),
        refused(),
        unreadable(),
        refused(),
        unreadable(),
    ];
    let end = run(Turn::new(setup()).unwrap(), &arrivals).1.unwrap();
    assert_eq!(end.outcome, OutcomeCategory::LlmFailure);
    assert!(
        end.decision.text.contains(words::TROUBLE_PROCESSING),
        "{}",
        end.decision.text
    );
    let Some(TurnError::Model { error }) = end.error else {
        panic!("{:?}", end.error)
    };
    assert_eq!(error.raw(), Some(r#"{"half": "#));
}

#[test]
fn a_refused_call_is_no_success_whatever_the_model_says() {
    for (refusal, message, told) in [
        (
            Refusal::InvalidArguments,
            "/description: is blank",
            words::CALL_NOT_DONE,
        ),
        (Refusal::UnknownTool, "no such tool", words::CALL_NOT_DONE),
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
        assert_eq!(end.decision.text, format!("{lie}\n{told}"), "{refusal:?}");
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
    let outcome = |arrivals: &[In]| {
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
        .outcome
    };
    let call = |name: &'static str| In::Calls(vec![(name, json!({}))]);
    let (failed, worked) = (
        || In::Ends(vec![broke("busy")]),
        || In::Ends(vec![ran(json!(1), "Did it.")]),
    );
    let ends = [
        (["add", "add"], OutcomeCategory::TaskCompleted),
        (["add", "list"], OutcomeCategory::ToolFailure),
        (["add", "drop"], OutcomeCategory::ToolFailure),
        (["list", "add"], OutcomeCategory::TaskCompleted),
    ];
    for ([fails, works], expected) in ends {
        let got = outcome(&[
            call(fails),
            failed(),
            call(works),
            worked(),
            In::Says("Done."),
        ]);
        assert_eq!(got, expected, "{fails}, then {works}");
    }
    let both = In::Calls(vec![("add", json!({"n": 1})), ("add", json!({"n": 2}))]);
    let got = outcome(&[
        both,
        In::Ends(vec![broke("busy"), ran(json!(2), "Did it.")]),
        In::Says("Done."),
    ]);
    assert_eq!(
        got,
        OutcomeCategory::ToolFailure,
        "the other one of the same round"
    );
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
fn a_waiting_call_parks_the_turn_and_the_answer_goes_on() {
    let inputs = [
        In::Calls(vec![("done", json!({})), ("delete_task", json!({}))]),
        In::Ends(vec![ran(json!(1), "Completed “A”."), waits("Delete “B”")]),
    ];
    check(
        &inputs,
        expect![[r#"
        call model (2 messages, last: hello)
        call tools: done{}, delete_task{}
        ask user: Completed “A”.
        Delete “B”? Please answer yes or no.
    "#]],
    );
    let answer = |end: CallEnd| {
        let mut all = inputs.to_vec();
        all.extend([
            In::Ends(vec![ran(json!(1), "Completed “A”."), end]),
            In::Says("Okay."),
        ]);
        run(Turn::new(setup()).unwrap(), &all).1.unwrap()
    };
    let approved = answer(ran(json!(2), "Deleted “B”."));
    assert_eq!(approved.decision.kind, DecisionKind::ExecutePending);
    assert_eq!(approved.decision.intent, UserIntent::ConfirmYes);
    assert_eq!(approved.outcome, OutcomeCategory::TaskCompleted);
    let denied = answer(CallEnd::Denied {
        arguments: Arguments::new(),
    });
    assert_eq!(denied.decision.kind, DecisionKind::CancelPending);
    assert_eq!(denied.tools_used.len(), 2, "a denied call is in tools_used");
}

#[test]
fn only_a_denial_is_a_refusal_and_only_an_expiry_an_expiry() {
    for (end, outcome) in [
        (
            CallEnd::Denied {
                arguments: Arguments::new(),
            },
            OutcomeCategory::ConfirmationDenied,
        ),
        (
            CallEnd::Expired {
                arguments: Arguments::new(),
            },
            OutcomeCategory::ConfirmationExpired,
        ),
    ] {
        let (_, end) = run(
            Turn::new(setup()).unwrap(),
            &[
                In::Calls(vec![("delete", json!({}))]),
                In::Ends(vec![waits("Delete “B”")]),
                In::Ends(vec![end]),
                In::Says("Okay."),
            ],
        );
        let end = end.unwrap();
        assert_eq!(
            (end.decision.kind, end.outcome),
            (DecisionKind::CancelPending, outcome)
        );
    }
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
fn an_unusable_answer_is_asked_for_once_more_then_typed() {
    let empty = || In::Reply(FinishReason::Stop, vec![]);
    let thinking = || {
        In::Reply(
            FinishReason::Stop,
            vec![Content::Thinking {
                text: "hm".to_owned(),
            }],
        )
    };
    check(
        &[empty(), In::Says("Hi.")],
        expect![[r#"
        call model (2 messages, last: hello)
        call model (3 messages, last: [Your last answer was empty. Answer the person, or call a tool.])
        finish RESPOND_ONLY GENERAL_CHAT SUCCESS:RESPONSE_GIVEN: Hi.
    "#]],
    );
    check(
        &[empty(), thinking()],
        expect![[r#"
        call model (2 messages, last: hello)
        call model (3 messages, last: [Your last answer was empty. Answer the person, or call a tool.])
        finish RESPOND_ONLY GENERAL_CHAT ERROR:LLM_FAILURE [invalid_response]: I had trouble processing that. Please try again, perhaps in other words.
    "#]],
    );
    check(
        &[
            In::Reply(FinishReason::MalformedCall, vec![]),
            In::Says("Hi."),
        ],
        expect![[r#"
        call model (2 messages, last: hello)
        call model (3 messages, last: [Your last call could not be read. Make it again.])
        finish RESPOND_ONLY GENERAL_CHAT SUCCESS:RESPONSE_GIVEN: Hi.
    "#]],
    );
}

#[test]
fn a_cut_inside_a_call_is_never_executed_and_a_cut_text_survives() {
    let cut_call = || {
        In::Reply(
            FinishReason::MaxTokens,
            calls(&[("add", json!({"d": "half"}))]),
        )
    };
    let (trace, end) = run(Turn::new(setup()).unwrap(), &[cut_call(), cut_call()]);
    assert!(trace.iter().all(|line| !line.starts_with("call tools")));
    assert_eq!(end.unwrap().outcome, OutcomeCategory::MaxTokensLimit);

    let cut_thought = || In::Reply(FinishReason::MaxTokens, vec![]);
    let (_, end) = run(Turn::new(setup()).unwrap(), &[cut_thought(), cut_thought()]);
    assert_eq!(end.unwrap().outcome, OutcomeCategory::MaxTokensLimit);

    let mut small = setup();
    small.config.max_tokens = Some(MaxTokens::new(7).unwrap());
    let cut_text = In::Reply(FinishReason::MaxTokens, vec![text("Once upon")]);
    let (_, end) = run(Turn::new(small).unwrap(), &[cut_text]);
    let end = end.unwrap();
    assert_eq!(
        (end.decision.text.as_str(), end.outcome),
        ("Once upon", OutcomeCategory::MaxTokensLimit)
    );
    assert_eq!(
        end.notices[0].text,
        "The answer was cut at the limit of 7 tokens."
    );
}

#[test]
fn filters_and_refusals_are_typed() {
    check(
        &[In::Reply(
            FinishReason::ContentFilter,
            vec![text("partial")],
        )],
        expect![[r#"
        call model (2 messages, last: hello)
        finish RESPOND_ONLY GENERAL_CHAT REFUSAL:CONTENT_FILTER [refused]: I can't help with that request.
    "#]],
    );
    check(
        &[In::Reply(
            FinishReason::Stop,
            vec![Content::Refusal {
                text: "no".to_owned(),
            }],
        )],
        expect![[r#"
        call model (2 messages, last: hello)
        finish RESPOND_ONLY GENERAL_CHAT REFUSAL:CONTENT_FILTER [refused]: I can't help with that request.
    "#]],
    );
}

#[test]
fn each_model_error_has_its_outcome_and_words() {
    let wait = std::time::Duration::from_secs(3);
    let message = String::new;
    let table = [
        (
            ModelError::RateLimited {
                provider: provider(),
                retry_after: Some(wait),
            },
            "REFUSAL:RATE_LIMITED",
            "too many requests",
        ),
        (
            ModelError::Quota {
                provider: provider(),
                message: message(),
            },
            "REFUSAL:RATE_LIMITED",
            "too many requests",
        ),
        (
            ModelError::Timeout {
                provider: provider(),
                waited: wait,
                bound: TimeBound::Silence,
            },
            "ERROR:LLM_FAILURE",
            "temporarily unavailable",
        ),
        (
            ModelError::Network {
                provider: provider(),
                message: message(),
            },
            "ERROR:LLM_FAILURE",
            "temporarily unavailable",
        ),
        (
            ModelError::Server {
                provider: provider(),
                status: 503,
                message: message(),
                retry_after: None,
            },
            "ERROR:LLM_FAILURE",
            "temporarily unavailable",
        ),
        (
            ModelError::Authentication {
                provider: provider(),
                message: message(),
            },
            "ERROR:LLM_FAILURE",
            "not set up",
        ),
        (
            ModelError::BadRequest {
                provider: provider(),
                message: message(),
            },
            "ERROR:LLM_FAILURE",
            "not set up",
        ),
        (
            ModelError::NotFound {
                provider: provider(),
                model: message(),
                message: message(),
            },
            "ERROR:LLM_FAILURE",
            "not set up",
        ),
        (
            ModelError::InvalidResponse {
                provider: provider(),
                reason: message(),
                raw: message(),
            },
            "ERROR:LLM_FAILURE",
            "trouble processing",
        ),
        (
            ModelError::Truncated {
                provider: provider(),
                reason: message(),
            },
            "ERROR:LLM_FAILURE",
            "trouble processing",
        ),
        (
            ModelError::ContextTooLong {
                provider: provider(),
                message: message(),
            },
            "LIMIT:CONTEXT",
            "too long",
        ),
        (
            ModelError::Refused {
                provider: provider(),
                message: message(),
            },
            "REFUSAL:CONTENT_FILTER",
            "can't help",
        ),
    ];
    for (error, outcome, words) in table {
        // What was too long is sent once more, with less.
        let too_long = matches!(error, ModelError::ContextTooLong { .. });
        let fails = vec![In::Fails(error.clone()); if too_long { 2 } else { 1 }];
        let (_, end) = run(Turn::new(setup()).unwrap(), &fails);
        let end = end.unwrap();
        assert_eq!(end.outcome.as_str(), outcome, "{error}");
        assert!(
            end.decision.text.to_lowercase().contains(words),
            "{error}: {}",
            end.decision.text
        );
        assert_eq!(end.error.unwrap().code(), error.code());
    }
}

#[test]
fn what_was_done_before_a_failure_is_said() {
    let waited = std::time::Duration::from_secs(30);
    let failure = ModelError::Timeout {
        provider: provider(),
        waited,
        bound: TimeBound::Silence,
    };
    let (_, end) = run(
        Turn::new(setup()).unwrap(),
        &[
            In::Calls(vec![("add", json!({}))]),
            In::Ends(vec![ran(json!(1), "Added “Milk”.")]),
            In::Fails(failure),
        ],
    );
    let text = end.unwrap().decision.text;
    assert!(
        text.starts_with("Added “Milk”.\n") && text.contains("temporarily unavailable"),
        "{text}"
    );
}

#[test]
fn stopping_gives_every_open_call_a_result() {
    let (_, end) = run(
        Turn::new(setup()).unwrap(),
        &[
            In::Calls(vec![("add", json!({})), ("add", json!({"x": 1}))]),
            In::Stop(StopReason::Cancelled),
        ],
    );
    let end = end.unwrap();
    assert_eq!(end.outcome, OutcomeCategory::Cancelled);
    assert_eq!(
        end.messages
            .iter()
            .filter(|message| message.tool_result().is_some())
            .count(),
        2
    );
    let (_, end) = run(
        Turn::new(setup()).unwrap(),
        &[In::Stop(StopReason::Deadline)],
    );
    assert_eq!(end.unwrap().outcome, OutcomeCategory::DeadlineLimit);
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
fn in_doubt_is_said_and_not_repeated() {
    let (_, end) = run(
        Turn::new(setup()).unwrap(),
        &[
            In::Calls(vec![("send", json!({}))]),
            In::Ends(vec![CallEnd::InDoubt {
                arguments: Arguments::new(),
            }]),
            In::Says("I could not send it."),
        ],
    );
    let end = end.unwrap();
    assert_eq!(end.outcome, OutcomeCategory::InDoubt);
    assert!(
        end.notices[0].text.contains("may or may not"),
        "{:?}",
        end.notices
    );
    let told = end.messages[2].tool_result().unwrap().2.to_json();
    assert_eq!(
        (&told["success"], &told["data"]["status"]),
        (&json!(false), &json!("unknown"))
    );
}

#[test]
fn a_doubt_waits_and_is_taken_as_done_or_left_open() {
    let CallEnd::Waiting(pending) = waits("Send a letter") else {
        panic!()
    };
    let doubt = Some(Doubt {
        attempt: 1,
        since: Timestamp::UNIX_EPOCH,
    });
    let doubtful = CallEnd::Waiting(PendingCall { doubt, ..pending });
    let arguments = Arguments::new();
    for (answer, outcome, told) in [
        (
            CallEnd::TakenAsDone {
                arguments: arguments.clone(),
            },
            OutcomeCategory::TaskCompleted,
            "done",
        ),
        (
            CallEnd::InDoubt {
                arguments: arguments.clone(),
            },
            OutcomeCategory::InDoubt,
            "unknown",
        ),
    ] {
        let inputs = [
            In::Calls(vec![("send", json!({}))]),
            In::Ends(vec![doubtful.clone()]),
            In::Ends(vec![answer]),
            In::Says("Well."),
        ];
        let (trace, end) = run(Turn::new(setup()).unwrap(), &inputs);
        assert!(
            trace[2].contains("may or may not") && trace[2].contains("Send a letter"),
            "{}",
            trace[2]
        );
        let end = end.unwrap();
        assert_eq!(end.outcome, outcome);
        let result = end.messages[2].tool_result().unwrap().2.clone();
        assert_eq!(result.data.unwrap()["status"], told);
    }
    // Stopped while it waits: it is not said that it did not run.
    let stopped = [
        In::Calls(vec![("send", json!({}))]),
        In::Ends(vec![doubtful]),
        In::Stop(StopReason::Cancelled),
    ];
    let end = run(Turn::new(setup()).unwrap(), &stopped).1.unwrap();
    assert_eq!(end.outcome, OutcomeCategory::Cancelled);
    assert!(
        end.decision.text.contains("may or may not"),
        "{}",
        end.decision.text
    );
    assert_eq!(end.tools_used[0].result, ToolResult::left_open());
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

#[test]
fn what_arrives_out_of_order_is_refused() {
    let mut turn = Turn::new(setup()).unwrap();
    assert!(turn.on_call_ends(Vec::new()).is_err());
    turn.start().unwrap();
    assert!(turn.start().is_err());
    assert!(turn.on_call_ends(Vec::new()).is_err());
    turn.on_model_result(Ok(reply(FinishReason::Stop, vec![text("Hi.")])))
        .unwrap();
    let error = turn
        .on_model_result(Ok(reply(FinishReason::Stop, vec![])))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "a model reply arrived while the turn was finished"
    );
}

/// What is refused changes nothing: it can arrive again, whole.
#[test]
fn an_incomplete_arrival_leaves_the_turn_as_it_was() {
    let mut turn = Turn::new(setup()).unwrap();
    turn.start().unwrap();
    let call = |name: &str| {
        Content::ToolCall(ToolCall::from_object(
            0,
            None,
            name.to_owned(),
            Arguments::new(),
        ))
    };
    let asked = reply(FinishReason::ToolCalls, vec![call("add"), call("drop")]);
    let Action::CallTools(calls) = turn.on_model_result(Ok(asked)).unwrap() else {
        panic!("no calls")
    };
    let ends: Vec<_> = calls
        .iter()
        .map(|call| (call.id.clone(), ran(json!(1), "Did it.")))
        .collect();
    let some = turn.on_call_ends(ends[..1].to_vec()).unwrap_err();
    assert!(some.to_string().contains("some calls only"), "{some}");
    let other = vec![(CallId::new("call_other").unwrap(), ran(json!(1), "Did it."))];
    assert!(
        turn.on_call_ends([ends.clone(), other].concat())
            .unwrap_err()
            .to_string()
            .contains("another call")
    );
    assert!(matches!(
        turn.on_call_ends(ends).unwrap(),
        Action::CallModel(_)
    ));
}

#[test]
fn an_empty_message_starts_no_turn() {
    assert!(
        Turn::new(TurnSetup {
            message: " \n".to_owned(),
            message_chars: 2,
            ..setup()
        })
        .is_err()
    );
}

#[test]
fn malformed_arguments_stay_visible() {
    let call = ToolCall::from_json_text(0, Some(String::new()), "add".to_owned(), r#"{"d": "half"#);
    assert_eq!(call.provider_id, None, "an empty provider id is none");
    let MalformedArguments { text, reason } = call.malformed.unwrap();
    assert!(text.ends_with("half") && reason.contains("EOF"), "{reason}");
    for none in ["", "  ", "null", "{}"] {
        let call = ToolCall::from_json_text(0, None, "add".to_owned(), none);
        assert!(
            call.malformed.is_none() && call.arguments.is_empty(),
            "{none:?}"
        );
    }
    assert!(
        ToolCall::from_json_text(0, None, "add".to_owned(), "[1]")
            .malformed
            .is_some()
    );
}

#[test]
fn history_is_trimmed_by_whole_turns_in_blocks() {
    let said = |n: usize| Message::user(format!("u{n}")).unwrap();
    let answered = |n: usize| Message::assistant(vec![Part::ours(text(&format!("a{n}")))]).unwrap();
    let past = |turns: usize| -> Vec<Message> {
        (0..turns).flat_map(|n| [said(n), answered(n)]).collect()
    };
    assert_eq!(trim(&past(10), Some(20)).len(), 20, "20 fit");
    let trimmed = |turns| {
        let past = past(turns);
        let kept = trim(&past, Some(20));
        (kept.len(), kept[0].text())
    };
    assert_eq!(
        trimmed(11),
        (10, "u6".to_owned()),
        "one too many: a whole block goes"
    );
    // The prefix stays for the next five turns.
    assert_eq!(trimmed(12), (12, "u6".to_owned()));
    assert_eq!(trimmed(16), (20, "u6".to_owned()));
    assert_eq!(trimmed(17), (10, "u12".to_owned()));
    assert_eq!(trim(&past(50), None).len(), 100);
    assert_eq!(trim(&[], Some(20)).len(), 0);
}

#[test]
fn a_message_is_cut_at_characters_not_bytes() {
    assert_eq!(cut("äöü", 3), None);
    assert_eq!(cut("äöüß", 3).as_deref(), Some("äöü"));
    assert_eq!(cut("", 0), None);
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

fn room(window: u32, reserve: u32, own: usize) -> Room {
    Room::new(window, reserve, Calibration::default()).for_turn(None, own)
}

fn parted(fitted: Fitted) -> (GenerateRequest, Vec<Notice>) {
    (fitted.request, fitted.notices)
}

fn codes(notices: &[Notice]) -> Vec<&str> {
    notices.iter().map(|notice| notice.code.as_str()).collect()
}

#[test]
fn a_request_is_fitted_step_by_step_and_says_so() {
    let mut messages = vec![Message::system("Be brief.").unwrap()];
    (1..=3).for_each(|n| messages.extend(reading(n, 1600)));
    messages.push(Message::user("and?").unwrap());
    let request = GenerateRequest::new(messages);
    let count = |text: &str| estimate_tokens(text);
    let fitted = |window| fit(request.clone(), &room(window, 100, 1), &count).map(parted);

    let (same, notices) = fitted(10_000).unwrap();
    assert_eq!((same, notices), (request.clone(), Vec::new()));

    let (cleared, notices) = fitted(1_100).unwrap();
    assert_eq!(cleared.messages.len(), 11);
    crate::message::check_pairing(&cleared.messages).unwrap();
    assert_eq!(
        notices[0].text,
        "The conversation is long: 1 old tool results were left out."
    );

    let (dropped, notices) = fitted(150).unwrap();
    crate::message::check_pairing(&dropped.messages).unwrap();
    assert_eq!(dropped.messages.last().unwrap().text(), "and?");
    assert!(
        dropped.messages.len() < 11 && notices.last().unwrap().text.contains("oldest messages")
    );

    let error = fitted(20).unwrap_err();
    assert!(error.to_string().contains("20 fit"), "{error}");
}

#[test]
fn a_result_longer_than_the_window_is_shown_in_part_the_same_part_each_time() {
    let count = |text: &str| estimate_tokens(text);
    let mut request = GenerateRequest::new(
        [
            vec![Message::system("Be brief.").unwrap()],
            reading(1, 200_000),
        ]
        .concat(),
    );
    let shown = |request: &GenerateRequest, n: usize, own: usize| {
        let (fitted, notices) =
            parted(fit(request.clone(), &room(4_096, 1_024, own), &count).unwrap());
        assert!(request_tokens(&fitted, &count) <= 4_096 - 1_024);
        crate::message::check_pairing(&fitted.messages).unwrap();
        (
            fitted.messages[n]
                .tool_result()
                .unwrap()
                .2
                .data
                .clone()
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned(),
            notices,
        )
    };
    let (first, notices) = shown(&request, 3, 3);
    assert_eq!(codes(&notices), ["result_in_part"]);
    assert!(
        notices[0]
            .text
            .contains("read is long (about 50012 tokens)"),
        "{}",
        notices[0].text
    );
    assert!(
        first.starts_with("xxx")
            && first.ends_with("xxx")
            && first.contains("of 200000 characters are left out here ...")
    );
    request.messages.push(Message::user("and?").unwrap());
    assert_eq!(shown(&request, 3, 1).0, first);
    let schema = json!({"type": "object"});
    request.tools = request
        .tools
        .with([ToolDefinition::new(READ_RESULT, "Reads on.", schema).unwrap()]);
    assert!(
        shown(&request, 3, 1)
            .0
            .contains("read_result with call \"call_1\" and from ")
    );
}

#[test]
fn many_results_in_one_turn_are_shortened_before_it_is_given_up() {
    let count = |text: &str| estimate_tokens(text);
    let mut messages = vec![Message::system("Be brief.").unwrap()];
    for n in 1..=5 {
        // One turn: only the first reading has a question.
        messages.extend(reading(n, 40_000).into_iter().skip(usize::from(n > 1)));
    }
    let (fitted, notices) = parted(
        fit(
            GenerateRequest::new(messages),
            &room(32_768, 1_024, 11),
            &count,
        )
        .unwrap(),
    );
    crate::message::check_pairing(&fitted.messages).unwrap();
    assert_eq!(fitted.messages.len(), 12);
    assert!(request_tokens(&fitted, &count) <= 32_768 - 1_024);
    assert_eq!(
        codes(&notices),
        ["result_in_part"],
        "what is said once is enough"
    );
    let last = fitted
        .messages
        .last()
        .unwrap()
        .tool_result()
        .unwrap()
        .2
        .data
        .clone()
        .unwrap();
    assert_eq!(
        *last,
        json!("x".repeat(40_000)),
        "what was read last stays whole"
    );
}

#[test]
fn a_failed_result_is_shortened_and_still_failed() {
    let count = |text: &str| estimate_tokens(text);
    let mut messages = reading(1, 8);
    let id = CallId::new("call_1").unwrap();
    messages[2] = Message::tool(id, "read", ToolResult::failed("ü".repeat(100_000))).unwrap();
    let (fitted, _) = parted(
        fit(
            GenerateRequest::new(messages),
            &room(4_096, 1_024, 3),
            &count,
        )
        .unwrap(),
    );
    let (_, _, result) = fitted.messages[2].tool_result().unwrap();
    assert!(
        !result.success
            && result
                .error
                .as_ref()
                .unwrap()
                .contains("of 100000 characters"),
        "{result:?}"
    );
}
