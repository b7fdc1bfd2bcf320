//! A final answer that has to fit a JSON Schema, and what turns cost.

use super::*;
use crate::output::OutputSchema;

fn city() -> TurnSetup {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
        "required": ["city", "people"],
    });
    TurnSetup {
        output: Some(OutputSchema::new(schema).unwrap()),
        ..setup()
    }
}

fn first_request(setup: TurnSetup) -> GenerateRequest {
    let Action::CallModel(request) = Turn::new(setup).unwrap().start().unwrap() else {
        panic!()
    };
    *request
}

#[test]
fn tools_run_and_the_answer_is_a_value() {
    let (trace, end) = run(
        Turn::new(city()).unwrap(),
        &[
            In::Calls(vec![("add", json!({}))]),
            In::Ends(vec![ran(json!(1), "Added.")]),
            In::Says("```json\n{\"city\": \"Oslo\", \"people\": 7}\n```"),
        ],
    );
    let end = end.unwrap();
    assert_eq!(end.output, Some(json!({"city": "Oslo", "people": 7})));
    assert_eq!(
        trace[3], r#"finish INVOKE_TOOL add SUCCESS:TASK_COMPLETED: {"city": "Oslo", "people": 7}"#,
        "the person gets the JSON without its fence"
    );
    assert_eq!(
        end.messages.len(),
        4,
        "what the model said is in the history once"
    );
    assert!(
        end.messages[3].text().starts_with("```json"),
        "as it said it"
    );
}

#[test]
fn the_models_own_form_is_used_where_it_covers_the_request() {
    for (support, tools, native) in [
        (SchemaSupport::Native, true, true),
        (SchemaSupport::WithoutTools, true, false),
        (SchemaSupport::WithoutTools, false, true),
        (SchemaSupport::Prompted, false, false),
    ] {
        let mut setup = TurnSetup {
            schema_support: support,
            ..city()
        };
        if !tools {
            setup.tools = crate::ToolSet::default();
        }
        let schema = setup.output.clone().unwrap();
        let request = first_request(setup.clone());
        assert_eq!(
            request.response_schema.as_ref(),
            native.then_some(schema.as_json()),
            "{support:?} {tools}"
        );
        let instruction = request.messages[0].text();
        if native {
            assert_eq!(instruction, "Be brief.");
        } else {
            assert!(instruction.starts_with("Be brief.\n\n"), "{instruction}");
            assert!(
                instruction.ends_with(&schema.as_json().to_string()),
                "{instruction}"
            );
        }
        assert_eq!(request, first_request(setup), "the same bytes every time");
    }
}

