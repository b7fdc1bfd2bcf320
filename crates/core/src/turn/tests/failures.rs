//! Unusable answers, failed model calls, stopped turns, and what arrives out of order.

use super::*;

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
                message: message(),
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
                source: None,
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
            ModelError::NotPermitted {
                provider: provider(),
                message: message(),
            },
            "ERROR:LLM_FAILURE",
            "not set up",
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
                source: None,
            },
            "ERROR:LLM_FAILURE",
            "trouble processing",
        ),
        (
            ModelError::Truncated {
                provider: provider(),
                reason: message(),
                source: None,
            },
            "ERROR:LLM_FAILURE",
            "temporarily unavailable",
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

/// A rejected arrival changes nothing, so that it can arrive again.
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