#[test]
fn a_value_that_is_no_object_is_asked_for_in_words() {
    let output = OutputSchema::new(json!({"type": "array", "items": {"type": "string"}})).unwrap();
    let setup = TurnSetup {
        output: Some(output),
        ..setup()
    };
    let request = first_request(setup.clone());
    assert_eq!(request.response_schema, None);
    assert!(request.messages[0].text().contains(r#"{"type":"array""#));
    let (_, end) = run(Turn::new(setup).unwrap(), &[In::Says(r#"["a"]"#)]);
    assert_eq!(end.unwrap().output, Some(json!(["a"])));
}

#[test]
fn an_answer_that_does_not_fit_is_asked_for_again_with_the_place() {
    check_with(
        city(),
        &[
            In::Says(r#"{"city": "Oslo", "people": "seven"}"#),
            In::Says(r#"{"city": "Oslo", "people": 7}"#),
        ],
        expect![[r#"
            call model (2 messages, last: hello)
            call model (4 messages, last: [Your last answer does not fit the JSON Schema it has to fit: /people: "seven" is not of type "integer". Answer again, with JSON only.])
            finish RESPOND_ONLY GENERAL_CHAT SUCCESS:RESPONSE_GIVEN: {"city": "Oslo", "people": 7}
        "#]],
    );
}

#[test]
fn an_answer_that_never_fits_is_a_failure_and_not_a_success() {
    // A question in words is no answer either: there is `ask_user` for that.
    let (trace, end) = run(
        Turn::new(city()).unwrap(),
        &[In::Says("Which city?"), In::Says("Oslo has 7.")],
    );
    assert_eq!(trace.len(), 3, "asked again once, {}", trace.join("\n"));
    let end = end.unwrap();
    assert_eq!(
        (end.outcome, end.output),
        (OutcomeCategory::LlmFailure, None)
    );
    let Some(TurnError::Model {
        error: ModelError::InvalidResponse { reason, raw, .. },
    }) = end.error
    else {
        panic!("{:?}", end.error)
    };
    assert!(
        reason.contains("JSON Schema, again: the answer is not JSON"),
        "{reason}"
    );
    assert_eq!(raw, "Oslo has 7.");
    assert_eq!(end.decision.text, words::TROUBLE_PROCESSING);
    assert_eq!(end.messages.len(), 2, "nothing of the tries is kept");
}

#[test]
fn a_question_a_refusal_and_a_cut_need_no_form() {
    for (input, outcome) in [
        (
            In::Calls(vec![("ask_user", json!({"question": "Which?"}))]),
            OutcomeCategory::UnclearIntent,
        ),
        (
            In::Calls(vec![("decline", json!({"message": "No."}))]),
            OutcomeCategory::OutOfScope,
        ),
        (
            In::Reply(FinishReason::MaxTokens, vec![text(r#"{"city": "#)]),
            OutcomeCategory::MaxTokensLimit,
        ),
        (
            In::Reply(FinishReason::ContentFilter, vec![]),
            OutcomeCategory::ContentFilter,
        ),
    ] {
        let (_, end) = run(Turn::new(city()).unwrap(), &[input]);
        let end = end.unwrap();
        assert_eq!((end.outcome, end.output), (outcome, None));
    }
}

#[test]
fn tools_that_failed_leave_the_json_whole() {
    let (_, end) = run(
        Turn::new(city()).unwrap(),
        &[
            In::Calls(vec![("add", json!({}))]),
            In::Ends(vec![broke("no paper")]),
            In::Says(r#"{"city": "", "people": 0}"#),
        ],
    );
    let end = end.unwrap();
    assert_eq!(
        (end.outcome, end.output.is_some()),
        (OutcomeCategory::ToolFailure, true)
    );
    assert_eq!(end.decision.text, r#"{"city": "", "people": 0}"#);
}

#[test]
fn one_round_of_actions_is_no_structured_answer() {
    let weak = TurnSetup {
        style: ToolStyle::OneRound,
        ..city()
    };
    let (_, end) = run(
        Turn::new(weak).unwrap(),
        &[
            In::Calls(vec![("add", json!({}))]),
            In::Ends(vec![ran(json!(1), "Added.")]),
        ],
    );
    let end = end.unwrap();
    assert_eq!(
        (end.outcome, end.output),
        (OutcomeCategory::LlmFailure, None)
    );
    assert!(
        end.decision.text.starts_with("Added."),
        "what was done is said: {}",
        end.decision.text
    );
}

#[test]
fn a_turn_costs_what_its_calls_cost_and_nothing_is_guessed() {
    let cost = |costs: &[Option<u64>]| {
        let mut turn = Turn::new(setup()).unwrap();
        turn.start().unwrap();
        let mut end = None;
        for (at, cost) in costs.iter().enumerate() {
            let last = at + 1 == costs.len();
            let (finish, contents) = if last {
                (FinishReason::Stop, vec![text("Done.")])
            } else {
                (
                    FinishReason::ToolCalls,
                    calls(&[("add", json!({"at": at}))]),
                )
            };
            let reply = GenerateResponse {
                cost: cost.map(Cost::from_nano_usd),
                ..reply(finish, contents)
            };
            end = match turn.on_model_result(Ok(reply)).unwrap() {
                Action::CallTools(called) => {
                    turn.on_call_ends(vec![(called[0].id.clone(), ran(json!(1), ""))])
                        .unwrap();
                    None
                }
                Action::Finish(end) => Some(end),
                other => panic!("{other:?}"),
            };
        }
        end.unwrap().cost.map(Cost::nano_usd)
    };
    assert_eq!(cost(&[Some(3), Some(4)]), Some(7));
    assert_eq!(cost(&[Some(0)]), Some(0));
    assert_eq!(cost(&[Some(3), None]), None);
    assert_eq!(cost(&[None, Some(4)]), None);
}

#[test]
fn what_could_not_be_sent_is_said_once_a_turn() {
    let mut turn = Turn::new(setup()).unwrap();
    turn.start().unwrap();
    let losses = vec!["temperature was left out".to_owned()];
    let asks = reply(FinishReason::ToolCalls, calls(&[("add", json!({}))]));
    let asks = GenerateResponse {
        losses: losses.clone(),
        ..asks
    };
    let Action::CallTools(called) = turn.on_model_result(Ok(asks)).unwrap() else {
        panic!()
    };
    turn.on_call_ends(vec![(called[0].id.clone(), ran(json!(1), ""))])
        .unwrap();
    let says = GenerateResponse {
        losses,
        ..reply(FinishReason::Stop, vec![text("Done.")])
    };
    let Action::Finish(end) = turn.on_model_result(Ok(says)).unwrap() else {
        panic!()
    };
    assert_eq!(end.notices, [Notice::not_sent("temperature was left out")]);
}
